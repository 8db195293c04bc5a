"""Whitened HMC leaves its target invariant, at non-uniform weights and under any metric.

Many chains start at exact draws from the target, move a few steps, and must still be distributed
as the target. Seeds are fixed; each test has a false-alarm probability of at most 1e-4 over the
choice of seeds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

from coremcmc.fitting.draws import sample_target
from coremcmc.kernels import GaussianExact, WhitenedHMC
from coremcmc.kernels.whitened_hmc import Whitening
from coremcmc.models import FunctionModel, GaussianLocation, LogisticRegression, SparseRegression
from coremcmc.posterior.target import Target
from tests.standard_errors import assert_unbiased

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-4
SIZE = 20_000


def target_of(logdensity):
    """A target whose weighted log-likelihood is a given density, with unequal weights."""
    shares, weights = jnp.array([0.2, 0.5, 0.1, 0.2]), jnp.array([3.0, 0.7, 11.0, 1.9])
    model = FunctionModel(
        logprior=lambda position: jnp.zeros(()),
        loglikelihood=lambda position, rows: rows * logdensity(position),
        initial=lambda key: jnp.zeros(()),
    )
    return Target(model, shares / weights, weights)


def metric(covariance):
    covariance = np.atleast_2d(covariance)
    return Whitening(
        jnp.asarray(covariance),
        jnp.asarray(np.linalg.cholesky(covariance)),
        jnp.asarray(np.linalg.inv(covariance)),
    )


def move(kernel, target, positions, num_steps, whitening, seed=0):
    """Positions after some steps, and the share of steps that moved."""

    def one(key, position):
        def step(state, k):
            new, info = kernel.step(k, state, target, whitening)
            before, after = (ravel_pytree(x.position)[0] for x in (state, new))
            return new, ((before != after).any(), info)

        state = kernel.init(position, target)
        return jax.lax.scan(step, state, jax.random.split(key, num_steps))

    keys = jax.random.split(jax.random.key(seed), len(jax.tree.leaves(positions)[0]))
    state, (moved, info) = jax.jit(jax.vmap(one))(keys, positions)
    return state, np.asarray(moved), info


def gaussian(seed, dimension):
    rng = np.random.default_rng(seed)
    factor = np.tril(rng.standard_normal((dimension, dimension))) + 2 * np.eye(dimension)
    precision = np.linalg.inv(factor @ factor.T)
    draws = rng.standard_normal((SIZE, dimension)) @ factor.T
    return factor, target_of(lambda x: -0.5 * x @ precision @ x), jnp.asarray(draws)


def assert_white(white):
    second = white[:, :, None] * white[:, None, :]
    assert_unbiased(white, 0.0)
    assert_unbiased(second.reshape(len(white), -1), np.eye(white.shape[1]).ravel())


def test_keeps_a_correlated_gaussian_under_a_wrong_metric():
    factor, target, draws = gaussian(3, 4)
    kernel = WhitenedHMC()
    whitening = metric(np.diag([9.0, 0.3, 4.0, 1.0]) + 0.2)
    state, moved, _ = move(kernel, target, draws, 3, whitening)
    assert 0.2 < moved.mean() < 1.0
    assert_white(np.asarray(state.position) @ np.linalg.inv(factor).T)


def test_in_its_own_metric_a_gaussian_is_left_behind_quickly():
    """Steps of 3 × 0.8 in whitened units: little correlation is left after three of them."""
    factor, target, draws = gaussian(4, 3)
    kernel = WhitenedHMC()
    whitening = jax.jit(kernel.learn_metric)(target, draws)
    np.testing.assert_allclose(whitening.covariance, factor @ factor.T, rtol=1e-8)
    state, moved, info = move(kernel, target, draws, 3, whitening)
    before, after = (np.asarray(x) @ np.linalg.inv(factor).T for x in (draws, state.position))
    assert_white(after)
    assert np.abs(np.mean(before * after, axis=0)).max() < 0.5
    assert moved.mean() > 0.9
    np.testing.assert_array_equal(info.num_evaluations, kernel.num_steps + 1)


def test_keeps_a_skewed_density():
    """Log of a Gamma(0.7) variable, whose curvature varies: acceptance is neither 0 nor 1."""
    draws = np.log(np.random.default_rng(2).gamma(0.7, size=SIZE))
    target = target_of(lambda x: 0.7 * x - jnp.exp(x))
    state, moved, _ = move(WhitenedHMC(), target, jnp.asarray(draws), 4, metric(1 / 0.7))
    assert 0.3 < moved.mean() < 0.999
    after = np.exp(np.asarray(state.position))
    assert stats.kstest(after, stats.gamma(0.7).cdf).pvalue > FALSE_ALARM


def banana(rng, size):
    first = rng.standard_normal(size)
    second = 0.5 * rng.standard_normal(size) + first**2
    return np.column_stack([first, second])


BANANA = target_of(lambda p: -0.5 * p[0] ** 2 - 0.5 * ((p[1] - p[0] ** 2) / 0.5) ** 2)


def unbend(after):
    """The banana's two independent standard normals."""
    return np.column_stack([after[:, 0], (after[:, 1] - after[:, 0] ** 2) / 0.5])


