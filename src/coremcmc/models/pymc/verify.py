"""A translated PyMC model against PyMC itself, by numbers, on a few rows.

PyTensor's own evaluation (in Python: no compiler is needed) of the whole model with n rows in
place of all must equal the prior plus n rows on their own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coremcmc.models.pymc.graph import NEEDLESS_REWRITES, ancestors, replaced
from coremcmc.models.pymc.rows import RowAxis
from coremcmc.pytrees import prepared

__all__ = ["Evidence", "ask_pymc"]

_FEW_ROWS, _MOST_ROWS = 5, 200
_TOLERANCE = 1e-8  # relative to the sum of the absolute terms
_SPREADS = (1.0, 0.5, 0.1, 0.0)


class Answer(NamedTuple):
    """What PyMC says of the first so many rows: the log density, and of each observed entry."""

    num_rows: int
    total: float
    by_variable: list[np.ndarray]

    @property
    def by_row(self) -> np.ndarray:
        """Log-likelihood of each row."""
        return sum(terms.reshape(self.num_rows, -1).sum(axis=1) for terms in self.by_variable)


class Evidence(NamedTuple):
    """PyMC's own log densities at a position, for two numbers of rows."""

    axis: RowAxis
    position: Mapping[str, np.ndarray]
    rows: Mapping[str, np.ndarray]
    answers: list[Answer]

    def judge(self, translated: Any) -> None:
        """Raise ``ValueError`` where a translated model says otherwise."""
        prior, terms, bad = _evaluate(translated, self.position, self.rows)
        for answer in self.answers:
            count, total = answer.num_rows, answer.total
            alone, together = terms[:count], answer.by_row
            scale = 1.0 + abs(prior) + np.abs(together).sum()
            difference = np.nan_to_num(np.abs(alone - together), nan=np.inf)
            if difference.max() > _TOLERANCE * scale:
                worst = int(np.argmax(difference))
                raise ValueError(
                    "the log-likelihood of a row depends on the other rows: it is "
                    f"{alone[worst]:.6g} alone and {together[worst]:.6g} among {count} rows. "
                    "Compute means, scales, counts and positions of rows with NumPy before the "
                    "model, and leave serial dependence out." + _other_choice(self.axis)
                )
            if not abs(prior + alone.sum() - total) <= _TOLERANCE * scale:  # or NaN
                raise ValueError(
                    f"the prior and {count} rows add up to {prior + alone.sum()}, but PyMC's own "
                    f"log density is {total}: part of it belongs to neither."
                )
        if bad:
            raise ValueError(
                f"the gradient of the log density in {bad} is not finite at {self.position}, "
                "where the log density is. Check the model for overflow, or write it in another "
                "form."
            )


def ask_pymc(
    model: Any, axis: RowAxis, logps: Sequence[Any], point: Mapping[str, np.ndarray]
) -> Evidence:
    """Evaluate a model on a few of its rows near its initial point.

    ``logps`` are PyMC's graphs of the log density of each observed variable, entry by entry.
    Raises ``ValueError`` with a reason where the model is not one of single rows.
    """
    for rv, logp in zip(model.observed_RVs, logps, strict=True):
        if logp.ndim == 0:
            _refuse_joint(rv, ())
    columns = {name: x.get_value(borrow=True) for name, x in axis.containers.items()}
    chosen = _telling_rows(columns, axis.num_rows)
    rows = {name: column[chosen] for name, column in columns.items()}
    half = len(chosen) // 2
    counts = [len(chosen), half + 1 if half == axis.num_rows else half]
    reference = _Reference(model, axis, logps)
    rng = np.random.default_rng(0)
    for spread in _SPREADS:
        position = {
            name: np.asarray(x + spread * rng.uniform(-1, 1, np.shape(x)))
            for name, x in point.items()
        }
        answers = [reference(position, rows, count) for count in counts]
        if all(np.isfinite(answer.total) for answer in answers):
            return Evidence(axis, position, rows, answers)
    bad = [
        rv.name
        for rv, terms in zip(model.observed_RVs, answers[0].by_variable, strict=True)
        if not np.isfinite(terms).all()
    ]
    raise ValueError(
        "the log density is not finite at PyMC's initial point"
        + (f", because of the observed {', '.join(map(repr, bad))}" if bad else "")
        + ". Check that the data lie in the support of their distribution, and give initval where "
        "a prior's centre is out of the question."
    )


