"""The optimizers against replays of their equations in plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize

from coremcmc.optimizers import OPTIMIZERS, hot_dog
from tests.contracts.optimizer import gradients, run


def replay_hot_dog(w0, gradient_rows, hot_from, r=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    """Algorithm 2, line by line, with the counter c where the paper's test says t."""
    w = w0.copy()
    v, m, d, c = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w), 0
    path = []
    for t, g in enumerate(gradient_rows):
        if t >= hot_from:
            c += 1
            v = b2 * v + (1 - b2) * g**2
            m = b1 * m + (1 - b1) * g
            d = b1 * d + (1 - b1) * np.maximum(np.abs(w - w0), d)
            v_hat, m_hat = v / (1 - b2**c), m / (1 - b1**c)
            d_hat = r * np.ones_like(w) if c == 1 else d / (1 - b1 ** (c - 1))
            w = np.maximum(w - d_hat / np.sqrt(c * (v_hat + eps)) * m_hat, 0.0)
        path.append(w)
    return np.array(path)


@pytest.mark.parametrize("hot_from", [0, 137])
@pytest.mark.parametrize("r", [1e-3, 1.0])
def test_hot_dog_equals_algorithm_2(hot_from, r):
    w0 = np.array([10.0, 20.0, 0.02, 100.0, 1e4])
    g = gradients()
    expected = replay_hot_dog(w0, g, hot_from, r)
    got = run(hot_dog(r), w0, g, hot_from)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    assert (got[: hot_from or 1] == w0).all() == (hot_from > 0)
    assert (got != w0).any(axis=1)[hot_from:].all()
    assert (got == 0).any(), "some weight should meet the constraint"


def test_hot_dog_is_a_plain_optax_transformation():
    """On its own, on a pytree, in 32 bits, without the gate or the constraint."""
    with jax.enable_x64(False):
        params = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(3.0)}
        solver = hot_dog(r=0.1)
        state = solver.init(params)
        loss = lambda p: jnp.sum((p["a"] - 0.3) ** 2) + 100 * (p["b"] + 1.0) ** 2  # noqa: E731
        first = loss(params)

        @jax.jit
        def step(params, state):
            updates, state = solver.update(jax.grad(loss)(params), state, params)
            return optax.apply_updates(params, updates), state

        for _ in range(2000):
            params, state = step(params, state)
        assert params["a"].dtype == jnp.float32
        assert loss(params) < 1e-4 * first


def test_hot_dog_frees_a_coordinate_that_was_held_at_first():
    """A zero gradient at its first update must not fix a weight for ever."""
    g = np.ones((50, 2))
    g[:10, 1] = 0.0
    path = run(hot_dog(), np.array([5.0, 5.0]), g)
    assert (path[9] == [path[9, 0], 5.0]).all()
    assert path[-1, 1] < 5.0


def test_dog_equals_its_equation():
    w0, g, r0 = np.array([3.0, 5.0, 8.0]), gradients(200, 3), 1e-2
    w, distance, total, path = w0.copy(), r0, 0.0, []
    for gradient in g:
        distance = max(distance, np.linalg.norm(w - w0))
        total += gradient @ gradient
        w = np.maximum(w - distance / np.sqrt(total) * gradient, 0.0)
        path.append(w)
    np.testing.assert_allclose(run(OPTIMIZERS["dog"](r0), w0, g), path, rtol=1e-8)


def test_dowg_equals_its_equation():
    w0, g, r0 = np.array([3.0, 5.0, 8.0]), gradients(200, 3), 1e-2
    w, distance, total, path = w0.copy(), r0, 0.0, []
    for gradient in g:
        distance = max(distance, np.linalg.norm(w - w0))
        total += distance**2 * (gradient @ gradient)
        w = np.maximum(w - distance**2 / np.sqrt(total) * gradient, 0.0)
        path.append(w)
    np.testing.assert_allclose(run(OPTIMIZERS["dowg"](r0), w0, g), path, rtol=1e-7)


