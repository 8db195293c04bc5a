"""The numbers behind the paper's claims: tables, no verdicts.

Errors are average squared z-scores at the last iteration; a failed run's is infinite. A column
with ``_q25`` and ``_q75`` beside it is a median over trials with its quartiles. Ratios divide
medians; the quartiles beside a ratio are those of the ratios trial by trial, since the runs of one
trial share their coreset rows and their start.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from experiments.medians import JobResults, Results, quantiles, ratio
from experiments.methods import METHODS
from experiments.tasks import TASKS

__all__ = [
    "adam_by_rate",
    "adam_by_task",
    "against_adam",
    "against_others",
    "gate_timing",
    "others_in_short",
    "plateau",
    "robustness",
    "untuned",
]

_RECOMMENDED = METHODS["hot_dog"].reference_value
_LEFT_BELOW = (0.5, 0.1)
_WINDOW, _FACTOR = 30, 3.0


def _spread(name: str, values: pd.Series) -> dict[str, float]:
    """Median and quartiles, as columns."""
    return dict(zip((name, f"{name}_q25", f"{name}_q75"), quantiles(values), strict=True))


def _ratio(name: str, above: pd.Series, below: pd.Series) -> dict[str, float]:
    """Ratio of medians, and the quartiles of the ratios by trial."""
    by_trial = pd.concat([above, below], axis=1, join="inner")
    _, low, high = quantiles(ratio(by_trial.iloc[:, 0], by_trial.iloc[:, 1]))
    middle = ratio(quantiles(above)[0], quantiles(below)[0])
    return {name: float(middle), f"{name}_q25": low, f"{name}_q75": high}


def _jobs(results: Results) -> Iterator[tuple[dict, JobResults]]:
    for (task, size), job in results.jobs.items():
        yield {"task": TASKS[task].title, "M": size}, job


def _hot_dog(job: JobResults, hot_start: bool = True) -> pd.Series:
    return job.final("hot_dog", _RECOMMENDED, hot_start)


def adam_by_task(results: Results) -> pd.DataFrame:
    """ADAM's best and worst rate for each task and M, and its default rate."""
    rows = []
    for names, job in _jobs(results):
        errors = {v: job.final("adam", v, False) for v in job.parameters("adam", False)}
        if not errors:
            continue
        best = job.tuned("adam", False)
        worst = max(errors, key=lambda v: quantiles(errors[v])[0])
        row = {**names, "best γ": best, **_spread("best error", errors[best])}
        row |= {"worst γ": worst, **_spread("worst error", errors[worst])}
        row |= _ratio("worst / best", errors[worst], errors[best])
        if 1e-3 in errors:
            row |= _ratio("γ = 0.001 / best", errors[1e-3], errors[best])
        rows.append(row)
    return pd.DataFrame(rows)


def adam_by_rate(results: Results) -> pd.DataFrame:
    """How far each rate of ADAM is from the best one; quartiles over the tasks and M."""
    found: dict[float, list[tuple[float, str]]] = {}
    for names, job in _jobs(results):
        medians = {
            v: quantiles(job.final("adam", v, False))[0] for v in job.parameters("adam", False)
        }
        for value, median in medians.items():
            away = float(ratio(median, min(medians.values())))
            found.setdefault(value, []).append((away, f"{names['task']}, M = {names['M']:,}"))
    rows = []
    for value, ratios in sorted(found.items()):
        away = [r for r, _ in ratios]
        worst, where = max(ratios)
        row = {"γ": value, **_spread("error / best error", pd.Series(away))}
        row |= {"largest": worst, "where": where, "cases": len(away)}
        row |= {"best in": sum(r == 1 for r in away), "over 10 in": sum(r > 10 for r in away)}
        rows.append(row)
    return pd.DataFrame(rows)


