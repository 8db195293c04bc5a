"""The running average of the latter half against the average of all weights kept."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc.algorithm.averaging import latter_half_init, latter_half_update

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 31, 32, 33, 96, 100, 127, 128, 129, 1000]


@functools.cache
def weights(length):
    return np.random.default_rng(length).exponential(3.0, size=(length, 3))


@functools.cache
def averages(planned_length, length):
    """The average and the start of its window after each iteration."""

    @jax.jit
    def run(state, sequence):
        def update(state, pair):
            iteration, w = pair
            state = latter_half_update(state, w, iteration)
            return state, (state.older_sum / (iteration - state.older_start), state.older_start)

        return jax.lax.scan(update, state, (jnp.arange(1, length + 1), sequence))[1]

    average, start = run(latter_half_init(jnp.zeros(3), planned_length), weights(length))
    return np.asarray(average), np.asarray(start)


@pytest.mark.parametrize("length", LENGTHS)
def test_at_the_planned_end_it_is_the_mean_of_the_latter_half(length):
    # For an odd length the half begins at the next whole iteration; of one iteration it is all.
    half = 0 if length == 1 else -(-length // 2)
    average, start = averages(length, length)
    assert start[-1] == half
    np.testing.assert_allclose(average[-1], weights(length)[half:].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("planned", LENGTHS)
def test_at_any_time_it_is_the_mean_of_a_window_that_ends_now(planned):
    length = 3 * planned + 5
    average, start = averages(planned, length)
    for t in range(1, length + 1):
        window = weights(length)[start[t - 1] : t]
        np.testing.assert_allclose(average[t - 1], window.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("planned", LENGTHS)
def test_the_window_begins_between_a_quarter_and_a_half_of_the_way(planned):
    length = 3 * planned + 5
    start = averages(planned, length)[1]
    t = np.arange(1, length + 1)
    assert start[0] == 0
    assert (start[1:] >= t[1:] / 4).all()
    assert (start <= np.ceil(t / 2)).all()


@pytest.mark.parametrize("planned", LENGTHS)
@pytest.mark.parametrize("factor", [2, 4])
def test_a_run_extended_to_twice_its_length_averages_the_latter_half_again(planned, factor):
    length = factor * planned
    average, start = averages(planned, length)
    assert start[-1] == length // 2
    expected = weights(length)[length // 2 :].mean(axis=0)
    np.testing.assert_allclose(average[-1], expected, rtol=1e-12)
