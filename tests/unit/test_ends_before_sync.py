"""Agents whose schedulers want ends, and which synchronise, learn of finished tasks with the answer
to a SyncRequest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parsync.core.addresses import MASTER
from parsync.core.codec import CORE
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    MachinesChanged,
    SyncRequest,
    TasksEnded,
    TasksFinished,
)
from parsync.core.master import EndsNotice, MasterCore
from parsync.metrics.record import Record
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.steps import Step
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ProtocolChoice, SeededArm
from schedulers.checked import CheckedScheduler
from schedulers.interface import ChangeKind, TaskChanges
from tests.fixtures.changed import changed
from tests.fixtures.live_runs import locking_arm, mixed_arm, small_arm, small_workload
from tests.unit.test_live_cell import claim

FLOW = 2  # the agent of mixed_arm() that runs a flow scheduler
WORKLOAD = small_workload()


def assembly(arm: SeededArm) -> Assembly:
    return Assembly.of(arm, WORKLOAD)


def told(effects: list[Effect], agent: int) -> list[tuple[str, list[int]]]:
    """What an agent is sent: the names of the events, with the tasks of TasksEnded."""
    return [
        (
            type(effect.event).__name__,
            effect.event.task.tolist() if isinstance(effect.event, TasksEnded) else [],
        )
        for effect in effects
        if isinstance(effect, Send) and effect.to == agent
    ]


def sync(agent: int) -> SyncRequest:
    return SyncRequest(agent, np.array([0], np.int32), np.array([0]), False)


def start(master: MasterCore, agent: int, tasks: list[int]) -> Any:
    """The allocations of tasks that are placed at time 0."""
    effects = master.handle(0, claim(agent, tasks[0] + 1, tasks, tasks))
    (reply,) = (
        effect.event
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.event, CommitReply)
    )
    return reply.result.allocation


def finish(master: MasterCore, agent: int, allocation: Any, at_us: int) -> list[Effect]:
    n = len(allocation)
    owner = np.full(n, agent, np.int32)
    return master.handle(at_us, TasksFinished(allocation, owner, np.full(n, at_us)))


def test_finished_tasks_are_told_at_once_before_the_answer() -> None:
    master = assembly(mixed_arm()).master()
    allocation = start(master, FLOW, [3, 4, 5, 6])
    assert told(finish(master, FLOW, allocation[:2], 10), FLOW) == []
    assert told(finish(master, FLOW, allocation[2:3], 20), FLOW) == []
    assert told(master.handle(25, sync(0)), FLOW) == [], "another agent's"
    answer = master.handle(30, sync(FLOW))
    assert told(answer, FLOW) == [("TasksEnded", [3, 4, 5]), ("SyncReply", [])]
    (ended,) = (
        effect.event
        for effect in answer
        if isinstance(effect, Send) and isinstance(effect.event, TasksEnded)
    )
    assert ended.change == ChangeKind.FINISHED
    assert ended.allocation.tolist() == allocation[:3].tolist()
    assert ended.machine.tolist() == [3, 4, 5] and ended.request.tolist() == [[1], [1], [1]]
    assert len(ended.version) == 3
    assert told(master.handle(40, sync(FLOW)), FLOW) == [("SyncReply", [])]


def test_tasks_that_lose_their_place_are_told_at_once() -> None:
    master = assembly(mixed_arm()).master()
    allocation = start(master, FLOW, [3, 4])
    finish(master, FLOW, allocation[:1], 10)
    down = MachinesChanged(np.array([4], np.int32), np.array([False]))
    assert told(master.handle(20, down), FLOW) == [("TasksEnded", [4])]
    assert told(master.handle(30, sync(FLOW)), FLOW)[0] == ("TasksEnded", [3])


def test_a_restored_master_still_tells_them() -> None:
    made = assembly(mixed_arm())
    master = made.master()
    allocation = start(master, FLOW, [3, 4])
    finish(master, FLOW, allocation[:1], 10)
    finish(master, FLOW, allocation[1:], 20)
    state = CORE.decode(CORE.encode(master.checkpoint()))
    again = made.master()
    again.restore(state)
    assert told(again.handle(30, sync(FLOW)), FLOW)[0] == ("TasksEnded", [3, 4])
    again.restore(state)
    assert told(again.handle(30, sync(FLOW)), FLOW)[0] == ("TasksEnded", [3, 4]), "not twice"


def test_a_checkpoint_with_other_ends_is_refused() -> None:
    made = assembly(mixed_arm())
    none = np.zeros(0, np.int64)
    two = np.arange(2)
    wrong = TasksEnded(3, none, two, none.astype(np.int32), np.ones((2, 1), np.int64), none)
    wide = TasksEnded(3, two, two, two.astype(np.int32), np.ones((2, 2), np.int64), two)
    for agent, ended, message in [
        (FLOW, wrong, "differ in length"),
        (FLOW, wide, "in each resource"),
        (9, wide, "there is no agent 9"),
    ]:
        with pytest.raises(ValueError, match=message):
            made.master().add_waiting_ends(agent, ended)


def test_a_restarted_host_is_not_told_of_tasks_that_it_never_knew(tmp_path: Path) -> None:
    made = assembly(mixed_arm())
    runtime = CellRuntime(
        CORE, made.master(), hosts_of({0: (0, 1), 1: (FLOW,)}), len(WORKLOAD.tasks), lambda _: None
    )
    service = CellService(runtime, tmp_path / CELL_LOG, fsync=False)
    service.start(1, ((0, "schedulers-0", (0, 1)), (1, "schedulers-1", (FLOW,))))

    def step(epoch: int, number: int, *events: Event) -> list[str]:
        messages = tuple((MASTER, event) for event in events)
        reply = service.step(Step(1, epoch, number, messages).to_bytes(CORE), 0)
        return [type(CORE.decode(data)).__name__ for _, data in CORE.decode(reply)]

    step(1, 1, claim(FLOW, 1, [3], [3]))
    held = runtime.master.cell.allocations(FLOW).allocation
    step(1, 2, TasksFinished(held, np.full(1, FLOW, np.int32), np.zeros(1, np.int64)))
    assert step(2, 1, sync(FLOW)) == ["SyncReply"]


def optimistic(arm: SeededArm, **options: Any) -> SeededArm:
    """The same with other options of the last group's protocol."""
    *others, last = arm.groups
    chosen = OptimisticOptions(sync="diff_block", gap_s=0.2, **options)
    return changed(
        arm,
        groups=(
            *others,
            changed(last, protocol=ProtocolChoice(kind="optimistic", options=chosen)),
        ),
    )