def untuned(results: Results) -> pd.DataFrame:
    """Methods without hot start against tuned ADAM: linear regression, the largest M."""
    job = results.jobs.get(("linear", results.sizes[-1]))
    best = job.tuned("adam", False) if job else None
    if best is None:
        return pd.DataFrame()
    tuned = job.final("adam", best, False)
    rows = [{"method": "ADAM", "parameter": best, **_spread("error", tuned)}]
    for method in ("dog", "dowg", "dadapt_sgd", "prodigy"):
        for value in job.parameters(method, False):
            errors = job.final(method, value, False)
            row = {"method": METHODS[method].title, "parameter": value, **_spread("error", errors)}
            rows.append(row | _ratio("error / tuned ADAM", errors, tuned))
    return pd.DataFrame(rows)


def plateau(results: Results) -> pd.DataFrame:
    """Evaluations at which Hot DoG leaves the plateau, with and without hot start.

    The plateau of a trial is its error under the initial weights: that of the hot-started run at
    the last recorded iteration before its weights were released. (The test compares the second
    third of the draws with the last, so the latter half, which the error looks at, has settled.)
    A run leaves at the first recorded iteration from which on its error is below the given
    fraction of the plateau for good; if there is none, after infinitely many evaluations.
    """
    rows = []
    for names, job in _jobs(results):
        runs = {hot: _traces(job, hot) for hot in (True, False)}
        levels = {trial: _plateau(job, trial, line) for trial, line in runs[True].items()}
        both = sorted(t for t, level in levels.items() if np.isfinite(level) and t in runs[False])
        for fraction in _LEFT_BELOW if both else ():
            left = {
                hot: pd.Series({t: _left(runs[hot][t], fraction * levels[t]) for t in both})
                for hot in (True, False)
            }
            row = {**names, **_spread("plateau", pd.Series(levels)[both]), "left below": fraction}
            row |= _spread("evaluations with", left[True])
            row |= _spread("evaluations without", left[False])
            row |= _ratio("without / with", left[False], left[True])
            for hot, name in ((True, "with"), (False, "without")):
                row[f"never {name}"] = int(np.isinf(left[hot]).sum())
            rows.append(row | {"trials": len(both)})
    return pd.DataFrame(rows)


def _traces(job: JobResults, hot_start: bool) -> dict[int, pd.DataFrame]:
    rows = job.traces[
        (job.traces["method"] == "hot_dog")
        & (job.traces["parameter"] == _RECOMMENDED)
        & (job.traces["hot_start"] == hot_start)
    ]
    return {trial: line.sort_values("iteration") for trial, line in rows.groupby("trial")}


def _plateau(job: JobResults, trial: int, line: pd.DataFrame) -> float:
    """Return the error under the initial weights; infinite if it cannot be told."""
    held = job.runs[job.runs["hot_start"] & (job.runs["trial"] == trial)]["passed_at"].iloc[0]
    before = line[line["iteration"] <= held]
    return float(before["z2"].iloc[-1]) if len(before) else np.inf


def _left(line: pd.DataFrame, level: float) -> float:
    above = np.flatnonzero(~(line["z2"].to_numpy() < level))
    first = above[-1] + 1 if len(above) else 0
    return float(line["evaluations"].iloc[first]) if first < len(line) else np.inf


def gate_timing(results: Results) -> pd.DataFrame:
    """When the gradient norms settle, and when the hot-start test passes.

    The norms of a trial have settled at the first iteration from which on their running median
    (of 30 recorded iterations, centred) is within a factor of 3 of their median over the last
    third of the held phase. A long held phase is recorded at some 400 of its iterations.
    """
    rows = []
    for names, job in _jobs(results):
        ends = job.runs[job.runs["hot_start"]].groupby("trial")[["passed_at", "is_forced"]].first()
        held = job.gate.groupby("trial")
        settled = pd.Series({trial: _settled(rows) for trial, rows in held}, dtype=float)
        passed = ends["passed_at"][ends["passed_at"] > 0].astype(float)
        row = {**names}
        for name, values in (("settled at", settled), ("passed at", passed)):
            row |= _spread(name, values)
            row |= {f"{name}, min": values.min(), f"{name}, max": values.max()}
        after = (passed - settled).dropna()
        row |= _spread("passed − settled", after)
        row |= {"forced": int(ends["is_forced"].sum()), "trials": len(ends)}
        rows.append(row)
    return pd.DataFrame(rows)


