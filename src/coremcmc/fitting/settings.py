"""What can be set, what the presets set, and what is refused before any long work."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import optax

from coremcmc.algorithm.hot_start import HotStart
from coremcmc.algorithm.stopping import Stopping
from coremcmc.base import DataSource, Kernel, Model
from coremcmc.certificate.certify import Judging
from coremcmc.gradient.control_passes import ControlPasses
from coremcmc.identity import describe
from coremcmc.kernels.given import as_kernel
from coremcmc.optimizers import OPTIMIZERS
from coremcmc.posterior.mode import ModeSearch

__all__ = [
    "PRESETS",
    "Limits",
    "Pacing",
    "Settings",
    "check_seed",
    "is_informed",
    "resolve",
    "wants_estimate",
]

_MAX_RECORDS = 2000
_DEAR_ROWS = 200_000_000  # a pass over more than so many is too dear for a certificate


@dataclass(frozen=True)
class Pacing:
    """How a run is cut into pieces of the compiled loop, which no result depends on.

    Parameters
    ----------
    seconds
        How long a piece should take: the latency of Ctrl-C and of the progress bar.
    first
        Iterations of the first piece.
    records, numbers
        Records that one piece can hold, or fewer, where they hold more numbers than that.
    large_data
        Bytes of data from which the loop is compiled before they are copied to the device.
    """

    seconds: float = 0.5
    first: int = 32
    records: int = 256
    numbers: int = 1 << 22
    large_data: int = 100_000_000


@dataclass(frozen=True)
class Limits:
    """Sizes and thresholds inside the parts of a fit, which few need: settings of each part.

    Parameters
    ----------
    stopping
        When a run looks at itself, and what it calls settled.
    pacing
        How a run is cut into pieces, which no result depends on.
    mode
        How the mode is looked for.
    control
        How a control variate is made, and when it is made anew.
    certificate
        How the result is judged.
    """

    stopping: Stopping = Stopping()
    pacing: Pacing = Pacing()
    mode: ModeSearch = ModeSearch()
    control: ControlPasses = ControlPasses()
    certificate: Judging = Judging()


@dataclass(frozen=True)
class Settings:
    """Settings of a fit. The defaults are the paper's recipe.

    ``None`` for ``subsample_size`` means M, for ``kernel`` the model's own, for ``thin`` about
    2,000 records in all; for ``hot_start`` it means no test.
    """

    num_iterations: Any = 200_000
    num_chains: int = 2
    subsample_size: int | None = None
    kernel: Any = None
    optimizer: Any = "hot_dog"
    hot_start: HotStart | None = HotStart()
    selection: Any = "uniform"
    initial_weights: Any = "uniform"
    returned_weights: str = "last"
    max_weight_sum: float | int | None = None
    thin: int | None = None
    control_variate: bool = False
    stops_early: bool = False
    num_draws: int = 0
    certificate: bool | str = False
    limits: Limits = Limits()

    @property
    def is_guided(self) -> bool:
        """Whether passes over the data come before training."""
        return self.control_variate or _is(self.selection, "informed") or self.fits_weights

    @property
    def fits_weights(self) -> bool:
        """Whether the guide fits the weights to start from."""
        return _is(self.initial_weights, "least_squares")

    def without_guide(self, model: Model, is_large: bool = False) -> "Settings":
        """Return the settings for a model whose posterior has no mode to be found.

        The kernel is then one without gradients, and for a large model one without a matrix.
        """
        whitens = model.default_kernel == "hit_and_run" and not is_large
        own = "whitened_slice" if whitens else None
        return dataclasses.replace(
            self,
            control_variate=False,
            selection="uniform" if _is(self.selection, "informed") else self.selection,
            initial_weights=(
                "selection" if _is(self.initial_weights, "least_squares") else self.initial_weights
            ),
            kernel=own if _is(self.kernel, "whitened_hmc") else self.kernel,
        )

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, for files and messages."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain["limits"] = dataclasses.replace(self.limits, pacing=Pacing())  # shapes no result
        simple = (int, float, str, type(None))
        return {k: v if isinstance(v, simple) else describe(v) for k, v in plain.items()}

    def make_kernel(self, model: Model) -> Kernel:
        """Return the kernel that ``kernel`` names or is."""
        return as_kernel(model.default_kernel if self.kernel is None else self.kernel)

    def make_optimizer(self) -> optax.GradientTransformation:
        """Return the optimizer that ``optimizer`` names or is."""
        optimizer = self.optimizer
        if isinstance(optimizer, str):
            return _lookup("optimizer", optimizer, OPTIMIZERS)()
        if not isinstance(optimizer, optax.GradientTransformation):
            raise ValueError(
                f"optimizer must be a name ({', '.join(OPTIMIZERS)}) or an optax transformation, "
                f"not {optimizer!r}."
            )
        return optimizer


def is_informed(settings: Settings) -> bool:
    """Whether the passes over the data choose the coreset's rows."""
    return _is(settings.selection, "informed")


