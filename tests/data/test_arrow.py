"""Parquet, Arrow and Feather."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from coremcmc import read_table
from tests.data.table_files import TABLE, write


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
