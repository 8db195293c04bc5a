"""Every kernel leaves its target invariant, at non-uniform weights.

The sharpest test of invariance needs no convergence: start many chains at exact draws from the
target, move each a few steps, and see that they are still distributed as the target. Seeds are
fixed; each test has a false-alarm probability of at most 1e-4 over the choice of seeds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coremcmc.kernels import GaussianExact, HitAndRun, SpikeSlabGibbs
from coremcmc.kernels.slice_on_a_line import SliceSampler
from coremcmc.models import (
    BradleyTerry,
    FunctionModel,
    GaussianLocation,
    LogisticRegression,
    PoissonRegression,
    SparseRegression,
)
from coremcmc.posterior.target import Target
from tests.standard_errors import assert_unbiased

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-4


def move(kernel, target, positions, num_steps, seed=0):
    """Move each chain from its position; return the positions after and the infos' totals."""

    def one(key, position):
        def step(state, k):
            return kernel.step(k, state, target)

        state = kernel.init(position, target)
        state, info = jax.lax.scan(step, state, jax.random.split(key, num_steps))
        return state, info

    keys = jax.random.split(jax.random.key(seed), len(jax.tree.leaves(positions)[0]))
    return jax.jit(jax.vmap(one))(keys, positions)


def target_of(logdensity):
    """A target whose weighted log-likelihood is a given density, with unequal weights."""
    shares = jnp.array([0.2, 0.5, 0.1, 0.2])
    weights = jnp.array([3.0, 0.7, 11.0, 1.9])
    model = FunctionModel(
        logprior=lambda position: jnp.zeros(()),
        loglikelihood=lambda position, rows: rows * logdensity(position),
        initial=lambda key: jnp.zeros(()),
    )
    return Target(model, shares / weights, weights)


MODES = ((-4.0, 0.5, 0.3), (0.0, 0.3, 0.2), (5.0, 1.0, 0.5))  # centre, sd, probability


def mixture_logpdf(x):
    terms = [jnp.log(p) + jax.scipy.stats.norm.logpdf(x, m, s) for m, s, p in MODES]
    return jax.scipy.special.logsumexp(jnp.stack(terms), axis=0)


def mixture_cdf(x):
    return sum(p * stats.norm.cdf(x, m, s) for m, s, p in MODES)


def mixture_draws(rng, size):
    which = rng.choice(len(MODES), size, p=[p for _, _, p in MODES])
    centre, sd, _ = np.array(MODES)[which].T
    return centre + sd * rng.standard_normal(size)


