"""A made-up study whose every number follows from the formulas below."""

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.methods import configs
from experiments.scales import Scale, record_iterations
from experiments.store import SCHEMAS, Job, Store
from experiments.tasks import TASKS, task_named

FAKE = Scale("fake", (20, 40), 128, 3, 40, full_grid=True)
TASK_NAMES = list(TASKS)

BEST_RATE = dict(zip(TASKS, (1e-2, 1e-1, 1.0, 1e-1, 1e-2, 10.0), strict=True))
LEVEL = {"dog": 300.0, "dowg": 100.0, "prodigy": 30.0, "dadapt_sgd": 500.0}


def level(task, method, parameter, hot_start):
    """The final error, up to a factor that all configurations share."""
    if method == "adam":  # ten times worse for every power of ten off the best rate
        return 2.0 * 10.0 ** abs(np.log10(parameter / BEST_RATE[task_named(task).problem]))
    if method == "hot_dog":
        return 1.0 + 0.01 * (np.log10(parameter) + 3.0)
    return LEVEL[method] / (10.0 if hot_start else 1.0)


def error(task, size, method, parameter, hot_start, trial, iteration):
    """z2: flat at first, then down as 1/t², to its final level."""
    last = level(task, method, parameter, hot_start)
    last = last * (1 + trial) * (1 + TASK_NAMES.index(task_named(task).problem)) * 10.0 / size
    turn = 4.0 if hot_start else 16.0
    return last * (1.0 + 1000.0 / (1.0 + (iteration / turn) ** 2))


def passed_at(trial):
    return 8 + 4 * trial


def write_job(store, task, size, failures=(), num_iterations=None, **facts):
    """Store one job; failures lists (method, parameter, hot_start, trial) that failed."""
    num_iterations = num_iterations or store.scale.num_iterations
    runs, traces = [], []
    iteration = np.array(record_iterations(num_iterations))
    for config in configs(store.scale):
        for trial in range(store.scale.num_trials):
            key = (config.method, config.parameter, config.hot_start, trial)
            z2 = error(task, size, *key, iteration)
            norm = np.where(iteration <= 4, 1e5, 1e2)
            if key in failures:
                z2[-3:] = np.nan
            run = dict(zip(("method", "parameter", "hot_start", "trial"), key, strict=True))
            traces.append(
                pd.DataFrame(
                    {
                        **run,
                        "iteration": iteration,
                        "z2": z2,
                        "evaluations": iteration * size * (2 if config.hot_start else 3),
                        "gradient_norm": norm,
                    }
                )
            )
            runs.append(
                {
                    **run,
                    "z2": z2[-1],
                    "evaluations": num_iterations * size * 3,
                    "passed_at": passed_at(trial) if config.hot_start else 0,
                    "is_forced": config.hot_start and trial == 2,
                    "failure": 1 if key in failures else 0,
                    "failed_at": 1 if key in failures else -1,
                    "weights_sum": 1.0,
                    "weights_ess": 1.0,
                    "mean": [0.0],
                }
            )
    tables = {
        "traces": pd.concat(traces, ignore_index=True),
        "runs": pd.DataFrame(runs),
        "gate": pd.concat([gate(trial) for trial in range(store.scale.num_trials)]),
    }
    arrow = {
        name: pa.Table.from_pandas(table, preserve_index=False, schema=SCHEMAS[name])
        for name, table in tables.items()
    }
    store.write(
        Job(task_named(task), size),
        arrow,
        {"num_iterations": num_iterations, "task": task, **facts},
    )


def gate(trial):
    """Gradient norms that fall a thousandfold after the fourth iteration."""
    iteration = np.arange(1, passed_at(trial) + 1)
    return pd.DataFrame(
        {
            "trial": trial,
            "iteration": iteration,
            "gradient_norm": np.where(iteration <= 4, 1e5, 1e2),
            "statistic": np.where(iteration < 4, np.inf, 8.0 / iteration**2),
            "every_statistic": np.where(iteration < 3, np.inf, 8.0 / iteration**2),
        }
    )


def write_study(folder, scale=FAKE, skip=(), failures=(), **facts):
    """Store every job but those in skip, given as (task, size)."""
    store = Store(folder, scale)
    for task in TASKS:
        for size in scale.coreset_sizes:
            if (task, size) not in skip:
                write_job(store, task, size, failures, **facts)
    return store
