"""Markov kernels: what moves θ, given the weights."""

from coremcmc.base import Kernel
from coremcmc.kernels.gaussian_exact import GaussianExact
from coremcmc.kernels.hit_and_run import HitAndRun
from coremcmc.kernels.spike_slab_gibbs import SpikeSlabGibbs

__all__ = ["KERNELS", "GaussianExact", "HitAndRun", "SpikeSlabGibbs"]

KERNELS: dict[str, type[Kernel]] = {
    "hit_and_run": HitAndRun,
    "spike_slab_gibbs": SpikeSlabGibbs,
    "gaussian_exact": GaussianExact,
}
"""Kernels by the name under which ``fit(kernel=…)`` knows them."""
