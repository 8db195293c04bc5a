"""Draws at fixed weights go on until the chains have mixed."""

import numpy as np
import pytest

from coremcmc.fitting.draws import sample_enough


def chains(memory, num_draws, num_chains=8, seed=0):
    """One long autoregression, handed out in pieces: (run_on, all of it, calls made)."""
    length = 16 * num_draws
    noise = np.random.default_rng(seed).standard_normal((length, num_chains, 2))
    path = np.empty_like(noise)
    path[0] = noise[0]
    for t in range(1, length):
        path[t] = memory * path[t - 1] + np.sqrt(1 - memory**2) * noise[t]
    calls = []

    def run_on(call):
        calls.append(call)
        piece = slice(call * num_draws, (call + 1) * num_draws)
        return path[piece], path[piece].sum(axis=2)

    return run_on, path, calls


def test_chains_that_mix_are_run_once():
    run_on, path, calls = chains(0.3, 500)
    draws, densities = sample_enough(run_on, 500)
    assert calls == [0]
    np.testing.assert_array_equal(draws, path[:500])
    np.testing.assert_array_equal(densities, path[:500].sum(axis=2))


@pytest.mark.parametrize("num_draws", [500, 501, 99])
def test_slow_chains_run_on_and_draws_are_evenly_spaced(num_draws):
    run_on, path, calls = chains(0.9995, num_draws)
    draws, densities = sample_enough(run_on, num_draws)
    assert calls == list(range(16))
    np.testing.assert_array_equal(draws, path[15::16])
    np.testing.assert_array_equal(densities, path[15::16].sum(axis=2))
    assert len(draws) == num_draws


def test_it_stops_once_there_are_enough():
    run_on, path, calls = chains(0.98, 1_000)
    draws, _ = sample_enough(run_on, 1_000)
    assert 1 < len(calls) < 16
    np.testing.assert_array_equal(draws, path[: len(calls) * 1_000][len(calls) - 1 :: len(calls)])
