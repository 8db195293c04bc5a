"""How good a reference posterior has to be, and whether it is."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.errors import StudyError

__all__ = ["FULL", "QUALITIES", "SMOKE", "Quality", "against_authors", "diagnose", "verdicts"]


@dataclass(frozen=True)
class Quality:
    """Lengths of the chains, and what their draws are held to.

    Attributes
    ----------
    name
        Name in files.
    num_chains
        Chains, each from a start of its own.
    num_warmup, num_draws
        Steps of NUTS that are discarded, and kept, in each chain.
    num_sweeps
        Sweeps of Gibbs sampling in each chain; the first half is discarded.
    max_rounds
        How often as many draws again are added before giving up.
    max_rhat
        Bound on split R-hat, every coordinate.
    max_error
        Bound on the Monte Carlo errors of mean and sd, as fractions of the posterior sd.
    authors_mean, authors_sd
        Bounds on the differences to what the paper's authors published: of means in posterior
        sds, of sds as fractions.
    """

    name: str
    num_chains: int
    num_warmup: int
    num_draws: int
    num_sweeps: int
    max_rounds: int
    max_rhat: float
    max_error: float
    authors_mean: float
    authors_sd: float


FULL = Quality("full", 4, 1_000, 10_000, 200_000, 4, 1.01, 0.02, 0.05, 0.03)
"""What results are judged by."""

SMOKE = Quality("smoke", 4, 200, 300, 4_000, 4, 1.05, 0.1, 0.5, 0.5)
"""Enough to see that everything runs."""

QUALITIES = {"smoke": SMOKE, "small": FULL, "paper": FULL}
"""The quality that a study of each scale needs."""

_AUTHORS = {
    ("poisson", "bikes"): "bikes",
    ("bradley_terry", "nba"): "nba",
    ("linear", "flights_authors"): "flights_linear_authors_98673_rows",
    ("logistic", "flights_authors"): "flights_logistic_authors_98673_rows",
}


def diagnose(draws: np.ndarray) -> dict[str, float]:
    """Return the worst R-hat, effective sample size and Monte Carlo errors of any coordinate.

    The draws are chains × draws × coordinates; errors are fractions of the posterior sd.
    """
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    ess, ess_squares = effective_sample_size(draws), effective_sample_size(squares)
    # var has the error sd(squares) / √ess, and sd = √var half of it, relatively.
    spread = squares.std(axis=(0, 1)) / squares.mean(axis=(0, 1))
    return {
        "max_rhat": float(split_gelman_rubin(draws).max()),
        "min_ess": float(ess.min()),
        "max_mean_error": float((ess**-0.5).max()),
        "max_sd_error": float((0.5 * spread * ess_squares**-0.5).max()),
    }


def verdicts(found: dict[str, float], quality: Quality) -> dict[str, bool]:
    """Return each criterion in words, and whether it is met."""
    return {
        f"R-hat below {quality.max_rhat}": found["max_rhat"] < quality.max_rhat,
        f"Monte Carlo error of the mean below {quality.max_error} sd": found["max_mean_error"]
        < quality.max_error,
        f"Monte Carlo error of the sd below {quality.max_error} sd": found["max_sd_error"]
        < quality.max_error,
    }


def against_authors(
    task: str, dataset: str, mean: np.ndarray, sd: np.ndarray, folder: Path | None
) -> dict[str, float]:
    """Return the largest differences to the authors' posterior of the same data.

    Empty where they published none, or where their file is not in the folder.
    """
    key = _AUTHORS.get((task, dataset))
    path = None if folder is None else folder / "reference_posteriors.json"
    if key is None or path is None or not path.is_file():
        return {}
    try:
        entry = json.loads(path.read_text())[key]
        authors_mean, authors_sd = np.array(entry["mean"]), np.sqrt(entry["variance"])
        return {
            "max_mean_difference": float((np.abs(mean - authors_mean) / authors_sd).max()),
            "max_sd_difference": float(np.abs(sd / authors_sd - 1).max()),
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(
            f"--data: {path} cannot be compared with ({error!r}). Restore it, or remove it."
        ) from None
