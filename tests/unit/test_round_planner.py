"""Decision rounds planned in native code are those that calls of the scheduler would plan."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.core.addresses import CELL_SIDE
from parsync.core.events import SyncReply
from parsync.metrics.record import AgentLog
from parsync.protocols.agent_view import AgentView
from parsync.protocols.rounds import ScheduledRounds, native_planner
from parsync.protocols.spec import AgentEnvironment, Environment, Member
from schedulers import registry
from schedulers.checked import CheckedScheduler
from schedulers.decision_clock import Counted, DecisionClock, Measured, Modelled, ModelledByClass
from schedulers.greedy.scheduler import claimed_plan
from schedulers.interface import (
    ClaimedPlan,
    PartitionRanking,
    PendingReason,
    Plan,
    SchedulerEnvironment,
)
from schedulers.unplaceable import NEVER_US, UnplaceableUnits
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.tasks import NO_GANG, CellSpec, Int64, PreferenceCatalog, TaskBatch
from tests.unit.agent_bench import OPTIONS, SAMPLE_US

MACHINES, TASKS, PARTITIONS = 8, 24, 3
GREEDY = ["random", "best_fit", "preferred_first", "load_spreading"]
KINDS = [*GREEDY, "kubernetes", "swarmkit", "nomad", "stranded"]


class DoubleTime(Modelled):
    """A clock of somebody's own: twice as slow."""

    def duration_us(
        self,
        tasks: int,
        partitions_scanned: int,
        operations: int,
        elapsed_ns: int,
        priced_machines: int = 0,
    ) -> int:
        work = (tasks, partitions_scanned, operations, elapsed_ns, priced_machines)
        return 2 * super().duration_us(*work)


CLOCKS: tuple[DecisionClock, ...] = (
    Modelled(7, 900, 70),
    Modelled(7, 900, 70, charges_kept=True),
    ModelledByClass(Modelled(7, 900, 70), Modelled(30, 5_000, 200)),
    Counted(130),
    Measured(),
    DoubleTime(7, 900, 70),
)


