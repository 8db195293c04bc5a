"""A full pass counts every row once, whatever the number of rows."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coremcmc.data import MemoryData, passes
from coremcmc.fitting.progress import PassBar

BLOCK = 64


full_pass = functools.partial(passes.full_pass, block_rows=BLOCK)  # several, of few rows


@dataclass(frozen=True)
class Moments:
    """Σ 1, Σ n, Σ s·y, Σ s·x xᵀ over the rows that are none but padding."""

    def __call__(self, scale, rows, is_row):
        x = jnp.where(is_row[:, None], rows["x"], 0.0)
        return {
            "count": is_row.sum(),
            "index": jnp.where(is_row, rows["index"], 0).sum(),
            "y": scale * jnp.where(is_row, rows["y"], 0).sum(),
            "gram": scale * x.T @ x,
        }


def columns(num_rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((num_rows, 3)),
        "y": rng.integers(0, 5, num_rows).astype(np.int8),
        "index": np.arange(1, num_rows + 1),
    }


@pytest.mark.parametrize(
    "num_rows",
    [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 13],
)
def test_equals_a_plain_sum_over_all_rows(num_rows):
    rows = columns(num_rows)
    found = full_pass(MemoryData(rows), Moments(), 2.5)
    assert found["count"] == num_rows
    assert found["index"] == num_rows * (num_rows + 1) // 2
    assert found["y"] == pytest.approx(2.5 * rows["y"].astype(int).sum(), rel=1e-14)
    np.testing.assert_allclose(found["gram"], 2.5 * rows["x"].T @ rows["x"], rtol=1e-12)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(found))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float32, bool])
def test_columns_keep_their_dtype_on_the_way(dtype):
    seen = []

    def total(_, rows, is_row):
        seen.append(rows.dtype)
        return jnp.where(is_row, rows, 0).sum()

    rows = np.random.default_rng(1).integers(0, 2, 3 * BLOCK + 5).astype(dtype)
    assert full_pass(MemoryData(rows), total, ()) == rows.astype(float).sum()
    assert set(seen) == {np.dtype(dtype)}


def test_every_block_is_padded_to_one_size_by_rows_like_the_others():
    """Padding must not be zeros, which some models cannot evaluate."""
    shapes = []

    def lowest(_, rows, is_row):
        shapes.append(rows.shape)
        return jnp.stack([jnp.log(rows).min(), is_row.sum().astype(float)])

    rows = np.full(2 * BLOCK + 3, np.e)
    found = full_pass(MemoryData(rows), lowest, ())
    np.testing.assert_allclose(found, [3.0, len(rows)])
    assert set(shapes) == {(BLOCK,)}


def test_the_compiled_program_is_found_again():
    traces = []

    def total(scale, rows, is_row):
        traces.append(1)
        return scale * jnp.where(is_row, rows, 0.0).sum()

    data = MemoryData(np.ones(4 * BLOCK + 1))
    assert full_pass(data, total, 1.0) == 4 * BLOCK + 1
    once = len(traces)
    assert full_pass(data, total, 2.0) == 2 * (4 * BLOCK + 1)
    assert len(traces) == once <= 2


@dataclass(frozen=True)
class Total:
    def __call__(self, _, rows, is_row):
        return jnp.where(is_row, jnp.log(rows), 0.0).sum()


@pytest.mark.parametrize(
    ("num_rows", "bad", "named"),
    [
        (300, 0, "rows 0 to 63"),
        (300, 130, "rows 128 to 191"),
        (300, 299, "rows 256 to 299"),  # the last block ends where the data end
        (20, 7, "rows 0 to 19"),
    ],
)
@pytest.mark.parametrize("value", [-1.0, 0.0], ids=["NaN", "infinite"])
def test_a_block_that_is_not_finite_is_named(num_rows, bad, named, value):
    rows = np.ones(num_rows)
    rows[bad] = value
    with pytest.raises(ValueError, match=named):
        full_pass(MemoryData(rows), Total(), ())


def test_of_two_bad_blocks_the_first_is_named_even_where_their_infinities_cancel():
    rows = np.ones(300)
    rows[100], rows[250] = 0.0, np.inf  # −∞ and +∞
    with pytest.raises(ValueError, match="rows 64 to 127"):
        full_pass(MemoryData(rows), Total(), ())


def test_an_overflow_that_no_single_block_has_is_told_apart():
    with pytest.raises(ValueError, match="overflows, although each block"):
        full_pass(MemoryData(np.full(10 * BLOCK, 1e306)), lambda _, r, m: (r * m).sum(), ())


def test_progress_counts_rows_and_ends_at_their_number():
    seen = []
    full_pass(MemoryData(np.ones(2 * BLOCK + 5)), Total(), (), progress=seen.append)
    assert seen == [BLOCK, 2 * BLOCK, 2 * BLOCK + 5]
    seen.clear()
    full_pass(MemoryData(np.ones(7)), Total(), (), progress=seen.append)
    assert seen == [7]


# -- the bar --------------------------------------------------------------------------------------


def passes_over(num_rows, num_passes, enabled):
    data = MemoryData(np.ones(num_rows))
    with PassBar("reading the data", num_rows, enabled) as bar:
        for _ in range(num_passes):
            full_pass(data, Total(), (), progress=bar)


@pytest.mark.parametrize("num_rows", [7, 2 * BLOCK + 5], ids=["one block", "several"])
def test_a_bar_that_is_asked_for_counts_rows_and_passes(capsys, num_rows):
    passes_over(num_rows, 3, True)
    shown = capsys.readouterr().err
    assert f"{num_rows}/{num_rows} rows" in shown
    assert "reading the data, pass 3" in shown


def test_a_bar_is_silent_where_there_is_no_terminal_or_it_is_not_wanted(capsys):
    for enabled in (None, False):
        passes_over(7, 2, enabled)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


def test_a_bar_without_a_pass_shows_nothing(capsys):
    passes_over(7, 0, True)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_bar_is_shown_and_then_taken_away(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    passes_over(7, 2, None)
    shown = capsys.readouterr().err
    assert "pass 2" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # its line is erased