def test_keeps_a_banana():
    draws = banana(np.random.default_rng(5), SIZE)
    kernel = WhitenedHMC()
    whitening = jax.jit(kernel.learn_metric)(BANANA, jnp.asarray(draws))
    state, moved, _ = move(kernel, BANANA, jnp.asarray(draws), 5, whitening)
    assert 0.05 < moved.mean() < 0.999
    after = unbend(np.asarray(state.position))
    assert_white(after)
    for column in after.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > FALSE_ALARM / 2


def test_without_its_acceptance_test_the_banana_would_be_lost():
    """The power of the tests above: steps of half the size, all of them accepted."""
    draws = jnp.asarray(banana(np.random.default_rng(5), SIZE))

    def always(key, x):
        grad = jax.grad(lambda p: BANANA(p))
        v = jax.random.normal(key, (2,))
        for _ in range(3):
            v = v + 0.15 * grad(x)
            x = x + 0.3 * v
            v = v + 0.15 * grad(x)
        return x

    keys = jax.random.split(jax.random.key(0), SIZE)
    after = unbend(np.asarray(jax.jit(jax.vmap(always))(keys, draws)))
    after = after[np.isfinite(after).all(axis=1)]
    assert min(stats.kstest(column, stats.norm.cdf).pvalue for column in after.T) < 1e-6


def logistic_target(num_zero=0):
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((25, 2)), rng.integers(0, 2, 25).astype(float)
    weights = rng.gamma(1.0, 8.0, 25)
    weights[:num_zero] = 0.0
    rows = {"x": jnp.asarray(x), "y": jnp.asarray(y)}
    return Target(LogisticRegression(), rows, jnp.asarray(weights))


