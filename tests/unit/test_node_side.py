"""Queues at the machines, by a toy protocol: its tasks wait at their machine for room, and the
queue claims it for their agent. The measurements are those of any other claims."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.config.presets import optimistic
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS, is_own
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import (
    AllocationsEnded,
    HeartbeatDue,
    TasksCancelled,
    TasksStarted,
)
from parsync.core.workers import WorkerPool
from parsync.metrics.record import Record
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise
from parsync.protocols.base import BaseNodeSide
from parsync.runtime.assembly import Assembly
from parsync.runtime.virtual.run import VirtualRuntime, run_virtual
from parsync.spec.arm import ArmConfig, GroupConfig, ProtocolChoice
from parsync.spec.decision_times import ModelledTime
from parsync.workload.workload import InitialPlacement, MachineEvents, Workload
from schedulers.interface import ChangeKind
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver, ObservedCell
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog
from shared_state.transaction import CommitResult, Transaction
from tests.fixtures.overloaded_cell import arm as overloaded_arm
from tests.fixtures.overloaded_cell import failing_workload, group

PACKAGES = Path(__file__).parents[1] / "fixtures" / "protocols"
OPTIONS = SyntheticOptions(
    machines=8,
    slots_per_machine=2,
    mean_duration_s=0.05,
    batch_tasks=4,
    phase_s=0.5,
    load_percent=(70,),
    preference_groups=0,
)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PACKAGES)


class Oracle(CellObserver):
    """What the cell sees of claims, task by task."""

    def __init__(self) -> None:
        self.most = 0  # tasks on one machine at a time
        self.tries: Counter[int] = Counter()  # since the task was placed
        self.commits: list[
            tuple[int, int, int, int, int]
        ] = []  # agent, task, machine, tries, first
        self.rejected: list[tuple[int, int, int, int]] = []  # agent, task, machine, reason
        self.transactions: list[tuple[int, int]] = []  # agent, sequence
        self.placed: set[int] = set()

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        self.most = max(self.most, int(cell.used.max()))
        agent = transaction.scheduler
        self.transactions.append((agent, transaction.sequence))
        for task, machine, reason in zip(
            transaction.task.tolist(),
            transaction.machine.tolist(),
            result.reason.tolist(),
            strict=True,
        ):
            self.tries[task] += 1
            if reason:
                self.rejected.append((agent, task, machine, reason))
                continue
            first = task not in self.placed
            self.commits.append((agent, task, machine, self.tries.pop(task), int(first)))
            self.placed.add(task)


def rows(records: list[Record], table: str, *columns: str) -> list[tuple[int, ...]]:
    """The rows of a table, in no particular order."""
    found = [record.columns for record in records if record.table == table]
    return sorted(
        row
        for one in found
        for row in zip(*(one[column].tolist() for column in columns), strict=True)
    )


def with_failures(workload: Workload) -> Workload:
    """Half of the machines fail and come back."""
    machine = np.arange(4, dtype=np.int32)
    at_us = np.array([100_000, 100_000, 150_000, 150_000, 300_000, 300_000, 320_000, 320_000])
    events = MachineEvents(at_us, np.concatenate([machine, machine]), np.arange(8) >= 4)
    return replace(workload, machine_events=events)


@pytest.mark.parametrize("message_us", [0, 300])
@pytest.mark.parametrize("rivals", [0, 1])
@pytest.mark.parametrize("fail", [False, True])
def test_tasks_wait_at_their_machine_for_their_turn(
    message_us: int, rivals: int, fail: bool
) -> None:
    decision = ModelledTime(task_us=50)
    groups = [
        GroupConfig(name="queues", count=2, protocol={"kind": "machine_queues"}, decision=decision),
        GroupConfig(
            name="rival",
            kind="random",
            count=1,
            protocol=optimistic("state_aligned", 0.05),
            decision=decision,
        ),
    ][: 1 + rivals]
    arm = ArmConfig(name="arm", partitions=2, groups=tuple(groups))
    workload = generate(OPTIONS, 1)
    workload = with_failures(workload) if fail else workload
    spec = arm.seeded(1, 1000, 50_000, live=False)
    records: list[Record] = []
    oracle = Oracle()
    outcome = run_virtual(
        spec, workload, 20_000_000, records.append, lambda _: None, message_us, oracle
    )
    assert outcome.drained and oracle.most == 2
    if rivals or not (fail and message_us):  # the queues know all that the cell knows
        assert bool(oracle.rejected) == bool(rivals), "only rivals take a queue's place"

    assert rows(records, "tasks", "agent", "task", "machine", "attempts", "first") == sorted(
        oracle.commits
    )
    assert oracle.placed == set(workload.arrival_rows.tolist())
    assert any(first == 0 for *_, first in oracle.commits) == fail
    assert rows(records, "rejections", "agent", "task", "machine", "reason") == sorted(
        oracle.rejected
    )
    assert rows(records, "commits", "agent", "sequence") == sorted(oracle.transactions)
    assert len(set(oracle.transactions)) == len(oracle.transactions)
    for agent, sequence in oracle.transactions:
        assert is_own(sequence) == (agent == 2), "the queues claim, not their agents"
    for start_us, commit_us, decision_us in rows(
        records, "commits", "start_us", "commit_us", "decision_us"
    ):
        assert 0 <= start_us <= commit_us - 2 * message_us and decision_us >= 0
    last = {
        agent: queued for _, agent, queued in rows(records, "agents", "at_us", "agent", "queued")
    }
    assert set(last.values()) == {0}
    assert max(queued for _, queued in rows(records, "agents", "agent", "queued")) > 0

    metrics = RunMetrics(
        RunFrame(workload.phases, spec.agents, partitions=2, job_of=workload.tasks.job)
    )
    for record in records:
        metrics.add(record.table, record.columns)
    metrics.flush()
    totals = summarise(metrics).totals
    assert totals.committed == totals.submitted == len(workload.arrival_rows)
    count: Any = {name: int(values.sum()) for name, values in metrics.count.items()}
    assert count["accepted"] == len(oracle.commits)
    assert count["claims"] - count["accepted"] == len(oracle.rejected)


def with_initial_tasks(workload: Workload) -> Workload:
    """The tasks of the first batch run at time 0, on the first machines."""
    count = int(workload.arrival_offsets[1])
    return replace(
        workload,
        initial=InitialPlacement(
            workload.arrival_rows[:count].copy(), np.arange(count, dtype=np.int32)
        ),
        arrival_us=workload.arrival_us[1:],
        arrival_offsets=workload.arrival_offsets[1:] - count,
        arrival_rows=workload.arrival_rows[count:],
    )


def test_the_queues_know_what_every_machine_holds() -> None:
    """Beside a flow scheduler that evicts, with machines that fail and tasks that run at time 0:
    whenever nothing is on its way, they know what the cell knows."""
    config = overloaded_arm("state_aligned", group("flow", 2, options={"preemption": True}))
    queues = group("random", 2).model_copy(
        update={
            "name": "queues",
            "kind": None,
            "protocol": ProtocolChoice.model_validate({"kind": "machine_queues"}),
        }
    )
    config = config.model_copy(update={"groups": (*config.groups, queues)})
    workload = with_initial_tasks(failing_workload())
    assembly = Assembly.of(config.seeded(3, 1000, 50_000, live=False), workload)
    agents = {index: assembly.agent(index) for index in range(assembly.arm.agents)}
    master, workers = assembly.master(), assembly.workers()
    oracle = Oracle()
    cell = ObservedCell(master.cell, oracle)
    master.cell = cell
    node_side = workers._node_sides["machine_queues"].node_side
    assert isinstance(node_side, BaseNodeSide)
    ended: Counter[int] = Counter()
    changes: set[ChangeKind] = set()
    on_tasks_ended = node_side.on_tasks_ended

    def noted(now_us: int, change: ChangeKind, task: Any, allocation: Any, *rest: Any) -> Any:
        ended.update(allocation.tolist())
        changes.add(change)
        return on_tasks_ended(now_us, change, task, allocation, *rest)

    node_side.on_tasks_ended = noted  # type: ignore[method-assign]
    participants = {
        **agents,
        MASTER: master,
        WORKERS: workers,
        COORDINATOR: assembly.coordinator(),
        ARRIVALS: assembly.arrivals(),
    }
    runtime = VirtualRuntime(participants, agents, lambda _: None, assembly.codec)
    runtime.run_until(0)
    assert node_side.used.sum() == len(workload.initial.task) > 0
    for at_us in range(0, 2_000_000, 10_000):
        runtime.run_until(at_us)
        assert np.array_equal(node_side.used, cell.used)
        assert np.array_equal(node_side.up, cell.up)
        assert not node_side.claimed.any()
    assert changes == {ChangeKind.FINISHED, ChangeKind.EVICTED, ChangeKind.LOST}
    assert set(ended.values()) == {1}
    assert len(ended) == len(oracle.commits) + len(workload.initial.task) - master.running


class Notified:
    """A node side that tracks nothing but what it was notified of."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        self.events.append(event)
        return []

    def finish(self, now_us: int) -> list[Record]:
        return []