def _telling_rows(columns: Mapping[str, np.ndarray], num_rows: int) -> np.ndarray:
    """Choose rows that differ in every column, so that one that reads another is found out.

    Their number differs from that of the data, and their order from the data's.
    """
    extremes = []
    for name, column in columns.items():
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise ValueError(
                f"pm.Data {name!r} has NaN or infinite values. Drop or impute such rows first."
            )
        flat = column.reshape(num_rows, -1)[:, : _MOST_ROWS // 2]
        extremes += [flat.argmin(axis=0), flat.argmax(axis=0)]
    spread = np.linspace(0, num_rows - 1, _FEW_ROWS).astype(int)
    chosen = np.unique(np.concatenate([spread, *extremes]))
    chosen = np.random.default_rng(0).permutation(chosen)[:_MOST_ROWS]
    while len(chosen) < _FEW_ROWS or len(chosen) == num_rows:
        chosen = np.append(chosen, chosen[0])
    return chosen


def _evaluate(translated: Any, position: Any, rows: Any) -> tuple[float, np.ndarray, list[str]]:
    """Return what JAX computes: the prior, each row's term, and whose gradient is not finite."""

    def evaluate(flat: Any, stored: Any) -> Any:
        here = unravel(flat)
        terms = translated.loglikelihood_fn(here, prepared(translated, stored))
        return translated.logprior_fn(here) + terms.sum(), (translated.logprior_fn(here), terms)

    with jax.enable_x64(True):
        flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, position))
        try:
            derivative = jax.value_and_grad(evaluate, has_aux=True)
            jax.eval_shape(jax.jacfwd(jax.grad(lambda x: evaluate(x, rows)[0])), flat)
            (_, (prior, terms)), gradient = jax.jit(derivative)(flat, rows)
        except Exception as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(
                "JAX cannot evaluate and differentiate the model as PyTensor translates it: "
                f"{type(error).__name__}: {reason}"
            ) from error
    bad = [name for name, x in unravel(gradient).items() if not np.isfinite(x).all()]
    return float(prior), np.asarray(terms), bad


class _Reference:
    """PyMC's log densities with other rows in place of its own."""

    def __init__(self, model: Any, axis: RowAxis, logps: Sequence[Any]):
        import pytensor.tensor as pt
        from pymc.pytensorf import compile as compile_graph
        from pytensor.compile.mode import Mode
        from pytensor.graph.rewriting.db import RewriteDatabaseQuery

        self.model, self.axis = model, axis
        inputs = {x: x.type(name=name) for name, x in axis.containers.items()}
        count = pt.scalar("count", dtype="int64")
        lengths = {x: count.astype(x.dtype) for x in axis.lengths}
        outputs = replaced([model.logp(), *logps], {**lengths, **inputs})
        query = RewriteDatabaseQuery(include=["fast_run", "py_only"], exclude=NEEDLESS_REWRITES)
        self.function = compile_graph(
            [*model.value_vars, *inputs.values(), count],
            outputs,
            mode=Mode(linker="py", optimizer=query),
            on_unused_input="ignore",
        )

    def __call__(
        self, position: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray], count: int
    ) -> Answer:
        few = [rows[name][:count] for name in self.axis.containers]
        values = [position[variable.name] for variable in self.model.value_vars]
        try:
            total, *terms = self.function(*values, *few, count)
        except Exception as error:
            _refuse_fixed_rows(self.model, self.axis, error)
        for rv, term in zip(self.model.observed_RVs, terms, strict=True):
            if term.shape[:1] != (count,):
                _refuse_joint(rv, term.shape)
        return Answer(count, float(total), terms)


def _refuse_joint(rv: Any, shape: tuple[int, ...]) -> None:
    raise ValueError(
        f"the log density of the observed variable {rv.name!r} has shape {shape}, without an axis "
        "of rows: its distribution is over all rows together (a time series, a random walk, a "
        "multivariate normal across rows), and such rows cannot be weighed one by one."
    )


def _refuse_fixed_rows(model: Any, axis: RowAxis, error: Exception) -> None:
    """Say why the model cannot take another number of rows."""
    from pytensor.graph.basic import Constant

    reason = str(error).strip().splitlines()[0].rstrip(" .")
    fixed = sorted(
        {
            variable.data.shape
            for variable in ancestors([*model.observed_RVs])
            if isinstance(variable, Constant) and axis.num_rows in np.shape(variable.data)
        }
    )
    if fixed:
        raise ValueError(
            f"the model holds arrays of shape {', '.join(map(str, fixed))} as constants, so its "
            f"{axis.num_rows:,} rows cannot be replaced by others. Wrap covariates in pm.Data, as "
            "the observed data are."
        ) from error
    raise ValueError(
        f"the model cannot take another number of rows than its {axis.num_rows:,}: {reason}. "
        "Use shapes that follow the data (dims, or x.shape[0]) in place of numbers, and keep "
        "arrays of rows in pm.Data." + _other_choice(axis)
    ) from error


def _other_choice(axis: RowAxis) -> str:
    names = ", ".join(map(repr, axis.containers))
    return f" (Rows were taken to be the containers {names}; rows=[…] names others.)"
