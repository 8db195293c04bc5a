"""Vectors and positions; an example of a position; rows as a model wants them."""

import jax
import jax.numpy as jnp
import numpy as np

from coremcmc import BradleyTerry, PoissonRegression
from coremcmc.pytrees import example_position, flatten, prepared, unflatten

ROWS = {"x": np.ones((2, 3), np.float32), "y": np.array([0, 2], np.int32)}


def test_a_position_becomes_a_vector_and_back():
    position = {"b": np.arange(6.0).reshape(2, 3), "a": np.array(7.0)}
    flat = flatten(position)
    np.testing.assert_array_equal(flat, [7.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    draws = unflatten(np.stack([flat, 2.0 * flat]), position)
    np.testing.assert_array_equal(draws["b"], [position["b"], 2.0 * position["b"]])
    np.testing.assert_array_equal(draws["a"], [7.0, 14.0])


def test_an_example_has_the_shapes_of_a_start_and_computes_nothing():
    model = PoissonRegression()
    start = model.initial_position(jax.random.key(0), prepared(model, ROWS))
    example = example_position(model, ROWS)
    assert jax.tree.map(jnp.shape, start) == jax.tree.map(lambda x: x.shape, example)
    assert all(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(example))


def test_rows_are_prepared_the_same_within_a_program_and_outside():
    model = PoissonRegression()
    inside = jax.jit(lambda rows: prepared(model, rows))(ROWS)
    outside = prepared(model, ROWS)
    expected = jax.jit(model.prepare_rows)(jax.tree.map(jnp.asarray, ROWS))
    assert set(inside) == set(outside) == set(expected)
    for name, column in expected.items():
        assert inside[name].dtype == outside[name].dtype == column.dtype
        np.testing.assert_array_equal(inside[name], column)
        np.testing.assert_array_equal(outside[name], column)


def test_no_call_is_left_in_a_program_that_prepares_rows():
    model = BradleyTerry(3)
    rows = {"home": np.zeros(2, int), "away": np.ones(2, int), "y": np.ones(2, np.int8)}
    traced = jax.make_jaxpr(lambda rows: prepared(model, rows))(rows)
    assert {e.primitive.name for e in traced.jaxpr.eqns} == {"convert_element_type"}
