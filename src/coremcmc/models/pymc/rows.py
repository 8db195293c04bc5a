"""Which data containers of a PyMC model hold its rows, and which models have no rows to weigh.

A coreset weighs rows, so the log density must be a prior plus a sum over rows, each of which is
read from ``pm.Data`` containers. What is visibly otherwise is refused here; the rest is found out
by numbers, in :mod:`coremcmc.models.pymc.verify`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coremcmc.models.pymc.graph import ancestors

__all__ = ["RowAxis", "find_rows", "refuse_local_variables", "refuse_unsuited"]


@dataclass(frozen=True)
class RowAxis:
    """The axis that a coreset chooses from.

    Attributes
    ----------
    containers
        The ``pm.Data`` variables that hold one entry per row, by name.
    lengths
        The variables that hold the length of a named dimension of rows.
    num_rows
        N.
    names
        Names of that dimension.
    """

    containers: dict[str, Any]
    lengths: tuple[Any, ...]
    num_rows: int
    names: frozenset[str]

    def is_read_by(self, variable: Any) -> bool:
        """Whether a variable is computed from rows, or from how many there are."""
        sources = {*self.containers.values(), *self.lengths}
        return any(found in sources for found in ancestors([variable]))

    def is_axis_of(self, model: Any, variable: Any, shape: tuple[int | None, ...]) -> bool:
        """Whether a variable has an entry per row: an axis so named, or unnamed and so long."""
        dims = model.named_vars_to_dims.get(variable.name) or (None,) * len(shape)
        return any(
            name in self.names or (name is None and length == self.num_rows)
            for name, length in zip(dims, shape, strict=False)
        )


def refuse_unsuited(model: Any) -> None:
    """Raise ``ValueError`` for models without a likelihood by rows, or without a gradient."""
    if model.potentials:
        raise ValueError(
            f"the model has pm.Potential terms ({_names(model.potentials)}), and a potential does "
            "not say which part of it belongs to which row. Write a likelihood as an observed "
            "pm.CustomDist, and a prior as a distribution."
        )
    if not model.observed_RVs:
        raise ValueError(
            "the model has no observed variables. Give the likelihood its data with observed=, "
            "from pm.Data."
        )
    imputed = [rv for rv in model.free_RVs if rv.name.endswith("_unobserved")]
    if imputed:
        raise ValueError(
            f"the observed data have missing values, which PyMC imputes as {_names(imputed)}: one "
            "parameter for each missing row. Drop the rows with missing values."
        )
    discrete = [rv for rv in model.free_RVs if rv.dtype.startswith(("int", "uint", "bool"))]
    if discrete:
        raise ValueError(
            f"the free variables {_names(discrete)} are discrete, and chains here move along "
            "gradients. Sum them out, for example with pm.Mixture or pymc_extras.marginalize."
        )
    if not model.free_RVs:
        raise ValueError("the model has no free variables, so there is no posterior to draw from.")
    for rv in model.observed_RVs:
        graph = ancestors([rv, model.rvs_to_values[rv]])
        ops = {type(variable.owner.op).__name__ for variable in graph if variable.owner}
        if any(name.startswith("Minibatch") for name in ops):
            raise ValueError(
                f"the observed variable {rv.name!r} uses total_size or pm.Minibatch, which scale "
                "its log density up. Leave them out and give pm.Data all rows: subsampling is "
                "done here."
            )


def find_rows(model: Any, rows: Iterable[str] | None) -> RowAxis:
    """Decide which containers hold rows.

    The row axis is the first axis of the data of the observed variables. Another container holds
    rows if its first axis has the same name (``dims``), or, where one of the two has no name, the
    same length. ``rows`` names the containers instead.
    """
    containers = {variable.name: variable for variable in model.data_vars}
    observed = {rv.name: _container_of(model, rv, containers) for rv in model.observed_RVs}
    dims = model.named_vars_to_dims
    named = [
        _known(_first(dims.get(rv)), _first(dims.get(container)))
        for rv, container in observed.items()
    ]
    if rows is None:
        _refuse_two_axes(named, {rv: _shape(containers[name]) for rv, name in observed.items()})
        num_rows = _shape(containers[next(iter(observed.values()))])[0]
        names = set().union(*named)
        chosen = [
            name
            for name, variable in containers.items()
            if name in observed.values()
            or _holds_rows(_shape(variable), _first(dims.get(name)), num_rows, names)
        ]
    else:
        chosen = _given(rows, containers, observed)
        num_rows = _shape(containers[chosen[0]])[0]
        names = set().union(*named)
    names |= _known(*(_first(dims.get(name)) for name in chosen))
    return RowAxis(
        {name: containers[name] for name in chosen},
        tuple(
            length
            for length in (model.dim_lengths[name] for name in sorted(names))
            if length.owner is None  # others are computed from the containers
        ),
        num_rows,
        frozenset(names),
    )


def refuse_local_variables(model: Any, axis: RowAxis) -> None:
    """Raise ``ValueError`` where a free variable has an entry per row, or a prior reads rows."""
    shapes = model.eval_rv_shapes()
    for rv in model.free_RVs:
        shape = tuple(map(int, shapes[rv.name]))
        if axis.is_axis_of(model, rv, shape):
            raise ValueError(
                f"the free variable {rv.name!r} is local: it has shape {shape}, an entry "
                f"for each of the {axis.num_rows:,} rows, and a coreset drops most rows. Integrate "
                "it out, for example into the likelihood's variance. (If the length is a "
                "coincidence, name the axis with dims.)"
            )
        if axis.is_read_by(rv):
            raise ValueError(
                f"the prior of {rv.name!r} is computed from the rows, which change from subsample "
                "to subsample. Compute what it needs with NumPy first and give it as a number."
            )


def _container_of(model: Any, rv: Any, containers: dict[str, Any]) -> str:
    """Return the name of the container that holds an observed variable's data."""
    found = [x.name for x in ancestors([model.rvs_to_values[rv]]) if x in containers.values()]
    if not found:
        raise ValueError(
            f"the observed variable {rv.name!r} has its data inside the model, where they cannot "
            f"be replaced by other rows. Wrap them: observed=pm.Data('{rv.name}_data', values), "
            "and likewise every array of covariates."
        )
    if np.ndim(containers[found[0]].get_value(borrow=True)) == 0:
        raise ValueError(f"the observed variable {rv.name!r} is a single number, without rows.")
    return found[0]


