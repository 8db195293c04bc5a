"""NumPyro models whose observed rows are independent given global parameters.

The model is run anew, by NumPyro's handlers, whenever JAX traces a program: on the rows of the
coreset, on a subsample, on a block of the data. Nothing is rebuilt when rows change.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from coremcmc.base import LinearPredictorModel, Model, Position, PRNGKey, Rows, wide
from coremcmc.data.memory import MemoryData
from coremcmc.models.jaxpr import LinearSplit, digest, split_linear
from coremcmc.models.numpyro.program import Program, bind, is_valid, log_terms
from coremcmc.models.numpyro.sites import ROW_COUNTS, Sites, find_sites
from coremcmc.models.numpyro.survey import shapes_of
from coremcmc.models.numpyro.verify import telling_rows, verify
from coremcmc.models.special import with_fast_logarithms
from coremcmc.pytrees import prepared

__all__ = ["NumPyroModel", "NumPyroProblem", "from_numpyro"]

_RADIUS = 2.0  # of the starting positions, as NumPyro has it
_MAX_TRIES = 100


class NumPyroProblem(NamedTuple):
    """What :func:`coremcmc.fit` needs: ``coremcmc.fit(*problem, coreset_size=500)``.

    Attributes
    ----------
    model
        The prior and the likelihood.
    data
        The rows: arrays by the names of the model's arguments.
    """

    model: "NumPyroModel"
    data: dict[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class NumPyroModel(Model):
    """A NumPyro model taken apart into prior and rows; :func:`coremcmc.from_numpyro` makes it.

    The position holds the unconstrained values of the sampled sites, by their names. Two such
    models are equal if they compute the same, whatever their data.
    """

    fields: tuple[str, ...]  # type: ignore[misc]
    program: Program
    sites: Sites
    example: Rows
    identity: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumPyroModel) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Log density of all sites but the rows', with the Jacobians of their transforms."""
        return self.prior_beside(position, _asarrays(self.example))

    def prior_beside(self, position: Position, rows: Rows) -> Float[Array, ""]:
        """Log prior where the model runs on these rows, which make no difference to it."""
        hidden = [name for name, _ in self.sites.row_axes]
        return self.program.logdensity(position, rows, hidden)

    def loglikelihood_fn(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Log density of each row's entries at the observed sites."""

        def terms(position: Any, rows: Any) -> Any:
            found = self.program.trace(position, rows)
            each = [_by_row(log_terms(found[name]), axis) for name, axis in self.sites.row_axes]
            return functools.reduce(jnp.add, each)

        return with_fast_logarithms(terms)(position, rows)

    def prepare_rows(self, rows: Rows) -> Rows:
        """Give numbers 64 bits."""
        return jax.tree.map(lambda x: x.astype(wide(x.dtype)), rows)

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """Uniform on (−2, 2), as NumPyro starts; nearer to zero while the density is not finite."""

        def draw(tries: Any) -> Any:
            radius = _RADIUS * 0.9**tries
            keys = jax.random.split(jax.random.fold_in(rng_key, tries), len(self.sites.latents))
            return {
                name: jax.random.uniform(key, shape, float, -radius, radius)
                for key, (name, shape) in zip(keys, self.sites.latents, strict=True)
            }

        def is_outside(tries: Any) -> Any:
            position = draw(tries)
            density = self.logprior_fn(position) + self.loglikelihood_fn(position, rows).sum()
            return (tries < _MAX_TRIES) & ~jnp.isfinite(density)

        return draw(jax.lax.while_loop(is_outside, lambda tries: tries + 1, 0))

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """Sampled sites on their own scale, and deterministic sites that read no rows."""
        found = self.program.trace(position, _asarrays(self.example))
        return {name: jnp.asarray(found[name]["value"]) for name in self.sites.outputs}

    def check_rows(self, rows: Rows) -> None:
        """Columns have the shapes that the model was taken apart with; values are in the support.

        Supports that depend on parameters are not checked.
        """
        _require_alike(rows, self.example)
        if not self.sites.checkable:
            return
        with jax.enable_x64(True):
            outside = {k: np.asarray(x) for k, x in _outside(self, dict(rows)).items()}
        for name, bad in outside.items():
            if bad.any():
                where = int(np.argmax(bad))
                entries = jax.tree.map(lambda x, i=where: np.asarray(x[i]).tolist(), dict(rows))
                raise ValueError(
                    f"the observation of site {name!r} at row {where:,} is outside of the support "
                    f"of its distribution ({int(bad.sum()):,} such rows). The row holds {entries}."
                )

    def describe(self) -> str:
        """Return names of rows and parameters, and a digest of what the model computes."""
        return _identify(self.fields, self.program, self.sites, self.example)


class LinearNumPyroModel(NumPyroModel, LinearPredictorModel):
    """The same, where rows enter through one linear predictor, which was not said but found."""

    def _split(self, position: Position, rows: Rows) -> LinearSplit:
        found = split_linear(super().loglikelihood_fn, position, rows)
        if found is None:
            raise ValueError("the model has no linear predictor for this number of rows.")
        return found

    def predictor(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Return what the likelihood is a function of, row by row."""
        return self._split(position, rows).predictor(position, rows)

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Log density of each row's entries given its linear predictor."""
        return self._split(position, rows).pointwise(eta, rows, position)

    def loglikelihood_fn(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Log density of each row's entries at the observed sites."""
        split = self._split(position, rows)
        return split.pointwise(split.predictor(position, rows), rows, position)


def from_numpyro(model: Any, data: Any, *, constants: Any = None) -> NumPyroProblem:
    """Take a NumPyro model whose observed rows are independent given global parameters.

    Before it returns, the prior plus the rows is compared with NumPyro's own log density, on a few
    rows in several orders and numbers.

    Parameters
    ----------
    model
        A NumPyro model: a function with ``numpyro.sample`` statements.
    data
        Arrays by the names of the model's arguments, one entry per row each: features and
        observations. A table with such columns will do.
    constants
        The other arguments of the model, by name.

    Returns
    -------
    A pair ``(model, data)`` for :func:`coremcmc.fit`.

    Raises
    ------
    ValueError
        With the reason, for a model whose rows cannot be weighed: local or discrete latent
        variables, rows that depend on each other, a likelihood in ``numpyro.factor``, subsampling
        or scaling in the model, data that are no arguments.

    Examples
    --------
    >>> import numpy as np, numpyro, numpyro.distributions as dist, coremcmc
    >>> def linear(x, y=None):
    ...     slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    ...     sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    ...     with numpyro.plate("rows", x.shape[0]):
    ...         numpyro.sample("y", dist.Normal(slope * x, sigma), obs=y)
    >>> x = np.linspace(-1.0, 1.0, 1000)
    >>> problem = coremcmc.from_numpyro(linear, {"x": x, "y": 0.5 * x})
    >>> problem.model.sites.outputs
    ('slope', 'sigma')
    """
    _require_numpyro()
    if hasattr(data, "columns"):
        data = {str(name): data[name] for name in data.columns}
    if not isinstance(data, Mapping) or not isinstance(constants or {}, Mapping):
        raise ValueError(
            "data and constants must map names of the model's arguments to arrays: "
            "from_numpyro(model, {'x': x, 'y': y})."
        )
    program = bind(model, data, constants or {})
    source = MemoryData(data)
    with jax.enable_x64(True):
        sites = find_sites(program, source.rows, source.num_rows)
        few = telling_rows(source.rows)
        example = _frozen(source.take(few[: ROW_COUNTS[1]]))
        fields = tuple(map(str, data))
        identity = _identify(fields, program, sites, example)
        parts = {"fields": fields, "program": program, "sites": sites, "example": example}
        adapted = NumPyroModel(**parts, identity=identity)
        if _has_linear_predictor(adapted):
            adapted = LinearNumPyroModel(**parts, identity=identity)
        source.check(adapted)
        verify(adapted, source.take(few))
    return NumPyroProblem(adapted, source.rows)


def _identify(fields: tuple[str, ...], program: Program, sites: Sites, example: Rows) -> str:
    """Return one line: the same for models that compute the same, in any process."""

    def everything(position: Any, rows: Any) -> Any:
        found = program.trace(position, rows)
        return (
            program.logdensity(position, rows, [name for name, _ in sites.row_axes]),
            [_by_row(log_terms(found[name]), axis) for name, axis in sites.row_axes],
            [found[name]["value"] for name in sites.outputs],
        )

    with jax.enable_x64(True):
        position = {name: jax.ShapeDtypeStruct(s, jnp.float64) for name, s in sites.latents}
        code = digest(everything, position, shapes_of(example, ROW_COUNTS[1]))
    parameters = ", ".join(f"{name}{list(shape)}" for name, shape in sites.latents)
    return f"NumPyroModel({', '.join(fields)}; {parameters}; {', '.join(sites.outputs)}; {code})"


def _has_linear_predictor(model: NumPyroModel) -> bool:
    """Whether there is one, whatever the number of rows."""
    position = {k: jax.ShapeDtypeStruct(s, jnp.float64) for k, s in model.sites.latents}
    return all(
        split_linear(model.loglikelihood_fn, position, shapes_of(model.example, count))
        for count in (1, *ROW_COUNTS)
    )


def _by_row(terms: Array, axis: int) -> Float[Array, " rows"]:
    others = tuple(i for i in range(-terms.ndim, 0) if i != axis)
    return terms.sum(axis=others)


def _asarrays(rows: Rows) -> Rows:
    return jax.tree.map(jnp.asarray, rows)


def _frozen(rows: Rows) -> Rows:
    """Return rows as the model gets them, read-only."""

    def freeze(column: Any) -> Any:
        copy = column.astype(wide(column.dtype))
        copy.setflags(write=False)
        return copy

    return jax.tree.map(freeze, rows)


@functools.partial(jax.jit, static_argnums=0)
def _outside(model: NumPyroModel, stored_rows: Rows) -> dict[str, Bool[Array, " rows"]]:
    """Tell of each row whether its entries are outside of their support."""
    position = {name: jnp.zeros(shape) for name, shape in model.sites.latents}
    found = model.program.trace(position, prepared(model, stored_rows))
    axes = dict(model.sites.row_axes)
    outside = {}
    for name in model.sites.checkable:
        shape = log_terms(found[name]).shape
        bad = jnp.broadcast_to(~is_valid(found[name]), shape)
        others = tuple(i for i in range(-len(shape), 0) if i != axes[name])
        outside[name] = bad.any(axis=others)
    return outside


def _require_alike(rows: Rows, example: Rows) -> None:
    found, expected = (
        {jax.tree_util.keystr(p): x.shape[1:] for p, x in jax.tree_util.tree_leaves_with_path(r)}
        for r in (rows, example)
    )
    for name, shape in expected.items():
        if found.get(name) != shape:
            there = "is missing" if name not in found else f"has rows of shape {found[name]}"
            raise ValueError(
                f"data{name} {there}, but the model was made for rows of shape {shape}. Call "
                "from_numpyro with these data."
            )


def _require_numpyro() -> None:
    try:
        import numpyro  # noqa: F401
    except ImportError as error:
        raise ImportError("from_numpyro needs NumPyro: pip install 'coremcmc[numpyro]'.") from error