@pytest.mark.parametrize("width", [0.3, 2.0, 10.0, 300.0])
def test_slice_keeps_a_multimodal_density(width):
    draws = mixture_draws(np.random.default_rng(1), 20_000)
    kernel = HitAndRun(width=width, num_passes=2)
    state, info = move(kernel, target_of(mixture_logpdf), jnp.asarray(draws), 2)
    assert not np.asarray(info.is_stuck).any()
    after = np.asarray(state.position)
    assert np.mean(after != draws) > 0.99
    assert stats.kstest(after, mixture_cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("width", [0.3, 10.0])
def test_slice_keeps_a_skewed_density(width):
    # log of a Gamma(0.7) variable: a long left tail, where a mirrored direction would show
    draws = np.log(np.random.default_rng(2).gamma(0.7, size=20_000))
    target = target_of(lambda x: 0.7 * x - jnp.exp(x))
    state, _ = move(HitAndRun(width=width, num_passes=2), target, jnp.asarray(draws), 2)
    assert (
        stats.kstest(np.exp(np.asarray(state.position)), stats.gamma(0.7).cdf).pvalue > FALSE_ALARM
    )


def test_without_neals_acceptance_test_doubling_is_wrong(monkeypatch):
    """The test above has the power to see what it is there for."""
    monkeypatch.setattr(
        SliceSampler,
        "_reachable",
        lambda self, line, level, left, right, t, needed: (t == t, 0.0 * t),
    )
    draws = mixture_draws(np.random.default_rng(1), 20_000)
    kernel = HitAndRun(width=0.3, num_passes=2, max_shrinks=127)
    state, _ = move(kernel, target_of(mixture_logpdf), jnp.asarray(draws), 2)
    assert stats.kstest(np.asarray(state.position), mixture_cdf).pvalue < 1e-6


def test_slice_keeps_a_correlated_gaussian_in_five_dimensions():
    rng = np.random.default_rng(3)
    factor = np.tril(rng.standard_normal((5, 5))) + 2 * np.eye(5)
    precision = np.linalg.inv(factor @ factor.T)
    target = target_of(lambda x: -0.5 * x @ precision @ x)
    draws = rng.standard_normal((20_000, 5)) @ factor.T
    state, _ = move(HitAndRun(width=1.0), target, jnp.asarray(draws), 2)
    white = np.asarray(state.position) @ np.linalg.inv(factor).T
    second = white[:, :, None] * white[:, None, :]
    assert_unbiased(white, 0.0)
    assert_unbiased(second.reshape(len(white), -1), np.eye(5).ravel())


def test_slice_reaches_the_target_from_far_away():
    """Invariance alone is kept by a kernel that never moves; this one must also arrive."""
    starts = jnp.full((2_000,), 80.0)
    state, _ = move(HitAndRun(width=2.0), target_of(mixture_logpdf), starts, 60)
    assert stats.kstest(np.asarray(state.position), mixture_cdf).pvalue > FALSE_ALARM


def weighted_problem(model, rows):
    size = len(jax.tree.leaves(rows)[0])
    weights = jnp.asarray(np.random.default_rng(4).gamma(1.0, 8.0, size))
    return Target(model, model.prepare_rows(jax.tree.map(jnp.asarray, rows)), weights)


def logistic_problem():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((25, 2))
    return weighted_problem(LogisticRegression(), {"x": x, "y": rng.integers(0, 2, 25)})


def poisson_problem():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((25, 2))
    return weighted_problem(PoissonRegression(), {"x": x, "y": rng.poisson(2.0, 25)})


def bradley_terry_problem():
    rng = np.random.default_rng(7)
    home = rng.integers(0, 4, 25)
    away = (home + rng.integers(1, 4, 25)) % 4
    y = rng.integers(0, 2, 25)
    return weighted_problem(BradleyTerry(4), {"home": home, "away": away, "y": y})


@pytest.mark.slow
@pytest.mark.parametrize("problem", [logistic_problem, poisson_problem, bradley_terry_problem])
def test_slice_agrees_with_nuts_on_weighted_models(problem):
    """NumPyro's NUTS on the same weighted density: means and variances of all parameters."""
    from numpyro.infer import MCMC, NUTS

    target = problem()
    start = target.model.initial_position(jax.random.key(0), target.rows)
    num_chains = 200
    mcmc = MCMC(
        NUTS(potential_fn=lambda z: -target(z)),
        num_warmup=500,
        num_samples=200,
        num_chains=num_chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    starts = jax.tree.map(lambda x: jnp.broadcast_to(x, (num_chains, *x.shape)), start)
    mcmc.run(jax.random.key(1), init_params=starts)
    (nuts,) = mcmc.get_samples(group_by_chain=True).values()
    ours = []
    state, _ = move(HitAndRun(), target, starts, 300)
    kernel = HitAndRun()

    def chain(key, position):
        def step(state, k):
            state, _ = kernel.step(k, state, target)
            return state, state.position

        return jax.lax.scan(step, kernel.init(position, target), jax.random.split(key, 400))[1]

    keys = jax.random.split(jax.random.key(2), num_chains)
    (ours,) = jax.jit(jax.vmap(chain))(keys, state.position).values()
    # Chains are independent, so that the spread of their means gives the standard errors.
    centre = np.asarray(nuts).mean((0, 1))
    for power in (1, 2):
        a, b = (((np.asarray(x) - centre) ** power).mean(axis=1) for x in (nuts, ours))
        error = np.sqrt(a.var(0, ddof=1) / num_chains + b.var(0, ddof=1) / num_chains)
        z = (a.mean(0) - b.mean(0)) / error
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / (4 * z.size)), (power, z)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_gaussian_kernel_forgets_at_its_rate(correlation):
    rng = np.random.default_rng(8)
    rows = {"x": rng.standard_normal((6, 3)) + 2.0}
    target = weighted_problem(GaussianLocation(), rows)
    w = np.asarray(target.weights)
    precision = 1 + w.sum()
    mean = w @ rows["x"] / precision
    draws = mean + rng.standard_normal((20_000, 3)) / np.sqrt(precision)
    kernel = GaussianExact(correlation)
    state, _ = move(kernel, target, {"theta": jnp.asarray(draws)}, 3)
    white = (np.asarray(state.position["theta"]) - mean) * np.sqrt(precision)
    lag = (draws - mean) * np.sqrt(precision) * white
    assert_unbiased(lag, correlation**3)


def exact_inclusion(model, x, y, w):
    """P(γ) by summing over all 2^p models, β integrated in closed form, σ² by quadrature."""
    p = x.shape[1]
    log_sigma2 = np.linspace(-6, 8, 4001)
    patterns = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    gram, moment, total = (x.T * w) @ x, (x.T * w) @ y, (w * y) @ y
    logs = np.empty((len(patterns), len(log_sigma2)))
    beta_means = np.empty((len(patterns), len(log_sigma2), p))
    for i, pattern in enumerate(patterns):
        sd = np.where(pattern == 1, model.c * model.tau, model.tau)
        for j, sigma2 in enumerate(np.exp(log_sigma2)):
            a = gram / sigma2 + np.diag(sd**-2.0)
            mean = np.linalg.solve(a, moment / sigma2)
            logs[i, j] = (
                -0.5 * w.sum() * np.log(sigma2)
                - 0.5 * total / sigma2
                + 0.5 * mean @ a @ mean
                - 0.5 * np.linalg.slogdet(a)[1]
                - np.log(sd).sum()
                + stats.bernoulli.logpmf(pattern, model.q).sum()
                + stats.invgamma.logpdf(sigma2, model.nu / 2, scale=model.nu * model.lam / 2)
                + np.log(sigma2)  # the Jacobian of log σ²
            )
            beta_means[i, j] = mean
    prob = np.exp(logs - logs.max())
    prob /= prob.sum()
    gamma = (prob.sum(1)[:, None] * patterns).sum(0)
    beta = np.einsum("ij,ijk->k", prob, beta_means)
    return gamma, beta, float((prob.sum(0) * np.exp(log_sigma2)).sum())


@pytest.mark.slow
def test_gibbs_agrees_with_the_enumeration_of_all_models():
    rng = np.random.default_rng(9)
    x = rng.standard_normal((30, 3))
    y = x @ np.array([0.9, 0.3, 0.0]) + rng.standard_normal(30)
    model = SparseRegression(q=0.4, tau=0.15, c=6.0, nu=3.0, lam=0.7)
    w = rng.gamma(2.0, 0.8, 30)
    target = Target(model, {"x": jnp.asarray(x), "y": jnp.asarray(y)}, jnp.asarray(w))
    gamma, beta, sigma2 = exact_inclusion(model, x, y, w)
    assert 0.1 < gamma.min() < gamma.max() < 0.95, "the problem should be undecided"
    assert np.ptp(gamma) > 0.2

    kernel, num_chains = SpikeSlabGibbs(), 400
    start = model.initial_position(jax.random.key(0), target.rows)
    starts = jax.tree.map(lambda v: jnp.broadcast_to(v, (num_chains, *v.shape)), start)
    warm, _ = move(kernel, target, starts, 200)

    def chain(key, position):
        def step(state, k):
            state, _ = kernel.step(k, state, target)
            return state, state.position

        draws = jax.lax.scan(step, kernel.init(position, target), jax.random.split(key, 500))[1]
        return jax.tree.map(lambda v: v.mean(0), draws)

    keys = jax.random.split(jax.random.key(1), num_chains)
    means = jax.jit(jax.vmap(chain))(keys, warm.position)
    assert_unbiased(means["gamma"], gamma)
    assert_unbiased(means["beta"], beta)
    assert_unbiased(means["sigma2"], sigma2)


def test_a_slice_that_cannot_be_found_is_reported():
    target = target_of(lambda x: jnp.where(x == 1.0, 0.0, jnp.nan))
    _, info = HitAndRun().step(jax.random.key(0), HitAndRun().init(jnp.ones(()), target), target)
    assert bool(info.is_stuck)


@pytest.mark.parametrize(
    ("kernel", "model"),
    [
        (GaussianExact(), LogisticRegression()),
        (SpikeSlabGibbs(), GaussianLocation()),
        (HitAndRun(), SparseRegression()),
    ],
)
def test_kernels_refuse_models_that_they_do_not_know(kernel, model):
    target = Target(model, {"x": jnp.ones((2, 1)), "y": jnp.ones(2)}, jnp.ones(2))
    with pytest.raises(ValueError, match=f"Use kernel='{model.default_kernel}'"):
        kernel.init({"theta": jnp.ones(1), "beta": jnp.ones(2)}, target)


@pytest.mark.parametrize("arguments", [{"width": 0.0}, {"num_passes": 0}, {"max_doublings": 0}])
def test_slice_refuses_nonsense(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        HitAndRun(**arguments)
