"""The data dictionary of a run: what every figure of summary.json and every column of the Parquet
files means, as their declarations say it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from experiments.analysis.summary_model import ArmSummary, ComparedArms
from parsync.metrics.tables import SCHEMAS, Tables
from parsync.protocols.registry import tables_of
from parsync.schema import TableSchema
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class FigureEntry:
    """A figure of summary.json.

    Attributes:
        direction: Which direction is better, "" if neither.
    """

    key: str
    label: str
    unit: str
    direction: str
    metric: str
    description: str


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """A column of a Parquet file.

    Attributes:
        codes: What its values stand for, "" if they are numbers.
    """

    name: str
    unit: str
    meaning: str
    codes: str


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A Parquet file of an arm.

    Attributes:
        rows: What a row is.
    """

    name: str
    rows: str
    columns: list[ColumnEntry]


@dataclass(frozen=True, slots=True)
class DataDictionary:
    """Everything that a run directory's numbers mean."""

    figures: list[FigureEntry]
    tables: list[TableEntry]


UNITS = {"duration": "µs", "share": "0 to 1", "count": "count", "rate": "1/s", "plain": "number"}


def data_dictionary(summary: ComparedArms) -> DataDictionary:
    """The dictionary of a run: the quantities that its summary declares, and all tables of
    measurements."""
    figures = [
        FigureEntry(
            key=quantity.key,
            label=quantity.label,
            unit=UNITS[quantity.unit.value],
            direction="" if quantity.better.value == "neither" else quantity.better.value,
            metric=quantity.metric,
            description=quantity.description,
        )
        for quantity in summary.quantities
    ]
    tables: dict[str, TableSchema] = {}
    for arm in summary.arms:
        tables |= arm_tables(arm)
    return DataDictionary(figures, [_table(name, schema) for name, schema in tables.items()])


def arm_tables(arm: ArmSummary) -> Tables:
    """The tables of every run, and those of an arm's protocols. A protocol that is not installed
    any more is left out; its Parquet files describe themselves."""
    tables: dict[str, TableSchema] = dict(SCHEMAS)
    for group in arm.mix:
        choice = group.get("protocol")
        kind = choice.get("kind") if isinstance(choice, dict) else None
        if isinstance(kind, str):
            with contextlib.suppress(AgoraError):
                tables |= tables_of([kind])
    return tables


def _table(name: str, schema: TableSchema) -> TableEntry:
    return TableEntry(
        name,
        schema.rows,
        [
            ColumnEntry(column, described.unit, described.meaning, _codes(described.codes))
            for column, described in schema.columns.items()
        ],
    )


def _codes(codes: Mapping[int, str]) -> str:
    return ", ".join(f"{code}: {meaning}" for code, meaning in codes.items())
