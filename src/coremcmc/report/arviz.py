"""From a fit to ArviZ: InferenceData before version 1, DataTree from it on, and without ArviZ."""

import functools
import importlib
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from coremcmc.base import Model, Position, Rows
from coremcmc.data import as_data_source
from coremcmc.fitting.result import Fit
from coremcmc.pytrees import unflatten
from coremcmc.report.parameters import position_draws

__all__ = ["log_likelihoods", "to_arviz"]


def _import_arviz() -> Any:
    """Import ArviZ, without the notice about its next version that some versions print.

    Where it is not installed, its base, which has no plots, makes what version 1 makes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return importlib.import_module("arviz")
        except ImportError:
            return importlib.import_module("arviz_base")


def _from_dict(groups: dict[str, dict[str, np.ndarray]]) -> Any:
    arviz = _import_arviz()
    if arviz.__name__ == "arviz_base" or int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)
    return arviz.from_dict(**groups)


def to_arviz(fit: Fit, log_likelihood: np.ndarray | None = None) -> Any:
    """Posterior draws with sample stats, the coreset in its own group, and attributes."""
    posterior = fit.posterior
    kept = next(iter(posterior.values())).shape[1] if posterior else 0
    if not kept:
        raise ValueError("the fit has no draws yet, and ArviZ needs some. Train it longer.")
    # Draws at fixed weights were made after the traces, and have stats of their own.
    stats = fit.sample_stats if fit.sampled else {"lp": fit.traces["log_potentials"][-kept:].T}
    # A slash in a name, as of I(hour / 2), would be a path in a netCDF file.
    groups: dict[str, Any] = {
        "posterior": {name.replace("/", "\u2215"): x for name, x in posterior.items()}
    }
    if stats:
        groups["sample_stats"] = stats
    if log_likelihood is not None:
        groups["log_likelihood"] = {"row": log_likelihood}
    data = _from_dict(groups)
    data["posterior"].attrs.update(
        inference_library="coremcmc",
        inference_library_version=fit.config["versions"]["coremcmc"],
        model=fit.config["model"],
        seed=fit.config["seed"],
        num_rows=fit.coreset.num_rows,
        coreset_size=len(fit.coreset),
        num_iterations=fit.iteration,
        verdict="none" if fit.certificate is None else fit.certificate.verdict,
    )
    rows = np.arange(len(fit.coreset))
    coreset = {"row": fit.coreset.indices, "weight": fit.coreset.weights}
    _add_group(data, "coreset", coreset, rows)
    _add_group(data, "observed_data", fit.coreset.rows, rows)
    return data


def _add_group(data: Any, name: str, columns: dict[str, np.ndarray], rows: np.ndarray) -> None:
    """Add columns that share the coreset's axis, other axes being named after the column."""
    import xarray

    variables = {}
    for column, values in columns.items():
        column = column.replace("/", "\u2215")
        others = [f"{column}_dim_{i}" for i in range(values.ndim - 1)]
        variables[column] = (["coreset_row", *others], values)
    dataset = xarray.Dataset(variables, coords={"coreset_row": rows})
    if hasattr(data, "add_groups"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # groups of one's own are unusual
            data.add_groups({name: dataset})
    else:
        data[name] = xarray.DataTree(dataset)


def log_likelihoods(fit: Fit, data: Any, size: int, model: Model | None, seed: int) -> np.ndarray:
    """Return chains × draws × rows, for ``loo``: ℓ of some rows at each draw of the posterior.

    They are ``size`` rows, chosen uniformly from all the data.
    """
    model = fit.model if model is None else model
    if model is None:
        raise ValueError(
            "a fit that was loaded from a file does not hold its model. Pass model=, the one that "
            f"it was made with: {fit.config['model']}."
        )
    source = as_data_source(data, model)
    if source.num_rows != fit.coreset.num_rows:
        raise ValueError(
            f"data has {source.num_rows:,} rows, but the fit was made from "
            f"{fit.coreset.num_rows:,}."
        )
    rng = np.random.default_rng([seed, 5])
    size = min(size, source.num_rows)
    chosen = np.sort(rng.choice(source.num_rows, size, replace=False))
    draws = position_draws(fit)
    with jax.enable_x64(True):
        rows = source.take(chosen)
        prepared = jax.eval_shape(model.prepare_rows, rows)
        key = jax.eval_shape(lambda: jax.random.key(0))
        like = jax.eval_shape(model.initial_position, key, prepared)
        flat = unflatten(draws.reshape(-1, draws.shape[-1]), like)
        values = np.asarray(_at_draws(model, rows, flat))
    return np.swapaxes(values.reshape(*draws.shape[:2], size), 0, 1)


@functools.partial(jax.jit, static_argnums=0)
def _at_draws(model: Model, stored: Rows, positions: Position) -> Float[Array, "draws rows"]:
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, stored))
    return jax.lax.map(lambda position: model.loglikelihood_fn(position, rows), positions)
