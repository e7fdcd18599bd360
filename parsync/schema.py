"""How a table of a run directory is described: what its rows are, and each column with its dtype,
unit, meaning and codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        dtype: Its numpy dtype.
        unit: What one of its numbers counts ("us", "tasks", "permille", ...; "id" names something,
            "code" stands for one of `codes`).
        codes: Values that stand for something else than a number, and for what.
        added: Files of earlier versions lack it. Their rows have 0 there.
    """

    dtype: str
    unit: str
    meaning: str
    codes: Mapping[int, str] = field(default_factory=dict)
    added: bool = False


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: what one of its rows is, and its columns in order.

    measured: its values are measured by the clock, so a replay does not repeat them.
    """

    rows: str
    columns: Mapping[str, Column]
    measured: bool = False

    @property
    def dtypes(self) -> dict[str, str]:
        """numpy's name of each column's dtype."""
        return {name: column.dtype for name, column in self.columns.items()}

    @property
    def added(self) -> frozenset[str]:
        """The columns that files of earlier versions lack."""
        return frozenset(name for name, column in self.columns.items() if column.added)


def names_of(kind: type[IntEnum]) -> dict[int, str]:
    """The codes of an enum: its members' names in lower case, by value."""
    return {int(member): member.name.lower() for member in kind}


def flag(meaning: str) -> Column:
    """A column of ones and zeros."""
    return Column("int8", "code", meaning, {0: "no", 1: "yes"})
