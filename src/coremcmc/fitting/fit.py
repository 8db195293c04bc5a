"""The newcomer's line: a model and data in, a coreset and posterior draws out."""

import dataclasses
import os
import time
import warnings
from pathlib import Path
from typing import Any

import jax

from coremcmc.algorithm.start import Start
from coremcmc.base import DataSource, Model, Position
from coremcmc.data import as_data_source
from coremcmc.files import check_writable
from coremcmc.fitting.growing import grow
from coremcmc.fitting.progress import PassBar
from coremcmc.fitting.result import Fit
from coremcmc.fitting.run import Run, save_or_warn
from coremcmc.fitting.settings import (
    Limits,
    Settings,
    check_seed,
    is_informed,
    resolve,
    wants_estimate,
)
from coremcmc.guide.guide import consult
from coremcmc.identity import has_changed
from coremcmc.posterior.mode import Laplace, NoModeError
from coremcmc.selection import Selected, choose_rows, starting_weights, within_bound

__all__ = ["fit", "prepare"]


def fit(
    model: Model,
    data: Any,
    coreset_size: int | str,
    *,
    seed: int = 0,
    preset: str = "default",
    num_iterations: int | str | None = None,
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
    control_variate: bool | None = None,
    num_draws: int | None = None,
    certificate: bool | str | None = None,
    limits: Limits | None = None,
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
        M, how many rows the coreset has; or ``"auto"``: from 100 on, doubled until the
        certificate says good, up to 12,800.
    seed
        Same seed, same answer.
    preset
        ``"default"``: a few passes over the data find the mode, the rows that matter and weights to
        start from; control variates take the noise out of the gradient; HMC moves the chains; a
        certificate judges the result. ``"paper"``: the recipe of the paper, with its constants.
        The arguments below override either.
    num_iterations
        T, or ``"auto"``: until neither the residual nor the posterior mean moves any more, from
        2,000 iterations to 32,000.
    num_chains
        K, at least 2.
    subsample_size
        S, rows drawn afresh at every iteration to estimate the gradient: 200, and M in the
        paper's preset.
    kernel
        Name of a Markov kernel, or one: ``"whitened_hmc"``; in the paper's preset, and where a
        model has no gradient, the model's own.
    optimizer
        Name of an optimizer, or any optax transformation.
    hot_start
        ``True``, ``False``, or settings of the hot-start test.
    selection
        ``"informed"`` (half uniform, half in proportion to how much a row's log-likelihood varies
        over the posterior; the default), ``"uniform"`` (the paper's), ``Stratified(column)``, or
        an array of row indices.
    initial_weights
        ``"least_squares"`` (fitted near the mode; the default), ``"uniform"`` (N/M each; the
        paper's), ``"selection"`` (stratum size over stratum count) or an array.
    initial_positions
        Where the chains start: a position whose leaves have a leading axis of length K.
    returned_weights
        ``"last"``, ``"average"`` (the mean over the latter half), or ``"auto"``: the average once
        the residual is flat. Both are kept.
    max_weight_sum
        B, a bound on the sum of the weights.
    thin
        Keep every so many-th iteration; about 2,000 records in all by default.
    control_variate
        Whether the gradient uses a Taylor polynomial of the log-likelihood at the mode, which
        takes most of the noise of subsampling.
    num_draws
        Draws of each chain from the finished coreset's posterior, its weights fixed; where the
        chains mix slowly, every second to sixteenth step is kept.
    certificate
        Whether to judge the result at the end, by one more pass over the data. ``"estimate"``
        judges without a pass, from some of the rows and the control variate, and tells the noise
        of that (where no mode is found there is none, and a pass is made); so does ``True`` where
        there are more than 200 million rows.
    limits
        Sizes and thresholds inside the parts, :class:`coremcmc.fitting.settings.Limits`, which few
        need.
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
    began = time.monotonic()
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
        "control_variate": control_variate,
        "num_draws": num_draws,
        "certificate": certificate,
        "limits": limits,
    }
    if isinstance(coreset_size, str):
        return _grow(
            model, data, coreset_size, preset, options, seed, path, initial_positions, progress
        )
    settings = resolve(model, data, coreset_size, preset, options)
    data.check(model)
    if has_changed(model, model.describe()):
        jax.clear_caches()  # compiled for what the model was before it was changed in place
    with jax.enable_x64(True):
        settings, start, laplace = prepare(
            model, data, settings, int(coreset_size), seed, initial_positions, progress
        )
        run = Run(model, data, settings, start, seed, preset, saved)
        run.train(path, checkpoint_every, progress)
        result = run.result()
        if path is not None:  # what follows may be interrupted too
            save_or_warn(result, path)
        result = run.draw(result, progress)
    if settings.certificate:
        with PassBar("judging the coreset", data.num_rows, progress) as bar:
            estimate = run.control if wants_estimate(settings, data) else None
            found = result.certify(
                model,
                data,
                laplace=laplace,
                control=estimate,
                judging=settings.limits.certificate,
                search=settings.limits.mode,
                progress=bar,
            )
        result = dataclasses.replace(result, certificate=found)
    before = 0.0 if saved is None else saved.seconds
    result = dataclasses.replace(result, seconds=before + time.monotonic() - began)
    if path is not None:
        save_or_warn(result, path)
    for text in result.warnings:
        warnings.warn(text, stacklevel=2)
    return result


def prepare(
    model: Model,
    data: DataSource,
    settings: Settings,
    size: int,
    seed: int,
    given: Position | None = None,
    progress: bool | None = None,
) -> tuple[Settings, Start, Laplace | None]:
    """Choose rows, weights and positions to start from: as the guide says, or without one."""
    chosen = None if is_informed(settings) else _choose(settings, data, size, seed)
    if not settings.is_guided:
        assert chosen is not None
        return settings, Start(chosen, None, given), None
    try:
        with PassBar("reading the data", data.num_rows, progress) as bar:
            limits = settings.limits
            guide = consult(model, data, size, seed, bar, search=limits.mode, passes=limits.control)
    except NoModeError as error:
        warnings.warn(
            f"{error} Going on without it: uniform rows, plain subsampling, and a kernel that "
            "needs no gradient.",
            stacklevel=3,
        )
        settings = settings.without_guide(model, error.is_large)
        return settings, Start(_choose(settings, data, size, seed), None, given), None
    if chosen is None:
        chosen = _weighted(settings, guide.chosen, data.num_rows)
    control = guide.control(model, data)
    weights, positions = guide.begin(
        model,
        data,
        control,
        chosen,
        settings.num_chains,
        seed,
        fits_weights=settings.fits_weights,
    )
    if settings.fits_weights:
        chosen = chosen._replace(weights=within_bound(weights, settings.max_weight_sum))
    used = control if settings.control_variate else None
    return settings, Start(chosen, used, positions if given is None else given), guide.laplace


def _choose(settings: Settings, data: DataSource, size: int, seed: int) -> Selected:
    """Choose rows without a guide; bad input is told here, before any pass."""
    selected = choose_rows(settings.selection, data, size, seed)
    weights = starting_weights(
        settings.initial_weights, selected, data.num_rows, settings.max_weight_sum
    )
    return selected._replace(weights=weights)


def _weighted(settings: Settings, selected: Selected, num_rows: int) -> Selected:
    """Give the guide's rows the weights that the settings ask for."""
    bound = settings.max_weight_sum
    bounded = selected._replace(weights=within_bound(selected.weights, bound))
    weights = starting_weights(settings.initial_weights, bounded, num_rows, bound)
    return bounded._replace(weights=weights)


def _grow(
    model: Model,
    data: DataSource,
    coreset_size: str,
    preset: str,
    options: dict[str, Any],
    seed: int,
    path: Path | None,
    initial_positions: Position | None,
    progress: bool | None,
) -> Fit:
    """Fit larger and larger coresets: as large as the certificate wants it."""
    if coreset_size != "auto":
        raise ValueError(f"coreset_size must be a number or 'auto', not {coreset_size!r}.")
    if path is not None:
        raise ValueError(
            "coreset_size='auto' makes several short fits and keeps no checkpoint. Give the size "
            "that it finds, with the checkpoint."
        )
    if not resolve(model, data, 2, preset, options).certificate:
        raise ValueError(
            "coreset_size='auto' asks the certificate, which this preset does not make. Pass "
            "certificate=True, or a size."
        )

    def fit_of_size(size: int) -> Fit:
        return fit(
            model,
            data,
            size,
            seed=seed,
            preset=preset,
            initial_positions=initial_positions,
            progress=progress,
            **options,
        )

    return grow(fit_of_size, data.num_rows)


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
