"""The newcomer's line: a model and data in, a coreset and posterior draws out."""

import os
import warnings
from pathlib import Path
from typing import Any

import jax

from coremcmc.base import Model, Position
from coremcmc.data import as_data_source
from coremcmc.io import check_writable
from coremcmc.result import Fit
from coremcmc.run import Run, save_or_warn
from coremcmc.settings import check_seed, choose_rows, resolve
from coremcmc.summary import warnings_of

__all__ = ["fit"]


def fit(
    model: Model,
    data: Any,
    coreset_size: int,
    *,
    seed: int = 0,
    preset: str = "paper",
    num_iterations: int | None = None,
    num_chains: int | None = None,
    subsample_size: int | None = None,
    kernel: Any = None,
    optimizer: Any = None,
    hot_start: Any = None,
    selection: Any = None,
    initial_weights: Any = None,
    initial_positions: Position | None = None,
    returned_weights: str | None = None,
    max_weight_sum: float | int | None = None,
    thin: int | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float | int = 30.0,
    resume: bool = False,
    progress: bool | None = None,
) -> Fit:
    """Train a coreset of the data, and draw from its posterior.

    Parameters
    ----------
    model
        The prior and the likelihood.
    data
        A mapping of column names to arrays, a tuple of them in the model's order, or a data
        source.
    coreset_size
        M, how many rows the coreset has.
    seed
        Same seed, same answer.
    preset
        ``"paper"``: the recipe of the paper, with its constants. The arguments below override it.
        Where the paper leaves a choice, see :class:`coremcmc.HotStart` and
        :func:`coremcmc.hot_dog`.
    num_iterations
        T.
    num_chains
        K, at least 2.
    subsample_size
        S, rows drawn afresh at every iteration to estimate the gradient; M by default.
    kernel
        Name of a Markov kernel, or one; the model's own by default.
    optimizer
        Name of an optimizer, or any optax transformation.
    hot_start
        ``True``, ``False``, or settings of the hot-start test.
    selection
        ``"uniform"``, ``Stratified(column)``, or an array of row indices.
    initial_weights
        ``"uniform"`` (N/M each), ``"selection"`` (stratum size over stratum count) or an array.
    initial_positions
        Where the chains start: a position whose leaves have a leading axis of length K.
    returned_weights
        ``"last"`` or ``"average"``, the mean over the latter half. Both are kept.
    max_weight_sum
        B, a bound on the sum of the weights.
    thin
        Keep every so many-th iteration; about 2,000 records in all by default.
    checkpoint
        File to save to every ``checkpoint_every`` seconds and at the end. A fit in itself: see
        :meth:`coremcmc.Fit.load`.
    resume
        Go on from ``checkpoint`` where it exists. The result is the same, to the last bit, as
        that of a run that was never interrupted.
    progress
        Show a progress bar; by default on a terminal and in a notebook only.

    Returns
    -------
    The coreset, the draws and the traces. Ctrl-C ends the run early with what there is.
    """
    _check_model(model)
    data = as_data_source(data, model)
    seed = check_seed(seed)
    if not isinstance(checkpoint_every, (int, float)) or checkpoint_every < 0:
        raise ValueError(f"checkpoint_every must be a number of seconds, not {checkpoint_every!r}.")
    path = _check_checkpoint(checkpoint, resume)
    saved = Fit.load(path) if path is not None and path.exists() else None
    if saved is not None and thin is None:
        thin = saved.config["settings"]["thin"]
    options = {
        "num_iterations": num_iterations,
        "num_chains": num_chains,
        "subsample_size": subsample_size,
        "kernel": kernel,
        "optimizer": optimizer,
        "hot_start": hot_start,
        "selection": selection,
        "initial_weights": initial_weights,
        "returned_weights": returned_weights,
        "max_weight_sum": max_weight_sum,
        "thin": thin,
    }
    settings = resolve(model, data, coreset_size, preset, options)
    data.check(model)
    selected = choose_rows(settings, data, int(coreset_size), seed)
    with jax.enable_x64(True):
        run = Run(model, data, settings, selected, seed, preset, initial_positions, saved)
        run.train(path, checkpoint_every, progress)
        result = run.result()
    if path is not None:
        save_or_warn(result, path)
    for text in warnings_of(result):
        warnings.warn(text, stacklevel=2)
    return result


def _check_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise ValueError(f"model must be a model such as LogisticRegression(), not {model!r}.")
    try:
        hash(model)
    except TypeError:
        raise ValueError(
            f"model of class {type(model).__name__} cannot be hashed. Make it immutable, for "
            "example with @dataclass(frozen=True) and tuples in place of lists."
        ) from None


def _check_checkpoint(checkpoint: str | os.PathLike | None, resume: bool) -> Path | None:
    if checkpoint is None:
        if resume:
            raise ValueError("resume=True needs checkpoint, the file to resume from.")
        return None
    path = Path(checkpoint)
    check_writable(path, "checkpoint")
    if path.exists() and not resume:
        raise ValueError(
            f"checkpoint {str(path)!r} exists. Pass resume=True to go on from it, or name another "
            "file; nothing is overwritten."
        )
    return path
