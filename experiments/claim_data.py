"""The numbers behind the paper's claims: tables, no verdicts.

Errors are average squared z-scores at the last iteration; a failed run's is infinite. A column
with ``_q25`` and ``_q75`` beside it is a median over trials with its quartiles. Ratios are taken
trial by trial, since the runs of one trial share their coreset rows and their start; a column
"of medians" beside one is the ratio of the two medians, which the paper's figures show.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

import coremcmc
from experiments.figure_data import FEWEST
from experiments.medians import JobResults, Results, quantiles, ratio
from experiments.methods import METHODS
from experiments.tasks import TASKS, VARIANTS

__all__ = [
    "adam_by_rate",
    "adam_by_task",
    "against_adam",
    "against_others",
    "gate_timing",
    "hot_start_in_short",
    "hot_start_worth",
    "others_in_short",
    "plateau",
    "robustness",
    "starts",
    "untuned",
]

_RECOMMENDED = METHODS["hot_dog"].reference_value
_LEFT_BELOW = (0.5, 0.1)
_WINDOW, _FACTOR = 30, 3.0
_EARLY = 10.0
_STILL = 1e-3  # a rate of ADAM under which weights hardly move
_PAPERS_RATES = 10.0  # the highest learning rate in the paper's text
_FAR = ("linear", "logistic", "poisson")  # where chains start, according to the paper


def _spread(name: str, values: pd.Series) -> dict[str, float]:
    """Median and quartiles, as columns."""
    return dict(zip((name, f"{name}_q25", f"{name}_q75"), quantiles(values), strict=True))


def _ratio(name: str, above: pd.Series, below: pd.Series) -> dict[str, float]:
    """Median and quartiles of the ratios by trial, and the ratio of the medians."""
    by_trial = pd.concat([above, below], axis=1, join="inner")
    found = _spread(name, ratio(by_trial.iloc[:, 0], by_trial.iloc[:, 1]))
    return found | {f"{name}, of medians": _of_medians(above, below)}


def _of_medians(above: pd.Series, below: pd.Series) -> float:
    return float(ratio(quantiles(above)[0], quantiles(below)[0]))


def _jobs(results: Results, variants: bool = False) -> Iterator[tuple[dict, JobResults]]:
    for (_, size), job in (results.jobs | (results.variants if variants else {})).items():
        yield {"task": job.job.task.title, "M": size}, job


def _hot_dog(job: JobResults, hot_start: bool = True) -> pd.Series:
    return job.final("hot_dog", _RECOMMENDED, hot_start)


def _usual(method: str) -> float:
    return METHODS[method].reference_value or _RECOMMENDED


def _adam_errors(job: JobResults) -> dict[float, pd.Series]:
    return {v: job.final("adam", v, False) for v in job.parameters("adam", False)}


def _lowest(errors: dict[float, pd.Series], limit: float = np.inf) -> float:
    """Return the parameter up to a limit whose median error is lowest; of equals, the smallest."""
    return min((v for v in errors if v <= limit), key=lambda v: quantiles(errors[v])[0])


def adam_by_task(results: Results) -> pd.DataFrame:
    """ADAM's best and worst rate for each task and M, its default rate, and the paper's grid.

    The authors' code tries γ up to 100, the paper's text stops at 10.
    """
    rows = []
    for names, job in _jobs(results):
        errors = _adam_errors(job)
        if not errors:
            continue
        best = _lowest(errors)
        worst = max(errors, key=lambda v: quantiles(errors[v])[0])
        row = {**names, "best γ": best, **_spread("best error", errors[best])}
        row |= {"worst γ": worst, **_spread("worst error", errors[worst])}
        row |= _ratio("worst / best", errors[worst], errors[best])
        if _STILL in errors:
            row |= _ratio("γ = 0.001 / best", errors[_STILL], errors[best])
        within = _lowest(errors, _PAPERS_RATES)
        row |= {"best γ up to 10": within}
        row |= _ratio("best up to 10 / best", errors[within], errors[best])
        rows.append(row)
    return pd.DataFrame(rows)


def adam_by_rate(results: Results) -> pd.DataFrame:
    """How far each rate of ADAM's median is from that of the best; quartiles over tasks and M."""
    found: dict[float, list[tuple[float, str, float]]] = {}
    for names, job in _jobs(results):
        medians = {v: quantiles(errors)[0] for v, errors in _adam_errors(job).items()}
        for value, median in medians.items():
            away = float(ratio(median, min(medians.values())))
            among = [m for v, m in medians.items() if v <= _PAPERS_RATES]
            within = float(ratio(median, min(among))) if value <= _PAPERS_RATES else np.nan
            where = f"{names['task']}, M = {names['M']:,}"
            found.setdefault(value, []).append((away, where, within))
    rows = []
    for value, ratios in sorted(found.items()):
        away, within = [r for r, *_ in ratios], pd.Series([w for *_, w in ratios])
        worst, where, _ = max(ratios)
        row = {"γ": value, **_spread("error / best error", pd.Series(away))}
        row |= {"largest": worst, "where": where, "cases": len(away)}
        row |= {"best in": sum(r == 1 for r in away), "over 10 in": sum(r > 10 for r in away)}
        if within.notna().all():
            row |= {"best of γ up to 10 in": int((within == 1).sum())}
            row |= {"largest, γ up to 10": within.max()}
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

    The plateau of a trial is its error under weights that hardly move: the final one of ADAM with
    γ = 0.001 and no hot start, which moves a weight of N/M (10 or more) by about 0.9 at most. A
    run leaves at the first recorded iteration from which on its error is below the given fraction
    of the plateau for good; if there is none, after infinitely many evaluations. "Early" are the
    trials whose gradients were more than 10 times above their level when the test passed (table
    4). Of the ratios, trials that leave neither way have none.
    """
    rows = []
    for names, job in _jobs(results, variants=True):
        runs = {hot: _traces(job, hot) for hot in (True, False)}
        levels = job.final("adam", _STILL, False)
        both = sorted(t for t in levels.index if t in runs[True] and t in runs[False])
        early = _held(job)["norm at release / level"] > _EARLY
        for fraction in _LEFT_BELOW if both else ():
            left = {
                hot: pd.Series({t: _left(runs[hot][t], fraction * levels[t]) for t in both})
                for hot in (True, False)
            }
            row = {**names, **_spread("plateau", levels[both]), "left below": fraction}
            row |= _spread("evaluations with", left[True])
            row |= _spread("evaluations without", left[False])
            by_trial = ratio(left[False], left[True]).dropna()
            row |= _spread("without / with", by_trial)
            row["early"] = int(early[both].sum())
            row |= _spread("without / with, not early", by_trial[~early[by_trial.index]])
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


def _left(line: pd.DataFrame, level: float) -> float:
    above = np.flatnonzero(~(line["z2"].to_numpy() < level))
    first = above[-1] + 1 if len(above) else 0
    return float(line["evaluations"].iloc[first]) if first < len(line) else np.inf


def hot_start_worth(results: Results) -> pd.DataFrame:
    """Final errors without hot start over those with it, for each method at its default."""
    rows = []
    for (names, job), method in itertools.product(_jobs(results), METHODS):
        value = job.tuned("adam", False) if method == "adam" else _usual(method)
        without, with_ = (job.final(method, value, hot) for hot in (False, True))
        if len(without) and len(with_):
            row = {**names, "method": METHODS[method].title, "parameter": value}
            rows.append(row | _ratio("error without / with", without, with_))
    return pd.DataFrame(rows)


def hot_start_in_short(results: Results) -> pd.DataFrame:
    """Final errors without hot start over those with it, quartiles over M and the tasks.

    Over all tasks, and apart for those whose chains start far from the mass (linear, logistic and
    Poisson regression, as the paper says) and near. ADAM has its best rate of each case.
    """
    table = hot_start_worth(results)
    rows = []
    for method, cases in table.groupby("method", sort=False) if len(table) else ():
        for start, chosen in _by_start(cases):
            column = chosen["error without / with"]
            row = {"method": method, "start": start, **_spread("error without / with", column)}
            row |= {"lowest": column.min(), "highest": column.max(), "cases": len(column)}
            rows.append(row)
    return pd.DataFrame(rows)


def starts(results: Results) -> pd.DataFrame:
    """Final errors from the authors' start of Gaussian and sparse, and from θ₀ ~ N(0, I).

    Every method at its default parameter, ADAM at its best rate of each case.
    """
    rows = []
    for (name, size), far in results.variants.items():
        near = results.jobs.get((VARIANTS[name].problem, size))
        if near is None:
            continue
        for method, hot_start in itertools.product(METHODS, (False, True)):
            value = near.tuned("adam", False) if method == "adam" else _usual(method)
            row = {"task": near.job.task.title, "M": size, "method": METHODS[method].title}
            row |= {"parameter": value, "hot start": hot_start}
            errors = [job.final(method, value, hot_start) for job in (near, far)]
            if all(len(e) for e in errors):
                row |= _spread("near start", errors[0]) | _spread("far start", errors[1])
                rows.append(row | _ratio("far / near", errors[1], errors[0]))
    return pd.DataFrame(rows)


def gate_timing(results: Results) -> pd.DataFrame:
    """When the gradient norms settle, and when the hot-start test passes.

    The norms of a trial have settled at the first iteration from which on their running median
    (of 30 recorded iterations, centred) is within a factor of 3 of their median over the last
    third of the held phase. A long held phase is recorded at some 400 of its iterations.

    "Early" are trials whose norms at the release (median of the last 30) were more than 10 times
    above their level (the median from iteration 10,000 on under weights that hardly move: ADAM
    with γ = 0.001, no hot start); "settled" and "passed − settled" leave them out. "At every
    iteration" is the first recorded iteration, of 9 or more, at which the statistic is below 0.5:
    when a test at every iteration would have passed at the latest.
    """
    rows = []
    for names, job in _jobs(results):
        held = _held(job)
        early = held["norm at release / level"] > _EARLY
        settles = np.isfinite(held["settled at"]) & held["passed at"].notna()
        row = {**names, "early": int(early.sum())}
        row |= {"norm / level, early, median": held["norm at release / level"][early].median()}
        row |= {"passed early, max": held["passed at"][early].max()}
        for name, values in (
            ("settled at", held["settled at"][~early]),
            ("passed at", held["passed at"].dropna()),
            ("passed − settled", (held["passed at"] - held["settled at"])[~early & settles]),
            ("at every iteration", held["at every iteration"]),
        ):
            row |= _spread(name, values)
            row |= {f"{name}, min": values.min(), f"{name}, max": values.max()}
        row["at every iteration, by 30"] = int((held["at every iteration"] <= 30).sum())
        rows.append(row | {"forced": int(held["is_forced"].sum()), "trials": len(held)})
    return pd.DataFrame(rows)


def _held(job: JobResults) -> pd.DataFrame:
    """One row a trial: what its held phase looked like."""
    ends = job.runs[job.runs["hot_start"]].groupby("trial")[["passed_at", "is_forced"]].first()
    still = job.traces[
        (job.traces["method"] == "adam")
        & (job.traces["parameter"] == _STILL)
        & ~job.traces["hot_start"]
        & (job.traces["iteration"] >= min(10_000, job.num_iterations / 2))
    ]
    levels = still.groupby("trial")["gradient_norm"].median()
    found = {}
    for trial, rows in job.gate.groupby("trial"):
        rows = rows.sort_values("iteration")
        tested = rows[rows["iteration"] >= FEWEST]
        passing = tested["iteration"][tested["every_statistic"] < coremcmc.HotStart().threshold]
        found[trial] = {
            "settled at": _settled(rows),
            "norm at release": rows["gradient_norm"].astype(float).iloc[-_WINDOW:].median(),
            "at every iteration": passing.min() if len(passing) else np.inf,
        }
    table = pd.DataFrame.from_dict(found, orient="index").reindex(ends.index)
    table["norm at release / level"] = table["norm at release"] / levels.reindex(ends.index)
    table["passed at"] = ends["passed_at"].where(ends["passed_at"] > 0).astype(float)
    return table.assign(is_forced=ends["is_forced"])


def _settled(held: pd.DataFrame) -> float:
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
    """Hot DoG as recommended over ADAM at its best rate, without and with hot start.

    "Up to 10": the best of the rates in the paper's text. Σw / N: how the weights add up at the
    end, in units of the number of rows.
    """
    rows = []
    for names, job in _jobs(results):
        row = {**names, **_spread("Hot DoG's error", _hot_dog(job))}
        for hot_start, words in ((False, "no hot start"), (True, "hot start")):
            errors = {v: job.final("adam", v, hot_start) for v in job.parameters("adam", hot_start)}
            for limit, up_to in ((np.inf, ""), (_PAPERS_RATES, " up to 10")) if errors else ():
                best = _lowest(errors, limit)
                row[f"best γ{up_to}, {words}"] = best
                row |= _ratio(f"Hot DoG / ADAM{up_to}, {words}", _hot_dog(job), errors[best])
        for name, config in (
            ("Hot DoG", ("hot_dog", _RECOMMENDED, True)),
            ("ADAM", ("adam", row.get("best γ, no hot start"), False)),
        ):
            total = job.weights_sum(*config) / job.facts.get("num_rows", np.nan)
            row |= {f"Σw / N, {name}": total.median(), f"Σw / N, {name}, max": total.max()}
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
            usual = _usual(method)
            for name, value in (("best", best), ("default", usual), ("worst", worst)):
                if value in errors:
                    row[f"{name} parameter"] = value
                    row |= _ratio(f"{name} / Hot DoG", errors[value], _hot_dog(job))
            rows.append(row)
    return pd.DataFrame(rows)


def others_in_short(results: Results) -> pd.DataFrame:
    """Each other method over Hot DoG, ratios of medians; quartiles over M and the tasks.

    Over all tasks, and apart for those whose chains start far from the mass (linear, logistic and
    Poisson regression) and near.
    """
    table = against_others(results)
    rows = []
    for names, cases in table.groupby(["method", "hot start"], sort=False) if len(table) else ():
        for start, chosen in _by_start(cases):
            row = dict(zip(("method", "hot start"), names, strict=True))
            row |= {"start": start, "cases": len(chosen)}
            for name in ("best", "default"):
                column = chosen.get(f"{name} / Hot DoG, of medians")
                if column is not None:
                    row |= _spread(f"{name} / Hot DoG", column)
                    row |= {f"{name}, lowest": column.min(), f"{name}, highest": column.max()}
                    row[f"{name}, above 1 in"] = int((column > 1).sum())
            rows.append(row)
    return pd.DataFrame(rows)


def _by_start(cases: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """All cases, those whose chains start far from the mass, those that start near."""
    is_far = cases["task"].isin([TASKS[name].title for name in _FAR])
    yield "all", cases
    yield "far", cases[is_far]
    yield "near", cases[~is_far]
