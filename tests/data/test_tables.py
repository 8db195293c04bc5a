"""Tables come back as they were written, and a bad file is told in one line with a remedy."""

import gzip
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

TABLE = pd.DataFrame(
    {
        "y": [0, 1, 1, 0, 1],
        "hour": [1.5, 2.5, np.nan, 4.0, 1e-3],
        "origin": ["JFK", "EWR", "LGA", None, "JFK"],
        "is_late": [True, False, True, True, False],
    }
)
SUFFIXES = [".csv", ".csv.gz", ".parquet", ".pq", ".arrow", ".feather", ".ipc"]


def write(table, path):
    name = path.name
    if name.endswith((".csv", ".gz")):
        table.to_csv(path, index=False)
    elif name.endswith((".parquet", ".pq")):
        table.to_parquet(path)
    elif name.endswith(".arrow"):
        arrow = pa.Table.from_pandas(table)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, arrow.schema) as writer:
            writer.write_table(arrow)
    else:
        pyarrow.feather.write_feather(table, path)
    return path


def error_of(*arguments, **options):
    """The message, which is one line."""
    with pytest.raises(ValueError, match=r".") as caught:
        read_table(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


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


def test_a_column_of_parquet_that_is_not_needed_is_not_read(tmp_path, monkeypatch):
    write(TABLE, tmp_path / "t.parquet")
    asked = []
    whole = pq.ParquetFile.read

    def recorded(self, columns=None, **options):
        asked.append(columns)
        return whole(self, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", recorded)
    read_table(tmp_path / "t.parquet", columns=["y"])
    assert asked == [["y"]]


def test_an_array_of_an_npz_file_is_a_column_and_a_matrix_several(tmp_path):
    x, y = np.arange(6.0).reshape(3, 2), np.array([1, 0, 1])
    np.savez(tmp_path / "t.npz", x=x, y=y, name=np.array(["a", "b", "c"]), note=np.array(3))
    back = read_table(tmp_path / "t.npz")
    assert list(back.columns) == ["x_0", "x_1", "y", "name"]
    np.testing.assert_array_equal(back[["x_0", "x_1"]], x)
    np.testing.assert_array_equal(back["y"], y)
    assert list(back["name"]) == ["a", "b", "c"]
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz", ["x_1"])["x_1"], x[:, 1])


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


def test_a_stored_index_is_no_row_number(tmp_path):
    TABLE.iloc[::-1].to_parquet(tmp_path / "t.parquet")
    back = read_table(tmp_path / "t.parquet")
    assert list(back.index) == [0, 1, 2, 3, 4]
    assert list(back["y"]) == list(TABLE["y"][::-1])
    assert list(back.columns) == list(TABLE.columns)


def test_categories_decimals_and_integers_with_gaps(tmp_path):
    table = pa.table(
        {
            "c": pa.array(["u", "v", "u"]).dictionary_encode(),
            "d": pa.array([1, 2, 3]).cast(pa.decimal128(30, 2)),
            "i": pa.array([1, None, 3]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    back = read_table(tmp_path / "t.parquet")
    assert isinstance(back["c"].dtype, pd.CategoricalDtype)
    assert back["d"].dtype == np.float64
    assert back["i"].isna().tolist() == [False, True, False]


def test_labels_that_look_like_numbers_here_and_there_are_text(tmp_path):
    (tmp_path / "t.csv").write_text("code\n1A\n22\nB3\nC4\n")
    assert list(read_table(tmp_path / "t.csv")["code"]) == ["1A", "22", "B3", "C4"]


def test_a_byte_order_mark_and_a_missing_last_line_end_are_no_fault(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n3,4")
    assert list(read_table(tmp_path / "t.csv", ["a"])["a"]) == [1, 3]


def test_text_with_line_ends_and_a_column_of_row_numbers(tmp_path):
    (tmp_path / "t.csv").write_text(',a,b\n0,1,"two\nlines, with a comma"\n1,2.5,plain\n')
    back = read_table(tmp_path / "t.csv")
    assert list(back.columns) == ["a", "b"]
    assert list(back["a"]) == [1.0, 2.5]
    assert list(back["b"]) == ["two\nlines, with a comma", "plain"]


def test_a_column_that_is_whole_at_first_and_not_later(tmp_path):
    """Types are those of the whole file, not of its beginning."""
    rows = [f"{i},{i}" for i in range(300_000)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows, "0.5,x"]))
    back = read_table(tmp_path / "t.csv", columns=["a"])
    assert back["a"].iloc[-1] == 0.5
    assert "mixes numbers and text: 'x' at row 300,000" in error_of(tmp_path / "t.csv")


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


def test_an_open_quotation_at_the_end_of_a_file(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n1,"x"\n2,"y')
    assert "is cut short" in error_of(tmp_path / "t.csv")


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".npz"])
def test_a_file_of_another_format(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_text("a,b\n1,2\n3,4\n" * 10)
    assert "is not a" in error_of(path)


def test_what_is_not_csv(tmp_path):
    write(TABLE, tmp_path / "t.parquet").rename(tmp_path / "t.csv")
    assert "is not a CSV file" in error_of(tmp_path / "t.csv")
    (tmp_path / "u.csv").write_bytes(b"a,b\n1,\xff\xfe\n")
    assert "not text in UTF-8" in error_of(tmp_path / "u.csv")
    (tmp_path / "v.csv.gz").write_text("a,b\n1,2\n")
    assert "is not a gzip file" in error_of(tmp_path / "v.csv.gz")
    (tmp_path / "w.csv").write_text("a,b\n1,2\n3,4,5\n")
    assert "does not parse as CSV: Expected 2 columns, got 3: 3,4,5" in error_of(tmp_path / "w.csv")
    (tmp_path / "x.csv").write_text("a,b\n1,2,3\n4,5,6\n")
    assert "Expected 2 columns, got 3" in error_of(tmp_path / "x.csv")
    (tmp_path / "semicolons.csv").write_text("a;b\n1;2\n")
    assert "is not separated by commas" in error_of(tmp_path / "semicolons.csv")
    (tmp_path / "y.csv").write_text("\n\n")
    assert "no column names" in error_of(tmp_path / "y.csv")
    with gzip.open(tmp_path / "z.csv.gz", "wt") as file:
        file.write("a,b\n")
    assert "has columns but no rows" in error_of(tmp_path / "z.csv.gz")


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


def test_numbers_and_text_in_a_column(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\nunknown,4\n4,5\n")
    message = error_of(tmp_path / "t.csv")
    assert "column 'a'" in message
    assert "mixes numbers and text: 'unknown' at row 2 (1 such rows)" in message
    assert list(read_table(tmp_path / "t.csv", columns=["b"])["b"]) == [2, 3, 4, 5]


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


def test_arrays_of_an_npz_file_that_do_not_fit(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.zeros(3), b=np.zeros(4))
    assert "differ in their number of rows: {'a': 3, 'b': 4}" in error_of(tmp_path / "t.npz")
    assert len(read_table(tmp_path / "t.npz", ["b"])) == 4
    np.savez(tmp_path / "u.npz", a=np.array(["x", None], object))
    assert "holds Python objects in 'a'" in error_of(tmp_path / "u.npz")
    np.savez(tmp_path / "v.npz", x=np.zeros((3, 1)), x_0=np.zeros(3))
    assert "more than one column of the name 'x_0'" in error_of(tmp_path / "v.npz")


def test_columns_must_be_a_list(tmp_path):
    assert "must be a list of names" in error_of(tmp_path, columns="hour")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = write(TABLE, tmp_path / "t.csv")
    path.chmod(0)
    assert "permission denied" in error_of(path)
