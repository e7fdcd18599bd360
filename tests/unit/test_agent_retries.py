"""When an agent decides again on tasks that a plan left waiting: at the time that the scheduler
asks for, when the view changes, and not more often than min_retry_interval_us."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.core.effects import SetTimer
from parsync.core.events import CommitRequest, TasksEnded
from parsync.protocols.optimistic.events import RetryDue, SyncDue
from schedulers.interface import Capability, ChangeKind
from tests.fixtures.changed import changed as replace
from tests.unit.agent_bench import POLICY, Bench, answer

KEEPS = [Capability.KEEPS_PENDING]
AT_ONCE = replace(POLICY, freed_at_once=True)


def timers(bench: Bench) -> list[SetTimer]:
    return [effect for effect in bench.effects if isinstance(effect, SetTimer)]


@pytest.mark.parametrize("capabilities", [[], KEEPS], ids=["agent keeps", "scheduler keeps"])
def test_a_scheduler_is_called_again_when_it_asked_for_it(capabilities: list[Capability]) -> None:
    bench = Bench(machines=1, partitions=1, capabilities=capabilities)
    bench.scheduler.script = [[]]
    bench.scheduler.retry_at_us = [5_000]
    bench.submit(100, 1)
    bench.decide(100)
    [timer] = timers(bench)
    assert timer == SetTimer(5_000, RetryDue(1)) and not bench.started
    bench.tell(5_000, timer.event)
    bench.decide(5_000)
    assert bench.scheduler.offered == [[1], [] if capabilities else [1]]


def test_the_time_asked_for_counts_until_the_next_plan() -> None:
    bench = Bench(machines=1, partitions=1, capabilities=KEEPS)
    bench.scheduler.script = [[], [], []]
    bench.scheduler.retry_at_us = [5_000, 7_000]
    bench.submit(100, 1)
    bench.decide(100)
    [first] = timers(bench)
    assert first == SetTimer(5_000, RetryDue(1))
    bench.submit(300, 2)
    bench.decide(300)
    [second] = timers(bench)
    assert second == SetTimer(7_000, RetryDue(2))
    bench.tell(5_000, first.event)
    assert not bench.started, "the second plan asked for another time"
    bench.tell(7_000, second.event)
    bench.decide(7_000)
    assert bench.scheduler.offered == [[1], [2], []]
    assert not timers(bench), "the third plan asked for none"


def test_a_time_that_passes_while_the_plan_is_decided_is_now() -> None:
    bench = Bench(machines=1, partitions=1, capabilities=KEEPS)
    bench.scheduler.script = [[], []]
    bench.scheduler.retry_at_us = [110]
    bench.submit(100, 1)
    bench.decide(100)  # until 200
    assert len(bench.started) == 1, "the next round has begun"


def test_a_rejected_task_is_decided_again_at_once_beside_tasks_that_wait() -> None:
    bench = Bench(
        machines=2,
        partitions=1,
        policy=replace(POLICY, commit_pipelining=True),
        capabilities=KEEPS,
    )
    bench.rival_takes(0)
    bench.scheduler.script = [[0]]  # and task 2 waits
    bench.submit(100, 1, 2)
    bench.decide(100)
    [request] = bench.sent(CommitRequest)
    answer(bench, request, 400)
    bench.decide(400)
    assert bench.scheduler.offered == [[1, 2], [1]]


def ended(bench: Bench, now_us: int) -> None:
    """The view changes: a task of the agent's own has ended."""
    columns = np.array([90]), np.array([7]), np.zeros(1, np.int32), np.ones((1, 1), np.int64)
    bench.tell(now_us, TasksEnded(ChangeKind.FINISHED, *columns, np.array([100])))


@pytest.mark.parametrize("interval_us", [0, 10_000])
def test_rounds_about_waiting_tasks_only_keep_their_interval(interval_us: int) -> None:
    policy = replace(AT_ONCE, min_retry_interval_s=interval_us / 1e6)
    bench = Bench(machines=1, partitions=1, policy=policy, capabilities=KEEPS)
    bench.scheduler.script = [[] for _ in range(9)]
    bench.submit(1_000, 1)
    bench.decide(1_000)
    ended(bench, 2_000)
    if not interval_us:
        bench.decide(2_000)
        assert bench.scheduler.offered == [[1], []]
        return
    assert not bench.started
    [timer] = timers(bench)
    assert timer == SetTimer(11_000, RetryDue(1))
    ended(bench, 3_000)
    assert not bench.started and not timers(bench), "the timer is set already"
    bench.submit(4_000, 2)
    bench.decide(4_000)  # new tasks do not wait
    bench.tell(11_000, timer.event)
    assert not bench.started, "its round is over"
    ended(bench, 12_000)
    assert timers(bench) == [SetTimer(14_000, RetryDue(2))]
    bench.tell(14_000, RetryDue(2))
    bench.decide(14_000)
    assert bench.scheduler.offered == [[1], [2], []]


def test_a_sync_that_changes_nothing_begins_no_round() -> None:
    bench = Bench(machines=1, partitions=1, capabilities=KEEPS)
    bench.rival_takes(0)
    bench.scheduler.script = [[], []]
    bench.scheduler.retry_at_us = [50_000, 50_000]
    bench.submit(100, 1)
    bench.decide(100)
    bench.tell(10_000, SyncDue(1))
    bench.sync(10_000)
    bench.decide(10_000)
    [timer] = timers(bench)
    assert timer == SetTimer(50_000, RetryDue(2))
    bench.tell(20_000, SyncDue(2))
    bench.sync(20_000)
    assert not bench.started and not timers(bench), "the timer is set already"
