"""The native fold of the built-in metrics against the same sums in numpy: every array that a metric
keeps is equal, whatever the batches are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from parsync.metrics import registry
from parsync.metrics.kinds.load import ThroughputMetric
from parsync.metrics.metric import NativeMetric, RecordBatch, TableFold, TimeSeries
from parsync.metrics.run_frame import Group, RunFrame, TaskPreferences
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.tables import SCHEMAS
from parsync.workload.workload import NOT_IN_GANG, TaskGangs
from schedulers.interface import ChangeKind
from shared_state.errors import AgoraError
from tests.fixtures import numpy_fold
from tests.unit.record_factory import Phase

AGENTS, PARTITIONS, TASKS = 4, 3, 60
END_US = 3_000_000
PHASES = ([(0, END_US)], [(0, 900_000), (900_000, 2_000_000), (2_400_000, END_US)])
# of the tables that every run has; what a protocol brings is tested with the protocol
FOLDED = [
    kind
    for kind in registry.metrics()
    if issubclass(kind, NativeMetric) and kind.reads.keys() <= SCHEMAS.keys()
]
TABLES = sorted({table for kind in FOLDED for table in kind.reads})
JOBS = {"without a gap": np.arange(TASKS) // 4, "some of them": np.arange(TASKS) // 4 * 3 + 1}
JOBS["some of them"][:4] = -1  # they ran before the run began
FINISHED = int(ChangeKind.FINISHED)


AN_END = {
    "task": [1],
    "machine": [0],
    "agent": [2],
    "end_us": [5],
    "change": [FINISHED],
    "due": [0],
}

Arrays = dict[str, NDArray[Any]]


def made_up_rows(random: np.random.Generator, table: str, rows: int, jobs: NDArray[Any]) -> Arrays:
    """Rows with anything that their columns may have, within what the run knows of."""
    columns: Arrays = {}
    repeats = random.random(rows) < 0.6  # rows that follow each other are often of one agent
    same = np.maximum.accumulate(np.where(repeats, 0, np.arange(rows)))
    for name, column in SCHEMAS[table].columns.items():
        limit = {"task": TASKS, "agent": AGENTS, "partition": PARTITIONS}.get(name, 6)
        if name == "job":
            job = random.choice(jobs[jobs >= 0], rows)
            values = job if table == "submissions" else np.where(random.random(rows) < 0.1, 0, job)
        elif column.codes and column.unit == "code":
            values = random.choice([code for code in column.codes if code >= 0], rows)
        elif name.endswith("_us"):
            values = random.integers(0, END_US + 500_000, rows) * (random.random(rows) < 0.95)
            unknown = -1 in column.codes and name != "commit_us"
            values = np.where(unknown & (random.random(rows) < 0.1), -1, values)
        else:
            lowest = -1 if name == "rival" or (name, table) == ("agent", "ends") else 0
            values = random.integers(lowest, limit, rows)
        columns[name] = (values[same] if name in ("agent", "submit_us") else values).astype(
            column.dtype
        )
    return columns


def arrays_of(kept: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Everything that a metric keeps, by a path to it."""
    if isinstance(kept, np.ndarray | int | float):
        yield name, kept
    elif isinstance(kept, TimeSeries):
        filled = np.flatnonzero(kept.counts.any(axis=(0, 1)))
        yield name, kept.counts[:, :, : filled[-1] + 1 if len(filled) else 0]
    elif isinstance(kept, dict):
        for key, value in kept.items():
            yield from arrays_of(value, f"{name}[{key!r}]")
    elif isinstance(kept, list | tuple):
        yield name, sorted(kept)
    elif hasattr(kept, "__dict__") and not isinstance(kept, RunFrame):
        for key, value in vars(kept).items():
            yield from arrays_of(value, f"{name}.{key}")


