"""A NumPyro model run on shapes alone: its sites, or why it cannot be run.

Nothing is computed, so that any number of rows costs the same.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc.base import Rows, wide
from coremcmc.models.numpyro.program import Program, log_terms, parameters_of

__all__ = ["Site", "Survey", "forgotten", "shapes_of", "survey_all", "survey_few"]

_PRIMITIVES = {
    "param": "numpyro.param or a neural-network module, whose values are optimized, not sampled: "
    "give them a prior with numpyro.sample",
    "mutable": "numpyro.mutable, which changes from run to run: leave it out",
    "prng_key": "numpyro.prng_key, which makes its density random: leave it out",
    "control_flow": "numpyro.contrib.control_flow, whose sites lie in a loop or a branch: write "
    "the sites outside of it, a random walk for example as jnp.cumsum of a vector of steps",
}


class Site(NamedTuple):
    """One site: its shape, and that of its log density, entry by entry.

    ``kind`` is "latent", "observed", "factor" or "deterministic".
    """

    kind: str
    value_shape: tuple[int, ...]
    terms_shape: tuple[int, ...]
    is_scaled: bool


class Survey(NamedTuple):
    """What a run on shapes has found; filled as it goes, so that a failed run tells too."""

    latents: dict[str, tuple[int, ...]]
    sites: dict[str, Site]
    plates: dict[str, int]


def shapes_of(rows: Rows, count: int) -> Rows:
    """Return the shapes and types of so many rows, as the model gets them."""

    def shape(column: Any) -> Any:
        return jax.ShapeDtypeStruct((count, *column.shape[1:]), wide(column.dtype))

    return jax.tree.map(shape, rows)


def forgotten(program: Program, rows: Rows) -> str:
    """Name the arguments that were left at None: an observation forgotten there is a parameter."""
    left = [
        name
        for name, parameter in parameters_of(program.function).items()
        if parameter.default is None and name not in rows and name not in program.constants
    ]
    if not left:
        return ""
    return f" (The argument(s) {', '.join(left)} were left at None: observations belong in data.)"


def _survey(program: Program, shapes: Rows, found: Survey, hint: str) -> None:
    from numpyro import distributions, handlers

    def guard(message: Any) -> Any:
        kind = message["type"]
        if kind in _PRIMITIVES:
            name = f" (site {message['name']!r})" if message.get("name") else ""
            raise _RefusedError(f"the model uses {_PRIMITIVES[kind]}{name}.")
        if kind == "plate":
            size, subsample_size = message["args"]
            found.plates[message["name"]] = size
            if subsample_size is not None and subsample_size != size:
                raise _RefusedError(
                    f"the plate {message['name']!r} has subsample_size={subsample_size}, which "
                    "scales its log density up. Leave it out: subsampling is done here."
                )
        return False

    def start(site: Any) -> Any:
        if site["type"] != "sample" or site["is_observed"]:
            return None
        transform = _transform(site, hint)
        shape = site["fn"].shape(site["kwargs"].get("sample_shape", ()))
        found.latents[site["name"]] = tuple(transform.inverse_shape(shape))
        return transform(jnp.zeros(found.latents[site["name"]]))

    def run(rows: Any) -> Any:
        guarded = handlers.block(program, hide_fn=guard)
        placed = handlers.substitute(guarded, substitute_fn=start)
        for name, site in handlers.trace(placed).get_trace(rows).items():
            value_shape = jnp.shape(site.get("value"))
            if site["type"] == "deterministic":
                found.sites[name] = Site("deterministic", value_shape, (), False)
            elif site["type"] == "sample":
                kind = "observed" if site["is_observed"] else "latent"
                if isinstance(_base(site["fn"]), distributions.Unit):
                    kind = "factor"
                is_scaled = site["scale"] is not None and not _is_one(site["scale"])
                found.sites[name] = Site(kind, value_shape, log_terms(site).shape, is_scaled)

    jax.eval_shape(run, shapes)


class _RefusedError(ValueError):
    """A reason of our own, to be told from an error inside the model."""


def _transform(site: Mapping[str, Any], hint: str) -> Any:
    """Return the map from unconstrained values to a parameter's support."""
    from numpyro import distributions
    from numpyro.distributions.transforms import biject_to

    name, distribution = site["name"], site["fn"]
    if isinstance(_base(distribution), distributions.Delta):
        raise _RefusedError(
            f"the site {name!r} is sampled from a Delta distribution. Use numpyro.deterministic."
        )
    support = distribution.support
    if support.is_discrete:
        raise _RefusedError(
            f"the parameter {name!r} is discrete, and chains here move along gradients. Sum it "
            f"out, for example with numpyro.distributions.MixtureSameFamily.{hint}"
        )
    try:
        return biject_to(support)
    except NotImplementedError:
        raise _RefusedError(
            f"the parameter {name!r} has support {support}, which no map from unconstrained "
            "values is known for. Use numpyro.handlers.reparam, or another distribution."
        ) from None


def _base(distribution: Any) -> Any:
    """Look through masks, expansions and event dimensions."""
    from numpyro import distributions as dist

    wrappers = (dist.MaskedDistribution, dist.ExpandedDistribution, dist.Independent)
    while isinstance(distribution, wrappers):
        distribution = distribution.base_dist
    return distribution


def _is_one(scale: Any) -> bool:
    return not isinstance(scale, jax.core.Tracer) and bool(np.all(np.asarray(scale) == 1.0))


def survey_all(program: Program, shapes: Rows, hint: str) -> Survey:
    """Run the model on all rows; raise ``ValueError`` with the reason where that fails."""
    found = Survey({}, {}, {})
    try:
        _survey(program, shapes, found, hint)
    except _RefusedError:
        raise
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            "the model needs the values of its rows before they are known: "
            f"{_first_line(error)} Inside the model use jax.numpy, not numpy, on them; give what "
            "is derived from all rows, such as a number of groups, in constants."
        ) from error
    except Exception as error:
        raise ValueError(
            f"the model fails on data: {type(error).__name__}: {_first_line(error)}"
        ) from error
    return found


def survey_few(program: Program, rows: Rows, count: int, num_rows: int, whole: Survey) -> Survey:
    """Run the model on a few rows; a model that runs on all of them must run on these."""
    found = Survey({}, {}, {})
    try:
        _survey(program, shapes_of(rows, count), found, "")
    except _RefusedError:
        raise
    except Exception as error:
        reasons = [
            f"The plate {name!r} has the fixed size {size:,}: take it from the rows, as x.shape[0]."
            for name, size in found.plates.items()
            if size == whole.plates.get(name) == num_rows
        ]
        long = [
            name
            for name, value in program.constants.items()
            if any(np.shape(x)[:1] == (num_rows,) for x in jax.tree.leaves(value))
        ]
        if long:
            reasons.append(f"The constant(s) {', '.join(long)} have {num_rows:,} rows.")
        reasons.append(
            "Everything with one entry per row must be an argument in data, none of it taken from "
            "outside the model or from constants."
        )
        raise ValueError(
            f"the model runs on all {num_rows:,} rows, but not on {count} of them: "
            f"{_first_line(error)} {' '.join(reasons)}"
        ) from error
    return found


def _first_line(error: Exception) -> str:
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return line if line.endswith((".", ":")) else f"{line}."
