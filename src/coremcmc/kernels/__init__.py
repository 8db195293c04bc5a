"""Markov kernels: what moves θ, given the weights."""

from coremcmc.base import Kernel
from coremcmc.kernels.blackjax import BlackJAXKernel
from coremcmc.kernels.gaussian_exact import GaussianExact
from coremcmc.kernels.hit_and_run import HitAndRun
from coremcmc.kernels.spike_slab_gibbs import SpikeSlabGibbs
from coremcmc.kernels.whitened_hmc import WhitenedHMC
from coremcmc.kernels.whitened_slice import WhitenedSlice

__all__ = [
    "KERNELS",
    "BlackJAXKernel",
    "GaussianExact",
    "HitAndRun",
    "SpikeSlabGibbs",
    "WhitenedHMC",
    "WhitenedSlice",
]

KERNELS: dict[str, type[Kernel]] = {
    "hit_and_run": HitAndRun,
    "spike_slab_gibbs": SpikeSlabGibbs,
    "gaussian_exact": GaussianExact,
    "whitened_hmc": WhitenedHMC,
    "whitened_slice": WhitenedSlice,
}
"""Kernels by the name under which ``fit(kernel=…)`` knows them."""