@pytest.mark.parametrize(
    ("arm", "notice"),
    [
        (small_arm(), EndsNotice.NEVER),
        (locking_arm(), EndsNotice.NEVER),
        (mixed_arm(), EndsNotice.BEFORE_SYNC),
        (optimistic(mixed_arm(), freed_at_once=True), EndsNotice.AT_ONCE),
        (optimistic(mixed_arm(), jobs_max=3), EndsNotice.AT_ONCE),
        (optimistic(small_arm(), freed_at_once=True), EndsNotice.AT_ONCE),
    ],
)
def test_who_needs_the_room_of_its_tasks_is_told_at_once(
    arm: SeededArm, notice: EndsNotice
) -> None:
    agent = arm.agents - 1
    master = assembly(arm).master()
    finished = finish(master, agent, start(master, agent, [3]), 10)
    synced = master.handle(20, sync(agent))
    assert (told(finished, agent) != []) is (notice is EndsNotice.AT_ONCE)
    assert (len(told(synced, agent)) == 2) is (notice is EndsNotice.BEFORE_SYNC)


def test_idle_agents_learn_of_all_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    finished: Counter[int] = Counter()
    calls = 0
    observe = CheckedScheduler.observe

    def observing(self: CheckedScheduler, changes: TaskChanges) -> None:
        nonlocal calls
        if changes.kind is ChangeKind.FINISHED:
            calls += 1
            finished.update(changes.task.tolist())
        observe(self, changes)

    monkeypatch.setattr(CheckedScheduler, "observe", observing)
    arm = changed(mixed_arm(), groups=(changed(mixed_arm().groups[1], share=1.0),))
    rows: dict[str, list[Any]] = {"syncs": [], "ends": []}

    def keep(record: Record) -> None:
        if record.table in rows:
            rows[record.table].append(record.columns)

    outcome = run_virtual(changed(arm, partitions=1), WORKLOAD, 10_000_000, keep, lambda _: None)
    assert outcome.drained
    synced_us = np.concatenate([columns["at_us"] for columns in rows["syncs"]])
    task = np.concatenate([columns["task"] for columns in rows["ends"]])
    ended_us = np.concatenate([columns["end_us"] for columns in rows["ends"]])
    assert max(finished.values()) == 1
    assert set(finished) == set(task[ended_us <= synced_us.max()].tolist())
    assert len(finished) > len(WORKLOAD.tasks) // 2
    assert calls <= len(synced_us)
