"""What every model must keep. Its test class inherits :class:`ModelContract` and gives a case."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from coremcmc import LinearPredictorModel
from coremcmc.pytrees import prepared


class ModelContract:
    """Override :meth:`make`; the rest follows.

    Attributes
    ----------
    prepares_once
        Whether prepared rows are other numbers than the stored ones, so that preparing them once
        more would change them again.
    is_pickled
        Whether the model can be sent to another process.
    """

    prepares_once = False
    is_pickled = True

    @staticmethod
    def make(case=None):
        """Return a model and rows of it as a user stores them, each time a new pair."""
        raise NotImplementedError

    def wrong_rows(self, rows):
        """Rows that the model must refuse, by what is wrong with them."""
        return {}

    @pytest.fixture(params=[None])
    def case(self, request):
        """A model and stored rows; a class of several models names them as params."""
        return self.make(request.param)

    @pytest.fixture
    def model(self, case):
        return case[0]

    @pytest.fixture
    def stored(self, case):
        return jax.tree.map(np.asarray, case[1])

    @pytest.fixture
    def rows(self, model, stored):
        return prepared(model, stored)

    @pytest.fixture
    def positions(self, model, rows):
        """Eight starts, their leaves with a leading axis."""
        keys = jax.random.split(jax.random.key(0), 8)
        return jax.jit(jax.vmap(lambda key: model.initial_position(key, rows)))(keys)

    @pytest.fixture
    def position(self, positions):
        return jax.tree.map(lambda x: x[0], positions)

    def test_the_loglikelihood_has_one_float64_a_row(self, model, stored, position):
        for count in (1, 2, num_rows(stored)):
            rows = prepared(model, take(stored, np.arange(count)))
            shape = jax.eval_shape(model.loglikelihood_fn, position, rows)
            assert (shape.shape, shape.dtype) == ((count,), jnp.float64)
        assert jax.eval_shape(model.logprior_fn, position).shape == ()

    def test_starts_are_finite_and_differ(self, model, rows, positions):
        terms = jax.jit(jax.vmap(lambda p: model.loglikelihood_fn(p, rows)))(positions)
        priors = jax.jit(jax.vmap(model.logprior_fn))(positions)
        assert np.isfinite(terms).all()
        assert np.isfinite(priors).all()
        flat = np.asarray(jax.vmap(lambda p: ravel_pytree(p)[0])(positions))
        assert len(np.unique(flat, axis=0)) == len(flat)

    def test_gradients_are_those_of_finite_differences(self, model, rows, position):
        flat, unravel = ravel_pytree(position)

        def total(x):
            return model.loglikelihood_fn(unravel(x), rows).sum()

        functions = [total]
        if model.is_continuous:  # of an inclusion a prior has no derivative
            functions.append(lambda x: model.logprior_fn(unravel(x)))
        step = 1e-5
        units = step * jnp.eye(flat.size)
        for function in functions:
            values = jax.jit(jax.vmap(function))
            difference = (values(flat + units) - values(flat - units)) / (2 * step)
            slope = jax.jit(jax.grad(function))(flat)
            np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-5)

    def test_rows_do_not_know_of_each_other(self, model, stored, rows, position):
        terms = jax.jit(model.loglikelihood_fn)
        whole = np.asarray(terms(position, rows))
        for chosen in (np.arange(len(whole))[::-1], np.array([4]), np.array([7, 1, 1, 5])):
            some = terms(position, prepared(model, take(stored, chosen)))
            np.testing.assert_allclose(some, whole[chosen], rtol=1e-12, atol=1e-12)

    def test_prepared_rows_are_as_many_and_stay_as_they_are(self, model, stored, rows):
        assert {len(leaf) for leaf in jax.tree.leaves(rows)} == {num_rows(stored)}
        again = prepared(model, rows)
        assert jax.tree.structure(again) == jax.tree.structure(rows)
        same = []
        for first, second in zip(jax.tree.leaves(rows), jax.tree.leaves(again), strict=True):
            assert first.dtype == second.dtype
            same.append(np.array_equal(first, second))
        assert all(same) != self.prepares_once

    def test_its_own_rows_pass_and_wrong_ones_do_not(self, model, stored):
        assert model.check_rows(stored) is None
        for what, wrong in self.wrong_rows(stored).items():
            with pytest.raises(ValueError, match=r"\S") as error:
                model.check_rows(wrong)
            assert "\n" not in str(error.value), what

    def test_twins_are_equal_hash_alike_and_describe_themselves_alike(self, model, request, case):
        twin = self.make(request.node.callspec.params["case"])[0]
        assert twin == model
        assert hash(twin) == hash(model)
        assert twin.describe() == model.describe()
        assert "\n" not in model.describe()
        assert " at 0x" not in model.describe()
        assert "coremcmc." not in model.describe()
        if self.is_pickled:
            sent = pickle.loads(pickle.dumps(model))
            assert sent == model
            assert hash(sent) == hash(model)
            assert sent.describe() == model.describe()

    def test_the_predictor_is_linear_and_all_that_the_rows_see(self, model, rows, positions):
        if not isinstance(model, LinearPredictorModel):
            pytest.skip("has no linear predictor")
        one, other = (jax.tree.map(lambda x, i=i: x[i], positions) for i in (0, 1))
        eta, eta_other = model.predictor(one, rows), model.predictor(other, rows)
        mixed = jax.tree.map(lambda a, b: 2.0 * a - 3.0 * b, one, other)
        expected = 2.0 * eta - 3.0 * eta_other
        np.testing.assert_allclose(model.predictor(mixed, rows), expected, rtol=1e-9, atol=1e-9)
        found = model.pointwise(eta, rows, one)
        np.testing.assert_allclose(found, model.loglikelihood_fn(one, rows), rtol=1e-12, atol=1e-12)

    def test_it_is_the_same_compiled_and_for_many_positions_at_once(self, model, rows, positions):
        together = jax.jit(jax.vmap(lambda p: model.loglikelihood_fn(p, rows)))(positions)
        priors = jax.jit(jax.vmap(model.logprior_fn))(positions)
        for i in range(2):
            one = jax.tree.map(lambda x, i=i: x[i], positions)
            alone = model.loglikelihood_fn(one, rows)
            np.testing.assert_allclose(together[i], alone, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(priors[i], model.logprior_fn(one), rtol=1e-10)

    def test_parameters_have_names(self, model, position):
        named = model.constrain_fn(position)
        assert named
        assert all(isinstance(name, str) and name for name in named)
        assert all(np.isfinite(value).all() for value in named.values())


def num_rows(rows):
    return len(jax.tree.leaves(rows)[0])


def take(rows, indices):
    return jax.tree.map(lambda x: x[indices], rows)
