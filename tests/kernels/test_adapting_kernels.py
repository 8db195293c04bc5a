"""Kernels with a metric, and BlackJAX's samplers as kernels."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import coremcmc
from coremcmc.kernels import BlackJAXKernel, HitAndRun, WhitenedSlice
from coremcmc.posterior.target import Target

FALSE_ALARM = 1e-4  # of each test
SCALES = np.array([1.0, 100.0, 0.01])


def gaussian(scales=SCALES):
    """A Gaussian on very different scales, as prior; its one row has weight zero."""
    model = coremcmc.FunctionModel(
        logprior=lambda x: -0.5 * jnp.sum((x / scales) ** 2),
        loglikelihood=lambda x, rows: 0.0 * rows,
        initial=lambda key: jnp.zeros(len(scales)),
    )
    return Target(model, jnp.zeros(1), jnp.zeros(1))


def draws(size, seed=0):
    return np.random.default_rng(seed).standard_normal((size, len(SCALES))) * SCALES


def test_the_whitened_slice_keeps_its_target_at_a_fixed_metric():
    target, kernel, start = gaussian(), WhitenedSlice(), draws(8_000)
    metric = kernel.learn_metric(target, jnp.asarray(start[:8]))
    for i in range(50):
        metric = kernel.learn_metric(target, jnp.asarray(start[8 * i : 8 * i + 8]), metric)
    chains = jax.vmap(kernel.init, (0, None))(jnp.asarray(start), target)
    for i in range(2):
        chains, info, _ = jax.jit(kernel.step_chains)(jax.random.key(i), chains, target, metric)
    assert not info.is_stuck.any()
    moved = np.asarray(chains.position)
    assert np.mean(moved != start) > 0.99
    for column, scale in enumerate(SCALES):
        p = stats.kstest(moved[:, column] / scale, "norm").pvalue
        assert p > FALSE_ALARM / len(SCALES)


def test_the_whitened_slice_learns_the_scales():
    """Plain hit-and-run crosses the widest coordinate in small steps; this one in large ones."""
    target, kernel = gaussian(), WhitenedSlice()
    state = jnp.asarray(draws(8, seed=1) * 0.01)  # far too narrow
    chains = jax.vmap(kernel.init, (0, None))(state, target)
    metric = kernel.learn_metric(target, state)

    def iterate(carry, key):
        chains, metric = carry
        metric = kernel.learn_metric(target, chains.position, metric)
        chains, *_ = kernel.step_chains(key, chains, target, metric)
        return (chains, metric), chains.position

    keys = jax.random.split(jax.random.key(2), 3_000)
    (_, metric), path = jax.jit(lambda carry: jax.lax.scan(iterate, carry, keys))((chains, metric))
    sd = np.sqrt(np.diag(metric.covariance))
    np.testing.assert_allclose(sd / SCALES, 1.0, atol=0.25)
    plain = HitAndRun()
    narrow = jax.vmap(plain.init, (0, None))(path[-1], target)
    stepped, *_ = plain.step_chains(jax.random.key(5), narrow, target)
    jump, plain_jump = (
        np.square(np.asarray(after - before)[:, 1]).mean()
        for before, after in ((path[-2], path[-1]), (path[-1], stepped.position))
    )
    assert jump > 1_000 * plain_jump
    latter = np.asarray(path[1500:, :, 1]).ravel() / SCALES[1]
    assert abs(latter.std() - 1.0) < 0.1


def test_a_blackjax_kernel_trains_a_coreset():
    data = coremcmc.gaussian_location_data(num_rows=500, dimension=2)
    metric = jnp.full(2, 1 / 501)
    kernel = BlackJAXKernel(lambda density: blackjax.hmc(density, 0.8, metric, 3), evaluations=4)
    with jax.enable_x64(True):
        fit = coremcmc.fit(
            coremcmc.GaussianLocation(), data, 20, kernel=kernel, num_iterations=300, progress=False
        )
    mean = data["x"].sum(axis=0) / 501
    assert fit.squared_z(mean, np.full(2, np.sqrt(1 / 501))) < 0.1
