"""points.parquet of a sweep: a row for each run, with its parameters and every figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.analysis.model_files import writing
from experiments.config.decision_basis import DecisionBasis, basis_text
from experiments.report.data_dictionary import UNITS
from experiments.studies.sweeps.result import SweptParameter
from experiments.studies.sweeps.sweep_file import PlainValue
from experiments.whole_files import whole_file
from parsync.metrics.quantity import Quantity
from parsync.metrics.summary import ScopeFigures

POINTS = "points.parquet"


@dataclass(frozen=True, slots=True)
class Row:
    """A run.

    Attributes:
        combination: Its number.
        values: Of the parameters, plain.
        digest, workload: The digests of its event log and of its workload.
    """

    combination: int
    values: Sequence[PlainValue]
    arm: str
    basis: DecisionBasis
    seed: int
    digest: str
    workload: str
    figures: ScopeFigures


@dataclass(frozen=True, slots=True)
class Column:
    """A column of points.parquet."""

    name: str
    unit: str
    meaning: str


def columns(parameters: Sequence[SweptParameter], quantities: Sequence[Quantity]) -> list[Column]:
    """The data dictionary of points.parquet: its columns in their order."""
    return [
        Column("combination", "number", "The combination of values, from 0."),
        *(
            Column(one.path, "as configured", "A parameter of the sweep; tables as TOML.")
            for one in parameters
        ),
        Column("arm", "text", "The name of the arm."),
        Column("clock_class", "text", "What the arm's decision times rest on."),
        Column("seed", "number", "The seed of the workload and of the arm."),
        Column("digest", "text", "The digest of the run's event log."),
        Column("workload_digest", "text", "The digest of the run's workload."),
        Column(
            "lower_bounds",
            "text",
            "The figures of this row that are lower bounds, as they leave out unplaced tasks; "
            "separated by commas.",
        ),
        *(
            Column(one.key, UNITS[one.unit.value], f"{one.label}. {one.description}")
            for one in quantities
        ),
    ]


def write_points(
    path: Path,
    parameters: Sequence[SweptParameter],
    quantities: Sequence[Quantity],
    rows: Sequence[Row],
) -> None:
    """Write the table. Every field has the metadata `unit` and `meaning`. Raises AgoraError if the
    file cannot be written."""
    arrays: list[Any] = [pa.array([row.combination for row in rows], pa.int64())]
    for place, parameter in enumerate(parameters):
        values = [row.values[place] for row in rows]
        arrays.append(_parameter_array(values, parameter.values))
    texts: list[list[str]] = [
        [row.arm for row in rows],
        [basis_text(row.basis) for row in rows],
    ]
    arrays += [pa.array(column, pa.string()) for column in texts]
    arrays.append(pa.array([row.seed for row in rows], pa.uint64()))
    arrays += [
        pa.array([row.digest for row in rows], pa.string()),
        pa.array([row.workload for row in rows], pa.string()),
        pa.array([",".join(sorted(row.figures.at_least)) for row in rows], pa.string()),
    ]
    arrays += [
        pa.array([_number(row.figures.value(one.key)) for row in rows], pa.float64())
        for one in quantities
    ]
    described = columns(parameters, quantities)
    fields = [
        pa.field(column.name, array.type, True, {"unit": column.unit, "meaning": column.meaning})
        for column, array in zip(described, arrays, strict=True)
    ]
    meanings: Mapping[str, Any] = {
        column.name: {"unit": column.unit, "meaning": column.meaning} for column in described
    }
    metadata = {
        "rows": "a run of one arm at one combination under one seed",
        "columns": json.dumps(meanings, ensure_ascii=False),
    }
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata))
    with writing(path), whole_file(path) as unfinished:
        pq.write_table(table, unfinished)


def _parameter_array(values: Sequence[Any], every: Sequence[Any]) -> Any:
    """A column of the narrowest type that all values of the parameter have."""
    if all(isinstance(value, bool) for value in every):
        return pa.array(values, pa.bool_())
    if any(isinstance(value, bool | str) for value in every):
        return pa.array([str(value) for value in values], pa.string())
    if all(isinstance(value, int) for value in every):
        return pa.array(values, pa.int64())
    return pa.array([float(value) for value in values], pa.float64())


def _number(value: float | int | None) -> float | None:
    return None if value is None else float(value)
