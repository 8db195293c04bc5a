"""Optimizers: what moves the weights w. Each is an optax transformation."""

import functools
from collections.abc import Callable

import optax

from coremcmc.optimizers.dadapt_sgd import dadapt_sgd
from coremcmc.optimizers.from_optax import adam, dadapt_adam, dog, dowg
from coremcmc.optimizers.hot_dog import hot_dog
from coremcmc.optimizers.prodigy import prodigy, prodigy_corrected
from coremcmc.optimizers.wrappers import constrained, gated

__all__ = [
    "OPTIMIZERS",
    "adam",
    "constrained",
    "dadapt_adam",
    "dadapt_sgd",
    "dog",
    "dowg",
    "gated",
    "hot_dog",
    "prodigy",
    "prodigy_corrected",
]

# Cached, so that the same name gives the same object and a compiled program is found again.
OPTIMIZERS: dict[str, Callable[..., optax.GradientTransformation]] = {
    factory.__name__: functools.cache(factory)
    for factory in (
        hot_dog,
        adam,
        dog,
        dowg,
        prodigy,
        prodigy_corrected,
        dadapt_sgd,
        dadapt_adam,
    )
}
"""Optimizers by the name under which ``fit(optimizer=…)`` knows them."""
