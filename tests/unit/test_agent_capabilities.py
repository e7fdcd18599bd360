"""Each capability of a scheduler changes one thing about its agent, by itself."""

from __future__ import annotations

import pytest

from parsync.core.events import CommitRequest
from parsync.protocols.optimistic.events import SyncDue
from schedulers.interface import Capability, ChangeKind
from tests.fixtures.changed import changed as replace
from tests.unit.agent_bench import POLICY, Bench, answer

GOES_ON = replace(POLICY, commit_pipelining=True)


@pytest.mark.parametrize("capability", Capability)
def test_only_a_scheduler_that_waits_for_the_outcome_keeps_its_agent_waiting(
    capability: Capability,
) -> None:
    bench = Bench(machines=6, policy=GOES_ON, capabilities=[capability])
    bench.submit(100, 1)
    bench.submit(110, 2)
    bench.decide(100)
    [first] = bench.sent(CommitRequest)
    assert (not bench.started) == (capability is Capability.WAITS_FOR_OUTCOME)
    answer(bench, first, 300)
    assert bench.started


@pytest.mark.parametrize("capability", Capability)
def test_only_a_scheduler_that_plans_the_whole_queue_gets_all_batches_in_one_round(
    capability: Capability,
) -> None:
    whole = capability is Capability.PLANS_WHOLE_QUEUE
    policy = replace(POLICY, cut_at_sync=True)
    bench = Bench(machines=200, policy=policy, capabilities=[capability])
    bench.submit(9_000, 0)
    bench.submit(9_010, *range(1, 30))
    bench.submit(9_020, *range(30, 40))
    bench.decide(9_000)
    bench.commit(9_100)
    bench.decide(9_100)
    # There is time for 9 tasks before the sync at 10,000.
    assert bench.scheduler.offered == [[0], [*range(1, 40)] if whole else [*range(1, 10)]]


@pytest.mark.parametrize("capability", Capability)
def test_only_a_scheduler_that_plans_the_whole_queue_has_no_prompt_rounds(
    capability: Capability,
) -> None:
    bench = Bench(machines=40, strategy="prompt", capabilities=[capability])
    bench.submit(100, *range(20))
    bench.decide(100)
    whole = capability is Capability.PLANS_WHOLE_QUEUE
    assert bench.scheduler.offered == [[*range(20 if whole else 7)]]


@pytest.mark.parametrize("capability", Capability)
def test_only_a_scheduler_that_keeps_what_waits_is_not_offered_it_again(
    capability: Capability,
) -> None:
    bench = Bench(machines=2, capabilities=[capability])
    taken = bench.rival_takes(0)
    bench.submit(100, 1, 2, 3)
    bench.decide(100)
    bench.commit(400)  # task 1 loses machine 0, task 2 gets machine 1
    if bench.started:
        bench.decide(400)
    bench.cell.release(taken, None, 500)
    bench.tell(10_000, SyncDue(1))
    bench.sync(10_000)
    bench.decide(10_000)
    keeps = capability is Capability.KEEPS_PENDING
    again = [task for offered in bench.scheduler.offered[1:] for task in offered]
    assert (3 in again) == (not keeps) and 1 in again


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("capability", Capability)
def test_only_a_scheduler_that_ignores_changes_is_not_told_of_them(
    capability: Capability, keeps: bool
) -> None:
    """One that keeps tasks is told in any case: its plans are checked against that."""
    capabilities = {capability} | ({Capability.KEEPS_PENDING} if keeps else set())
    bench = Bench(machines=2, capabilities=capabilities)
    bench.rival_takes(0)
    bench.submit(100, 1, 2)
    bench.decide(100)
    bench.commit(400)  # task 1 loses machine 0, task 2 gets machine 1
    needs = {Capability.KEEPS_PENDING, Capability.EVICTS} & capabilities
    ignores = capability is Capability.IGNORES_CHANGES and not needs
    told = {} if ignores else {ChangeKind.REJECTED: [1], ChangeKind.COMMITTED: [2]}
    assert {changes.kind: changes.task.tolist() for changes in bench.scheduler.seen} == told


def test_with_a_scheduler_that_plans_the_whole_queue_new_tasks_join_those_without_room() -> None:
    bench = Bench(machines=1, partitions=1, capabilities=[Capability.PLANS_WHOLE_QUEUE])
    bench.rival_takes(0)
    bench.submit(100, 1)
    bench.decide(100)
    bench.commit(200)
    bench.decide(200)
    assert not bench.started, "no room"
    bench.submit(400, 2)
    bench.submit(400, 3)
    bench.decide(400)
    bench.decide(450)
    assert bench.scheduler.offered == [[1], [1], [1, 2], [1, 2, 3]]
