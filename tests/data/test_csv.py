"""CSV: what is text, what is a number, and what is cut short."""

import gzip

from coremcmc import read_table
from tests.data.table_files import TABLE, error_of, write


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


def test_an_open_quotation_at_the_end_of_a_file(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n1,"x"\n2,"y')
    assert "is cut short" in error_of(tmp_path / "t.csv")


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


def test_numbers_and_text_in_a_column(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\nunknown,4\n4,5\n")
    message = error_of(tmp_path / "t.csv")
    assert "column 'a'" in message
    assert "mixes numbers and text: 'unknown' at row 2 (1 such rows)" in message
    assert list(read_table(tmp_path / "t.csv", columns=["b"])["b"]) == [2, 3, 4, 5]
