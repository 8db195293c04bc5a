"""NumPy's npz: arrays as columns."""

import numpy as np

from coremcmc import read_table
from tests.data.table_files import error_of


def test_an_array_of_an_npz_file_is_a_column_and_a_matrix_several(tmp_path):
    x, y = np.arange(6.0).reshape(3, 2), np.array([1, 0, 1])
    np.savez(tmp_path / "t.npz", x=x, y=y, name=np.array(["a", "b", "c"]), note=np.array(3))
    back = read_table(tmp_path / "t.npz")
    assert list(back.columns) == ["x_0", "x_1", "y", "name"]
    np.testing.assert_array_equal(back[["x_0", "x_1"]], x)
    np.testing.assert_array_equal(back["y"], y)
    assert list(back["name"]) == ["a", "b", "c"]
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz", ["x_1"])["x_1"], x[:, 1])


def test_arrays_of_an_npz_file_that_do_not_fit(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.zeros(3), b=np.zeros(4))
    assert "differ in their number of rows: {'a': 3, 'b': 4}" in error_of(tmp_path / "t.npz")
    assert len(read_table(tmp_path / "t.npz", ["b"])) == 4
    np.savez(tmp_path / "u.npz", a=np.array(["x", None], object))
    assert "holds Python objects in 'a'" in error_of(tmp_path / "u.npz")
    np.savez(tmp_path / "v.npz", x=np.zeros((3, 1)), x_0=np.zeros(3))
    assert "more than one column of the name 'x_0'" in error_of(tmp_path / "v.npz")
