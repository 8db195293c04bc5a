"""Models made of JAX functions that were PyMC models."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import LinearPredictorModel, Model, Position, PRNGKey, Rows
from coremcmc.models.special import with_fast_logarithms
from coremcmc.pytrees import prepared

__all__ = ["Column", "PyMCLinearModel", "PyMCModel", "TranslatedModel"]

Function = Callable[..., Any]


class Column(NamedTuple):
    """What the model expects of a column: its dtype, and the shape of a row's entry."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslatedModel(Model):
    """What the two forms below share.

    The position holds PyMC's value variables, unconstrained, by their names (``sigma_log__``).
    Two translations of the same PyMC model are equal, whatever rows they came with, so that
    programs compiled for the one serve the other.

    Attributes
    ----------
    fields, columns
        The containers that the likelihood reads, and what they hold.
    point
        PyMC's initial point, in the order in which the functions take parameters.
    names
        Names of the output.
    prior, constrained
        Functions of the parameters: the log prior and the named output, in lists.
    terms, num_terms
        Function of a row's entries: costly terms that are computed once, in a list, and how many.
    row
        The log-likelihood of one row, in a list: a function of parameters, entries and terms.
    identity
        Tells this model from others, in any process.
    """

    fields: tuple[str, ...]  # type: ignore[misc]
    columns: tuple[Column, ...]
    point: tuple[tuple[str, np.ndarray], ...]
    names: tuple[str, ...]
    prior: Function
    terms: Function
    num_terms: int
    row: Function
    constrained: Function
    identity: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TranslatedModel) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def _values(self, position: Position) -> list[Array]:
        return [jnp.asarray(position[name]) for name, _ in self.point]

    def _entries(self, rows: Rows) -> list[Array]:
        """Return the columns with an axis of length one for the row that each entry is."""
        return [jnp.expand_dims(rows[name], 1) for name in self.fields]

    def _entries_and_terms(self, rows: Rows) -> list[Array]:
        return [*self._entries(rows), *(rows[f"term {k}"] for k in range(self.num_terms))]

    def logprior_fn(self, position: Position) -> Float[Array, ""]:
        """Log density of the free variables, the Jacobians of their transforms included."""
        return jnp.asarray(self.prior(*self._values(position))[0])

    def prepare_rows(self, rows: Rows) -> Rows:
        """Give the columns the types that the model was written for, and compute their terms."""
        rows = {
            name: jnp.asarray(rows[name]).astype(column.dtype)
            for name, column in zip(self.fields, self.columns, strict=True)
        }
        terms = jax.vmap(lambda *entries: tuple(self.terms(*entries)))(*self._entries(rows))
        return rows | {f"term {k}": term for k, term in enumerate(terms)}

    def initial_position(self, rng_key: PRNGKey, rows: Rows) -> Position:
        """PyMC's initial point with its jitter of U(−1, 1), or without where that is no start."""
        keys = jax.random.split(rng_key, len(self.point))
        point = {name: jnp.asarray(value) for name, value in self.point}
        jittered = {
            name: value + jax.random.uniform(key, value.shape, value.dtype, -1.0, 1.0)
            for key, (name, value) in zip(keys, point.items(), strict=True)
        }
        density = self.logprior_fn(jittered) + self.loglikelihood_fn(jittered, rows).sum()
        return jax.tree.map(lambda x, y: jnp.where(jnp.isfinite(density), x, y), jittered, point)

    def constrain_fn(self, position: Position) -> Mapping[str, Array]:
        """Free variables on their own scale, and the deterministics that read no rows."""
        values = self.constrained(*self._values(position))
        return dict(zip(self.names, map(jnp.asarray, values), strict=True))

    def check_rows(self, rows: Rows) -> None:
        """Columns have the model's shapes, and every row is in the likelihood's support."""
        for name, column in zip(self.fields, self.columns, strict=True):
            if rows[name].shape[1:] != column.shape:
                raise ValueError(
                    f"data[{name!r}] has shape {rows[name].shape}, but the model was written for "
                    f"{('rows', *column.shape)}."
                )
            _require_fit(name, rows[name], np.dtype(column.dtype))
        with jax.enable_x64(True):
            terms = np.asarray(_terms_at_start(self, {name: rows[name] for name in self.fields}))
        bad = ~np.isfinite(terms)
        if bad.any():
            where = int(np.argmax(bad))
            entries = {name: rows[name][where].tolist() for name in self.fields}
            raise ValueError(
                f"the log-likelihood of row {where:,} is {terms[where]} at PyMC's initial point "
                f"({int(bad.sum()):,} such rows). Check that its data lie in the support of their "
                f"distribution: {entries}."
            )

    def describe(self) -> str:
        """Names of the parameters and columns, and a digest of the graph and its constants."""
        return self.identity


@dataclass(frozen=True, eq=False, kw_only=True)
class PyMCModel(TranslatedModel):
    """A PyMC model as :func:`coremcmc.from_pymc` translates it."""

    def loglikelihood_fn(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Log density of each row's observed entries."""
        return with_fast_logarithms(self._loglikelihoods)(position, rows)

    def _loglikelihoods(self, position: Position, rows: Rows) -> Array:
        values = self._values(position)
        columns = self._entries_and_terms(rows)
        return jax.vmap(lambda *entries: self.row(*values, *entries)[0])(*columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class PyMCLinearModel(TranslatedModel, LinearPredictorModel):
    """The same for a PyMC model with a linear predictor, which ``row`` takes first.

    Attributes
    ----------
    eta
        The predictor of one row, in a list: a function of parameters and entries.
    eta_shape
        Its shape in PyMC, of ones.
    """

    eta: Function
    eta_shape: tuple[int, ...]

    def predictor(self, position: Position, rows: Rows) -> Float[Array, " rows"]:
        """Linear predictor of each row."""
        values = self._values(position)

        def one(*entries: Any) -> Any:
            return self.eta(*values, *entries)[0].reshape(())

        return jax.vmap(one)(*self._entries(rows))

    def pointwise(
        self, eta: Float[Array, " rows"], rows: Rows, position: Position
    ) -> Float[Array, " rows"]:
        """Log density of each row's observed entries given its linear predictor."""
        return with_fast_logarithms(self._pointwise)(eta, rows, position)

    def _pointwise(self, eta: Array, rows: Rows, position: Position) -> Array:
        values = self._values(position)

        def one(eta: Any, *entries: Any) -> Any:
            return self.row(eta.reshape(self.eta_shape), *values, *entries)[0]

        return jax.vmap(one)(eta, *self._entries_and_terms(rows))


def _require_fit(name: str, values: np.ndarray, dtype: np.dtype) -> None:
    """Refuse numbers that the model's integers cannot hold."""
    if not np.issubdtype(dtype, np.integer) or not values.size:
        return
    is_whole = values.dtype.kind != "f" or bool((values == np.floor(values)).all())
    limits = np.iinfo(dtype)
    if not is_whole or values.min() < limits.min or values.max() > limits.max:
        raise ValueError(
            f"data[{name!r}] must hold integers of type {dtype}, as in the model, but holds "
            "others. Round them, or put such numbers into pm.Data when the model is written."
        )


@functools.partial(jax.jit, static_argnums=0)
def _terms_at_start(model: Model, stored_rows: Rows) -> Array:
    position = {name: jnp.asarray(value) for name, value in model.point}  # type: ignore[attr-defined]
    return model.loglikelihood_fn(position, prepared(model, stored_rows))
