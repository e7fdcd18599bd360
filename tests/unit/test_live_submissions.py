"""Submissions: every task reaches the host's present epoch exactly once, unless the cell has placed
it already."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from parsync.core.events import TasksSubmitted
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.submissions import Acknowledgement, SubmissionReceiver, SubmissionSender

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
