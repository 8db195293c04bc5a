"""Hit-and-run slice sampling with doubling (Bélisle et al. 1993; Neal 2003)."""

from dataclasses import dataclass

import jax
from jaxtyping import PyTree

from coremcmc.base import KernelInfo, KernelState, PRNGKey
from coremcmc.kernels.slice_along_lines import SliceAlongLines
from coremcmc.posterior.target import Target

__all__ = ["HitAndRun"]


@dataclass(frozen=True)
class HitAndRun(SliceAlongLines):
    """Slice sampling along random lines through the current point.

    Needs no gradient and no tuning: the interval doubles until it covers the slice, then shrinks
    toward the current point, t = 0, until a point of the slice is found.

    Parameters
    ----------
    width
        Width of the initial interval.
    max_doublings
        How often it may double.
    num_passes
        Lines per step.
    max_shrinks
        Proposals on a line, after which the chain is declared stuck.
    fused
        Whether a step of a linear-predictor model is one GPU kernel. ``None``: where it can be.
    """

    width: float = 10.0

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        """Move along ``num_passes`` random lines."""
        key_direction, key_uniform = jax.random.split(rng_key)
        directions = self.random_directions(key_direction, state)
        return self.move_along(directions, key_uniform, state, target)
