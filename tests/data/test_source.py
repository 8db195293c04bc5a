"""What may be given as data, and the source that it becomes."""

import numpy as np
import pytest

from coremcmc import BradleyTerry, FunctionModel, LinearRegression, MemoryData
from coremcmc.data import as_data_source


def test_a_tuple_is_matched_with_the_columns_of_the_model():
    home, away, y = np.array([0, 1]), np.array([1, 2]), np.array([1, 0])
    data = as_data_source((home, away, y), BradleyTerry(3))
    for name, column in (("home", home), ("away", away), ("y", y)):
        np.testing.assert_array_equal(data.column(name), column)


def test_a_tuple_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"tuple of 2 arrays.*BradleyTerry reads 3: home, away, y"):
        as_data_source((np.zeros(2), np.zeros(2)), BradleyTerry(3))


def test_what_has_no_columns_is_refused_by_a_model_that_reads_columns():
    with pytest.raises(ValueError, match=r"columns x, y.*ndarray"):
        as_data_source(np.zeros((5, 3)), LinearRegression())


def test_a_table_with_columns_is_accepted():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"home": [0, 1], "away": [1, 2], "y": [1, 0]})
    data = as_data_source(table, BradleyTerry(3))
    np.testing.assert_array_equal(data.column("away"), [1, 2])


def test_a_model_of_functions_takes_any_pytree_of_rows():
    model = FunctionModel(lambda p: p, lambda p, rows: rows, lambda key: 0.0)
    rows = (np.arange(4), {"a": np.arange(8.0).reshape(4, 2)})
    first, second = as_data_source(rows, model).take(np.array([3, 1]))
    np.testing.assert_array_equal(first, [3, 1])
    np.testing.assert_array_equal(second["a"], [[6.0, 7.0], [2.0, 3.0]])


def test_a_data_source_is_taken_as_it_is():
    data = MemoryData({"x": np.zeros((4, 2)), "y": np.zeros(4)})
    assert as_data_source(data, LinearRegression()) is data
