"""Arrow tables out of records and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from shared_state.errors import AgoraError


def table_of(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> Any:
    """A table with these columns, in this order, of Arrow types by name; None is a null."""
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}
    )


def as_data_frame(table: Any) -> Any:
    """An Arrow table as a pandas data frame. Raises AgoraError if pandas is not installed: Agora
    does not depend on it."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise AgoraError(
            "pandas is not installed: install it (`pip install pandas`), or use the Arrow table"
        ) from error
    return table.to_pandas()
