"""The numbers of each parameter, and those of the full posterior beside them."""

import dataclasses
import math
import warnings

import numpy as np
import pytest

from coremcmc.report.parameters import beside_the_full_posterior, on_their_scale, parameters_of
from tests.report.pages import numbers_in, page_of
from tests.report.report_fits import make_certificate, make_fit


def test_the_posterior_table_agrees_with_numpy_and_arviz(fit, page):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        summary = {
            name: (float(np.ravel(arviz.ess(draws))[0]), float(np.ravel(arviz.rhat(draws))[0]))
            for name, draws in (("beta[1]", fit.sampled["beta"][..., 1]),)
        }
    header, rows = page.table("R-hat")
    assert header[:7] == ["parameter", "mean", "sd", "5\xa0%", "95\xa0%", "ESS", "R-hat"]
    assert [row[0] for row in rows] == ["beta[0]", "beta[1]", "beta[2]", "sigma"]
    draws = fit.sampled["beta"][..., 1]
    found = [numbers_in(cell) for cell in rows[1][1:]]
    sd = draws.std(ddof=1)
    expected = [draws.mean(), sd, *np.quantile(draws, [0.05, 0.95])]
    np.testing.assert_allclose(found[:4], expected, atol=0.051 * sd)
    assert found[4] == round(summary["beta[1]"][0])
    assert found[5] == pytest.approx(summary["beta[1]"][1], abs=6e-4)
    beside = [draws.mean() + 0.1 * sd, 1.2 * sd, draws.mean() - 0.2 * sd, 0.9 * sd]
    np.testing.assert_allclose(found[6:], beside, atol=0.051 * sd)


def test_corrected_values_are_moved_to_the_named_scale():
    """A multiple of a coordinate has mean and sd, a combination the mean, a bent one neither."""
    rng = np.random.default_rng(0)
    mixing = np.array([[1.0, 0.3, 0.0], [0.0, 1.0, -0.4], [0.0, 0.0, 1.0]])
    coordinates = rng.standard_normal((2_000, 3)) @ mixing + 1.0
    named = np.column_stack(
        [
            coordinates[:, 1],
            5.0 - 2.0 * coordinates[:, 0],
            coordinates @ [1.0, 2.0, 3.0] + 4.0,
            np.exp(coordinates[:, 2]),
            np.full(2_000, 3.0),
        ]
    )
    certificate = make_certificate(coordinates[:, None], ["a", "b", "c"])
    mean, sd = certificate.corrected_mean, certificate.corrected_sd
    found_mean, found_sd = on_their_scale(named, coordinates, mean, sd)
    np.testing.assert_allclose(found_mean[:3], [mean[1], 5 - 2 * mean[0], mean @ [1, 2, 3] + 4])
    np.testing.assert_allclose(found_sd[:2], [sd[1], 2 * sd[0]])
    assert np.isnan(found_sd[2:]).all()
    assert np.isnan(found_mean[3:]).all()
    mean, sd = certificate.laplace_mean, certificate.laplace_sd
    found_mean, found_sd = on_their_scale(named, coordinates, mean, sd)
    np.testing.assert_allclose(found_mean[1], 5 - 2 * mean[0])
    np.testing.assert_allclose(found_sd[1], 2 * sd[0])
    for missing in (on_their_scale(named, coordinates, None, None), on_their_scale(named, coordinates, mean[:2], sd[:2])):  # fmt: skip  # noqa: E501
        assert np.isnan(missing).all()


def test_a_fit_without_laplace_is_corrected_all_the_same(fit):
    parameters, _ = parameters_of(fit, 10)
    judged = dataclasses.replace(fit.certificate, laplace_mean=None, laplace_sd=None)
    found = beside_the_full_posterior(dataclasses.replace(fit, certificate=judged), parameters)
    assert np.isnan([(p.laplace_mean, p.laplace_sd) for p in found]).all()
    np.testing.assert_allclose([p.corrected_mean for p in found], judged.corrected_mean)
    np.testing.assert_allclose([p.corrected_sd for p in found], judged.corrected_sd)


def test_the_certificates_weights_correct_any_parameter():
    """σ of log σ, too: N(m, s²) times exp(cx) is N(m + cs², s²), whose moments are known."""
    rng = np.random.default_rng(0)
    m, s, c = -0.5, 0.3, 0.8
    log_sigma = m + s * rng.standard_normal((5_000, 4, 1))
    flat = log_sigma.ravel()[np.linspace(0, log_sigma.size - 1, 5_000).astype(int)]
    importance = np.exp(c * flat) / np.exp(c * flat).sum()
    names = ["log_sigma"]
    judged = make_certificate(log_sigma, names, importance=importance, laplace_mean=None, laplace_sd=None)  # fmt: skip  # noqa: E501
    fit = dataclasses.replace(
        make_fit({"log_sigma": ()}),
        sampled={"sigma": np.exp(log_sigma[..., 0]).T},
        sampled_positions=log_sigma,
        certificate=judged,
    )
    (found,) = beside_the_full_posterior(fit, parameters_of(fit, 1)[0])
    mean = math.exp(m + c * s**2 + s**2 / 2)
    sd = mean * math.sqrt(math.exp(s**2) - 1)
    assert found.corrected_mean == pytest.approx(mean, abs=5 * sd / math.sqrt(5_000))
    assert found.corrected_sd == pytest.approx(sd, rel=0.1)
    assert abs(found.mean - mean) > 10 * sd / math.sqrt(5_000)  # so that a correction is seen
    _, rows = page_of(fit).table("R-hat")
    assert numbers_in(rows[0][-2]) == pytest.approx(found.corrected_mean, abs=0.051 * sd)


def test_weights_are_of_the_draws_that_were_judged(fit):
    """Draws that were made later are corrected by the certificate's numbers, not by its weights."""
    importance = np.geomspace(1.0, 100.0, 100) / np.geomspace(1.0, 100.0, 100).sum()
    judged = dataclasses.replace(fit.certificate, importance=importance)

    def corrected(some):
        parameters, _ = parameters_of(some, 10)
        return [p.corrected_mean for p in beside_the_full_posterior(some, parameters)]

    assert not np.isclose(corrected(dataclasses.replace(fit, certificate=judged)), judged.corrected_mean).any()  # fmt: skip  # noqa: E501
    later = corrected(make_fit(num_draws=240, certificate=judged))
    np.testing.assert_allclose(later, judged.corrected_mean)
