"""Exactly once: a step is carried out once whatever becomes of calls and replies, and an earlier
epoch of a host changes nothing; every task reaches the host's present epoch once, unless placed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from parsync.core.addresses import MASTER
from parsync.core.codec import CORE, encode
from parsync.core.events import SampleDue, TasksSubmitted
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.steps import (
    STALE,
    ActorLost,
    Replaced,
    Step,
    StepClient,
    StepDeduplicator,
)
from parsync.runtime.live.submissions import Acknowledgement, SubmissionReceiver, SubmissionSender
from tests.fixtures.steps_at_once import step


class Cell:
    """Carries out steps by noting their events; replies with how many it has carried out."""

    def __init__(self) -> None:
        self.deduplicator = StepDeduplicator()
        self.phases: list[int] = []

    def step(self, request: bytes) -> bytes:
        step = Step.of(CORE, request)
        reply = self.deduplicator.known(step)
        if reply is None:
            self.phases += [
                event.sample for _, event in step.messages if isinstance(event, SampleDue)
            ]
            reply = encode(((step.host, encode(SampleDue(len(self.phases)))),))
            self.deduplicator.answered(step, reply)
        return reply


@pytest.mark.parametrize("seed", range(5))
def test_steps_happen_once_and_in_order_over_a_line_that_loses_calls_and_replies(seed: int) -> None:
    cell = Cell()
    chance = random.Random(seed)
    delayed: list[bytes] = []

    def call(request: bytes) -> bytes:
        if chance.random() < 0.3:
            raise Unavailable("the call is lost")
        if chance.random() < 0.3:
            delayed.append(request)  # it will arrive late, after its own repetition
            raise Unavailable("no answer in time")
        reply = cell.step(request)
        if delayed and chance.random() < 0.5:
            cell.step(delayed.pop(0))
        if chance.random() < 0.3:
            raise Unavailable("the reply is lost")
        return reply

    client = StepClient(CORE, host=0, epoch=1, call=call, pause_s=0.0)
    for number in range(100):
        assert step(client, [(MASTER, SampleDue(number))]) == [(0, SampleDue(number + 1))]
    assert cell.phases == list(range(100))
    assert client.repeats > 0


def test_a_late_step_of_an_earlier_epoch_is_ignored() -> None:
    cell = Cell()
    step(StepClient(CORE, 0, 1, cell.step), [(MASTER, SampleDue(1))])
    late = Step(0, 1, 2, ((MASTER, SampleDue(2)),)).to_bytes(CORE)
    step(StepClient(CORE, 0, 7, cell.step), [(MASTER, SampleDue(3))])
    assert cell.step(late) == STALE
    assert cell.phases == [1, 3]


def test_a_new_epoch_is_noticed_once() -> None:
    deduplicator = StepDeduplicator()
    first = Step(0, 1, 1, ())
    assert not deduplicator.is_new_epoch(first)
    deduplicator.answered(first, b"x")
    assert not deduplicator.is_new_epoch(Step(0, 1, 2, ()))
    second = Step(0, 2, 1, ())
    assert deduplicator.is_new_epoch(second) and deduplicator.known(second) is None
    deduplicator.answered(second, b"y")
    assert not deduplicator.is_new_epoch(Step(0, 2, 2, ()))


def test_hosts_do_not_share_numbers() -> None:
    cell = Cell()
    step(StepClient(CORE, 0, 1, cell.step), [(MASTER, SampleDue(1))])
    step(StepClient(CORE, 1, 1, cell.step), [(MASTER, SampleDue(2))])
    assert cell.phases == [1, 2]


def test_a_step_that_skips_a_number_is_a_bug() -> None:
    with pytest.raises(ValueError, match="step 3 after step 0"):
        StepDeduplicator().known(Step(0, 1, 3, ()))


def test_a_cell_that_stays_away_is_given_up() -> None:
    def call(request: bytes) -> bytes:
        raise Unavailable("gone")

    with pytest.raises(ActorLost, match="gone"):
        step(StepClient(CORE, 0, 1, call, give_up_s=0.0, pause_s=0.0), [])


def test_a_superseded_host_learns_so() -> None:
    cell = Cell()
    old = StepClient(CORE, 0, 1, cell.step)
    step(old, [])
    step(StepClient(CORE, 0, 2, cell.step), [])
    with pytest.raises(Replaced, match="later epoch"):
        step(old, [])


TASKS = 200


class Host:
    """A host of agents that hold tasks until the cell has placed them."""

    def __init__(self) -> None:
        self.epoch = 0
        self.restart()

    def restart(self) -> None:
        self.epoch += 10
        self.receiver = SubmissionReceiver(self.epoch)
        self.held: list[tuple[int, int]] = []

    def deliver(self, epoch: int, number: int, payload: bytes) -> Acknowledgement:
        answer, messages = self.receiver.take(epoch, number, payload)
        for agent, event in messages:
            self.held += [(agent, task) for task in event.task.tolist()]
        return answer


class FakeHostClient:
    """Loses calls and answers as it is told, and lets answers wait."""

    def __init__(self, host: Host, chance: random.Random) -> None:
        self.host = host
        self.chance = chance

    def begin(self, epoch: int, number: int, payload: bytes) -> Any:
        if self.chance.random() < 0.2:
            return None
        answer = self.host.deliver(epoch, number, payload)
        return None if self.chance.random() < 0.2 else answer

    def poll(self, call: Any) -> Acknowledgement | None:
        if call is None:
            raise Unavailable("lost")
        return call if self.chance.random() < 0.7 else None


@pytest.mark.parametrize("seed", range(10))
def test_every_task_is_held_once_or_placed_over_restarts_and_lost_calls(seed: int) -> None:
    chance = random.Random(seed)
    host = Host()
    placed = np.zeros(TASKS, np.bool_)

    def never_placed() -> np.ndarray:
        if chance.random() < 0.3:
            raise Unavailable("the cell is away")
        return ~placed

    sender = SubmissionSender(FakeHostClient(host, chance), never_placed)
    submitted = 0
    now_us = 0
    for turn in range(1000):
        if submitted < TASKS:
            sender.submit([(submitted % 3, TasksSubmitted(np.arange(submitted, submitted + 5)))])
            submitted += 5
        sender.poll(now_us)
        now_us += 25_000
        if host.held and chance.random() < 0.5:
            placed[host.held.pop(0)[1]] = True
        if chance.random() < 0.05 and turn < 500:
            host.restart()
    assert sender.idle and sender.epoch == host.epoch
    held = [task for _, task in host.held]
    assert len(set(held)) == len(held)
    assert sorted([*held, *np.flatnonzero(placed).tolist()]) == list(range(TASKS))
    assert all(agent == task // 5 * 5 % 3 for agent, task in host.held)


def test_a_restart_with_nothing_to_submit_is_noticed() -> None:
    host = Host()
    chance = random.Random()
    chance.random = lambda: 0.5  # type: ignore[method-assign]  # nothing is lost or late
    sender = SubmissionSender(FakeHostClient(host, chance), lambda: np.ones(TASKS, np.bool_))
    sender.submit([(0, TasksSubmitted(np.arange(3)))])
    for tick in range(5):
        sender.poll(tick * 25_000)
    assert sender.idle and len(host.held) == 3
    host.restart()
    for tick in range(5, 20):
        sender.poll(tick * 25_000)
    assert sender.idle and sender.epoch == host.epoch
    assert sender.resubmitted == 3 and len(host.held) == 3


def test_a_push_meant_for_another_epoch_is_not_taken() -> None:
    answer, messages = SubmissionReceiver(epoch=5).take(4, 1, b"")
    assert answer == Acknowledgement(5, False) and messages == []
