"""Probing in live runs whose scheduler hosts are killed: what a killed scheduler had reserved ends,
its tasks are placed once, and the run's log repeats. Without Ray, on a hand-driven clock."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from parsync.core.addresses import WORKERS
from parsync.core.effects import Send, SetTimer
from parsync.core.event import Event
from parsync.core.events import (
    AllocationsEnded,
    CommitReply,
    CommitRequest,
    MachinesChanged,
    Started,
    TasksStarted,
)
from parsync.protocols._native import NodeQueues
from parsync.protocols.probing.events import (
    EVENTS,
    AgentRestarted,
    Probes,
    ProbesCancelled,
    ProbesLost,
    TaskAnswers,
    TaskRequests,
)
from parsync.spec.decision_times import ModelledTime
from schedulers.interface import ChangeKind
from shared_state.transaction import CommitResult, Reason
from tests.fixtures.changed import changed
from tests.fixtures.killed_actors import (
    cell_and_tasks,
    check_all_placed_once,
    killed_three_times,
    make_run,
    to_the_end,
)
from tests.fixtures.live_runs import probing_arm

BOTH = ("schedulers-0", "schedulers-1")


@pytest.mark.parametrize("options", [{}, {"cancellation": False}, {"binding": "least_queue"}])
@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("in_step", [True, False])
def test_what_a_killed_scheduler_had_reserved_is_placed_once(
    options: dict[str, Any],
    beside: bool,
    in_step: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arm, workload = probing_arm(beside, **options), cell_and_tasks()
    ray = make_run(monkeypatch, tmp_path, arm, workload)
    outcome = killed_three_times(ray, BOTH, in_step)
    check_all_placed_once(outcome, arm, workload, tmp_path)


def test_the_log_repeats_if_a_sample_falls_into_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decisions of 130 ms, and a sample every 100 ms. The replay learns how long a decision took
    when it ends."""
    arm, workload = probing_arm(), cell_and_tasks()
    slow = changed(arm.groups[0], decision=ModelledTime(job_us=130_000, task_us=50))
    arm = changed(arm, groups=(slow, *arm.groups[1:]))
    outcome = to_the_end(make_run(monkeypatch, tmp_path, arm, workload))
    check_all_placed_once(outcome, arm, workload, tmp_path)


# One machine of two slots, by hand.

HOP_US = 500


class ByHand:
    """The queues of a machine or two, and what they ask for.

    Args:
        settings: Those that differ from first come, first served, without long tasks.
    """

    def __init__(self, machines: int = 1, **settings: Any) -> None:
        usual = {
            "hop_us": HOP_US,
            "limit": np.full((machines, 1), 2, np.int64),
            "request": np.ones((20, 1), np.int64),
            "agents": 2,
            "order": 0,
            "key": np.zeros(0, np.int32),
            "is_long": np.zeros(0, np.bool_),
            "catalog": None,
        }
        self.queues = NodeQueues(SimpleNamespace(**usual | settings))
        self.handle(0, Started(0))

    def handle(self, now_us: int, event: Event) -> list[Any]:
        """What the queues send or set, as (receiver or time, event)."""
        effects = self.queues.handle(now_us, event)
        assert all(isinstance(effect, Send | SetTimer) for effect in effects)
        return [
            (effect.to if isinstance(effect, Send) else effect.at_us, effect.event)
            for effect in effects
        ]

    def probe(
        self, *probes: int, agent: int = 0, epoch: int = 0, machine: int = 0, like_task: int = 0
    ) -> list[Any]:
        """Reservations of request 7 arrive at time 0."""
        n = len(probes)
        request, like = np.full(n, 7), np.full(n, like_task)
        where = np.full(n, machine, np.int32)
        number = np.array(probes, np.int32)
        return self.handle(0, Probes(agent, epoch, 0, False, request, number, where, like))

    def answer(self, hold: int, task: int, epoch: int = 0) -> list[Any]:
        answers = TaskAnswers(0, epoch, 0, np.array([hold]), np.array([task]))
        return self.handle(1, answers)

    def settle(self, sent: Any, reason: Reason) -> list[Any]:
        """The master answers a request for one claim."""
        (to, request) = sent
        assert isinstance(request, CommitRequest) and request.reply_to == WORKERS and to < 0
        claims = request.transaction
        none = np.zeros(0, np.int64)
        result = CommitResult(
            claims.sequence,
            np.array([reason], np.int8),
            np.array([5]),
            np.array([-1], np.int32),
            np.zeros(1, np.int64),
            np.ones(1, np.int64),
            none,
        )
        if reason is Reason.ACCEPTED:
            owner = np.array([claims.scheduler], np.int32)
            started = TasksStarted(2, claims.task, np.array([5]), claims.machine, owner)
            self.handle(2, started)
        return self.handle(2, CommitReply(0, claims.scheduler, result))