def world(seed: int, checks_seqnum: bool) -> tuple[Environment, UnplaceableUnits, Cell]:
    rng = np.random.default_rng(seed)
    cell = CellSpec(
        ("cpu", "memory"),
        rng.integers(1, 6, (MACHINES, 2)),
        np.arange(MACHINES, dtype=np.int32) // 2,
        rng.integers(0, 5, MACHINES),
        np.array([1000, 1000]),
    )
    table = TaskBatch(
        np.arange(TASKS),
        np.arange(TASKS) // 4,
        rng.integers(0, 3, (TASKS, 2)) + np.array([1, 0]),
        np.zeros(TASKS, np.int32),
        np.zeros(TASKS, np.int64),
        np.zeros(TASKS, np.int32),
        np.where(rng.random(TASKS) < 0.3, np.arange(TASKS) // 6, NO_GANG),
        rng.integers(0, 3, TASKS).astype(np.int8),
    )
    size = [int((table.gang == gang).sum()) if gang != NO_GANG else 0 for gang in table.gang]
    units = UnplaceableUnits(
        np.where(rng.random(TASKS) < 0.1, 50, NEVER_US),
        np.where(table.gang == 1, 50, NEVER_US),
        np.zeros(TASKS, np.int8),
        table.gang,
        np.array(size, np.int64),
    )
    member = Member("agent", 0, 2, OPTIONS, frozenset())
    partitioning = Partitioning.by_topology(cell, PARTITIONS)
    catalog = PreferenceCatalog.empty()
    shared = Environment(5, (member,), cell, partitioning, catalog, table, CELL_SIDE, SAMPLE_US)
    return shared, units, Cell(cell, partitioning)


def planner(
    shared: Environment,
    units: UnplaceableUnits,
    cell: Cell,
    clock: DecisionClock,
    checks_seqnum: bool,
    kind: str,
) -> tuple[Any, ScheduledRounds, AgentView]:
    """The planners of agent 0, native (None if it has none) and by calls, with a view of the cell
    as it is, which both plan on."""
    spec = registry.get(kind)
    scheduler = CheckedScheduler.build(
        spec,
        spec.parse_options({}),
        SchedulerEnvironment("agent-0", shared.cell, shared.partitioning.offsets, shared.catalog),
        shared.table,
        units,
    )
    assert scheduler.planner is not None
    [member] = shared.members
    environment = AgentEnvironment(shared, 0, "agent-0", member, scheduler, clock, None, units)
    view = AgentView(environment, with_seqnum=checks_seqnum)
    log = AgentLog(0, shared.cell, shared.table, shared.catalog)
    deltas = tuple(cell.delta_since(p, 0, 10 + p, checks_seqnum) for p in range(PARTITIONS))
    view.start(0)
    view.on_reply(20, SyncReply(0, deltas), 0, log, np.zeros(PARTITIONS, np.int64))
    quality = OPTIONS.quality
    native = native_planner(environment, view, quality)
    return native, ScheduledRounds(environment, view, quality), view


def plan_natively(native: Any, view: AgentView, task: Int64, *round_: int) -> ClaimedPlan:
    return claimed_plan(native.plan(view.cell, task, *round_, view.order), task)


@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(KINDS),
    clock=st.sampled_from(CLOCKS),
    checks_seqnum=st.booleans(),
    ranking=st.sampled_from(PartitionRanking),
    offered=st.lists(st.lists(st.integers(0, TASKS - 1), unique=True), min_size=1, max_size=3),
    now_us=st.sampled_from([20, 60]),
)
def test_native_rounds_are_those_that_calls_of_the_scheduler_plan(
    seed: int,
    kind: str,
    clock: DecisionClock,
    checks_seqnum: bool,
    ranking: PartitionRanking,
    offered: list[list[int]],
    now_us: int,
) -> None:
    shared, units, cell = world(seed, checks_seqnum)
    native, _, view = planner(shared, units, cell, clock, checks_seqnum, kind)
    if native is None:
        assert isinstance(clock, DoubleTime)
        return
    _, calls, other_view = planner(shared, units, cell, clock, checks_seqnum, kind)
    for number, ids in enumerate(offered):
        task = np.array(ids, np.int64)
        one = plan_natively(native, view, task, number, now_us, int(ranking))
        other = calls.plan(task, number, int(ranking), now_us)
        assert np.array_equal(view.cell.free, other_view.cell.free)
        assert native.decision_us(12_345) == calls.decision_us(12_345)
        for field in fields(Plan):
            mine, others = (getattr(plan, field.name) for plan in (one.plan, other.plan))
            assert np.array_equal(mine, others), field.name
            assert getattr(mine, "dtype", None) == getattr(others, "dtype", None), field.name
        assert (one.ticket, one.in_full) == (other.ticket, other.in_full)
        assert (one.plan.task is task) == one.in_full
        assert np.array_equal(one.synced_us, other.synced_us)
        if other.seqnum is None:
            assert not checks_seqnum
        else:
            assert native.seqnum.dtype == other.seqnum.dtype == np.uint32
            assert np.array_equal(native.seqnum, other.seqnum)


def test_tasks_that_can_never_be_placed_are_left_out_of_native_rounds() -> None:
    shared, units, cell = world(1, False)
    never = units.among(np.arange(TASKS), 60)
    assert never is not None and 0 < never.sum() < TASKS
    native, _, view = planner(shared, units, cell, Modelled(0, 1000, 0), False, "random")
    plan = plan_natively(native, view, np.arange(TASKS), 1, 60, PartitionRanking.OPTIMISTIC).plan
    too_large = plan.pending_reason == PendingReason.TOO_LARGE
    assert plan.pending[too_large].tolist() == np.flatnonzero(never).tolist()
    assert native.decision_us(0) == TASKS - never.sum()


@pytest.mark.parametrize("task", [[TASKS], [-1]])
def test_a_native_round_about_no_task_of_the_run_is_refused(task: list[int]) -> None:
    shared, units, cell = world(1, False)
    native, _, view = planner(shared, units, cell, CLOCKS[0], False, "random")
    with pytest.raises(ValueError, match="there is no such task"):
        plan_natively(native, view, np.array(task), 1, 20, PartitionRanking.OPTIMISTIC)
    assert view.cell.claims_in_flight == 0
