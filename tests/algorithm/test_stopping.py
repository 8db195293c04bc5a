"""When a run stops by itself, and how large a coreset grows."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import coremcmc
from coremcmc.algorithm.averaging import latter_half_init, latter_half_update
from coremcmc.algorithm.stopping import Stopping
from coremcmc.fitting.growing import grow


def noise(size, seed=0):
    return np.random.default_rng(seed).standard_normal((size, 4, 2))


def test_a_flat_residual_and_a_still_mean_have_settled():
    found = Stopping().settled(np.full(400, 0.5), noise(400))
    assert found.is_flat
    assert found.is_still
    assert found.is_done
    assert "0.5 in the last quarter after 0.5 and 0.5" in found.reason


def test_a_falling_residual_is_not_flat():
    found = Stopping().settled(np.exp(-np.arange(400) / 100), noise(400))
    assert not found.is_flat
    assert found.is_still


def test_a_residual_that_fell_much_since_the_second_quarter_is_worth_more_iterations():
    """Flat at the end, so that the weights may be averaged, but not small, and not yet done."""
    residual = np.repeat([1.0, 1.0, 0.5, 0.45], 100)
    found = Stopping().settled(residual, noise(400))
    assert found.is_flat
    assert not found.is_done
    assert (
        Stopping().settled(0.03 * residual, noise(400)).is_done
    )  # of two coordinates: small enough


def test_a_drifting_mean_is_not_still():
    found = Stopping().settled(np.full(400, 0.5), noise(400) + np.arange(400)[:, None, None] / 200)
    assert found.is_flat
    assert not found.is_still


def test_too_few_records_tell_nothing():
    assert not Stopping().settled(np.ones(7), noise(7)).is_flat


def test_checks_fall_on_exact_halves_of_the_average():
    """There the window of the averaged weights is exactly the latter half."""
    checks = Stopping().checks(Stopping().longest)
    assert checks == [2_000, 4_000, 8_000, 16_000, 32_000]
    assert checks[0] == Stopping().first_check
    state = latter_half_init(jnp.zeros(1), 32)
    for t in range(1, 33):
        state = latter_half_update(state, jnp.array([float(t)]), jnp.array(t))
        if t in (2, 4, 8, 16, 32):
            assert int(state.older_start) == t // 2


class FakeFit(coremcmc.Fit):
    """A fit that knows its size and its verdict only."""

    def __init__(self, size, verdict):
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "stopped", "finished")
        certificate = SimpleNamespace(verdict=verdict)
        object.__setattr__(self, "certificate", certificate)


def test_a_coreset_grows_until_its_certificate_is_good():
    sizes = []

    def fit_of_size(size):
        sizes.append(size)
        return FakeFit(size, "good" if size >= 400 else "poor")

    assert grow(fit_of_size, 10_000).size == 400
    assert sizes == [100, 200, 400]


def test_a_coreset_that_never_gets_good_stops_at_a_cap_with_a_warning():
    with pytest.warns(UserWarning, match="stopped at 800 rows, where the certificate says usable"):
        assert grow(lambda size: FakeFit(size, "usable"), 1_000).size == 800


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coreset_size": "big"}, "must be a number or 'auto'"),
        ({"coreset_size": "auto", "preset": "paper"}, "asks the certificate"),
        ({"coreset_size": "auto", "checkpoint": "run.npz"}, "keeps no checkpoint"),
    ],
)
def test_what_auto_refuses(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = coremcmc.logistic_data(num_rows=500)
    with pytest.raises(ValueError, match=message):
        coremcmc.fit(coremcmc.LogisticRegression(), data, **options)
