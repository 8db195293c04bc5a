"""What a user gives for a kernel: a name, a kernel, or any object with ``init`` and ``step``."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import PyTree

from coremcmc.base import Kernel, KernelInfo, KernelState, Position, PRNGKey
from coremcmc.kernels import KERNELS
from coremcmc.posterior.target import Target

__all__ = ["as_kernel"]


@runtime_checkable
class _Steps(Protocol):
    """What a kernel that does not know this package must have."""

    def init(self, position: Position, target: Target) -> KernelState: ...

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target
    ) -> tuple[KernelState, KernelInfo]: ...


@dataclass(frozen=True)
class _Given(Kernel):
    """A kernel made of such an object, which learns nothing and knows no metric."""

    kernel: Any

    def init(self, position: Position, target: Target) -> KernelState:
        return self.kernel.init(position, target)

    def step(
        self, rng_key: PRNGKey, state: KernelState, target: Target, metric: PyTree = None
    ) -> tuple[KernelState, KernelInfo]:
        return self.kernel.step(rng_key, state, target)


def as_kernel(given: Any, also: Iterable[str] = ()) -> Kernel:
    """Return the kernel that ``given`` names or is.

    A name is one of :data:`coremcmc.kernels.KERNELS`; ``also`` are names that the caller knows
    besides, for the message. What is no name and no :class:`coremcmc.base.Kernel` needs the
    methods ``init(position, target) -> KernelState`` and
    ``step(rng_key, state, target) -> (KernelState, KernelInfo)``, both for a single chain, which
    the algorithm runs under ``vmap``; and it must be hashable: equal ones share a compiled
    program. The weights are in the target and change from step to step. A log density kept in a
    state would be stale; a state holds the rows' unweighted log-likelihoods.
    """
    if isinstance(given, Kernel):
        return given
    if isinstance(given, str):
        if given not in KERNELS:
            known = ", ".join((*also, *KERNELS))
            raise ValueError(f"kernel={given!r} is unknown; choose from {known}.")
        return KERNELS[given]()
    if isinstance(given, type) or not isinstance(given, _Steps):
        raise ValueError(
            f"kernel must be a name ({', '.join((*also, *KERNELS))}) or a kernel such as "
            f"HitAndRun(), not {given!r}."
        )
    return _Given(given)
