"""The sites of a NumPyro model: which are parameters, which are rows, which cannot be served.

A coreset weighs rows, so the log density must be a prior plus a sum over rows, and every row must
come in through an argument. What is visibly otherwise is refused here, by running the model on
shapes alone, for several numbers of rows; the rest is found out by numbers, in
:mod:`coremcmc.models.numpyro.verify`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coremcmc.base import Rows
from coremcmc.models.jaxpr import dependencies
from coremcmc.models.numpyro.program import Program, is_valid, log_terms
from coremcmc.models.numpyro.survey import (
    Site,
    Survey,
    forgotten,
    shapes_of,
    survey_all,
    survey_few,
)

__all__ = ["ROW_COUNTS", "Sites", "find_sites"]

ROW_COUNTS = (31, 18)
"""Numbers of rows on which a model is tried."""

_ROWS = 1  # number of the argument in the functions whose dependencies are asked for


class Sites(NamedTuple):
    """What a model consists of.

    Attributes
    ----------
    latents
        Parameters: the unconstrained shape of each.
    row_axes
        Observed sites that hold the rows, and which axis of their log density is the rows'.
    outputs
        Parameters and deterministic sites that do not depend on the rows.
    checkable
        Sites of ``row_axes`` whose support does not depend on the parameters.
    """

    latents: tuple[tuple[str, tuple[int, ...]], ...]
    row_axes: tuple[tuple[str, int], ...]
    outputs: tuple[str, ...]
    checkable: tuple[str, ...]


def find_sites(program: Program, rows: Rows, num_rows: int) -> Sites:
    """Run the model on shapes, and tell its sites apart.

    Raises ``ValueError`` with the reason where a model cannot be served.
    """
    hint = forgotten(program, rows)
    whole = survey_all(program, shapes_of(rows, num_rows), hint)
    first, second = (survey_few(program, rows, n, num_rows, whole) for n in ROW_COUNTS)
    _refuse_local_latents(first, second, hint)
    if not first.latents:
        raise ValueError("the model has no parameters: none of its sites is sampled.")
    few = shapes_of(rows, ROW_COUNTS[0])
    position = {k: jax.ShapeDtypeStruct(s, jnp.float64) for k, s in first.latents.items()}
    found = dependencies(lambda p, r: _observables(program, p, r), position, few)
    row_axes = []
    for name, site in first.sites.items():
        is_read = _reads(found[name], "terms")
        changes = site[1:3] != second.sites[name][1:3]
        if site.kind == "latent" and is_read:
            raise ValueError(
                f"the prior of {name!r} is computed from the rows, of which the model sees a few "
                "at a time. Compute what it needs beforehand and give it in constants."
            )
        if site.is_scaled and not _reads(found[name], "scale"):
            raise ValueError(
                f"the site {name!r} is under numpyro.handlers.scale, which multiplies its log "
                "density by a constant. Leave it out and give all rows: subsampling is done here. "
                "(Weights of rows are fine as a column of data.)"
            )
        if site.kind in ("observed", "factor") and (is_read or changes):
            _refuse_factor(name, site)
            row_axes.append((name, _row_axis(name, site, second.sites[name])))
        elif site.kind == "observed":
            _refuse_captured(name, whole.sites[name], num_rows)
    if not row_axes:
        raise ValueError(
            "no observed site depends on the rows of data. Pass observations as an argument, "
            f"numpyro.sample('y', ..., obs=y), and give them in data.{hint}"
        )
    outputs = tuple(
        name
        for name, site in first.sites.items()
        if site.kind == "latent"
        or (
            site.kind == "deterministic"
            and site == second.sites[name]
            and not _reads(found[name], "value")
        )
    )
    checkable = tuple(name for name, _ in row_axes if 0 not in found[name].get("valid", {0}))
    return Sites(tuple(first.latents.items()), tuple(row_axes), outputs, checkable)


def _reads(found: Mapping[str, Any], what: str) -> bool:
    return _ROWS in (found.get(what) or ())


def _refuse_local_latents(first: Survey, second: Survey, hint: str) -> None:
    for name, shape in first.latents.items():
        if second.latents.get(name) != shape:
            raise ValueError(
                f"the parameter {name!r} is local: it has an entry for each row (shape {shape} for "
                f"{ROW_COUNTS[0]} rows), and a coreset drops most rows. Integrate it out, or make "
                f"it a vector of groups that a column of data indexes.{hint}"
            )
    differ = sorted(set(first.sites) ^ set(second.sites))
    if differ:
        raise ValueError(
            "the sites of the model depend on the number of rows: "
            f"{', '.join(map(repr, differ[:3]))} and so on. Write one vector-valued site in a "
            "plate in place of a loop over rows."
        )


def _observables(program: Program, position: Any, rows: Rows) -> dict[str, dict[str, Any]]:
    """Return of each site what its dependence on the rows or the position is asked of."""
    observables: dict[str, dict[str, Any]] = {}
    for name, site in program.trace(position, rows).items():
        if site["type"] == "deterministic":
            observables[name] = {"value": site["value"]}
        elif site["type"] == "sample":
            observables[name] = {"terms": log_terms(site)}
            if site["scale"] is not None:
                observables[name]["scale"] = site["scale"]
            valid = is_valid(site)
            if valid is not None:
                observables[name]["valid"] = valid
    return observables


def _refuse_factor(name: str, site: Site) -> None:
    if site.kind == "factor":
        raise ValueError(
            f"numpyro.factor({name!r}) is computed from the rows, and a factor does not say which "
            "part of it belongs to which row. Write the likelihood as an observed site, with a "
            "subclass of numpyro.distributions.Distribution if need be."
        )


def _row_axis(name: str, first: Site, second: Site) -> int:
    """Return which axis of a site's log density, counted from the right, is the rows'."""
    shapes = first.terms_shape, second.terms_shape
    differ = [i for i, (a, b) in enumerate(zip(*shapes, strict=False)) if a != b]
    told = f"for {ROW_COUNTS[0]} rows its log density has shape {shapes[0]}"
    if len(shapes[0]) != len(shapes[1]) or not differ:
        raise ValueError(
            f"the rows of the observed site {name!r} are not separable: {told}, not one value per "
            "row. Do not declare the rows dependent with .to_event(), and do not sum over them."
        )
    if len(differ) > 1:
        raise ValueError(
            f"the rows of the observed site {name!r} are not separable: {told}, every row with "
            "every row. Give the observations and the distribution the same shape: (rows,) and "
            "(rows, 1) are combined to (rows, rows)."
        )
    if (first.terms_shape[differ[0]], second.terms_shape[differ[0]]) != ROW_COUNTS:
        raise ValueError(
            f"the rows of the observed site {name!r} are not separable: {told}. Keep rows on an "
            "axis of their own, one entry per row."
        )
    return differ[0] - len(shapes[0])


def _refuse_captured(name: str, site: Site, num_rows: int) -> None:
    if num_rows in site.value_shape + site.terms_shape:
        raise ValueError(
            f"the observed site {name!r} has {num_rows:,} entries, as many as data has rows, but "
            "does not depend on them: its observations are taken from outside the model. Pass "
            "them as an argument, in data."
        )