def test_dadapt_sgd_equals_its_equation():
    w0, g, d0 = np.array([3.0, 5.0, 8.0]), gradients(300, 3), 1e-2
    w, d, norms, numerator, s, path = w0.copy(), d0, 0.0, 0.0, np.zeros(3), []
    for gradient in g:
        norms += gradient @ gradient
        step = d / np.sqrt(norms) * gradient
        numerator += d * gradient @ (w0 - w)
        s = s + d * gradient
        w = np.maximum(w - step, 0.0)
        d = max(d, numerator / np.linalg.norm(s))
        path.append(w)
    assert d > d0
    np.testing.assert_allclose(run(OPTIMIZERS["dadapt_sgd"](d0), w0, g), path, rtol=1e-7)


@pytest.mark.parametrize(("name", "corrected"), [("prodigy", 0), ("prodigy_corrected", 1)])
def test_prodigy_adam_equals_its_equations_with_cosine_restarts(name, corrected):
    """Algorithm 4 of Mishchenko and Defazio, weights d_i² in the correlation, ℓ1 norm below.

    With the correction (optax's) the rate has Adam's factor, and ε meets the new d.
    """
    w0, g, d0, b1, b2, eps = np.array([3.0, 5.0, 8.0]), gradients(250, 3), 1e-3, 0.9, 0.999, 1e-8
    b3 = np.sqrt(b2)
    w, d, r, m, v, s, path = w0.copy(), d0, 0.0, *np.zeros((3, 3)), []
    for k, gradient in enumerate(g, start=1):
        rate = 0.5 * (1 + np.cos(np.pi * ((k - 1) % 100) / 100))
        rate *= np.sqrt(1 - b2**k) / (1 - b1**k) if corrected else 1.0
        m = b1 * m + (1 - b1) * d * gradient
        v = b2 * v + (1 - b2) * d**2 * gradient**2
        r = b3 * r + rate * d**2 * gradient @ (w0 - w)
        s = b3 * s + rate * d**2 * gradient
        new_d = max(d, r / np.abs(s).sum())
        w = np.maximum(w - rate * d * m / (np.sqrt(v) + (new_d if corrected else d) * eps), 0.0)
        d = new_d
        path.append(w)
    assert d > d0
    np.testing.assert_allclose(run(OPTIMIZERS[name](d0), w0, g), path, rtol=1e-7, atol=1e-9)


def test_adam_equals_its_equation_with_a_rate_over_root_t():
    w0, g, rate = np.array([3.0, 5.0, 8.0]), gradients(200, 3), 0.5
    w, m, v, path = w0.copy(), np.zeros(3), np.zeros(3), []
    for t, gradient in enumerate(g, start=1):
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        w = np.maximum(w - rate / np.sqrt(t) * m_hat / (np.sqrt(v_hat) + 1e-8), 0.0)
        path.append(w)
    np.testing.assert_allclose(run(OPTIMIZERS["adam"](rate), w0, g), path, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("max_sum", [0.5, 2.0, 7.0, 100.0])
def test_the_bounded_sum_is_a_euclidean_projection(max_sum):
    """Against scipy's constrained least squares."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        goal = rng.normal(1.0, 2.0, 6)
        start = np.full(6, max_sum / 12)
        identity = optax.GradientTransformation(lambda p: (), lambda u, s, p=None: (u, s))
        got = run(identity, start, (goal - start)[None], max_sum=max_sum)[0]
        best = minimize(
            lambda w, g=goal: ((w - g) ** 2).sum(),
            start,
            jac=lambda w, g=goal: 2 * (w - g),
            bounds=[(0, None)] * 6,
            constraints={"type": "ineq", "fun": lambda w: max_sum - w.sum()},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(got, best.x, atol=1e-5)
        assert got.min() >= 0
        assert got.sum() <= max_sum * (1 + 1e-12)
