"""The numbers that each figure shows, apart from its drawing. Every table is also a CSV file."""

from collections.abc import Iterable

import pandas as pd

from experiments import theorem
from experiments.medians import CONFIG, JobResults, Results, quantiles, ratio
from experiments.methods import METHODS
from experiments.tasks import VARIANTS

__all__ = [
    "FEWEST",
    "adam_table",
    "gate_table",
    "hot_start_table",
    "ratio_table",
    "start_jobs",
    "start_table",
    "theorem_table",
    "tuned_table",
    "untuned_table",
]

_CURVE = ["panel", "task", "coreset_size", *CONFIG, "iteration", "evaluations"]
_CURVE += ["z2", "z2_q25", "z2_q75", "num_trials"]
_GATE = ["task", "coreset_size", "trial", "iteration", "gradient_norm", "statistic", "passed_at"]
_GATE += ["is_forced"]


FEWEST = 9
"""Iterations that the statistic needs: a line through less than three has no residual."""


def adam_table(results: Results) -> pd.DataFrame:
    """Figure 2: ADAM without hot start, the error at the end for every learning rate."""
    table = pd.concat([job.finals() for job in results.jobs.values()], ignore_index=True)
    return table[(table["method"] == "adam") & ~table["hot_start"]].reset_index(drop=True)


def ratio_table(
    results: Results, methods: Iterable[str], hot_start: Iterable[bool] = (False, True)
) -> pd.DataFrame:
    """Figures 1 and 7: the median error at the end over that of Hot DoG as recommended."""
    reference = METHODS["hot_dog"].reference_value
    parts = []
    for job in results.jobs.values():
        table = job.finals()
        table = table[table["method"].isin(list(methods)) & table["hot_start"].isin(hot_start)]
        below = quantiles(job.final("hot_dog", reference, True))[0]
        parts.append(table.assign(z2_hot_dog=below, ratio=ratio(table["z2"], below)))
    return pd.concat(parts, ignore_index=True)


def _curves(results: Results, wanted: Iterable[tuple]) -> pd.DataFrame:
    """Stack curves; each wanted is (panel, job, method, parameter, hot_start)."""
    parts = []
    for panel, job, *config in wanted:
        curve = job.curve(*config)
        names = [panel, job.job.task.name, job.job.coreset_size, *config]
        parts.append(curve.assign(**dict(zip(_CURVE, names, strict=False)))[_CURVE])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_CURVE)


def _tuned_adam(panel: str, job: JobResults) -> list[tuple]:
    best = job.tuned("adam", False)
    return [] if best is None else [(panel, job, "adam", best, False)]


def untuned_table(results: Results) -> pd.DataFrame:
    """Figure 3: linear regression, largest M, four tuning-free methods and the best ADAM."""
    job = results.jobs.get(("linear", results.sizes[-1]))
    wanted = []
    for method in ("dog", "dowg", "dadapt_sgd", "prodigy") if job else ():
        values = job.parameters(method, False)
        only = METHODS[method].reference_value
        wanted += [(method, job, method, v, False) for v in values if only in (None, v)]
        wanted += _tuned_adam(method, job)
    return _curves(results, wanted)


def hot_start_table(results: Results, size: int) -> pd.DataFrame:
    """Figure 4: Hot DoG with and without the hot start, every r."""
    return _curves(results, [w for job in _of_size(results, size) for w in _hot_dog(job)])


def tuned_table(results: Results, size: int) -> pd.DataFrame:
    """Figure 6: Hot DoG with the hot start, every r, and the best ADAM without it."""
    wanted = []
    for job in _of_size(results, size):
        wanted += [w for w in _hot_dog(job) if w[-1]] + _tuned_adam(job.job.task.name, job)
    return _curves(results, wanted)


def _of_size(results: Results, size: int) -> list[JobResults]:
    return [job for (_, found), job in results.jobs.items() if found == size]


def _hot_dog(job: JobResults) -> list[tuple]:
    return [
        (job.job.task.name, job, "hot_dog", value, hot_start)
        for hot_start in (False, True)
        for value in job.parameters("hot_dog", hot_start)
    ]


def gate_table(results: Results, size: int) -> pd.DataFrame:
    """Figure 5: gradient norms, and the statistic at every iteration while the weights are held."""
    parts = []
    for job in _of_size(results, size):
        ends = job.runs[job.runs["hot_start"]].groupby("trial")[["passed_at", "is_forced"]].first()
        table = job.gate.join(ends, on="trial").sort_values(["trial", "iteration"])
        statistic = table["every_statistic"].where(table["iteration"] >= FEWEST)
        names = {"task": job.job.task.name, "coreset_size": job.job.coreset_size}
        parts.append(table.assign(statistic=statistic, **names)[_GATE])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_GATE)


def start_jobs(results: Results) -> list[tuple[str, JobResults, JobResults]]:
    """Name, job and job from afar, of the largest M of each task that has both."""
    found = {}
    for (name, size), far in sorted(results.variants.items(), key=lambda item: item[0][1]):
        near = results.jobs.get((VARIANTS[name].problem, size))
        if near is not None:
            found[near.job.task.name] = (near, far)
    return [(name, *found[name]) for name in sorted(found)]


def start_table(results: Results) -> pd.DataFrame:
    """Hot DoG with and without hot start and DoG without it, from two starts."""
    parts = []
    configs = [("hot_dog", 1e-3, True), ("hot_dog", 1e-3, False), ("dog", 1e-3, False)]
    for name, near, far in start_jobs(results):
        for start, job in (("near", near), ("far", far)):
            parts.append(_curves(results, [(name, job, *c) for c in configs]).assign(start=start))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_CURVE)


def theorem_table() -> pd.DataFrame:
    """Mean squared distances from the exact weights, an iteration a row."""
    found = theorem.stored()
    means = {name: curve["mean"] for name, curve in found["curves"].items()}
    return pd.DataFrame({"iteration": found["iteration"], **means})
