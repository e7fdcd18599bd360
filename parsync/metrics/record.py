"""The effect by which a participant hands out measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Record:
    """One batch of measurements for the accumulators and the Parquet files: equal-length columns by
    name (see tables.py)."""

    table: str
    columns: dict[str, Any]
