"""The Arrow schema of a table, with the meaning of its columns.

The metadata of a field are `meaning`, `unit` and, where values are codes, `codes`: a JSON object
that tells what each stands for. Readers that show the file's own metadata only (DuckDB:
`parquet_kv_metadata`) find the same there, as a JSON object by column under `columns`, and what a
row is under `rows`.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from parsync.schema import Column, TableSchema


def arrow_schema(table: TableSchema) -> Any:
    """The schema of a table's files. No column is nullable: no value is ever missing, and what
    would mark the missing ones took a quarter of the writing time."""
    described = {name: _described(column) for name, column in table.columns.items()}
    fields = [
        pa.field(
            name,
            pa.from_numpy_dtype(column.dtype),
            False,
            {key: value if type(value) is str else _json(value) for key, value in metadata.items()},
        )
        for (name, column), metadata in zip(table.columns.items(), described.values(), strict=True)
    ]
    return pa.schema(fields, {"rows": table.rows, "columns": _json(described)})


def _described(column: Column) -> dict[str, Any]:
    metadata: dict[str, Any] = {"meaning": column.meaning, "unit": column.unit}
    if column.codes:
        metadata["codes"] = {str(code): name for code, name in column.codes.items()}
    return metadata


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
