"""Queues at the machines: a toy protocol whose agents send each task to a machine, where it waits
for its turn. The queue claims the machine through the master, which answers the worker pool."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from experiments.arm_config import ArmConfig, GroupConfig, ModelledTime
from experiments.presets import optimistic
from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core.addresses import MASTER, WORKERS
from parsync.core.effects import Effect, Send
from parsync.core.event import Event, Priority
from parsync.core.events import CommitReply, CommitRequest
from parsync.core.queued_tasks import QueuedTasks
from parsync.metrics.record import Record
from parsync.protocols import registry
from parsync.protocols.base_agent import BaseAgent
from parsync.protocols.spec import Environment, NoOptions, ProtocolSpec
from parsync.runtime.virtual.run import run_virtual
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitMode, ConflictCheck, Transaction
from tests.fixtures.outcome_digest import DigestObserver, OutcomeDigest

KIND = "queues"


@dataclass(frozen=True, slots=True)
class Reserved(Event):
    """Agent -> worker pool: each task waits at its machine."""

    kind: ClassVar[str] = KIND
    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.DECIDE
    agent: int
    task: Int64
    machine: Int32


@dataclass(frozen=True, slots=True)
class Placed(Event):
    """Worker pool -> agent: the task runs."""

    kind: ClassVar[str] = KIND
    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.COMMIT
    task: int


class Agent(BaseAgent):
    """Deals its tasks out to the machines in turn."""

    def on_queued(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        machine = (tasks.task % 8).astype(np.int32)
        return [Send(WORKERS, Reserved(self.index, tasks.task, machine))]

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        assert isinstance(event, Placed)
        self.queued -= 1
        return []


class Queues:
    """First come, first served, one task at a time on each machine."""

    def __init__(self, environment: Environment) -> None:
        self.request = environment.table.request
        self.waiting: dict[int, deque[tuple[int, int]]] = defaultdict(deque)
        self.busy: set[int] = set()
        self.claimed: dict[tuple[int, int], tuple[int, int]] = {}
        self.sequence = 0

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Reserved):
            for task, machine in zip(event.task.tolist(), event.machine.tolist(), strict=True):
                self.waiting[machine].append((event.agent, task))
            return self.serve(now_us, np.unique(event.machine))
        assert isinstance(event, CommitReply)
        machine, task = self.claimed.pop((event.scheduler, event.result.sequence))
        if event.result.accepted.all():
            return [Send(event.scheduler, Placed(task))]
        self.busy.discard(machine)  # another scheduler's task is there: again when it ends
        self.waiting[machine].appendleft((event.scheduler, task))
        return []

    def on_ended(self, now_us: int, machine: Int32) -> list[Effect]:
        self.busy.difference_update(machine.tolist())
        return self.serve(now_us, machine)

    def finish(self, now_us: int) -> list[Record]:
        return []

    def serve(self, now_us: int, machines: Int32) -> list[Effect]:
        effects: list[Effect] = []
        for machine in dict.fromkeys(machines.tolist()):
            if machine in self.busy or not self.waiting[machine]:
                continue
            agent, task = self.waiting[machine].popleft()
            self.busy.add(machine)
            self.sequence += 1
            self.claimed[agent, self.sequence] = machine, task
            transaction = Transaction(
                scheduler=agent,
                sequence=self.sequence,
                task=np.array([task]),
                machine=np.array([machine], np.int32),
                request=np.ascontiguousarray(self.request[[task]]),
                synced_us=np.array([now_us]),
                commit_mode=CommitMode.INCREMENTAL,
                conflict_check=ConflictCheck.RESOURCE_FIT,
            )
            effects.append(Send(MASTER, CommitRequest(WORKERS, transaction)))
        return effects


SPEC = ProtocolSpec(KIND, NoOptions, Agent, node_side=Queues, events=(Reserved, Placed))
OPTIONS = SyntheticOptions(
    machines=8,
    slots_per_machine=1,
    mean_duration_s=0.05,
    batch_tasks=4,
    phase_s=0.5,
    load_percent=(70,),
    preference_groups=0,
)


class MostRunning(DigestObserver):
    """The most tasks that ran on one machine at a time, and how often tasks ended."""

    def __init__(self, digest: OutcomeDigest) -> None:
        super().__init__(digest)
        self.most = 0

    def on_commit(self, cell: Any, transaction: Any, result: Any, now_us: int) -> None:
        super().on_commit(cell, transaction, result, now_us)
        self.most = max(self.most, int(cell.used.max()))


@pytest.mark.parametrize("message_us", [0, 300])
@pytest.mark.parametrize("rivals", [0, 1])
def test_tasks_wait_at_their_machine_for_their_turn(
    monkeypatch: pytest.MonkeyPatch, message_us: int, rivals: int
) -> None:
    built_in = {**registry.BUILT_IN, KIND: f"{__name__}:SPEC"}
    monkeypatch.setattr(registry, "_GROUP", replace(registry._GROUP, built_in=built_in))
    decision = ModelledTime(task_us=50)
    groups = [
        GroupConfig(name="queues", count=2, protocol={"kind": KIND}, decision=decision),
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
    observer = MostRunning(OutcomeDigest())
    outcome = run_virtual(
        arm.spec(1, 1000, 50_000, live=False),
        workload,
        20_000_000,
        lambda _: None,
        lambda _: None,
        message_us,
        observer,
    )
    assert outcome.drained and observer.most == 1
    assert observer._digest.commits > len(workload.tasks) / 2
    assert bool(observer._digest.rejected) == bool(rivals), "only rivals take a queue's place"