def wants_estimate(settings: Settings, data: DataSource) -> bool:
    """Whether the certificate should do without a pass, where a control variate lets it."""
    return _is(settings.certificate, "estimate") or data.num_rows > _DEAR_ROWS


def _is(value: Any, name: str) -> bool:
    return isinstance(value, str) and value == name


PRESETS = {
    "default": Settings(
        num_iterations="auto",
        num_chains=8,
        subsample_size=200,
        kernel="whitened_hmc",
        selection="informed",
        initial_weights="least_squares",
        returned_weights="auto",
        control_variate=True,
        num_draws=2_000,
        certificate=True,
    ),
    "paper": Settings(),
}
"""Settings by name; ``fit(preset=…)``."""


def resolve(
    model: Model, data: DataSource, coreset_size: int, preset: str, options: dict[str, Any]
) -> Settings:
    """Take a preset, put the user's options (those not ``None``) over it, and check the whole."""
    settings = _lookup("preset", preset, PRESETS)
    options = {name: value for name, value in options.items() if value is not None}
    hot_start = options.get("hot_start")
    if isinstance(hot_start, bool):
        options["hot_start"] = (settings.hot_start or HotStart()) if hot_start else None
    elif hot_start is not None and not isinstance(hot_start, HotStart):
        raise ValueError(f"hot_start must be True, False or a HotStart, not {hot_start!r}.")
    if not isinstance(options.get("limits", Limits()), Limits):
        raise ValueError(f"limits must be Limits(...), not {options['limits']!r}.")
    settings = dataclasses.replace(settings, **options)

    num_rows = data.num_rows
    coreset_size = _count("coreset_size", coreset_size, 2, num_rows, "the number of rows of data")
    if not model.is_continuous and "kernel" not in options:
        settings = settings.without_guide(model)
    subsample_size = coreset_size if settings.subsample_size is None else settings.subsample_size
    if "subsample_size" not in options:
        subsample_size = min(subsample_size, num_rows)
    stops_early = _is(settings.num_iterations, "auto")
    num_iterations = settings.limits.stopping.longest if stops_early else settings.num_iterations
    num_iterations = _count("num_iterations", num_iterations, 1, 2**53)
    thin = settings.thin
    if thin is None:
        thin = math.ceil(num_iterations / _MAX_RECORDS)
    bound = settings.max_weight_sum
    if bound is not None:
        bound = _positive("max_weight_sum", bound)
    if settings.returned_weights not in ("last", "average", "auto"):
        raise ValueError(
            "returned_weights must be 'last', 'average' or 'auto', not "
            f"{settings.returned_weights!r}."
        )
    if not isinstance(settings.certificate, bool) and not _is(settings.certificate, "estimate"):
        raise ValueError(
            "certificate must be True (one pass over the data), 'estimate' (no pass) or False, "
            f"not {settings.certificate!r}."
        )
    if _is(settings.certificate, "estimate") and not settings.control_variate:
        raise ValueError(
            "certificate='estimate' needs the control variate, which this fit does without. Pass "
            "certificate=True (one pass over the data) or, where it may be, control_variate=True."
        )
    settings = dataclasses.replace(
        settings,
        num_iterations=num_iterations,
        stops_early=stops_early,
        num_chains=_count("num_chains", settings.num_chains, 2, 10_000),
        subsample_size=_count(
            "subsample_size", subsample_size, 1, num_rows, "the number of rows of data"
        ),
        thin=_count("thin", thin, 1, num_iterations, "num_iterations"),
        max_weight_sum=bound,
        num_draws=_count("num_draws", settings.num_draws, 0, 10**9),
    )
    settings.make_kernel(model)
    settings.make_optimizer()
    return settings


def check_seed(seed: Any) -> int:
    """Accept an integer from 0 to 2³² − 1."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise ValueError(f"seed must be an integer, not {seed!r}.")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must lie in 0 to 2**32 - 1 = 4294967295, but is {seed}.")
    return int(seed)


def _positive(name: str, value: Any) -> float:
    """Accept a positive number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
        raise ValueError(f"{name} must be positive, but is {value!r}.")
    return float(value)


def _count(name: str, value: Any, low: int, high: int, what: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer, not {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, but is {value}.")
    if value > high:
        because = f" ({what})" if what else ""
        raise ValueError(f"{name} must be at most {high:,}{because}, but is {value:,}.")
    return int(value)


def _lookup(argument: str, name: Any, known: dict) -> Any:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"{argument}={name!r} is unknown; choose from {', '.join(known)}.")
    return known[name]
