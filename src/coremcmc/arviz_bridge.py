"""From a fit to ArviZ: InferenceData before version 1, DataTree from it on."""

import importlib
import warnings
from typing import Any

import numpy as np

__all__ = ["convergence", "pareto_smooth", "to_arviz"]


def _import_arviz() -> Any:
    """Import ArviZ, without the notice about its next version that some versions print."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return importlib.import_module("arviz")


def _from_dict(groups: dict[str, dict[str, np.ndarray]]) -> Any:
    arviz = _import_arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)
    return arviz.from_dict(**groups)


def to_arviz(fit: Any) -> Any:
    """Posterior draws with sample stats, the coreset's weights as constant data, and attributes."""
    posterior = fit.posterior
    kept = next(iter(posterior.values())).shape[1]
    # Draws at fixed weights were made after the traces.
    stats = {} if fit.sampled else {"lp": fit.traces["log_potentials"][-kept:].T}
    data = _from_dict(
        {
            "posterior": posterior,
            **({"sample_stats": stats} if stats else {}),
            "constant_data": {
                "coreset_index": fit.coreset.indices,
                "coreset_weight": fit.coreset.weights,
            },
        }
    )
    data["posterior"].attrs.update(
        inference_library="coremcmc",
        inference_library_version=fit.config["versions"]["coremcmc"],
        model=fit.config["model"],
        seed=fit.config["seed"],
        num_rows=fit.coreset.num_rows,
        coreset_size=len(fit.coreset),
        num_iterations=fit.iteration,
    )
    return data


def convergence(draws: np.ndarray) -> tuple[float, float]:
    """Bulk effective sample size and R-hat of chains × draws; NaN where there are too few."""
    if draws.shape[1] < 4 or np.ptp(draws) == 0:
        return float("nan"), float("nan")
    arviz, data = _import_arviz(), _from_dict({"posterior": {"x": draws}})
    ess, rhat = arviz.ess(data), arviz.rhat(data)
    return float(np.asarray(ess["x"])), float(np.asarray(rhat["x"]))


def pareto_smooth(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log importance weights, and the k-hat of their tail."""
    arviz = _import_arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        smooth = importlib.import_module("arviz_stats.base").array_stats.psislw
    else:
        smooth = arviz.psislw
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the caller judges by k-hat
        smoothed, k = smooth(log_weights)
    return np.asarray(smoothed), float(k)
