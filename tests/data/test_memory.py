"""Data in memory: what is refused and where, and that every row is there once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from coremcmc import (
    FunctionModel,
    LinearRegression,
    LogisticRegression,
    MemoryData,
    PoissonRegression,
)

BLOCK = 2**18
TWO_BLOCKS = BLOCK + 1000


def regression(num_rows=10):
    """Row n can be told from its content."""
    n = np.arange(num_rows)
    return {"x": np.stack([n, -2.0 * n], axis=1), "y": n % 2}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "data is empty"),
        ((), "data is empty"),
        ({"x": np.zeros((0, 3)), "y": np.zeros(0)}, "0 rows"),
        ({"x": np.zeros((5, 3)), "y": np.zeros(4)}, r"differ.*data\['x'\]\": 5.*data\['y'\]\": 4"),
        ({"x": np.zeros(3), "y": np.float64(1.0)}, r"data\['y'\].*single number"),
        ({"x": np.zeros(3), "y": np.array(["a", "b", "c"])}, r"data\['y'\].*numbers.*<U1"),
        ({"x": np.zeros(3), "y": np.array([1, None, "c"])}, r"data\['y'\].*numbers.*object"),
        ({"x": np.zeros(3), "y": np.zeros(3, complex)}, r"data\['y'\].*numbers.*complex128"),
        ({"x": np.zeros(3), "when": np.zeros(3, "datetime64[s]")}, r"data\['when'\].*datetime64"),
        ((np.zeros(3), np.zeros(2)), r"differ.*data\[0\]': 3.*data\[1\]': 2"),
    ],
)
def test_what_is_not_rows_of_numbers_is_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        MemoryData(rows)


@pytest.mark.parametrize("num_rows", [1, 2, 17])
def test_number_of_rows(num_rows):
    assert MemoryData(regression(num_rows)).num_rows == num_rows
    assert MemoryData(np.zeros((num_rows, 3, 2))).num_rows == num_rows


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("row", "named"),
    [
        (0, "row 0"),
        (3, "row 3"),
        (BLOCK - 1, "row 262,143"),
        (BLOCK, "row 262,144"),
        (BLOCK + 9, "row 262,153"),
        (TWO_BLOCKS - 1, "row 263,143"),
    ],
)
def test_values_that_are_not_finite_are_located(bad, row, named):
    rows = regression(TWO_BLOCKS)
    rows["x"][row, 1] = bad
    rows["x"][row + 1 :, 0] = bad  # later ones must not be named
    with pytest.raises(ValueError, match=rf"data\['x'\].*{named}\."):
        MemoryData(rows).check(LinearRegression())


def test_values_that_are_not_finite_are_located_in_float32_and_in_nested_rows():
    column = np.zeros(8, np.float32)
    column[5] = np.nan
    model = FunctionModel(lambda p: p, lambda p, rows: rows, lambda key: 0.0)
    with pytest.raises(ValueError, match=r"data\['a'\]\[1\].*row 5\."):
        MemoryData({"a": (np.zeros(8), column)}).check(model)


def test_a_wrong_value_in_the_second_block_is_located():
    rows = regression(TWO_BLOCKS)
    rows["y"][BLOCK + 9] = -3
    with pytest.raises(ValueError, match=r"-3 at row 9 .*counted from row 262,144"):
        MemoryData(rows).check(PoissonRegression())


def test_a_wrong_value_in_the_last_row_is_found():
    rows = regression(TWO_BLOCKS)
    rows["y"][-1] = 2
    with pytest.raises(ValueError, match=r"2 at row 999 .*counted from row 262,144"):
        MemoryData(rows).check(LogisticRegression())


def test_good_data_pass():
    assert MemoryData(regression(TWO_BLOCKS)).check(LogisticRegression()) is None


@pytest.mark.parametrize("missing", ["x", "y"])
def test_a_missing_column_is_named_with_those_that_are_there(missing):
    rows = {**regression(), "extra": np.zeros(10)}
    del rows[missing]
    there = "y" if missing == "x" else "x"
    with pytest.raises(ValueError, match=rf"lacks.*'{missing}'.*LinearRegression.*'{there}'"):
        MemoryData(rows).check(LinearRegression())


@pytest.mark.parametrize("rows", [np.zeros((4, 2)), (np.zeros((4, 2)), np.zeros(4))])
def test_rows_without_names_are_refused_by_a_model_that_reads_columns(rows):
    with pytest.raises(ValueError, match=r"x.*LinearRegression"):
        MemoryData(rows).check(LinearRegression())


def test_a_column_is_found_by_its_name():
    data = MemoryData(regression())
    np.testing.assert_array_equal(data.column("y"), np.arange(10) % 2)
    with pytest.raises(ValueError, match=r"'z'.*\['x', 'y'\]"):
        data.column("z")
    with pytest.raises(ValueError, match="none has a name"):
        MemoryData(np.zeros(3)).column("x")


def test_take_returns_the_rows_in_the_order_asked():
    taken = MemoryData(regression()).take(np.array([7, 0, 9]))
    np.testing.assert_array_equal(taken["x"], [[7, -14], [0, 0], [9, -18]])
    np.testing.assert_array_equal(taken["y"], [1, 0, 1])


@pytest.mark.parametrize(("num_rows", "size"), [(10, 1), (10, 7), (10, 10), (1000, 300)])
def test_a_subsample_holds_whole_distinct_rows_of_the_data(num_rows, size):
    feed = MemoryData(regression(num_rows)).feed()
    drawn = jax.jit(lambda key: feed.subsample(key, jnp.zeros((), int), size))(jax.random.key(0))
    n = np.asarray(drawn["x"])[:, 0].astype(int)
    assert len(np.unique(n)) == size
    assert n.min() >= 0
    assert n.max() < num_rows
    np.testing.assert_array_equal(drawn["x"][:, 1], -2.0 * n)
    np.testing.assert_array_equal(drawn["y"], n % 2)


def test_every_row_is_subsampled_equally_often_the_last_included():
    # Chi-square of N − 1 as in test_permutation; false alarm 1e-4.
    num_rows, size, num_keys = 101, 10, 20_000
    feed = MemoryData({"n": np.arange(num_rows)}).feed()
    keys = jax.random.split(jax.random.key(1), num_keys)
    drawn = jax.jit(jax.vmap(lambda key: feed.subsample(key, jnp.zeros((), int), size)["n"]))(keys)
    counts = np.bincount(np.ravel(drawn), minlength=num_rows)
    p = size / num_rows
    statistic = ((counts - num_keys * p) ** 2).sum() / (
        num_keys * p * (1 - p) * num_rows / (num_rows - 1)
    )
    assert scipy.stats.chi2.sf(statistic, num_rows - 1) > 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16, np.int64, bool])
def test_stored_dtypes_are_kept(dtype):
    data = MemoryData({"x": np.array([0, 1, 1, 0]).astype(dtype)})
    assert data.take(np.array([1]))["x"].dtype == dtype
    assert data.feed().rows["x"].dtype == dtype
    assert data.feed().subsample(jax.random.key(0), jnp.zeros((), int), 2)["x"].dtype == dtype


@pytest.mark.parametrize("num_rows", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_blocks_cover_every_row_exactly_once_in_order(num_rows):
    rows = {"n": np.arange(num_rows), "m": -np.arange(num_rows)}
    blocks = list(MemoryData(rows).blocks())
    assert [start for start, _ in blocks] == list(range(0, num_rows, BLOCK))
    for name, column in rows.items():
        np.testing.assert_array_equal(np.concatenate([b[name] for _, b in blocks]), column)


def test_data_are_not_copied():
    rows = regression()
    data = MemoryData(rows)
    assert np.shares_memory(data.rows["x"], rows["x"])
    assert all(np.shares_memory(block["x"], rows["x"]) for _, block in data.blocks())


def test_fingerprint_is_that_of_equal_data():
    assert MemoryData(regression()).fingerprint() == MemoryData(regression()).fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows["x"].__setitem__((0, 0), 0.5),
        lambda rows: rows["x"].__setitem__((4, 1), np.nextafter(-8.0, 0.0)),
        lambda rows: rows["y"].__setitem__(9, 0),
        lambda rows: rows.update(y=rows["y"].astype(np.int32)),
        lambda rows: rows.update(x=rows["x"][:, ::-1]),
        lambda rows: rows.update(x=rows["x"][::-1], y=rows["y"][::-1]),
        lambda rows: rows.update(x=rows["x"][:9], y=rows["y"][:9]),
        lambda rows: rows.update(z=rows["y"]),
        lambda rows: rows.update(z=rows.pop("y")),
    ],
    ids=["first", "middle", "last", "dtype", "columns", "order", "length", "more", "name"],
)
def test_fingerprint_changes_with_the_data(change):
    rows = regression()
    change(rows)
    assert MemoryData(rows).fingerprint() != MemoryData(regression()).fingerprint()