def frame_of(phases: list[tuple[int, int]], jobs: NDArray[Any], settle_us: int) -> dict[str, Any]:
    submit_us = np.arange(TASKS) * 1000
    gang = np.where(np.arange(TASKS) % 8 >= 4, np.arange(TASKS) // 8, NOT_IN_GANG).astype(np.int32)
    first = np.arange(4, TASKS, 8)
    return {
        "phases": [Phase(start_us, end_us, 90) for start_us, end_us in phases],
        "agents": AGENTS,
        "partitions": PARTITIONS,
        "settle_us": settle_us,
        "groups": [Group("two", (0, 2)), Group("others", (1, 3))],
        "job_of": jobs,
        "services": np.arange(TASKS) % 12 >= 8,
        "preferences": TaskPreferences((np.arange(TASKS) % 3).astype(np.int32), submit_us),
        "flows": True,
        "priority": (np.arange(TASKS) % 8 == 0).astype(np.int32),
        "gangs": TaskGangs(gang, np.full(len(first), 4), submit_us[first], jobs[first]),
    }


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    lengths=st.lists(st.sampled_from([0, 1, 3, 40, 511, 512, 513, 1500]), min_size=1, max_size=4),
    phases=st.sampled_from(PHASES),
    jobs=st.sampled_from(sorted(JOBS)),
    settle_us=st.sampled_from([0, 100_000]),
)
def test_everything_kept_is_equal(
    seed: int, lengths: list[int], phases: list[tuple[int, int]], jobs: str, settle_us: int
) -> None:
    random = np.random.default_rng(seed)
    frame = frame_of(phases, JOBS[jobs], settle_us)
    found = RunMetrics(RunFrame(**frame), kinds=FOLDED)
    expected = {kind.kind: kind(RunFrame(**frame)) for kind in FOLDED}
    for length in lengths:
        for table in TABLES:
            rows = made_up_rows(random, table, length, JOBS[jobs])
            found.add(table, rows)
            batch = RecordBatch(table, rows, found.run)
            for metric in expected.values():
                if length and table in metric.reads:
                    numpy_fold.fold(metric, batch)
    found.flush()
    for kind, metric in expected.items():
        theirs = dict(arrays_of(metric, kind))
        ours = dict(arrays_of(found.metrics[kind], kind))
        assert ours.keys() == theirs.keys()
        for name, kept in theirs.items():
            assert np.array_equal(ours[name], kept), name


def test_rows_may_come_after_a_merge_that_made_a_series_longer() -> None:
    """Its counts are in another array then, and that of others is not to be written to."""
    parts = [
        RunMetrics(RunFrame(**frame_of(PHASES[0], JOBS["without a gap"], 0))) for _ in range(2)
    ]
    series = [part.get(ThroughputMetric).timeline for part in parts]
    made_at_us = [0, series[0].bucket_us * 1000]
    for part, at_us in zip(parts, made_at_us, strict=True):
        part.add("tasks", a_commit(at_us))
    before = series[0].counts
    parts[0].merge(parts[1])
    parts[0].add("tasks", a_commit(0))
    assert series[0].counts[0, 0, [0, 1000]].tolist() == [2, 1]
    assert before.sum() == 1


def a_commit(at_us: int) -> dict[str, list[int]]:
    row = {column: [0] for column in SCHEMAS["tasks"].columns}
    return row | {"first": [1], "commit_us": [at_us], "start_us": [at_us]}


def ends(**changes: Any) -> dict[str, Any]:
    return {**AN_END, **changes}


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (ends(agent=[AGENTS]), "agent: expected 0 to 3, got 4"),
        (ends(task=[TASKS]), f"task: expected 0 to {TASKS - 1}, got {TASKS}"),
        (ends(task=[1, 2]), "its columns differ in length: task has 2, machine has 1"),
        (ends(agent=np.array([0.5])), "expected an array of integers with one value per row"),
        (ends(agent=["a"]), "'str' object cannot be interpreted as an integer"),
        (ends(agent=np.zeros((1, 1), np.int64)), "expected an array of integers with one value"),
        ({name: AN_END[name] for name in list(AN_END)[:-1]}, "a batch of rows has no column 'due'"),
    ],
)
def test_rows_that_are_not_of_the_table_are_refused(columns: dict[str, Any], says: str) -> None:
    metrics = RunMetrics(RunFrame(**frame_of(PHASES[0], JOBS["without a gap"], 0)))
    with pytest.raises(AgoraError) as refused:
        metrics.add("ends", columns)
    assert str(refused.value).startswith("table 'ends': ") and says in str(refused.value)
    assert metrics.last_us == 0 and not metrics.count["ended_finished"].any()
    metrics.add("ends", AN_END)
    assert metrics.count["ended_finished"].sum() == 1


@pytest.mark.parametrize("how", ["list", "strided", "uint8", "int64"])
def test_columns_may_have_any_layout(how: str) -> None:
    fold = TableFold("ends", SCHEMAS["ends"].dtypes, RunFrame([Phase(0, 9, 0)], 5, partitions=1))
    sums = np.zeros(5, np.int64)
    fold.rows.add(sums, (fold.rows["agent"],), fold.rows["end_us"])
    numbers = [3, 0, 3, 2]
    column: Any = {
        "list": numbers,
        "strided": np.repeat(np.array(numbers, np.int32), 2)[::2],
        "uint8": np.array(numbers, np.uint8),
        "int64": np.array(numbers),
    }[how]
    fold.fold(dict.fromkeys(SCHEMAS["ends"].columns, column))
    assert sums.tolist() == [0, 0, 2, 6, 0]
