"""What every kernel must do, whatever it is: inherited by the tests of kernels.

The sharpest test of invariance needs no convergence: start many chains at exact draws from the
target, move each a few steps, and see that they are still distributed as the target. Means and
second moments are judged in standard errors, two-sided, at fixed seeds, each test with a
probability of 1e-4 of a false alarm; a twin that does the same wrongly must be found out.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc.base import Kernel
from coremcmc.kernels.given import as_kernel
from coremcmc.models import GaussianLocation, SparseRegression
from coremcmc.posterior.target import Target
from tests.standard_errors import assert_unbiased, is_biased

SIZE = 10_000  # chains
NUM_STEPS = 3


class Gaussian:
    """π_w = N(Σ w x / (1 + Σ w), I / (1 + Σ w)), which any kernel of reals can move in."""

    model = GaussianLocation()

    def __init__(self):
        rng = np.random.default_rng(8)
        self.rows = {"x": jnp.asarray(rng.standard_normal((6, 3)) + 2.0)}
        self.weights = [jnp.asarray(rng.gamma(1.0, scale, 6)) for scale in (8.0, 2.0)]

    def moments(self, weights):
        mean, variance = self.model.posterior(self.rows, weights)
        return np.asarray(mean), float(np.sqrt(variance))

    def draws(self, rng, weights, size):
        mean, sd = self.moments(weights)
        return {"theta": jnp.asarray(mean + sd * rng.standard_normal((size, 3)))}

    def check(self, judge, positions, weights):
        mean, sd = self.moments(weights)
        white = (np.asarray(positions["theta"]) - mean) / sd
        second = (white[:, :, None] * white[:, None, :]).reshape(len(white), -1)
        truth = np.concatenate([np.zeros(3), np.eye(3).ravel()])
        return judge(np.column_stack([white, second]), truth)


class SpikeAndSlab:
    """Sparse regression on two features: all models enumerated, β in closed form, σ² on a grid."""

    model = SparseRegression(q=0.4, tau=0.15, c=6.0, nu=3.0, lam=0.7)

    def __init__(self):
        rng = np.random.default_rng(9)
        x = rng.standard_normal((15, 2))
        y = x @ [0.5, 0.3] + rng.standard_normal(15)
        self.rows = {"x": jnp.asarray(x), "y": jnp.asarray(y)}
        self.weights = [jnp.asarray(rng.gamma(2.0, scale, 15)) for scale in (0.8, 0.2)]

    def table(self, weights):
        """Probability of each model and σ², and mean and covariance of β given both."""
        model, w = self.model, np.asarray(weights)
        x, y = (np.asarray(self.rows[name]) for name in ("x", "y"))
        gamma = np.array([[i, j] for i in (0.0, 1.0) for j in (0.0, 1.0)])
        sd = np.where(gamma == 1.0, model.c * model.tau, model.tau)
        log_sigma2 = np.linspace(-7.0, 9.0, 8_001)
        sigma2 = np.exp(log_sigma2)
        gram, moment, total = (x.T * w) @ x, (x.T * w) @ y, (w * y) @ y
        ridge = np.eye(2) * sd[:, None, :] ** -2.0
        precision = gram / sigma2[:, None, None] + ridge[:, None]
        covariance = np.linalg.inv(precision)
        mean = covariance @ (moment / sigma2[:, None])[None, :, :, None]
        mean = mean[..., 0]
        logs = (
            -0.5 * w.sum() * log_sigma2
            - 0.5 * total / sigma2
            + 0.5 * np.einsum("gsi,si->gs", mean, moment / sigma2[:, None])
            - 0.5 * np.linalg.slogdet(precision)[1]
            - (np.log(sd).sum(axis=1) - gamma @ np.full(2, np.log(model.q / (1 - model.q))))[
                :, None
            ]
            # The prior InvGamma(ν/2, νλ/2), with the Jacobian of log σ².
            - 0.5 * model.nu * log_sigma2
            - 0.5 * model.nu * model.lam / sigma2
        )
        probability = np.exp(logs - logs.max())
        return probability / probability.sum(), gamma, log_sigma2, mean, covariance

    def draws(self, rng, weights, size):
        probability, gamma, log_sigma2, mean, covariance = self.table(weights)
        cell = rng.choice(probability.size, size, p=probability.ravel())
        model, place = np.divmod(cell, len(log_sigma2))
        factor = np.linalg.cholesky(covariance[model, place])
        noise = np.einsum("nij,nj->ni", factor, rng.standard_normal((size, 2)))
        drawn = {
            "beta": mean[model, place] + noise,
            "gamma": gamma[model],
            "sigma2": np.exp(log_sigma2[place]),
        }
        return jax.tree.map(jnp.asarray, drawn)

    def check(self, judge, positions, weights):
        probability, gamma, log_sigma2, mean, covariance = self.table(weights)
        centre = np.einsum("gs,gsi->i", probability, mean)
        apart = mean - centre
        second = apart[..., :, None] * apart[..., None, :] + covariance
        truth = np.concatenate(
            [
                probability.sum(axis=1) @ gamma,
                np.zeros(2),
                np.einsum("gs,gsij->ij", probability, second).ravel(),
                [probability.sum(axis=0) @ log_sigma2],
            ]
        )
        beta = np.asarray(positions["beta"]) - centre
        found = [
            np.asarray(positions["gamma"]),
            beta,
            (beta[:, :, None] * beta[:, None, :]).reshape(len(beta), -1),
            np.log(np.asarray(positions["sigma2"])),
        ]
        return judge(np.column_stack(found), truth)


PROBLEMS = (Gaussian, SpikeAndSlab)


def problem_for(kernel: Kernel) -> Any:
    """The first problem whose model the kernel knows."""
    for problem in (make() for make in PROBLEMS):
        target = Target(problem.model, problem.rows, problem.weights[0])
        position = problem.model.initial_position(jax.random.key(0), problem.rows)
        try:
            kernel.init(position, target)
        except ValueError:
            continue
        return problem
    raise AssertionError(f"none of {PROBLEMS} is for {kernel}; add one that is.")


# -- wrong twins ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Twin(Kernel):
    """A kernel that does as another does, up to what a subclass gets wrong."""

    kernel: Kernel

    def init(self, position, target):
        return self.kernel.init(position, target)

    def learn_metric(self, target, positions, previous=None):
        return self.kernel.learn_metric(target, positions, previous)

    def step(self, rng_key, state, target, metric=None):
        return self.kernel.step(rng_key, state, target, metric)

    def step_chains(self, rng_key, chains, target, metric=None, iteration=None):
        return self.kernel.step_chains(rng_key, chains, target, metric, iteration)


class Overshooting(Twin):
    """Goes a tenth too far, in the first of the position's arrays."""

    def step_chains(self, rng_key, chains, target, metric=None, iteration=None):
        moved, info, metric = super().step_chains(rng_key, chains, target, metric, iteration)
        before, (first, *others) = map(jax.tree.leaves, (chains.position, moved.position))
        leaves = [before[0] + 1.1 * (first - before[0]), *others]
        position = jax.tree.unflatten(jax.tree.structure(moved.position), leaves)
        terms = jax.vmap(target.loglikelihoods)(position)
        return moved._replace(position=position, loglikelihoods=terms), info, metric


