"""PyMC models whose observed rows are independent given global parameters.

The log density of one row is translated to JAX as a function of the unconstrained parameters and
of that row's data, and mapped over rows. So any rows, in any number, can take the place of the
model's own inside a compiled loop.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from coremcmc.identity import describe
from coremcmc.models.pymc.digest import graph_digest
from coremcmc.models.pymc.graph import ancestors, replaced, to_jax
from coremcmc.models.pymc.model import Column, PyMCLinearModel, PyMCModel, TranslatedModel
from coremcmc.models.pymc.rows import RowAxis, find_rows, refuse_local_variables, refuse_unsuited
from coremcmc.models.pymc.split import split_constant, split_linear
from coremcmc.models.pymc.verify import ask_pymc

__all__ = ["PyMCProblem", "from_pymc"]


class PyMCProblem(NamedTuple):
    """What :func:`coremcmc.fit` needs: ``coremcmc.fit(*problem, coreset_size=500)``.

    Attributes
    ----------
    model
        The prior and the likelihood.
    data
        The rows: arrays by the names of their ``pm.Data`` containers.
    """

    model: TranslatedModel
    data: dict[str, np.ndarray]


def from_pymc(model: Any, *, rows: Iterable[str] | None = None) -> PyMCProblem:
    """Take a PyMC model whose observed rows are independent given global parameters.

    All data must be in ``pm.Data`` containers, of which those of the row axis are replaced by
    coreset rows and subsamples; the others are constants. The row axis is the first axis of the
    observed data. Another container belongs to it if its first axis has the same name in ``dims``,
    or, where one of them has no name, the same length.

    Before it returns, the prior plus the rows is compared with PyMC's own log density for two
    numbers of rows.

    Parameters
    ----------
    model
        A ``pymc.Model``, of PyMC 5 or later.
    rows
        Names of the containers that hold rows, where the rule above is wrong.

    Returns
    -------
    A pair ``(model, data)`` for :func:`coremcmc.fit`.

    Raises
    ------
    ValueError
        With the reason, for a model whose rows cannot be weighed: local latent variables, missing
        values, time series, ``pm.Potential``, ``total_size``, data that are not in ``pm.Data``,
        discrete parameters, or operations that JAX lacks.
    """
    _require_model(model)
    refuse_unsuited(model)
    axis = find_rows(model, rows)
    logps = model.logp(vars=model.observed_RVs, sum=False)
    with _without_compiler():
        refuse_local_variables(model, axis)
        point = model.initial_point(random_seed=0)
        evidence = ask_pymc(model, axis, logps, point)
    try:
        translated = _translate(model, axis, logps, point, 1)
    except TypeError:  # a loop (scan) that was made for rows of any number insists on it
        translated = _translate(model, axis, logps, point, None)
    evidence.judge(translated)
    data = {name: x.get_value(borrow=True) for name, x in axis.containers.items()}
    return PyMCProblem(translated, data)


def _translate(
    model: Any,
    axis: RowAxis,
    logps: list[Any],
    point: Mapping[str, Any],
    declared_rows: int | None,
) -> TranslatedModel:
    """Make JAX functions of the prior, of the likelihood of one row, and of the named output.

    ``declared_rows`` is 1 if PyTensor is to be told that there is one row, which lets it compute
    all shapes beforehand, else None.
    """
    import pytensor.tensor as pt

    values = model.value_vars
    columns = {
        name: Column(x.dtype, x.get_value(borrow=True).shape[1:])
        for name, x in axis.containers.items()
        if any(x in ancestors([logp]) for logp in logps)
    }
    one_row = {
        axis.containers[name]: pt.tensor(
            name, dtype=column.dtype, shape=(declared_rows, *column.shape)
        )
        for name, column in columns.items()
    }
    ones = {length: pt.constant(1, dtype=length.dtype) for length in axis.lengths}
    row = replaced([sum(logp.sum() for logp in logps)], {**ones, **one_row})
    prior = replaced([model.logp(vars=model.free_RVs)], {})
    shown = [*model.free_RVs, *_global_deterministics(model, axis)]
    constrained = replaced(model.replace_rvs_by_values(shown), {})
    entries = list(one_row.values())
    inputs = [*values, *entries]
    digest = graph_digest(inputs, [*prior, *row, *constrained])
    names = tuple(variable.name for variable in shown)
    start = tuple((value.name, np.asarray(point[value.name], float)) for value in values)
    listed = f"{', '.join(columns)}; {', '.join(names)}"
    parts: dict[str, Any] = {
        "fields": tuple(columns),
        "columns": tuple(columns.values()),
        "point": start,
        "names": names,
        "prior": to_jax(values, prior),
        "constrained": to_jax(values, constrained),
        "identity": f"PyMC({listed}; {digest}; {describe([value for _, value in start])})",
    }
    split = split_linear(values, entries, row[0])
    if split is None:
        terms = split_constant(entries, row[0])
        return PyMCModel(
            **parts,
            terms=to_jax(entries, list(terms)),
            num_terms=len(terms),
            row=to_jax([*inputs, *terms.values()], replaced(row, terms)),
        )
    entries = split.inputs[len(values) :]
    terms = split_constant(entries, split.row)
    return PyMCLinearModel(
        **parts,
        terms=to_jax(entries, list(terms)),
        num_terms=len(terms),
        row=to_jax([split.eta_input, *split.inputs, *terms.values()], replaced([split.row], terms)),
        eta=to_jax(split.inputs, [split.eta]),
        eta_shape=split.eta.type.shape,
    )


def _global_deterministics(model: Any, axis: RowAxis) -> list[Any]:
    return [
        variable
        for variable in model.deterministics
        if not axis.is_read_by(variable)
        and not axis.is_axis_of(model, variable, variable.type.shape)
    ]


def _without_compiler() -> Any:
    """Let PyTensor evaluate in Python, graphs within graphs included."""
    import pytensor

    return pytensor.config.change_flags(mode="FAST_COMPILE")


def _require_model(model: Any) -> None:
    try:
        import pymc
        import pytensor
    except ImportError as error:
        raise ImportError("from_pymc needs PyMC: pip install 'coremcmc[pymc]'.") from error
    if not isinstance(model, pymc.Model):
        raise ValueError(f"model must be a pymc.Model, not {model!r}.")
    if pytensor.config.floatX != "float64":
        raise ValueError(
            f"the model was made with floatX={pytensor.config.floatX!r}, and log densities of "
            "large data need 64 bits. Set pytensor.config.floatX = 'float64' and make it again."
        )
