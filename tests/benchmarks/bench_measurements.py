"""What becomes of the measurements of a run at paper scale (bench_virtual.py, 8 s, 300,000 tasks):
CPU time to add them up for all metrics, and to write them as Parquet.

Peers: the same sums in numpy, 16,000 rows at a time, but for the live line; Parquet with plain
columns that may have missing values, and zstd.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.campaign.running import make_metrics
from parsync.metrics.metric import RecordBatch
from parsync.metrics.record import Record, RecordBuffer
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.records import RecordSink
from parsync.runtime.virtual.run import run_virtual
from tests.benchmarks.bench_virtual import SECONDS, Case
from tests.fixtures import numpy_fold

AGORA, NUMPY, ZSTD = "agora", "numpy, metric by metric", "plain columns and zstd"
FOLD_RATIO_TARGET, PARQUET_RATIO_TARGET = 4, 2
HELD_ROWS, ROW_GROUP, HELD_BATCHES = 1 << 14, 1 << 16, 1 << 13
ROUNDS = 7


@pytest.fixture(scope="module")
def case() -> Case:
    return Case.of("ParSync latency-first", SECONDS)


@pytest.fixture(scope="module")
def records(case: Case) -> list[Record]:
    found: list[Record] = []
    drain_us = round(case.config.drain_s * 1e6)
    run_virtual(case.spec(), case.workload, drain_us, found.append, lambda _: None)
    return found


def add_up(metrics: RunMetrics, records: list[Record], way: str) -> int:
    """How many tasks were committed."""
    if way == AGORA:
        for record in records:
            metrics.add(record.table, record.columns)
        metrics.flush()
        return int(metrics.count["committed"].sum())
    held = RecordBuffer(HELD_ROWS, HELD_BATCHES)

    def fold(table: str, rows: Any) -> None:
        batch = RecordBatch(table, rows, metrics.run)
        for metric in metrics.metrics.values():
            if table in metric.reads and (metric.kind != "placement_values" or metric.run.values):
                numpy_fold.fold(metric, batch)

    for record in records:
        rows = held.add(record.table, record.columns)
        if rows is not None:
            fold(record.table, rows)
    for table, rows in held.drain():
        fold(table, rows)
    return int(metrics.count["committed"].sum())


@pytest.mark.benchmark(group="measurements of a run: sums of all metrics", timer=time.process_time)
@pytest.mark.parametrize("way", [AGORA, NUMPY])
def test_fold(benchmark: Any, case: Case, records: list[Record], way: str) -> None:
    def empty() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (make_metrics(case.config, case.arm, case.workload), records, way), {}

    committed = benchmark.pedantic(add_up, setup=empty, rounds=ROUNDS)
    assert committed == len(case.workload.tasks)
    benchmark.extra_info.update(unit="ms", label=way)
    if way == AGORA:
        benchmark.extra_info.update(ratio_target=FOLD_RATIO_TARGET)


def write_as_usual(folder: Path, records: list[Record]) -> None:
    held, writers = RecordBuffer(ROW_GROUP, HELD_BATCHES), {}

    def write(table: str, rows: Any) -> None:
        arrow = pa.table(rows)
        if table not in writers:
            path = folder / f"{table}.parquet"
            writers[table] = pq.ParquetWriter(
                path, arrow.schema, compression="zstd", compression_level=1, use_dictionary=False
            )
        writers[table].write_table(arrow, row_group_size=ROW_GROUP)

    for record in records:
        rows = held.add(record.table, record.columns)
        if rows is not None:
            write(record.table, rows)
    for table, rows in held.drain():
        write(table, rows)
    for writer in writers.values():
        writer.close()


def write_ours(folder: Path, records: list[Record]) -> None:
    with RecordSink(folder) as sink:
        for record in records:
            sink.add(record.table, record.columns)


@pytest.mark.benchmark(group="measurements of a run: Parquet", timer=time.process_time)
@pytest.mark.parametrize("way", [AGORA, ZSTD])
def test_parquet(benchmark: Any, records: list[Record], way: str, tmp_path: Path) -> None:
    write: Callable[[Path, list[Record]], None] = write_ours if way == AGORA else write_as_usual
    folders = iter(range(100))

    def run() -> Path:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        write(folder, records)
        return folder

    folder = benchmark.pedantic(run, rounds=ROUNDS)
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    benchmark.extra_info.update(unit="ms", label=way, note=f"{megabytes:.1f} MB")
    if way == AGORA:
        benchmark.extra_info.update(ratio_target=PARQUET_RATIO_TARGET)
