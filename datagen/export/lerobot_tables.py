"""The parquet files of a LeRobot data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from predimem.core.files import AtomicWrite


def write_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """One row per step. columns: name -> values [T], vectors [T, D], or an array of Arrow's."""
    import pyarrow

    arrays = {}
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            flat = pyarrow.array(np.ascontiguousarray(values).reshape(-1))
            arrays[name] = pyarrow.FixedSizeListArray.from_arrays(flat, values.shape[1]) if values.ndim == 2 else flat
        else:
            arrays[name] = values
    _write(path, pyarrow.table(arrays))


def read_column(path: Path, name: str) -> np.ndarray:
    """float64 [T, D], D = 1 for plain values: a column that `write_columns` wrote."""
    import pyarrow.parquet

    column = pyarrow.parquet.ParquetFile(path).read(columns=[name])[name].combine_chunks()
    values = column.flatten() if pyarrow.types.is_fixed_size_list(column.type) else column
    return values.to_numpy(zero_copy_only=False).astype(np.float64).reshape(len(column), -1)


def column_names(path: Path) -> list[str]:
    import pyarrow.parquet

    return pyarrow.parquet.read_schema(path).names


def write_names(path: Path, kind: str, names: Mapping[str, int]) -> None:
    """`names` as the table that pandas reads with the names as its index: so LeRobot looks them up."""
    import pandas
    import pyarrow

    index = pandas.Index(list(names), name=kind, dtype=object)
    frame = pandas.DataFrame({f"{kind}_index": np.array(list(names.values()), np.int64)}, index=index)
    _write(path, pyarrow.Table.from_pandas(frame))


def write_row(path: Path, row: Mapping[str, Any]) -> None:
    """A table of one row."""
    import pyarrow

    _write(path, pyarrow.Table.from_pylist([dict(row)]))


def read_row(path: Path) -> dict[str, Any] | None:
    """What `write_row` wrote; None where there is no file."""
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(path).read().to_pylist()[0] if path.exists() else None


def _write(path: Path, table: Any) -> None:
    import pyarrow.parquet

    with AtomicWrite(path) as partial:
        pyarrow.parquet.write_table(table, partial)
