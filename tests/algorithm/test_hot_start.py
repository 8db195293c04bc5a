"""The hot-start test against least squares by another library."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coremcmc.algorithm.hot_start import HotStart, hot_start_statistic


def by_hand(values):
    t, num_chains = values.shape
    n = t // 3
    ratios = []
    for k in range(num_chains):
        means, noises = [], []
        for segment in (values[t - 2 * n : t - n, k], values[t - n :, k]):
            j = np.arange(n)
            fit = stats.linregress(j, segment)
            residual = segment - fit.intercept - fit.slope * j
            means.append(segment.mean())
            noises.append(np.sqrt(residual @ residual / (n - 2)))
        ratios.append(abs(means[0] - means[1]) / max(noises))
    return np.median(ratios)


@pytest.mark.parametrize("t", [30, 31, 32, 60, 299, 300])
@pytest.mark.parametrize("num_chains", [2, 3, 5])
def test_statistic_equals_scipys_least_squares(t, num_chains):
    rng = np.random.default_rng(t)
    values = np.full((300, num_chains), np.nan)  # what lies beyond t must not matter
    trend = np.linspace(-3.0, 1.0, t)[:, None]
    values[:t] = -1e6 + trend + rng.standard_normal((t, num_chains))
    got = jax.jit(hot_start_statistic)(jnp.nan_to_num(jnp.asarray(values)), t)
    np.testing.assert_allclose(got, by_hand(values[:t]), rtol=1e-8)


def test_constant_chains_are_settled_and_a_jump_without_noise_is_not():
    flat = jnp.full((90, 2), -1e6)
    assert hot_start_statistic(flat, 90) == 0
    jump = flat.at[60:].set(-5e5)
    assert hot_start_statistic(jump, 90) == jnp.inf


def run(settings, values, dimension=2):
    state = settings.init(values.shape[1])

    def step(state, xs):
        state = settings.update(state, *xs, dimension)
        return state, (state.is_hot, state.statistic)

    iterations = jnp.arange(1, len(values) + 1)
    return jax.lax.scan(step, state, (iterations, jnp.asarray(values)))


def test_passes_once_the_chains_have_settled():
    rng = np.random.default_rng(0)
    t = np.arange(1500)[:, None]
    values = -1e4 * np.exp(-t / 50) + rng.standard_normal((1500, 2))
    state, (hot, statistic) = run(HotStart(), values)
    passed = int(state.passed_at)
    assert 200 < passed < 1500
    assert passed % 30 == 0
    np.testing.assert_array_equal(np.asarray(hot), np.arange(1, 1501) >= passed)
    assert by_hand(values[:passed]) < 0.5
    assert all(by_hand(values[:t]) >= 0.5 for t in range(30, passed, 30))
    assert float(statistic[-1]) == float(statistic[passed - 1])  # kept as it was when it passed
    assert not bool(state.is_forced)


def test_waits_for_three_times_the_dimension():
    values = np.random.default_rng(1).standard_normal((400, 2))
    state, _ = run(HotStart(), values, dimension=60)
    assert int(state.passed_at) >= 180


def test_the_cap_releases_and_says_so():
    values = np.arange(500.0)[:, None] * np.ones((1, 2)) * 1e3
    state, (hot, _) = run(HotStart(max_iterations=300), values)
    assert int(state.passed_at) == 300
    assert bool(state.is_forced)
    assert not bool(hot[298])


def test_even_when_the_cap_is_no_multiple_of_the_interval():
    values = np.arange(500.0)[:, None] * np.ones((1, 2)) * 1e3
    state, _ = run(HotStart(max_iterations=311), values)
    assert int(state.passed_at) == 311


def test_runs_under_vmap_share_the_branch():
    """With a common iteration, the costly statistic stays behind a real conditional."""
    settings = HotStart(max_iterations=120)
    states = jax.vmap(lambda _: settings.init(2))(jnp.arange(4))
    update = jax.vmap(lambda s, i, v: settings.update(s, i, v, 1), in_axes=(0, None, 0))
    text = str(jax.make_jaxpr(update)(states, jnp.array(30), jnp.zeros((4, 2))))
    assert "cond[" in text


@pytest.mark.parametrize("arguments", [{"threshold": 0.0}, {"interval": 5}, {"max_iterations": 20}])
def test_nonsense_is_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        HotStart(**arguments)