def asked(sent: list[Any]) -> list[int]:
    """The probes for which a task was asked."""
    return [one for _, event in sent if isinstance(event, TaskRequests) for one in event.probe]


def test_a_reservation_keeps_its_room_until_it_is_answered() -> None:
    run = ByHand()
    assert asked(run.probe(0, 1, 2, 3)) == [0, 1]
    assert (run.queues.holds, run.queues.queued_at(0)) == (2, 2)
    assert asked(run.answer(0, -1)) == [2]
    (claim,) = run.answer(1, 4)
    assert run.queues.holds == 2
    assert run.settle(claim, Reason.ACCEPTED) == []
    assert (run.queues.holds, run.queues.queued_at(0)) == (1, 1)


def test_a_rejected_claim_puts_the_reservation_first_again_until_a_task_ends() -> None:
    run = ByHand()
    run.probe(0, 1, 2)
    (claim,) = run.answer(0, 4)
    assert run.settle(claim, Reason.FULL) == []
    assert run.queues.queued_at(0) == 2
    assert asked(run.probe(5)) == []
    down, up = (MachinesChanged(np.array([0], np.int32), np.array([one])) for one in (False, True))
    sent = run.handle(3, down)
    lost = [event for _, event in sent if isinstance(event, ProbesLost)]
    assert lost[0].probe.tolist() == [0, 2, 5] and lost[0].task.tolist() == [-1] * 3
    assert run.handle(4, up) == [] and asked(run.probe(6)) == [6]


def test_a_message_that_comes_early_waits_until_it_is_due() -> None:
    run = ByHand()
    one, where = np.zeros(1, np.int32), np.zeros(1, np.int32)
    probes = Probes(0, 0, HOP_US, False, np.array([7]), one, where, np.array([0]))
    assert run.handle(100, probes) == [(HOP_US, probes)]
    ((to, request),) = run.handle(HOP_US, probes)
    assert to == 0 and (request.sent_us, request.due_us) == (HOP_US, 2 * HOP_US)


def test_cancelled_reservations_leave_the_queue_and_no_others() -> None:
    run = ByHand()
    run.probe(0, 1, 2, 3, 4)
    number, where = np.array([3, 0], np.int32), np.zeros(2, np.int32)
    assert run.handle(1, ProbesCancelled(0, 0, 0, np.array([7, 7]), number, where)) == []
    assert (run.queues.queued_at(0), run.queues.holds) == (2, 2)
    assert asked(run.answer(0, -1)) == [2] and asked(run.answer(1, -1)) == [4]
    run.probe(9)
    assert run.queues.queued_at(0) == 1


ROUND_ROBIN, PRIORITY = 1, 2


def test_users_take_turns_and_one_served_in_vain_goes_on() -> None:
    users = np.array([3, 5, 9] + 17 * [0], np.int32)
    run = ByHand(order=ROUND_ROBIN, key=users)
    run.probe(0, 1, like_task=0)  # user 3 holds both slots
    run.probe(2, 3, like_task=0)
    run.probe(4, 5, like_task=1)
    run.probe(6, like_task=2)
    assert asked(run.answer(0, -1)) == [2], "still the turn of user 3"
    (claim,) = run.answer(1, 4)
    assert run.settle(claim, Reason.ACCEPTED) == []
    assert asked(run.handle(3, ended(4))) == [4], "user 5 comes after user 3"
    assert asked(run.answer(0, -1)) == [3], "user 3 was served in vain again"
    assert asked(run.answer(0, -1)) == [6], "it has none left; user 9 comes after user 5"
    assert asked(run.answer(0, -1)) == [5]


