"""Tables come back as they were written, and a bad file is told in one line with a remedy."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from coremcmc.data.tables import read_table, table_columns, table_files
from tests.data.table_files import SUFFIXES, TABLE, error_of, write


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return write(TABLE, tmp_path / f"table{request.param}")


# -- what comes back ------------------------------------------------------------------------------


def test_a_table_comes_back(path):
    pd.testing.assert_frame_equal(read_table(path), TABLE, check_dtype=False)
    assert table_columns(path) == list(TABLE.columns)
    assert read_table(str(path))["hour"].dtype == np.float64


def test_only_the_named_columns_are_read_in_the_order_named(path):
    back = read_table(path, columns=["is_late", "y"])
    pd.testing.assert_frame_equal(back, TABLE[["is_late", "y"]], check_dtype=False)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_a_folder_and_a_glob_are_read_in_the_order_of_their_sorted_paths(tmp_path, suffix):
    (tmp_path / "deep").mkdir()
    for name, start in (("b", 3), ("a", 0), ("deep/c", 6)):
        write(pd.DataFrame({"i": np.arange(start, start + 3)}), tmp_path / f"{name}{suffix}")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.csv").write_text("nothing")
    back = read_table(tmp_path)
    assert list(back["i"]) == list(range(9))
    assert list(back.index) == list(range(9))
    assert list(read_table(f"{tmp_path}/*{suffix}")["i"]) == list(range(6))
    assert list(read_table(f"{tmp_path}/**/*{suffix}")["i"]) == list(range(9))
    assert [p.name[0] for p in table_files(tmp_path)] == ["a", "b", "c"]


def test_files_may_order_their_columns_otherwise_and_lack_what_is_not_read(tmp_path):
    write(pd.DataFrame({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    write(pd.DataFrame({"b": [4.5], "a": [3]}), tmp_path / "2.parquet")
    pd.testing.assert_frame_equal(
        read_table(tmp_path), pd.DataFrame({"a": [1, 3], "b": [2, 4.5]}), check_dtype=False
    )
    write(pd.DataFrame({"a": [5]}), tmp_path / "3.parquet")
    assert list(read_table(tmp_path, columns=["a"])["a"]) == [1, 3, 5]


def test_large_files_keep_their_rows(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=100_000), "b": rng.integers(0, 9, 100_000)})
    table.to_csv(tmp_path / "t.csv", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv"), table)


def test_pandas_and_arrow_are_not_imported_before_they_are_needed():
    code = "import sys, coremcmc.data.tables; print(*({'pandas', 'pyarrow'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


# -- refusals -------------------------------------------------------------------------------------


def test_a_missing_file_is_told_with_the_nearest_name(tmp_path):
    write(TABLE, tmp_path / "flights.csv")
    message = error_of(tmp_path / "flight.csv")
    assert "there is no file or folder" in message
    assert "Did you mean 'flights.csv'?" in message
    assert "Check the path" in error_of(tmp_path / "nowhere" / "x.csv")


def test_an_empty_glob_and_an_empty_folder(tmp_path):
    assert "no file matches" in error_of(f"{tmp_path}/*.parquet")
    assert "holds no files" in error_of(tmp_path)


def test_an_unknown_suffix(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"1")
    message = error_of(tmp_path / "t.xlsx")
    assert "t.xlsx" in message
    assert ".csv, .csv.gz, .parquet" in message


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npz"])
def test_a_file_of_no_bytes(tmp_path, suffix):
    (tmp_path / f"t{suffix}").touch()
    assert "is empty (0 bytes)" in error_of(tmp_path / f"t{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather", ".npz"])
@pytest.mark.parametrize("part", [0.5, 0.9])
def test_a_file_cut_short(tmp_path, suffix, part):
    path = tmp_path / f"t{suffix}"
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=5_000), "b": rng.normal(size=5_000)})
    if suffix == ".npz":
        np.savez(path, **{name: table[name] for name in table})
    else:
        write(table, path)
    content = path.read_bytes()
    content = content[: int(part * len(content))]
    if suffix == ".csv":  # within the first field of a line
        content = content[: content.rindex(b"\n") + 5]
    path.write_bytes(content)
    assert f"{str(path)!r} is cut short" in error_of(path)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".npz"])
def test_a_file_of_another_format(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_text("a,b\n1,2\n3,4\n" * 10)
    assert "is not a" in error_of(path)


def test_a_column_that_is_not_there(path):
    message = error_of(path, columns=["y", "hours"])
    assert "has no column 'hours'. Did you mean 'hour'?" in message
    assert "Its columns: y, hour, origin, is_late." in error_of(path, columns=["zzz"])


def test_two_columns_of_a_name(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,a\n1,2,3\n")
    assert "more than one column of the name 'a'" in error_of(tmp_path / "t.csv")
    assert list(read_table(tmp_path / "t.csv", columns=["b"])["b"]) == [2]
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "t.parquet")
    assert "more than one column of the name 'a'" in error_of(tmp_path / "t.parquet")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_of_numbers_here_and_of_text_there(tmp_path, suffix):
    write(pd.DataFrame({"a": [1, 2]}), tmp_path / f"1{suffix}")
    write(pd.DataFrame({"a": ["x", "y"]}), tmp_path / f"2{suffix}")
    message = error_of(tmp_path)
    assert "column 'a' mixes types: numbers in" in message
    assert "text in" in message


def test_files_that_differ_in_their_columns(tmp_path):
    write(pd.DataFrame({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    write(pd.DataFrame({"a": [1], "c": [2]}), tmp_path / "2.parquet")
    assert "differ in their columns: 'b' is in one of them only" in error_of(tmp_path)
    assert "2.parquet' has no column 'b'" in error_of(tmp_path, columns=["b"])


def test_a_folder_of_several_formats(tmp_path):
    write(TABLE, tmp_path / "1.parquet")
    write(TABLE, tmp_path / "2.csv")
    assert "several formats: CSV, Parquet" in error_of(tmp_path)


def test_columns_must_be_a_list(tmp_path):
    assert "must be a list of names" in error_of(tmp_path, columns="hour")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = write(TABLE, tmp_path / "t.csv")
    path.chmod(0)
    assert "permission denied" in error_of(path)