def test_the_metric_is_the_inverse_curvature_at_the_mean_of_the_chains():
    target = logistic_target(num_zero=3)
    positions = {"beta": jnp.asarray(np.random.default_rng(7).standard_normal((8, 3)))}
    found = jax.jit(WhitenedHMC().learn_metric)(target, positions)
    centre = positions["beta"].mean(axis=0)
    precision = -jax.jit(jax.hessian(lambda beta: target({"beta": beta})))(centre)
    values, vectors = np.linalg.eigh(precision)
    precision = (vectors * np.abs(values)) @ vectors.T
    np.testing.assert_allclose(found.precision, precision, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.covariance @ precision, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(found.factor @ found.factor.T, found.covariance, rtol=1e-8)


def test_the_state_holds_the_terms_of_its_position():
    """Whether the step was accepted or not, and after a change of the weights."""
    target = logistic_target()
    kernel = WhitenedHMC(step_size=2.5)
    positions = {"beta": jnp.asarray(np.random.default_rng(8).standard_normal((200, 3)))}
    whitening = jax.jit(kernel.learn_metric)(target, positions)
    heavier = Target(target.model, target.rows, 10.0 * target.weights)
    state, moved, _ = move(kernel, heavier, positions, 1, whitening)
    assert 0.05 < moved.mean() < 0.95
    terms = jax.jit(jax.vmap(target.loglikelihoods))(state.position)
    np.testing.assert_allclose(state.loglikelihoods, terms, rtol=1e-12)


def test_positions_outside_of_the_support_are_rejected():
    """NaN beyond |x| = 1: a uniform density there, kept exactly, and no NaN ever entered."""
    target = target_of(lambda x: jnp.where(jnp.abs(x) < 1.0, -0.5 * x**2, jnp.nan))
    exact = stats.truncnorm(-1.0, 1.0)
    draws = exact.rvs(SIZE, random_state=np.random.default_rng(9))
    state, moved, _ = move(WhitenedHMC(), target, jnp.asarray(draws), 4, metric(0.3))
    after = np.asarray(state.position)
    assert np.isfinite(after).all()
    assert 0.05 < moved.mean() < 0.95
    assert stats.kstest(after, exact.cdf).pvalue > FALSE_ALARM


def test_arrives_from_far_away():
    """Invariance alone is kept by a kernel that never moves."""
    factor, target, _ = gaussian(10, 3)
    starts = jnp.full((4_000, 3), 60.0)
    kernel = WhitenedHMC()
    state, _, _ = move(kernel, target, starts, 40, jax.jit(kernel.learn_metric)(target, starts))
    assert_white(np.asarray(state.position) @ np.linalg.inv(factor).T)


def test_a_metric_that_is_far_too_wide_does_not_freeze_the_chains():
    """The curvature is sixteen times the metric's: only the short steps are stable."""
    draws = jnp.asarray(np.random.default_rng(11).standard_normal((4_000, 1)))
    target = target_of(lambda x: -0.5 * jnp.sum(x**2))
    state, moved, _ = move(WhitenedHMC(), target, draws, 60, metric(16.0))
    assert moved.any(axis=1).mean() > 0.99
    after = np.asarray(state.position)[:, 0]
    assert stats.kstest(after, stats.norm.cdf).pvalue > FALSE_ALARM


def test_chains_that_a_row_of_weight_zero_freezes_say_so():
    model = FunctionModel(
        logprior=lambda theta: -0.5 * theta**2,
        loglikelihood=lambda theta, rows: jnp.sqrt(rows - theta) - rows,
        initial=lambda key: jnp.zeros(()),
    )
    target = Target(model, jnp.array([5.0, -5.0, 6.0]), jnp.array([1.0, 0.0, 2.0]))
    starts = jnp.zeros(50)
    _, moved, info = move(WhitenedHMC(), target, starts, 5, metric(1.0))
    assert not moved.any()
    assert np.asarray(info.is_stuck).all()


def test_models_with_other_parameters_are_refused():
    model = SparseRegression()
    target = Target(model, {"x": jnp.ones((2, 1)), "y": jnp.ones(2)}, jnp.ones(2))
    with pytest.raises(ValueError, match="Use kernel='spike_slab_gibbs'"):
        WhitenedHMC().init({"beta": jnp.ones(1)}, target)


# -- draws at fixed weights -----------------------------------------------------------------------


def gaussian_location_target():
    rng = np.random.default_rng(12)
    rows = {"x": jnp.asarray(rng.standard_normal((6, 3)) + 2.0)}
    return Target(GaussianLocation(), rows, jnp.asarray(rng.gamma(1.0, 8.0, 6)))


@pytest.mark.parametrize("kernel", [WhitenedHMC(), GaussianExact(0.5)], ids=["whitened", "exact"])
def test_draws_have_the_moments_of_the_closed_form(kernel):
    """From far away, so that the warm-up matters; chains are independent."""
    target = gaussian_location_target()
    num_chains = 200
    starts = {"theta": jnp.full((num_chains, 3), 30.0)}
    draws, stuck, _ = sample_target(
        kernel, jax.random.key(3), target, starts, num_draws=100, num_warmup=60
    )
    assert draws.shape == (100, num_chains, 3)
    assert not bool(stuck)
    mean, variance = target.model.posterior(target.rows, target.weights)
    white = (np.asarray(draws) - np.asarray(mean)) / np.sqrt(float(variance))
    assert_unbiased(white.mean(axis=0), 0.0)
    assert_unbiased((white**2).mean(axis=0), 1.0)


@pytest.mark.slow
def test_draws_agree_with_nuts_on_a_weighted_logistic_regression():
    from numpyro.infer import MCMC, NUTS

    target = logistic_target(num_zero=2)
    num_chains = 100
    starts = {"beta": jnp.zeros((num_chains, 3))}
    mcmc = MCMC(
        NUTS(potential_fn=lambda z: -target(z)),
        num_warmup=300,
        num_samples=200,
        num_chains=num_chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1), init_params=starts)
    nuts = np.asarray(mcmc.get_samples(group_by_chain=True)["beta"])
    draws, *_ = sample_target(
        WhitenedHMC(), jax.random.key(4), target, starts, num_draws=500, num_warmup=100
    )
    ours = np.swapaxes(np.asarray(draws), 0, 1)
    centre = nuts.mean((0, 1))
    for power in (1, 2):
        a, b = (((x - centre) ** power).mean(axis=1) for x in (nuts, ours))
        error = np.sqrt((a.var(0, ddof=1) + b.var(0, ddof=1)) / num_chains)
        z = (a.mean(0) - b.mean(0)) / error
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / (4 * z.size)), (power, z)


def test_draws_are_the_same_for_the_same_key_and_start_from_the_warm_up():
    target = gaussian_location_target()
    starts = {"theta": jnp.full((2, 3), 30.0)}
    a, b, c = (
        sample_target(WhitenedHMC(), jax.random.key(k), target, starts, num_draws=5, num_warmup=50)[
            0
        ]
        for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    assert np.abs(np.asarray(a) - 30.0).min() > 20  # the way from the start is not among them
