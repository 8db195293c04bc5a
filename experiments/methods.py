"""The methods under comparison, and one optimizer that is any of them."""

from dataclasses import dataclass

import jax
import optax

from coremcmc import optimizers
from experiments.scales import Scale

__all__ = ["METHODS", "Config", "Method", "configs", "one_of"]

_GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True)
class Method:
    """A family of optimizers.

    Attributes
    ----------
    name, title
        In files, and in figures.
    symbol
        What its parameter is called.
    grid
        Values of the parameter.
    reference_value
        The value that is recommended: the one Hot DoG is judged by, 10^-6 for those two whose
        default the paper uses in its Figure 3.
    """

    name: str
    title: str
    symbol: str
    grid: tuple[float, ...]
    reference_value: float | None = None


METHODS = {
    method.name: method
    for method in (
        Method("hot_dog", "Hot DoG", "r", _GRID, 1e-3),
        Method("dog", "DoG", "r", _GRID),
        Method("dowg", "DoWG", "r", _GRID),
        Method("prodigy", "Prodigy", "d0", (1e-6, *_GRID), 1e-6),
        Method("adam", "ADAM", "γ", (*_GRID, 100.0)),
        Method("dadapt_sgd", "D-Adaptation SGD", "d0", (1e-6,), 1e-6),
    )
}
"""The methods by name. Each is a factory of that name in ``coremcmc.optimizers``."""


@dataclass(frozen=True)
class Config:
    """One method with one value of its parameter, with or without the hot start."""

    method: str
    parameter: float
    hot_start: bool


def configs(scale: Scale) -> list[Config]:
    """All that runs side by side in one job."""
    return [
        Config(method.name, value, hot_start)
        for method in METHODS.values()
        for value in (method.grid if scale.full_grid else method.grid[::2])
        for hot_start in (True, False)
    ]


def one_of(index: jax.Array, parameter: jax.Array) -> optax.GradientTransformation:
    """Return the optimizer number ``index`` of METHODS, which may differ between runs.

    All of them compute, and one is heard: under ``vmap`` that is what a branch comes to anyway.
    """
    candidates = [getattr(optimizers, name)(parameter) for name in METHODS]

    def init_fn(params):
        return tuple(candidate.init(params) for candidate in candidates)

    def update_fn(updates, state, params=None):
        outcomes = [c.update(updates, s, params) for c, s in zip(candidates, state, strict=True)]
        chosen = jax.lax.select_n(index, *(update for update, _ in outcomes))
        return chosen, tuple(new_state for _, new_state in outcomes)

    return optax.GradientTransformation(init_fn, update_fn)
