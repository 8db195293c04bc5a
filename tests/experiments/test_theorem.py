"""What is said of the convergence theorem: the recursion of Appendix C, the toy, the constants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coremcmc
from experiments import theorem
from experiments.theorem import appendix_c, exact_coreset, squared_distances, watch


def test_the_recursion_of_appendix_c_is_its_equations():
    """Sums written out, as the paper has them, over made-up gradients."""
    rng = np.random.default_rng(0)
    w0 = rng.random(3) + 2.0
    gradients = rng.standard_normal((40, 3)) * [1.0, 30.0, 0.01]
    b1, b2, eps, r_delta = 0.9, 0.999, 1e-8, 0.02
    optimizer = appendix_c(r_delta)
    state = optimizer.init(jnp.asarray(w0))
    update = jax.jit(optimizer.update)
    w, path, rbar = w0.copy(), [w0.copy()], [np.full(3, r_delta)]
    for t, g in enumerate(gradients, start=1):
        seen = gradients[:t]
        m = sum(b1 ** (t - 1 - k) * seen[k] for k in range(t))
        v = sum(b2 ** (t - 1 - k) * seen[k] ** 2 for k in range(t))
        rbar.append(np.maximum(np.max(np.abs(np.array(path) - w0), axis=0), r_delta))
        average = (1 - b1) * sum(b1**k * rbar[t - k] for k in range(t)) + b1**t * rbar[0]
        r_tilde = average / (1 - b1**t)
        alpha = (1 - b1) / (1 - b1**t) * np.sqrt(1 - b2**t) / np.sqrt(1 - b2) * r_tilde
        step, state = update(jnp.asarray(g), state, jnp.asarray(w))
        np.testing.assert_allclose(step, -alpha * m / np.sqrt(t * (eps + v)), rtol=1e-10)
        w = w + np.asarray(step)
        path.append(w.copy())
    assert np.abs(w - w0).max() > 0.05  # it has left its floor


def test_it_is_not_algorithm_2():
    gradients = np.random.default_rng(1).standard_normal((30, 2))
    ends = []
    for optimizer in (coremcmc.hot_dog(), appendix_c()):
        w = jnp.ones(2)
        state = optimizer.init(w)
        for g in gradients:
            step, state = optimizer.update(jnp.asarray(g), state, w)
            w = w + step
        ends.append(np.asarray(w - 1.0))
    assert np.abs(ends[0] - ends[1]).max() > 0.1 * np.abs(ends[0]).max()


def test_the_toy_has_an_exact_coreset():
    x, weights = exact_coreset()
    model, rng = coremcmc.GaussianLocation(), np.random.default_rng(0)
    assert (weights > 0).all()
    differences = []
    for theta in rng.standard_normal((6, 3)):
        rows = np.asarray(
            model.loglikelihood_fn({"theta": jnp.asarray(theta)}, {"x": jnp.asarray(x)})
        )
        differences.append(rows.sum() - weights @ rows[: len(weights)])
    np.testing.assert_allclose(differences, differences[0], rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["algorithm_2", "appendix_c"])
def test_the_stored_curves_are_what_is_computed(name):
    """Their beginning, all runs."""
    found = theorem.stored()
    times = np.array([t for t in found["iteration"] if t <= 64])
    optimizer = {"algorithm_2": coremcmc.hot_dog(), "appendix_c": appendix_c()}[name]
    mean = squared_distances(optimizer, times, found["num_runs"]).mean(axis=0)
    np.testing.assert_allclose(mean, found["curves"][name]["mean"][: len(times)], rtol=1e-8)


@pytest.mark.slow
def test_more_rows_than_dimensions_leave_no_curvature():
    """Gaussian location, d = 3: centred log-likelihoods span 4 dimensions of M = 12."""
    columns = coremcmc.gaussian_location_data(num_rows=200, dimension=3)
    found = watch(coremcmc.GaussianLocation(), columns, 12, 400)
    assert found["rank"] == 4
    assert abs(found["least"]) < 1e-12 * found["largest"]
    assert found["median"] < found["q99"] <= found["max"]
    assert found["held"] == 0


def test_what_is_stored_supports_the_page():
    found = theorem.stored()
    for curve in found["curves"].values():
        assert curve["slope"] + 3 * curve["slope_error"] < -0.5
    assert found["models"]["gaussian"]["rank"] == 21
    assert found["models"]["gaussian"]["least"] < 1e-12
    assert found["bound"]["trivial"] == 4 * 40**2