def _settled(held: pd.DataFrame) -> float:
    held = held.sort_values("iteration")
    norm = held["gradient_norm"].astype(float).replace(np.inf, np.nan)
    running = norm.rolling(_WINDOW, center=True, min_periods=1).median()
    level = norm.iloc[-(-len(norm) * 2 // 3) :].median()
    away = np.flatnonzero(~((running <= _FACTOR * level) & (running >= level / _FACTOR)))
    first = away[-1] + 1 if len(away) else 0
    return float(held["iteration"].iloc[first]) if first < len(held) else np.inf


def robustness(results: Results) -> pd.DataFrame:
    """How much Hot DoG with hot start depends on r, against how much it varies over trials."""
    rows = []
    for names, job in _jobs(results):
        values = job.parameters("hot_dog", True)
        if not values:
            continue
        errors = pd.DataFrame({v: job.final("hot_dog", v, True) for v in values})
        medians = [quantiles(errors[v])[0] for v in values]
        within = pd.Series(ratio(errors.max(axis=1), errors.min(axis=1)))
        row = {**names, **_spread("error at r = 0.001", _hot_dog(job))}
        row |= {"lowest median": min(medians), "highest median": max(medians)}
        row["highest / lowest over r"] = float(ratio(max(medians), min(medians)))
        row |= _spread("same, within a trial", within)
        _, low, high = quantiles(_hot_dog(job))
        row["q75 / q25 over trials"] = float(ratio(high, low))
        rows.append(row)
    return pd.DataFrame(rows)


def against_adam(results: Results) -> pd.DataFrame:
    """Hot DoG as recommended over ADAM at its best rate, without and with hot start."""
    rows = []
    for names, job in _jobs(results):
        row = {**names, **_spread("Hot DoG's error", _hot_dog(job))}
        for hot_start, words in ((False, "no hot start"), (True, "hot start")):
            best = job.tuned("adam", hot_start)
            if best is not None:
                row[f"best γ, {words}"] = best
                tuned = job.final("adam", best, hot_start)
                row |= _ratio(f"Hot DoG / ADAM, {words}", _hot_dog(job), tuned)
        rows.append(row)
    return pd.DataFrame(rows)


def against_others(results: Results) -> pd.DataFrame:
    """Each other method over Hot DoG as recommended: best, default and worst parameter."""
    rows = []
    for (names, job), hot_start in itertools.product(_jobs(results), (False, True)):
        for method in ("dog", "dowg", "dadapt_sgd", "prodigy"):
            errors = {v: job.final(method, v, hot_start) for v in job.parameters(method, hot_start)}
            if not errors:
                continue
            row = {**names, "method": METHODS[method].title, "hot start": hot_start}
            best = job.tuned(method, hot_start)
            worst = max(errors, key=lambda v: quantiles(errors[v])[0])
            usual = METHODS[method].reference_value or _RECOMMENDED
            for name, value in (("best", best), ("default", usual), ("worst", worst)):
                if value in errors:
                    row[f"{name} parameter"] = value
                    row |= _ratio(f"{name} / Hot DoG", errors[value], _hot_dog(job))
            rows.append(row)
    return pd.DataFrame(rows)


def others_in_short(results: Results) -> pd.DataFrame:
    """Each other method over Hot DoG; quartiles over the tasks and M."""
    table = against_others(results)
    rows = []
    for names, cases in table.groupby(["method", "hot start"], sort=False) if len(table) else ():
        row = {**dict(zip(("method", "hot start"), names, strict=True)), "cases": len(cases)}
        for name in ("best", "default"):
            column = cases.get(f"{name} / Hot DoG")
            if column is not None:
                row |= _spread(f"{name} / Hot DoG", column)
                row |= {f"{name}, lowest": column.min(), f"{name}, highest": column.max()}
                row[f"{name}, above 1 in"] = int((column > 1).sum())
        rows.append(row)
    return pd.DataFrame(rows)
