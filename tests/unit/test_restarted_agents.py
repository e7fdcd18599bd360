"""What the agents of a restarted scheduler host are promised (Send, Started): a greater epoch, and
no answer to the agents before them but those of participants that answer later."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from parsync.core.addresses import CELL_SIDE, MASTER, WORKERS
from parsync.core.codec import Codec, decode
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event, Priority
from parsync.core.events import CommitReply, CommitRequest, Started, SyncRequest
from parsync.metrics.record import Record
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.assembly import Assembly
from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.cell import CellRuntime, hosts_of
from parsync.runtime.live.logs import handled_logs, read_handled
from parsync.runtime.live.steps import Step
from shared_state.transaction import Transaction
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.live_runs import small_arm, small_workload

ASSEMBLY = Assembly.of(small_arm(), small_workload())
HOSTS = {0: (0, 2), 1: (1, 3)}
DELAY_US = 1_000


@dataclass(frozen=True, slots=True)
class Ask(Event):
    """Agent -> allocator, or -> worker pool."""

    kind: ClassVar[str] = "late"
    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.DECIDE
    agent: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Answer(Event):
    """To the agent. epoch: that of the request."""

    kind: ClassVar[str] = "late"
    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.DECIDE
    epoch: int


@dataclass(frozen=True, slots=True)
class AnswerDue(Event):
    kind: ClassVar[str] = "late"
    number: ClassVar[int] = 3
    priority: ClassVar[Priority] = Priority.DECIDE
    ask: Ask


class Allocator:
    """Answers after a while."""

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Ask():
                return [SetTimer(now_us + DELAY_US, AnswerDue(event))]
            case AnswerDue(ask):
                return [Send(ask.agent, Answer(ask.epoch))]
        return []

    def finish(self, now_us: int) -> list[Record]:
        return []

    def checkpoint(self) -> Any:
        return ()

    def restore(self, state: Any) -> None: ...


class LateCell:
    """A cell with an allocator beside the master, stepped by hand."""

    def __init__(self) -> None:
        self.codec = Codec((Ask, Answer, AnswerDue))
        tasks = len(ASSEMBLY.workload.tasks)
        self.runtime = CellRuntime(
            self.codec,
            ASSEMBLY.master(),
            hosts_of(HOSTS),
            tasks,
            ignore,
            lambda cell: {CELL_SIDE: Allocator()},
        )
        self.runtime.begin_epoch(0, 0)

    def step(
        self, host: int, epoch: int, number: int, at_us: int, *messages: tuple[int, Event]
    ) -> list[tuple[int, Event]]:
        step = Step(host, epoch, number, messages)
        reply, _ = self.runtime.handle(step, at_us)
        self.runtime.answered(step, reply)
        return [(address, self.codec.decode(event)) for address, event in decode(reply)]


def claim(agent: int, reply_to: int) -> CommitRequest:
    one = np.ones(1, np.int64)
    transaction = Transaction(agent, 1, one * 5, np.ones(1, np.int32), one[:, None], one * 0)
    return CommitRequest(reply_to, transaction)


def test_every_process_of_a_host_starts_its_agents_with_a_greater_epoch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    workload, arm = small_workload(machines=60), small_arm()
    metrics = partial(RunMetrics, RunFrame(workload.phases, arm.agents, partitions=arm.partitions))
    ray = FakeRay(monkeypatch, tmp_path, arm, workload, metrics)
    host = ray.live_run._plan.hosts[0]
    for until_us in (100_000, 200_000, 300_000):
        ray.pass_time(until_us)
        ray.kill(host.name)
        ray.restart(host.name)
    ray.pass_time(400_000)
    logs = handled_logs(tmp_path / "log", host.name)
    assert len(logs) == 4
    for epoch, path in logs:
        started = [
            (address, event.epoch)
            for address, _, event in read_handled(ray.assembly.codec, path)
            if isinstance(event, Started)
        ]
        assert started == [(agent, epoch) for agent in host.agents]
    epochs = [epoch for epoch, _ in logs]
    assert epochs[0] > 0 and epochs == sorted(set(epochs))


def test_the_masters_answers_to_earlier_agents_are_never_delivered() -> None:
    cell = LateCell()
    sync = SyncRequest(0, np.array([0], np.int32), np.array([0]), False)
    assert cell.step(0, 1, 1, 0) == []
    # the process ends before it reads the answers, which wait with what others sent meanwhile
    cell.step(1, 1, 1, 10, (0, Answer(1)))
    answers = cell.step(0, 1, 2, 20, (MASTER, claim(0, 0)), (MASTER, sync))
    assert len(answers) == 3
    cell.step(1, 1, 2, 30, (0, Answer(1)))
    told = [type(event).__name__ for _, event in cell.step(0, 2, 1, 40)]
    assert told == ["TasksAdopted"]
    assert cell.step(0, 2, 2, 5_000) == []


def test_claims_made_for_an_agent_are_answered_to_who_made_them() -> None:
    cell = LateCell()
    cell.step(0, 1, 1, 0)
    cell.step(0, 2, 1, 10)
    to_pool = cell.step(WORKERS, 1, 1, 20, (MASTER, claim(0, WORKERS)))
    assert [type(event) for _, event in to_pool if isinstance(event, CommitReply)] == [CommitReply]
    assert not [event for _, event in cell.step(0, 2, 2, 30) if isinstance(event, CommitReply)]


def test_late_answers_to_earlier_agents_carry_their_epoch() -> None:
    """A timer of the allocator, and another process, answer the agents before the restart."""
    cell = LateCell()
    cell.step(0, 1, 1, 0, (CELL_SIDE, Ask(0, 1)), (WORKERS, Ask(0, 1)))
    ((_, asked),) = cell.step(WORKERS, 1, 1, 10)
    assert isinstance(asked, Ask)
    assert cell.step(0, 2, 1, 20, (CELL_SIDE, Ask(0, 2))) == []
    cell.step(WORKERS, 1, 2, 30, (0, Answer(asked.epoch)))
    received = [event for _, event in cell.step(0, 2, 2, 20 + DELAY_US)]
    assert received == [Answer(1), Answer(1), Answer(2)]