def _refuse_two_axes(named: list[set[str]], shapes: dict[str, tuple[int, ...]]) -> None:
    lengths = {shape[0] for shape in shapes.values()}
    known = [names for names in named if names]
    if len(lengths) > 1 or (known and not set.intersection(*known)):
        listed = ", ".join(f"{name!r} with shape {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"the observed variables lie on different row axes: {listed}. A coreset weighs the "
            "rows of one axis; fit such a model in parts, or bring its data to one table."
        )


def _holds_rows(shape: tuple[int, ...], dim: str | None, num_rows: int, names: set[str]) -> bool:
    if dim is not None and names:
        return dim in names
    return bool(shape) and shape[0] == num_rows


def _given(rows: Any, containers: dict[str, Any], observed: dict[str, str]) -> list[str]:
    """Check the user's choice of containers."""
    chosen = [rows] if isinstance(rows, str) else list(rows)
    unknown = [name for name in chosen if name not in containers]
    if unknown or not chosen:
        raise ValueError(
            f"rows must name pm.Data containers of the model ({', '.join(containers)}), not "
            f"{unknown or chosen}."
        )
    missing = [name for name in observed.values() if name not in chosen]
    if missing:
        raise ValueError(f"rows must include {missing}, which hold(s) the observed data.")
    shapes = {name: _shape(containers[name]) for name in chosen}
    if any(not shape for shape in shapes.values()) or len({s[0] for s in shapes.values()}) > 1:
        raise ValueError(f"rows must name containers with one first axis, but they have {shapes}.")
    return chosen


def _first(dims: Any) -> str | None:
    return dims[0] if dims else None


def _known(*names: str | None) -> set[str]:
    return {name for name in names if name is not None}


def _shape(container: Any) -> tuple[int, ...]:
    return container.get_value(borrow=True).shape


def _names(variables: Iterable[Any]) -> str:
    return ", ".join(repr(variable.name) for variable in variables)
