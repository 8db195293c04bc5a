"""The fused GPU kernel, interpreted on the CPU, against the same step through XLA."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coremcmc
from coremcmc.kernels import HitAndRun, slice_along_lines
from coremcmc.kernels import slice_on_gpu as fused_lines
from coremcmc.posterior.target import Target

NUM_CHAINS = 12


def problem(model, num_rows=37):
    """A coreset of odd size, one of its weights zero."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, num_rows)
    if isinstance(model, coremcmc.BradleyTerry):
        home, away = rng.integers(0, model.num_teams, (2, num_rows))
        rows = {"home": home, "away": away, "y": y}
    else:
        rows = {"x": rng.standard_normal((num_rows, 5)), "y": y}
    rows = model.prepare_rows(jax.tree.map(jnp.asarray, rows))
    weights = jnp.asarray(rng.exponential(3.0, num_rows)).at[4].set(0.0)
    return Target(model, rows, weights)


def starts(target):
    keys = jax.random.split(jax.random.key(1), NUM_CHAINS)
    return keys, jax.vmap(lambda key: target.model.initial_position(key, target.rows))(keys)


@pytest.fixture
def interpreted(monkeypatch):
    """Run the GPU kernel on the CPU."""
    on_cpu = functools.partial(fused_lines.sample_lines_fused, interpret=True)
    monkeypatch.setattr(slice_along_lines, "sample_lines_fused", on_cpu)


MODELS = [
    coremcmc.LinearRegression(),
    coremcmc.LogisticRegression(intercept=False),
    coremcmc.PoissonRegression(),
    coremcmc.BradleyTerry(num_teams=6),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_fused_step_is_the_same_step(model, interpreted):
    target = problem(model)
    keys, positions = starts(target)
    found = {}
    for fused in (False, True):
        kernel = HitAndRun(fused=fused, width=0.5)  # narrow: it doubles, and tests what it finds
        states = jax.vmap(kernel.init, (0, None))(positions, target)
        found[fused] = jax.jit(jax.vmap(kernel.step, (0, 0, None)))(keys, states, target)
    (plain, plain_info), (fused, fused_info) = found[False], found[True]
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(fused), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(plain_info.num_evaluations, fused_info.num_evaluations)
    assert plain_info.num_evaluations.min() > 3 * 4, "the interval never doubled"
    assert not fused_info.is_stuck.any()


def test_a_target_that_is_nan_is_stuck_and_does_not_move(interpreted):
    target = problem(coremcmc.PoissonRegression())
    target = Target(target.model, target.rows, target.weights * jnp.nan)
    keys, positions = starts(target)
    kernel = HitAndRun(fused=True)
    states = jax.vmap(kernel.init, (0, None))(positions, target)
    moved, info = jax.vmap(kernel.step, (0, 0, None))(keys, states, target)
    assert info.is_stuck.all()
    np.testing.assert_array_equal(moved.position["beta"], positions["beta"])


def test_what_can_be_fused():
    target = problem(coremcmc.PoissonRegression())
    position = {"beta": jnp.zeros(6)}
    assert fused_lines._fits(target, position)
    assert not fused_lines.can_fuse(target, position) or jax.default_backend() == "gpu"
    wide = Target(target.model, target.rows, jnp.ones(fused_lines._MAX_ROWS + 1))
    assert not fused_lines._fits(wide, position)

    class Offset(coremcmc.PoissonRegression):
        """Its likelihood reads the features themselves."""

        def pointwise(self, eta, rows, position):
            return super().pointwise(eta + rows["x"][:, 0], rows, position)

    class Hierarchical(coremcmc.PoissonRegression):
        """A prior that is not a sum over coordinates."""

        has_independent_prior = False

    for model in (Offset(), Hierarchical(), coremcmc.GaussianLocation()):
        assert not fused_lines._fits(Target(model, target.rows, target.weights), position)
    matrix = {"beta": jnp.zeros((2, 3))}
    assert not fused_lines._fits(target, matrix)
