"""Native code takes arrays of any layout: slices, reversed and read-only ones, and single values
that numpy.broadcast_to repeats."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.campaign.running import run_arm_virtual
from experiments.config.run_config import validated
from experiments.interruption import Interruption
from flowsolver import FlowNetwork, IncrementalSolver, solve
from parsync.core._native import WorkerPool
from parsync.core.codec import Codec
from parsync.core.events import CommitRequest, TasksCancelled, TasksStarted
from parsync.metrics._native import AgentLog
from parsync.metrics.record import Measurements
from parsync.runtime.workload_files import read_workload, write_workload
from parsync.workload.checks import validate
from parsync.workload.workload import (
    InitialPlacement,
    MachineEvents,
    Phase,
    QuotaMembership,
    Workload,
)
from schedulers._native import (
    TaskColumns,
    may_be_placed,
    placement_cost,
    update_implied_prices,
)
from schedulers.objective import native_catalog, native_columns
from shared_state._native import pack_columns
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.random import hash64
from shared_state.tasks import NO_GANG, CellSpec, PreferenceCatalog, TaskBatch
from shared_state.transaction import ConflictCheck, PartitionDelta, Transaction
from shared_state.view import ClusterView

Array = NDArray[Any]


def spaced(values: Array) -> Array:
    return np.repeat(values, 2, axis=0)[::2]


def backwards(values: Array) -> Array:
    return values[::-1].copy()[::-1]


def by_column(values: Array) -> Array:
    return np.asfortranarray(values)


def read_only(values: Array) -> Array:
    frozen = values.copy()
    frozen.setflags(write=False)
    return frozen


def repeated(values: Array) -> Array:
    """Their first entry, as often as there are entries: tests use it where all are alike."""
    return np.broadcast_to(values[:1], values.shape)


LAYOUTS = [spaced, backwards, by_column, read_only, repeated]
SPEC = CellSpec(
    ("cpu", "gpu"),
    np.full((6, 2), 4, np.int64),
    np.zeros(6, np.int32),
    np.zeros(6, np.int64),
    np.full(2, 1000, np.int64),
)
NONE64, NONE32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
CATALOG = PreferenceCatalog(
    *(np.array([0, 0, 2]), np.array([1, 4], np.int32), np.array([3, 3])),
    *(np.zeros(3, np.int64), NONE32, NONE64),
    *(np.array([0, 9]), np.array([20, 20])),
)
ONE_MACHINE = np.zeros(3, np.int32)
ONES = np.ones((3, 2), np.int64)
SAME = np.zeros(3, np.int64)
IDS = np.arange(3, dtype=np.int64)


def alike(result: Any, other: Any) -> None:
    if dataclasses.is_dataclass(result):
        for field in dataclasses.fields(result):
            alike(getattr(result, field.name), getattr(other, field.name))
    elif isinstance(result, np.ndarray):
        assert np.array_equal(result, other)
    elif isinstance(result, list | tuple):
        assert len(result) == len(other)
        for one, two in zip(result, other, strict=True):
            alike(one, two)
    else:
        assert result == other


def use_cell(of: Callable[[Array], Array]) -> Any:
    spec = dataclasses.replace(SPEC, capacity=of(SPEC.capacity), slot_score=of(SPEC.slot_score))
    cell = Cell(spec, Partitioning.by_topology(SPEC, 2), of(np.zeros(9, np.int32)))
    loaded = cell.load(IDS + 3, of(ONE_MACHINE), of(ONES), of(ONE_MACHINE))
    transaction = Transaction(
        scheduler=1,
        sequence=1,
        task=IDS,
        machine=of(ONE_MACHINE),
        request=of(ONES),
        synced_us=of(SAME),
        conflict_check=ConflictCheck.SEQUENCE_NUMBER,
        gang=of(np.full(3, 7, np.int64)),
        seqnum=of(np.full(3, cell.seqnum[0], np.uint32)),
        evict=of(loaded[:1]),
    )
    decided = cell.commit(transaction, 5)
    ended = cell.release(of(loaded[1:2]), of(np.zeros(1, np.int32)), 6)
    lost = cell.set_machines(of(np.ones(1, np.int32)), of(np.zeros(1, np.bool_)), 7)
    return [decided, ended, lost, cell.describe(of(loaded[2:])), cell.delta_since(0, 0, 9, True)]


def use_view(of: Callable[[Array], Array]) -> Any:
    view = ClusterView(SPEC, Partitioning.by_topology(SPEC, 1), with_seqnum=True)
    rows = np.arange(6, dtype=np.uint16)
    used, up = np.ones((6, 2), np.int8), np.ones(6, np.bool_)
    delta = PartitionDelta(0, 0, 1, 3, rows, of(used), of(up), of(np.zeros(6, np.uint32)))
    view.apply(delta)
    first = view.first_oversubscribed(of(ONE_MACHINE), of(ONES), of(ONE_MACHINE), of(ONES))
    ticket = view.claim(of(ONE_MACHINE), of(ONES))
    taken = view.free.copy()
    view.settle(ticket, of(np.zeros(3, np.int8)), of(SAME + 2))
    view.released(of(ONE_MACHINE), of(ONES), of(SAME + 2))
    return [first, taken, view.free.copy(), view.seqnum.copy(), view.synced_at(of(ONE_MACHINE))]


def use_placing(of: Callable[[Array], Array]) -> Any:
    catalog = native_catalog(CATALOG, dataclasses.replace(SPEC, rack=of(SPEC.rack)))
    table = TaskColumns(of(ONES), of(ONE_MACHINE), of(np.full(3, NO_GANG, np.int64)))
    view = ClusterView(SPEC, Partitioning.by_topology(SPEC, 1))
    rows, used, up = np.arange(6, dtype=np.uint16), np.zeros((6, 2), np.int8), np.ones(6, np.bool_)
    view.apply(PartitionDelta(0, 0, 1, 3, rows, used, up, None))
    columns = [getattr(CATALOG, field.name) for field in dataclasses.fields(CATALOG)[:8]]
    cost = placement_cost(*columns, of(SPEC.rack), of(ONE_MACHINE + 1), of(ONE_MACHINE + 4))
    may = may_be_placed(view, catalog, of(ONES), of(ONE_MACHINE), of(np.zeros(3, np.bool_)))
    return [table.columns_of(of(IDS[:1])), cost, may]


def use_measurements(of: Callable[[Array], Array]) -> Any:
    columns = native_columns(CATALOG, SPEC)
    pool = WorkerPool(10, of(SAME + 50), of(ONE_MACHINE), columns, 700, [], [])
    pool.handle(0, TasksStarted(0, IDS, IDS + 5, of(ONE_MACHINE), of(ONE_MACHINE)))
    pool.execute(TasksCancelled(of(IDS[1:2] + 5)))
    records = Measurements()
    records.add("unplaceable", 3, of(SAME), 1, 2, of(np.ones(3, np.bool_)))
    log = AgentLog(1, of(SAME), of(SAME), of(ONE_MACHINE), columns, records)
    reasons, bytes_ = of(np.full(3, 2, np.int8)), of(np.zeros(3, np.int8))
    claims = (IDS, of(ONE_MACHINE), of(SAME), of(ONE_MACHINE), bytes_)
    log.commit(9, 1, *claims, reasons, of(ONE_MACHINE), of(SAME), 2, 3, 4, IDS)
    log.unplaceable(7, of(SAME), bytes_)
    log.waiting(of(SAME), 1, 2, of(ONE_MACHINE), of(SAME), of(SAME))
    rows = [column for record in records.flush() for column in record.columns.values()]
    return [*pool.due_ends(), *rows]


def use_solver(of: Callable[[Array], Array]) -> Any:
    network = FlowNetwork()
    network.add_nodes([2, 0, -2])
    network.add_nodes(of(SAME))
    network.add_arcs(of(SAME), of(SAME + 2), of(SAME + 1), of(SAME + 4))
    network.set_cost(of(IDS[:1]), of(SAME[:1] + 7))
    solver = IncrementalSolver(network)
    solver.set_capacity(of(IDS[1:2]), of(SAME[:1] + 2))
    return [solve(network).cost, solver.resolve().name, solver.cost]


def use_bytes(of: Callable[[Array], Array]) -> Any:
    transaction = Transaction(1, 1, of(SAME), of(ONE_MACHINE), of(ONES), of(SAME))
    return [
        pack_columns(of(ONES), of(ONE_MACHINE), of(np.ones(3, np.bool_))),
        Codec().encode(CommitRequest(1, transaction)),
        Codec().encode([of(SAME), of(SAME.astype(np.float64))]),
        hash64(of(SAME), 3),
    ]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
@pytest.mark.parametrize(
    "use",
    [use_cell, use_view, use_placing, use_measurements, use_solver, use_bytes],
    ids=lambda use: use.__name__,
)
def test_arrays_of_any_layout_are_taken(
    use: Callable[[Callable[[Array], Array]], Any], layout: Callable[[Array], Array]
) -> None:
    alike(use(layout), use(lambda values: values))


def test_values_of_several_rows_are_read_in_their_order() -> None:
    table = np.arange(24, dtype=np.int64).reshape(6, 4)
    slices = [table[:, 1], table[::2, ::3], table.T, table[::-1, ::-2]]
    assert pack_columns(*slices) == pack_columns(*(one.copy() for one in slices))


def test_an_output_must_be_contiguous_and_writable() -> None:
    ones = np.ones(3, np.int64)
    price = np.zeros((3, 1), np.int64)
    for out in (np.zeros(6, np.int64)[::2], read_only(np.zeros(3, np.int64))):
        with pytest.raises(
            ValueError, match=r"load_before: expected a contiguous array int64\[3\]"
        ):
            update_implied_prices(price, out, ones.copy(), ones, ones, ones, 1)


# --- whole runs ---

TASKS = 12


def workload() -> Workload:
    """Tasks that are alike in every column but their ids."""
    return Workload(
        name="alike",
        cell=SPEC,
        catalog=CATALOG,
        tasks=TaskBatch(
            np.arange(TASKS, dtype=np.int64),
            np.zeros(TASKS, np.int64),
            np.ones((TASKS, 2), np.int64),
            np.full(TASKS, 5, np.int32),
            np.zeros(TASKS, np.int64),
            np.ones(TASKS, np.int32),
            np.full(TASKS, NO_GANG, np.int64),
            np.zeros(TASKS, np.int8),
        ),
        duration_us=np.full(TASKS, 40_000, np.int64),
        preferred_permille=700,
        arrival_us=np.zeros(1, np.int64),
        arrival_offsets=np.array([0, TASKS], np.int64),
        arrival_rows=np.arange(TASKS, dtype=np.int64),
        initial=InitialPlacement(NONE64, NONE32),
        machine_events=MachineEvents(NONE64, NONE32, np.zeros(0, np.bool_)),
        phases=(Phase(0, 1_000_000, 0),),
        end_us=1_000_000,
        facts={"tasks_larger_than_every_machine": 0},
        quotas=QuotaMembership(("all",), np.zeros(TASKS, np.int32)),
    )


def with_repeated_values(of: Any, *names: str) -> Any:
    return dataclasses.replace(of, **{name: repeated(getattr(of, name)) for name in names})


def workload_of_repeated_values() -> Workload:
    """The workload, with every column as one value that is repeated."""
    made = with_repeated_values(workload(), "duration_us")
    columns = [field.name for field in dataclasses.fields(TaskBatch)[1:]]
    made = dataclasses.replace(
        made,
        tasks=with_repeated_values(made.tasks, *columns),
        quotas=with_repeated_values(made.quotas, "group"),
        cell=with_repeated_values(
            made.cell, "capacity", "rack", "slot_score", "overcommit_permille"
        ),
        catalog=with_repeated_values(CATALOG, "machine_cost", "unscheduled_cost"),
    )
    validate(made)
    return made


OPTIMISTIC = {"kind": "optimistic", "sync": "state_aligned", "gap_s": 0.02}
CONFIG = validated(
    {
        "name": "alike",
        "runtime": "virtual",
        "settle_s": 0.0,
        "workload": {"kind": "synthetic", "machines": 6, "start": "cold"},
        "arms": [
            {
                "name": kind,
                "partitions": 2,
                "evictions": "lower_priority",
                "groups": [{"name": "s", "kind": kind, "count": 2, "protocol": protocol}],
            }
            for kind, protocol in (
                ("preempting", OPTIMISTIC),
                ("best_fit", {**OPTIMISTIC, "sync": "diff_block"}),
                ("flow", OPTIMISTIC),
                ("random", {"kind": "locking"}),
            )
        ],
    },
    "test",
)


def outcome(made: Workload) -> list[str]:
    digests = []
    for arm in CONFIG.arms:
        run = run_arm_virtual(CONFIG, arm, made, 1, None, lambda _: None, Interruption())
        assert not run.stopped
        digests.append(run.digest)
    return digests


def test_columns_of_one_value_change_no_outcome(tmp_path: Path) -> None:
    """As made by a generator, and as read back from a run's files."""
    expected, made = outcome(workload()), workload_of_repeated_values()
    assert outcome(made) == expected
    write_workload(tmp_path / "w", made, [2])
    back = read_workload(tmp_path / "w")
    assert back.tasks.priority.strides == back.tasks.request.strides[:1] == (0,)
    assert outcome(back) == expected