class Miscounting(Twin):
    """Says two evaluations more than there were."""

    def step(self, rng_key, state, target, metric=None):
        state, info = super().step(rng_key, state, target, metric)
        return state, info._replace(num_evaluations=info.num_evaluations + 2)


# -- the contract ---------------------------------------------------------------------------------


def learned(kernel, problem, target, weights):
    """A metric of draws that are not those the chains start from."""
    rng, metric = np.random.default_rng(21), None
    learn = jax.jit(kernel.learn_metric)
    for _ in range(20):
        metric = learn(target, problem.draws(rng, weights, 8), metric)
    return metric


def moved(kernel, problem, old, new, seed=0, steps_under=None):
    """Exact draws under the weights ``new``, moved by a kernel that knows the weights ``old``.

    They are moved under ``new``, unless ``steps_under`` tells other weights: (before, after, info).
    """
    rows, model = problem.rows, problem.model
    positions = problem.draws(np.random.default_rng(seed), new, SIZE)
    before = Target(model, rows, old)
    metric = learned(kernel, problem, before, old)
    after = Target(model, rows, new if steps_under is None else steps_under)

    @jax.jit
    def run(positions, keys):
        def advance(chains, key):
            chains, info, _ = kernel.step_chains(key, chains, after, metric)
            return chains, info

        chains = jax.vmap(kernel.init, (0, None))(positions, before)
        return jax.lax.scan(advance, chains, keys)

    chains, info = run(positions, jax.random.split(jax.random.key(seed + 1), NUM_STEPS))
    return positions, chains, info


def counting(model, counted):
    """The same model, adding to a list at every evaluation of its log-likelihood."""

    class Counting(type(model)):
        def loglikelihood_fn(self, position, rows):
            terms = super().loglikelihood_fn(position, rows)
            # With an argument, so that positions under vmap are counted one by one.
            jax.debug.callback(counted.append, terms.sum())
            return terms

    return Counting(**dataclasses.asdict(model))


def uncounted(kernel, problem, num_steps=30):
    """Evaluations of each of some steps of a chain, less those that the kernel tells of."""
    weights, counted = problem.weights[0], []
    metric = learned(kernel, problem, Target(problem.model, problem.rows, weights), weights)
    target = Target(counting(problem.model, counted), problem.rows, weights)
    position = jax.tree.map(lambda x: x[0], problem.draws(np.random.default_rng(4), weights, 1))
    state, step = kernel.init(position, target), jax.jit(kernel.step)
    differences = []
    for i in range(num_steps):
        jax.effects_barrier()
        counted.clear()
        state, info = step(jax.random.key(i), state, target, metric)
        jax.block_until_ready(state)
        jax.effects_barrier()
        differences.append(len(counted) - int(info.num_evaluations))
    return differences


