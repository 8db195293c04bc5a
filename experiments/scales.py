"""How large a study is."""

from dataclasses import dataclass

from experiments.errors import StudyError

__all__ = ["SCALES", "Scale", "record_iterations", "scale_named", "stop_after"]


@dataclass(frozen=True)
class Scale:
    """Sizes of a study.

    Attributes
    ----------
    coreset_sizes
        The values of M. The figures of the main text show the last.
    num_iterations
        T, weight updates or not.
    num_trials
        Independent repetitions: other coreset, other start, other randomness.
    chunk
        Iterations that one call of the compiled program makes.
    full_grid
        Whether every grid value of the paper is run, or one in two.
    max_hold
        Iterations after which the weights are released even if the hot-start test has not passed.
    optimize
        Whether the compiler takes its time, which a very short run does not repay.
    """

    name: str
    coreset_sizes: tuple[int, ...]
    num_iterations: int
    num_trials: int
    chunk: int
    full_grid: bool
    max_hold: int = 10_000
    optimize: bool = True


SCALES = {
    scale.name: scale
    for scale in (
        Scale("smoke", (20, 40), 120, 2, 40, full_grid=False, max_hold=90, optimize=False),
        Scale("small", (100, 500), 5_000, 3, 100, full_grid=False),
        Scale("paper", (100, 500, 1_000), 200_000, 10, 500, full_grid=True),
    )
}
"""The scales by name; ``paper`` has the sizes of the paper's appendix."""


def scale_named(name: str) -> Scale:
    """Find a scale."""
    if name not in SCALES:
        raise StudyError(f"--scale {name}: unknown. The scales are {', '.join(SCALES)}.")
    return SCALES[name]


def record_iterations(num_iterations: int, per_octave: int = 4) -> list[int]:
    """Return the iterations that are recorded: evenly spaced on a log scale, up to the last.

    With every t, ⌊t/2⌋ is in it too, so that the mean over the latter half of the draws so far is
    a difference of two recorded sums.
    """
    chosen = set()
    for k in range(per_octave):
        t = round(num_iterations * 2 ** (-k / per_octave))
        while t > 0:
            chosen.add(t)
            t //= 2
    return sorted(chosen)


def stop_after(scale: Scale, num_iterations: int | None) -> int:
    """Return where to stop for at least so many iterations: at the end of a recorded chunk."""
    if num_iterations is None:
        return scale.num_iterations
    if not 1 <= num_iterations <= scale.num_iterations:
        raise StudyError(
            f"--iterations {num_iterations}: must lie between 1 and {scale.num_iterations:,}, the "
            f"iterations of scale {scale.name}."
        )
    records = record_iterations(scale.num_iterations)
    return next(t for t in records if t >= num_iterations and t % scale.chunk == 0)
