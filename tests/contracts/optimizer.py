"""What every optimizer must do, whatever it is: inherited by the tests of optimizers."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from coremcmc.optimizers import constrained, gated


def gradients(num_steps=400, size=5, seed=0):
    rng = np.random.default_rng(seed)
    scale = np.logspace(-3, 5, size)
    return rng.standard_normal((num_steps, size)) * scale + 0.3 * scale


def run(optimizer, w0, gradient_rows, hot_from=0, max_sum=None):
    """Weights after every step, by the package."""
    transform = gated(constrained(optimizer, max_sum))

    def step(carry, xs):
        w, state = carry
        t, g = xs
        updates, state = transform.update(g, state, w, is_hot=t >= hot_from)
        w = optax.apply_updates(w, updates)
        return (w, state), w

    w0 = jnp.asarray(w0)
    xs = (jnp.arange(len(gradient_rows)), jnp.asarray(gradient_rows))
    return np.asarray(jax.lax.scan(step, (w0, transform.init(w0)), xs)[1])


def descend(transform, w, target, num_steps=20_000):
    """The last weights of the way down ½ ‖w − target‖²."""

    def step(carry, _):
        w, state = carry
        updates, state = transform.update(w - target, state, w, is_hot=True)
        return (optax.apply_updates(w, updates), state), None

    run = jax.jit(lambda w: jax.lax.scan(step, (w, transform.init(w)), None, length=num_steps))
    return np.asarray(run(jnp.asarray(w))[0][0])


def kinds(tree):
    return jax.tree.map(lambda x: (jnp.shape(x), jnp.asarray(x).dtype), tree)


class OptimizerContract:
    """Inherit it, and give a fixture ``factory``, whose call makes the optimizer.

    ``knows_the_constraint`` may be overridden where an optimizer's rate rests on the distance to
    a solution that the constraint w ≥ 0 forbids.
    """

    @pytest.fixture
    def factory(self) -> Callable[[], optax.GradientTransformation]:
        raise NotImplementedError

    @pytest.fixture
    def knows_the_constraint(self) -> bool:
        return True

    @pytest.fixture
    def transform(self, factory) -> Any:
        """The optimizer as the algorithm has it, behind its gate and inside its constraint."""
        return gated(constrained(factory()))

    def test_the_state_keeps_its_shapes_and_dtypes(self, factory, transform):
        w = jnp.ones(3)
        for made, extra in ((factory(), {}), (transform, {"is_hot": True})):
            state = made.init(w)
            updates, after = made.update(w, state, w, **extra)
            assert kinds(state) == kinds(after)
            assert kinds(updates) == kinds(w)

    def test_jit_and_vmap_agree_with_one_at_a_time(self, transform):
        """To rounding, over several updates of three problems of their own."""
        w0 = jnp.asarray(np.random.default_rng(1).gamma(2.0, 1.0, (3, 4)))
        rows = jnp.asarray(np.random.default_rng(2).standard_normal((12, 3, 4)))

        def advance(w, state, g):
            updates, state = transform.update(g, state, w, is_hot=True)
            return optax.apply_updates(w, updates), state

        together, states = w0, jax.vmap(transform.init)(w0)
        compiled = jax.jit(jax.vmap(advance))
        for g in rows:
            together, states = compiled(together, states, g)
        for i in range(3):
            w, state = w0[i], transform.init(w0[i])
            for g in rows[:, i]:
                w, state = advance(w, state, g)
            np.testing.assert_allclose(together[i], w, rtol=1e-9)
            found = jax.tree.map(lambda x, i=i: x[i], states)
            jax.tree.map(
                functools.partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-12), found, state
            )
        assert (np.asarray(together) != np.asarray(w0)).any(axis=1).all()

    def test_nothing_moves_while_it_is_held(self, transform):
        """Neither weights nor the optimizer's state; only the gate counts."""
        w = jnp.asarray([1.0, 2.0, 3.0])
        state = first = transform.init(w)
        for g in gradients(5, 3):
            updates, state = transform.update(jnp.asarray(g), state, w, is_hot=False)
            np.testing.assert_array_equal(updates, 0.0)
        jax.tree.map(np.testing.assert_array_equal, state.inner_state, first.inner_state)
        _, state = transform.update(jnp.asarray(g), state, w, is_hot=True)
        pairs = zip(*map(jax.tree.leaves, (state.inner_state, first.inner_state)), strict=True)
        assert any((np.asarray(a) != np.asarray(b)).any() for a, b in pairs)

    def test_released_it_goes_as_if_it_began_there(self, factory):
        w0, g = np.array([1.0, 2.0, 3.0]), gradients(60, 3)
        held = run(factory(), w0, np.concatenate([g[:20], g]), hot_from=20)
        np.testing.assert_array_equal(held[:20], np.broadcast_to(w0, (20, 3)))
        np.testing.assert_allclose(held[20:], run(factory(), w0, g), rtol=1e-12)

    def test_weights_stay_nonnegative(self, factory):
        """Pushed down hard: at zero, and not below."""
        g = np.abs(gradients(200, 3))
        path = run(factory(), np.array([1e-6, 2e-6, 3e-6]), g)
        assert (path >= 0).all()
        assert (path == 0).any()

    def test_one_weight_alone_does_no_harm(self, factory):
        path = run(factory(), np.array([2.0]), gradients(100, 1))
        assert np.isfinite(path).all()
        assert (path >= 0).all()

    @pytest.mark.parametrize("hot_from", [0, 20])
    def test_zero_gradients_do_no_harm(self, factory, hot_from):
        g = np.zeros((60, 3))
        w0 = np.array([1.0, 2.0, 3.0])
        np.testing.assert_array_equal(run(factory(), w0, g, hot_from)[-1], w0)
        g[30:] = 1.0
        assert np.isfinite(run(factory(), w0, g, hot_from)).all()

    def test_it_converges_where_the_solution_is_allowed(self, transform):
        target = np.array([3.0, 4.0, 2.5])
        w = descend(transform, [2.0, 3.0, 3.0], target)
        np.testing.assert_allclose(w, target, atol=0.02)

    def test_a_weight_stuck_at_zero_does_no_harm(self, transform, knows_the_constraint):
        """Its gradient pushes it outward for ever; the others must converge all the same."""
        target = np.array([-3.0, 4.0, 2.5])
        w = descend(transform, [0.0, 3.0, 3.0], target)
        assert w[0] == 0.0
        assert np.isfinite(w).all()
        if knows_the_constraint:
            np.testing.assert_allclose(w[1:], target[1:], atol=0.02)
