"""Which files does a call of fit pass through, and how often does it come back to each?

python benchmarks/path_of_fit.py           # the default preset
python benchmarks/path_of_fit.py paper

A file is entered when one of its functions is called from another file of the package; tracing by
JAX counts as it happens. Few files, each entered from one side, are easy to read in order.
"""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import coremcmc

ROOT = str(Path(coremcmc.__file__).parent)


def path_of(preset: str) -> tuple[list[str], Counter, Counter]:
    """Return the files in the order of their first entry, and how often each was entered.

    Also how often files were entered from the top file, whose own re-entries say how often the
    reader has to come back to it.
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2_000, 3))
    rows = {"x": x, "y": (x[:, 0] + rng.logistic(size=2_000) > 0).astype(int)}
    order: list[str] = []
    entered: Counter = Counter()
    callers: Counter = Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(ROOT):
            return
        here, back = frame.f_code.co_filename, frame.f_back
        while back is not None and not back.f_code.co_filename.startswith(ROOT):
            back = back.f_back
        there = back.f_code.co_filename if back is not None else ""
        if here == there:
            return
        name = str(Path(here).relative_to(ROOT))
        if name not in entered:
            order.append(name)
        entered[name] += 1
        if there:
            callers[str(Path(there).relative_to(ROOT)), name] += 1

    model, fit = coremcmc.LogisticRegression(), coremcmc.fit  # imported here, not in the trace
    sys.setprofile(note)
    try:
        fit(model, rows, 50, preset=preset, num_iterations=300, num_draws=50, progress=False)
    finally:
        sys.setprofile(None)
    return order, entered, callers


def main() -> None:
    order, entered, callers = path_of(sys.argv[1] if len(sys.argv) > 1 else "default")
    for name in order:
        print(f"{entered[name]:6,}  {name}")
    top = str(Path(coremcmc.fit.__code__.co_filename).relative_to(ROOT))
    print(f"{len(order)} files; {top} is entered {entered[top]} times, and enters others:")
    for (there, name), count in callers.items():
        if there == top:
            print(f"{count:6,}  {name}")


if __name__ == "__main__":
    main()
