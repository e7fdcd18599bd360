"""The files of a frontier: frontier.json, and a table with a row for each run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from experiments.frontiers.description import setting_text
from experiments.frontiers.grid import Grid
from experiments.frontiers.model import FrontierSummary
from experiments.model_files import read_model, write_model, writing
from experiments.summary_model import SeedFigures
from experiments.whole_files import whole_file
from parsync.metrics.quantity import quantities_of
from parsync.metrics.summary import ScopeFigures

FRONTIER = "frontier.json"
POINTS = "points.parquet"
POINTS_OF_RUN = "frontier_points.parquet"  # in a run's directory

# What a row says besides the figures: (name, type, meaning).
_COLUMNS: tuple[tuple[str, Any, str], ...] = (
    ("architecture", pa.string(), "its name"),
    ("arm", pa.string(), "the arm of the configuration whose knob it turns"),
    ("knob", pa.string(), "the path of the setting within the arm's groups; null: it has none"),
    ("value", pa.float64(), "of the knob, if it is a number"),
    ("value_text", pa.string(), "of the knob, for people"),
    ("clock_class", pa.string(), "equal_capacity, own_speed or mixed; only equal ones are ranked"),
    ("load_percent", pa.int64(), "the constant load; null: the workload as it is"),
    ("gap_s", pa.float64(), "the synchronisation gap G in seconds; null: the arm's own"),
    ("seed", pa.int64(), "of the workload and of all random draws"),
    ("digest", pa.string(), "of the event log of the run"),
    ("workload_digest", pa.string(), "of the workload of the seed"),
    ("transient", pa.bool_(), "whether backlog or utilisation of some load phase drifted"),
    ("bounds", pa.list_(pa.string()), "the figures of this row that are lower bounds"),
)


def write_frontier(path: Path, summary: FrontierSummary) -> None:
    """Write frontier.json, whole or not at all. Raises AgoraError if it cannot be written."""
    write_model(path, summary)


def read_frontier(path: Path) -> FrontierSummary:
    """Read frontier.json. Raises AgoraError naming the file and what is wrong with it."""
    return read_model(path, FrontierSummary)


def write_points(path: Path, grid: Grid, results: Mapping[tuple[int, int], SeedFigures]) -> None:
    """Write a table with a row for each run: what was run, and every figure. Each column's metadata
    has its meaning and unit. Raises AgoraError if it cannot be written."""
    rows = [_row(grid, place, seed, results[place, seed]) for place, seed in sorted(results)]
    known = quantities_of(ScopeFigures)
    fields = [pa.field(name, kind, metadata={"description": text}) for name, kind, text in _COLUMNS]
    fields += [
        pa.field(
            one.key,
            pa.float64(),
            metadata={"description": one.description, "unit": one.unit.value, "label": one.label},
        )
        for one in known
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema(fields))
    with writing(path), whole_file(path) as unfinished:
        parquet.write_table(table, unfinished)


def _row(grid: Grid, place: int, seed: int, run: SeedFigures) -> dict[str, Any]:
    spot = grid.spots[place]
    architecture = grid.architectures[spot.architecture]
    condition = grid.conditions[spot.condition]
    value = spot.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    figures = {
        one.key: run.overall.value(one.key)
        for one in quantities_of(ScopeFigures)
        if run.overall.value(one.key) is not None
    }
    return {
        "architecture": architecture.title,
        "arm": architecture.arm,
        "knob": architecture.knob,
        "value": float(value) if is_number and value is not None else None,
        "value_text": setting_text(architecture.knob, value),
        "clock_class": grid.bases[spot.architecture].kind.value,
        "load_percent": condition.load_percent,
        "gap_s": condition.gap_s,
        "seed": seed,
        "digest": run.digest,
        "workload_digest": run.workload,
        "transient": any(phase.transient for phase in run.phases),
        "bounds": sorted(run.overall.at_least),
        **figures,
    }