def test_a_user_whose_claim_was_rejected_keeps_its_turn() -> None:
    users = np.array([3, 5] + 18 * [0], np.int32)
    run = ByHand(order=ROUND_ROBIN, key=users)
    run.probe(0, 1, like_task=0)
    run.probe(2, like_task=0)
    run.probe(3, like_task=1)
    (other,) = run.answer(1, 8)
    assert run.settle(other, Reason.ACCEPTED) == []
    (claim,) = run.answer(0, 0)
    assert run.settle(claim, Reason.FULL) == []
    assert asked(run.handle(3, ended(8))) == [0, 3]


def test_higher_priorities_go_first_and_equal_ones_in_their_order() -> None:
    priorities = np.array([1, 4, 7, 4] + 16 * [0], np.int32)
    run = ByHand(order=PRIORITY, key=priorities)
    run.probe(0, 1, like_task=1)
    run.probe(2, like_task=0)
    run.probe(3, like_task=1)
    run.probe(4, like_task=2)
    run.probe(5, like_task=3)
    (claim,) = run.answer(1, 1)
    assert run.settle(claim, Reason.FULL) == [], "first among its equals, behind number 4"
    assert asked(run.answer(0, -1)) == [], "until a task ends"
    assert asked(run.handle(3, ended(9))) == [4, 1, 3]


def ended(task: int) -> AllocationsEnded:
    """A task on machine 0 ends; it may be one of a rival, of the same size."""
    one = np.array([0], np.int32)
    return AllocationsEnded(ChangeKind.FINISHED, np.array([task]), np.array([5]), one, one)


def test_short_tasks_that_wait_behind_long_ones_are_reported() -> None:
    is_long = np.arange(20) == 3
    run = ByHand(is_long=is_long)
    run.probe(0, like_task=3)
    assert behind_long(run.probe(1)) == [], "the second slot is free"
    run.probe(2)
    run.probe(4, like_task=3)
    (long_task,) = run.answer(0, 3)
    assert run.settle(long_task, Reason.ACCEPTED) == []
    assert behind_long(run.answer(1, -1)) == [2]
    run.probe(5)
    assert asked(run.handle(4, ended(3))) == [4], "long itself"
    assert behind_long(run.answer(0, -1)) == [5]
    run.probe(6)
    assert behind_long(run.answer(0, -1)) == [], "the long ones are gone"


def behind_long(sent: list[Any]) -> list[int]:
    """The probes that are reported to have waited behind a long task."""
    return [
        event.probe[row]
        for _, event in sent
        if isinstance(event, TaskRequests)
        for row in event.behind_long
    ]


def test_a_new_epoch_ends_reservations_and_holds_of_the_agent_before() -> None:
    run = ByHand()
    run.probe(0, 1, 2)
    run.probe(8, agent=1)
    (claim,) = run.answer(0, 4)
    assert asked(run.handle(1, AgentRestarted(0, 1))) == [8]
    assert run.queues.queued_at(0) == 0
    assert run.answer(1, 5) == [], "an answer of the agent before"
    assert run.probe(4) == [], "a probe of the agent before"
    assert run.settle(claim, Reason.FULL) == [] and run.queues.holds == 1


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (TaskAnswers(0, 0, 0, np.array([3]), np.array([1])), "hold 3: the agent has none"),
        (AgentRestarted(2, 0), "agent 2: there is none"),
    ],
)
def test_messages_about_what_does_not_exist_are_refused(event: Event, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ByHand().handle(0, event)
    assert len({one.number for one in EVENTS}) == len(EVENTS)