@pytest.mark.statistical
class KernelContract:
    """Inherit it, and give a fixture ``kernel``: a name or a kernel."""

    @pytest.fixture
    def kernel(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def made(self, kernel) -> Kernel:
        return as_kernel(kernel)

    @pytest.fixture
    def problem(self, made) -> Any:
        return problem_for(made)

    def test_it_leaves_its_target_invariant(self, made, problem):
        w, _ = problem.weights
        before, chains, info = moved(made, problem, w, w)
        assert not np.asarray(info.is_stuck).any()
        first, last = (np.asarray(jax.tree.leaves(x)[0]) for x in (before, chains.position))
        assert np.mean(first != last) > 0.5, "a kernel that stays keeps anything"
        problem.check(assert_unbiased, before, w)
        problem.check(assert_unbiased, chains.position, w)

    def test_a_twin_that_goes_too_far_is_found_out(self, made, problem):
        w, _ = problem.weights
        _, chains, _ = moved(Overshooting(made), problem, w, w)
        assert problem.check(is_biased, chains.position, w)

    def test_it_follows_a_change_of_the_weights(self, made, problem):
        """Chains and metric come from other weights than those under which it moves."""
        old, new = problem.weights
        _, chains, info = moved(made, problem, old, new)
        assert not np.asarray(info.is_stuck).any()
        problem.check(assert_unbiased, chains.position, new)

    def test_a_twin_that_keeps_to_the_old_weights_is_found_out(self, made, problem):
        old, new = problem.weights
        _, chains, _ = moved(made, problem, old, new, steps_under=old)
        assert problem.check(is_biased, chains.position, new)

    def test_a_change_of_the_weights_leaves_nothing_stale(self, made, problem):
        """A step under new weights equals one from scratch, and the state's terms are true."""
        old, new = (Target(problem.model, problem.rows, w) for w in problem.weights)
        metric = learned(made, problem, old, problem.weights[0])
        positions = problem.draws(np.random.default_rng(2), problem.weights[0], 50)
        keys = jax.random.split(jax.random.key(1), 50)

        @jax.jit
        def step(target, keys, positions):
            chains = jax.vmap(made.init, (0, None))(positions, target)
            return jax.vmap(made.step, (0, 0, None, None))(keys, chains, new, metric)

        (carried, _), (fresh, _) = (step(target, keys, positions) for target in (old, new))
        jax.tree.map(np.testing.assert_array_equal, carried, fresh)
        terms = jax.jit(jax.vmap(new.loglikelihoods))(carried.position)
        np.testing.assert_allclose(carried.loglikelihoods, terms, rtol=1e-12)

    def test_it_counts_its_evaluations(self, made, problem):
        """All that its method asks for, but for the terms of the place where a step ends.

        What a slice sampler computes besides, two points at a time because that costs no more
        than one, is not counted; some steps do without.
        """
        extra = np.array(uncounted(made, problem))
        assert extra.min() in (0, 1)
        assert ((extra - extra.min()) % 2 == 0).all()

    def test_a_twin_that_miscounts_is_found_out(self, made, problem):
        assert min(uncounted(Miscounting(made), problem)) not in (0, 1)

    def test_it_survives_vmap(self, made, problem):
        """Chains that move together move as they do one at a time; so do runs."""
        w = problem.weights[0]
        target = Target(problem.model, problem.rows, w)
        metric = learned(made, problem, target, w)
        chains = jax.vmap(made.init, (0, None))(
            problem.draws(np.random.default_rng(3), w, 6), target
        )
        keys = jax.random.split(jax.random.key(5), 6)
        together = jax.jit(jax.vmap(made.step, (0, 0, None, None)))(keys, chains, target, metric)
        step = jax.jit(made.step)
        alone = [
            step(key, jax.tree.map(lambda x, k=k: x[k], chains), target, metric)
            for k, key in enumerate(keys)
        ]
        same(together, jax.tree.map(lambda *xs: jnp.stack(xs), *alone))

        runs = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), chains)
        advance = jax.jit(made.step_chains)
        together = jax.jit(jax.vmap(made.step_chains, (0, 0, None, None, None)))(
            keys[:2], runs, target, metric, jnp.array(0)
        )
        alone = [
            advance(keys[r], jax.tree.map(lambda x, r=r: x[r], runs), target, metric, jnp.array(0))
            for r in range(2)
        ]
        same(together, jax.tree.map(lambda *xs: jnp.stack(xs), *alone))


def same(first, second):
    """Equal to rounding: what is multiplied together is added up in another order."""
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), first, second
    )
