"""A table, files of every format that hold it, and the message of a bad one."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from coremcmc.data.tables import read_table

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
