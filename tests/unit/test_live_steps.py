"""Exactly-once: a step is carried out once whatever becomes of calls and replies, and an earlier
epoch of a host changes nothing."""

from __future__ import annotations

import random

import pytest

from parsync.core.addresses import MASTER
from parsync.core.codec import CORE, encode
from parsync.core.events import SampleDue
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.steps import (
    STALE,
    ActorLost,
    Replaced,
    Step,
    StepClient,
    StepDeduplicator,
)
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
