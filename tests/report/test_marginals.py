"""Densities of parameters of every kind."""

import dataclasses
import math

import numpy as np
import pytest

from coremcmc.report.marginals import density
from tests.report.pages import page_of
from tests.report.report_fits import make_fit


def test_a_density_integrates_to_one_and_finds_the_normal():
    draws = np.random.default_rng(0).standard_normal(20_000)
    grid, height = density(draws)
    assert np.trapezoid(height, grid) == pytest.approx(1.0, abs=0.02)
    normal = np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
    assert np.abs(height - normal).max() < 0.02


def test_constant_and_discrete_parameters():
    fit = make_fit({"gamma": (2,), "beta": ()})
    gamma = np.ones((4, 250, 2))
    gamma[:, ::3, 1] = 0.0
    page = page_of(dataclasses.replace(fit, sampled={**fit.sampled, "gamma": gamma}))
    assert "always 1" in page.text
    header, rows = page.table("R-hat")
    assert rows[0][header.index("R-hat")] == "–"
