"""The certificate of a fit."""

from collections.abc import Callable
from typing import Any

import jax

from coremcmc.base import Model
from coremcmc.certificate.certificate import Certificate, certify
from coremcmc.data import as_data_source
from coremcmc.fitting.result import Fit
from coremcmc.gradient.control_variate import ControlVariate
from coremcmc.pytrees import example_position

__all__ = ["certify_fit"]


def certify_fit(
    fit: Fit,
    model: Model,
    data: Any,
    laplace: Any = None,
    *,
    control: ControlVariate | None = None,
    progress: Callable[[int], None] | None = None,
) -> Certificate:
    """Judge a fit by its draws and one pass over the data that it was made from.

    With a control variate, by an estimate in place of the pass.
    """
    source = as_data_source(data, model)
    if source.num_rows != fit.coreset.num_rows:
        raise ValueError(
            f"data has {source.num_rows:,} rows, but the fit was made from "
            f"{fit.coreset.num_rows:,}."
        )
    for name, found in (("model", model.describe()), ("data", source.fingerprint())):
        if fit.config[name] != found:
            raise ValueError(
                f"{name} is not the one that the fit was made with: {found} here, "
                f"{fit.config[name]} there."
            )
    draws = fit.sampled_positions if fit.sampled else fit.positions[len(fit.positions) // 2 :]
    with jax.enable_x64(True):
        rows = source.take(fit.coreset.indices)
        like = example_position(model, rows)
        zeros = jax.tree.map(lambda x: jax.numpy.zeros(x.shape), like)
        names = fit.position_names
        return certify(
            model,
            source,
            rows,
            fit.coreset.weights,
            draws,
            zeros,
            names,
            laplace,
            control=control,
            progress=progress,
        )