def ids(*numbers: int) -> Int64:
    return np.array(numbers, np.int64)


def test_each_end_is_notified_once_whoever_knows_of_it_first() -> None:
    """Task 0 has finished when its machine is lost, task 1 is evicted while it runs, task 2 never
    ends by itself."""
    queues = Notified()
    one_slot, none = np.ones((4, 1), np.int64), np.zeros(4, np.int64)
    cell = CellSpec(("slots",), one_slot, none.astype(np.int32), none, ids(1000))
    pool = WorkerPool(
        cell,
        PreferenceCatalog.empty(),
        np.zeros(3, np.int32),
        ids(5_000, 5_000, -1),
        1000,
        1000,
        {"queues": queues},
        ["queues"],
    )
    machine, owner = np.arange(3, dtype=np.int32), np.zeros(3, np.int32)
    pool.handle(0, TasksStarted(0, ids(0, 1, 2), ids(70, 71, 72), machine, owner))

    def end(now_us: int, change: ChangeKind, *rows: int) -> None:
        task = ids(*rows)
        pool.handle(now_us, TasksCancelled(task + 70))
        ended = AllocationsEnded(int(change), task, task + 70, machine[task], owner[task])
        pool.handle(now_us, ended)

    end(2_000, ChangeKind.EVICTED, 1)
    pool.handle(5_000, HeartbeatDue())
    end(5_100, ChangeKind.LOST, 0, 2)
    pool.handle(6_000, HeartbeatDue())
    ends = [event for event in queues.events if isinstance(event, AllocationsEnded)]
    assert [(event.change, event.task.tolist(), event.machine.tolist()) for event in ends] == [
        (ChangeKind.EVICTED, [1], [1]),
        (ChangeKind.FINISHED, [0], [0]),
        (ChangeKind.LOST, [2], [2]),
    ]
