"""The agent against a scripted scheduler and a real cell: what becomes of claims and batches, and
when it synchronises its view."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.core import events
from parsync.core.effects import SetTimer
from parsync.core.events import CommitReply, CommitRequest, SyncRequest
from parsync.protocols.optimistic.events import RequeueDue, RetryDue, RoundDue, SyncDue
from parsync.protocols.pending_queue import LoserPolicy
from schedulers.interface import ChangeKind, PartitionRanking
from shared_state.cell import Released
from shared_state.transaction import ConflictCheck
from tests.fixtures.changed import changed as replace
from tests.unit.agent_bench import POLICY, Bench, answer, none


def timers(bench: Bench) -> list[SetTimer]:
    return [effect for effect in bench.effects if isinstance(effect, SetTimer)]


def take_down(bench: Bench, machine: int, now_us: int) -> Released:
    return bench.cell.set_machines(np.array([machine], np.int32), np.array([False]), now_us)


def ended(kind: ChangeKind, of: Released) -> events.TasksEnded:
    return events.TasksEnded(kind, of.task, of.allocation, of.machine, of.request, of.version)


def rows_of(bench: Bench, now_us: int, table: str) -> dict[str, np.ndarray]:
    """What the agent recorded in a table since the last look."""
    [columns] = [r.columns for r in bench.agent.finish(now_us) if r.table == table]
    return columns


def test_a_batch_is_decided_committed_and_forgotten() -> None:
    bench = Bench()
    bench.submit(100, 1, 2, 3)
    assert bench.decide(100) == 300
    bench.commit(400)
    assert bench.agent.queued == 0
    assert bench.cell.used[:, 0].tolist() == [1, 1, 1, 0]
    assert [change.kind for change in bench.scheduler.seen] == [ChangeKind.COMMITTED]
    tasks = rows_of(bench, 400, "tasks")
    assert tasks["commit_us"].tolist() == [400] * 3
    assert tasks["attempts"].tolist() == [1] * 3


def test_planned_machines_leave_the_view_at_once() -> None:
    bench = Bench()
    bench.submit(100, 1, 2)
    [start] = bench.started
    bench.agent.decide(start.decision, 100)
    assert bench.agent.view.free[:, 0].tolist() == [0, 0, 1, 1]


def test_losers_are_decided_again_at_once_and_the_next_batch_waits() -> None:
    bench = Bench()
    bench.rival_takes(0)
    bench.submit(100, 1, 2)
    bench.submit(110, 3)
    bench.decide(100)
    bench.commit(300)
    # Machine 0 is known to be taken now: task 1 goes elsewhere, and the batch of task 3 has not
    # begun.
    bench.decide(300)
    assert bench.scheduler.offered == [[1, 2], [1]]
    bench.commit(400)
    bench.decide(400)
    assert bench.scheduler.offered[2] == [3]
    bench.commit(500)
    attempts = {
        int(task): int(count)
        for record in bench.agent.finish(500)
        if record.table == "tasks"
        for task, count in zip(record.columns["task"], record.columns["attempts"], strict=True)
    }
    assert attempts == {1: 2, 2: 1, 3: 1}


def test_an_agent_that_does_not_wait_goes_on_while_its_claims_are_under_way() -> None:
    bench = Bench(machines=6, policy=replace(POLICY, commit_pipelining=True))
    bench.rival_takes(0)
    bench.submit(100, 1, 2)
    bench.submit(110, 3)
    bench.decide(100)
    [first] = bench.sent(CommitRequest)
    # No answer yet: the next batch is planned on a view without the machines claimed.
    bench.decide(300)
    [second] = bench.sent(CommitRequest)
    assert bench.scheduler.offered == [[1, 2], [3]]
    assert second.transaction.machine.tolist() == [2]
    # Machine 0 was lost; its task is decided as soon as the answer is there, since the agent has
    # nothing else to do.
    answer(bench, first, 450)
    bench.decide(450)
    [third] = bench.sent(CommitRequest)
    assert bench.scheduler.offered[2] == [1] and third.transaction.machine.tolist() == [3]
    answer(bench, second, 600)
    answer(bench, third, 610)
    assert bench.agent.queued == 0 and not bench.started
    assert bench.cell.used[:, 0].tolist() == [1, 1, 1, 1, 0, 0]


def test_losers_that_come_back_during_a_round_are_first_in_the_next() -> None:
    bench = Bench(machines=8, policy=replace(POLICY, commit_pipelining=True))
    bench.rival_takes(0)
    bench.submit(100, 1, 2)
    bench.submit(110, 3)
    bench.submit(120, 4)
    bench.decide(100)
    [first] = bench.sent(CommitRequest)
    answer(bench, first, 350)  # the round of task 3 is open
    bench.decide(350)
    bench.decide(450)
    assert bench.scheduler.offered == [[1, 2], [3], [1]]
    bench.decide(550)
    assert bench.scheduler.offered[3] == [4]


def test_an_answer_under_way_does_not_wake_an_agent_whose_view_is_full() -> None:
    bench = Bench(machines=2, policy=replace(POLICY, commit_pipelining=True))
    taken = bench.rival_takes(0)
    bench.submit(100, 1, 2, 3)
    bench.decide(100)
    [first] = bench.sent(CommitRequest)
    assert not bench.started, "nothing is free for task 3"
    answer(bench, first, 400)
    assert not bench.started and bench.agent.queued == 2
    bench.cell.release(taken, None, 500)
    bench.tell(10_000, SyncDue(1))
    bench.sync(10_000)
    bench.decide(10_000)
    assert bench.scheduler.offered[1] == [1, 3], "the loser first, then what was left"


def test_requeued_losers_rejoin_the_tail_after_the_pause() -> None:
    bench = Bench(policy=replace(POLICY, losers=LoserPolicy.REQUEUE, requeue_s=0.005))
    bench.rival_takes(0)
    bench.submit(100, 1, 2)
    bench.submit(110, 3)
    bench.decide(100)
    bench.commit(300)
    [retry] = [timer for timer in timers(bench) if isinstance(timer.event, RequeueDue)]
    assert retry.at_us == 5_300
    bench.decide(300)
    assert bench.scheduler.offered == [[1, 2], [3]]
    bench.commit(400)
    bench.tell(5_300, retry.event)
    bench.decide(5_300)
    assert bench.scheduler.offered[2] == [1]


def test_requeued_tasks_are_given_up_after_the_limit() -> None:
    bench = Bench(policy=replace(POLICY, losers=LoserPolicy.REQUEUE, attempts_max=1))
    bench.rival_takes(0)
    bench.submit(100, 1)
    bench.decide(100)
    bench.commit(200)
    assert bench.agent.queued == 0
    given_up = rows_of(bench, 200, "unplaceable")
    assert given_up["task"].tolist() == [1] and given_up["abandoned"].tolist() == [1]


def test_a_task_larger_than_every_machine_is_told_once_and_never_spins() -> None:
    bench = Bench()
    bench.scheduler.too_large = {1}
    bench.submit(100, 1)
    bench.decide(100)
    assert bench.agent.queued == 0
    assert not bench.started
    told = rows_of(bench, 200, "unplaceable")
    assert told["task"].tolist() == [1] and told["abandoned"].tolist() == [0]


def test_decision_time_is_wasted_by_conflicts_and_by_no_other_rejection() -> None:
    bench = Bench()
    bench.submit(100, 1, 2)
    take_down(bench, 0, 100)
    bench.decide(100)
    bench.commit(300)
    bench.rival_takes(2)
    bench.decide(300)
    bench.commit(400)
    bench.decide(400)
    bench.commit(500)
    records = {record.table: record.columns for record in bench.agent.finish(500)}
    outcomes = zip(
        records["commits"]["machine_down"].tolist(),
        records["commits"]["full"].tolist(),
        strict=True,
    )
    assert list(outcomes) == [(1, 0), (0, 1), (0, 0)]
    assert (records["agents"]["busy_us"][-1], records["agents"]["wasted_us"][-1]) == (400, 100)


def test_a_lost_task_is_offered_again_and_no_first_commit_any_more() -> None:
    bench = Bench()
    bench.submit(100, 1)
    bench.decide(100)
    bench.commit(200)
    bench.tell(300, ended(ChangeKind.LOST, take_down(bench, 0, 300)))
    assert bench.agent.queued == 1
    bench.decide(300)
    bench.commit(400)
    tasks = rows_of(bench, 500, "tasks")
    assert tasks["first"].tolist() == [1, 0]


def test_a_task_that_runs_again_has_no_part_in_the_delay_average() -> None:
    """Its delay would be counted from its submission, and so hold all the time that it ran."""
    bench = Bench(policy=replace(POLICY, average_permille=1000))
    bench.submit(100, 1)
    bench.decide(100)
    bench.commit(200)
    bench.tell(900_000, ended(ChangeKind.LOST, take_down(bench, 0, 900_000)))
    bench.decide(900_000)
    bench.commit(900_100)
    samples = rows_of(bench, 900_100, "agents")
    assert bench.agent.queued == 0 and samples["ema_us"].tolist() == [200]


@pytest.mark.parametrize("partitions", [4, 8, 10])
def test_equally_fresh_partitions_are_tried_from_another_place_by_each_agent_and_in_each_round(
    partitions: int,
) -> None:
    """Aligned full syncs make all equally fresh for everybody: in one order, all agents would be
    sent to the same machines."""
    first: list[list[int]] = []
    for index in range(4):
        bench = Bench(partitions, index=index, agents=4, partitions=partitions)
        for sync in (1, 2):
            bench.submit(sync * 10_000 - 500, sync)
            bench.decide(sync * 10_000 - 500)
            bench.commit(sync * 10_000 - 400)
            bench.tell(sync * 10_000, SyncDue(sync))
            bench.sync(sync * 10_000)
        orders = [context.partition_order for context in bench.scheduler.contexts]
        assert all(sorted(order.tolist()) == list(range(partitions)) for order in orders)
        first.append([int(order[0]) for order in orders])
    for places in zip(*first, strict=True):
        assert len(set(places)) == 4, "four agents, four places"
    assert all(earlier != later for earlier, later in first)


def test_adaptive_turns_to_latency_first_when_delays_reach_tau() -> None:
    bench = Bench(machines=40, strategy="adaptive", policy=replace(POLICY, average_permille=1000))
    bench.submit(0, 1)
    bench.decide(4_000)
    bench.commit(6_000)  # delay 6 ms > tau 5 ms
    bench.submit(6_000, 2)
    bench.decide(6_000)
    assert [context.ranking for context in bench.scheduler.contexts] == [
        PartitionRanking.QUALITY_FIRST,
        PartitionRanking.LATENCY_FIRST,
    ]


def test_a_prompt_round_has_time_for_what_is_decided_within_an_eighth_of_the_gap() -> None:
    bench = Bench(machines=40, strategy="prompt")
    bench.submit(0, *range(16))
    for now_us in (0, 1_000, 2_000):
        bench.decide(now_us)
        bench.commit(now_us + 800)
    # G/N is 5 ms. The 7th decision of 0.1 ms begins within the first 625 us.
    assert bench.scheduler.offered == [[*range(7)], [*range(7, 14)], [14, 15]]


def test_a_prompt_round_ends_at_the_next_sync_as_others_do() -> None:
    bench = Bench(machines=40, strategy="prompt", policy=replace(POLICY, cut_at_sync=True))
    bench.submit(9_700, *range(10))
    bench.decide(9_700)
    assert bench.scheduler.offered == [[0, 1, 2]], "300 us are left"


def test_sequence_number_checks_send_what_the_plan_saw() -> None:
    bench = Bench(policy=replace(POLICY, conflict_check=ConflictCheck.SEQUENCE_NUMBER))
    bench.submit(100, 1)
    bench.decide(100)
    [request] = bench.sent(CommitRequest)
    assert request.transaction.seqnum.tolist() == [0]
    assert request.transaction.synced_us.tolist() == [0]


def test_an_answer_repeated_after_a_restart_changes_nothing() -> None:
    bench = Bench()
    bench.submit(100, 1)
    bench.decide(100)
    [request] = bench.sent(CommitRequest)
    reply = CommitReply(0, bench.agent.index, bench.cell.commit(request.transaction, 200))
    bench.tell(200, reply)
    assert bench.tell(300, reply) == []
    assert bench.agent.queued == 0


def test_unknown_events_are_bugs() -> None:
    with pytest.raises(TypeError, match="cannot handle"):
        Bench().agent.handle(0, events.TasksCancelled(none()))


def test_events_out_of_order_are_refused() -> None:
    bench = Bench()
    with pytest.raises(ValueError, match="RoundDue: expected once for each round"):
        bench.agent.handle(0, RoundDue())
    bench.submit(10, 1)
    bench.agent.decide(bench.started[-1].decision, 10)
    with pytest.raises(ValueError, match="DecisionDone: expected after"):
        bench.agent.handle(20, events.DecisionDone(bench.started[-1].decision + 1, 0))
    wide = np.ones((1, 2), np.int64)
    one, machine = np.zeros(1, np.int64), np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="expected a column for each resource"):
        bench.agent.handle(30, events.TasksEnded(3, one, one, machine, wide, one))


# --- when it synchronises, with which partitions, and how old its view is ---


def test_an_agent_with_nothing_free_waits_for_its_view_to_change() -> None:
    bench = Bench()
    bench.submit(100, *range(6))
    bench.decide(100)
    bench.commit(600)
    assert bench.agent.queued == 2
    assert not bench.started
    bench.tell(10_000, SyncDue(1))
    allocation = bench.cell.allocations().allocation[:1]
    bench.cell.release(allocation, np.zeros(1, np.int32), 9_000)
    bench.sync(10_000)
    bench.decide(10_000)
    assert bench.scheduler.offered[1] == [4, 5]


def test_a_round_ends_at_the_next_sync_and_the_rest_sees_the_refreshed_view() -> None:
    bench = Bench(policy=replace(POLICY, cut_at_sync=True), machines=20)
    bench.submit(9_750, *range(10))
    assert bench.decide(9_750) == 300
    assert bench.scheduler.offered == [[0, 1, 2]]
    asked = bench.effects
    bench.tell(10_000, SyncDue(1))
    bench.effects = [*asked, *bench.effects]
    bench.commit(10_050)
    bench.decide(10_050)
    assert bench.scheduler.offered[1] == list(range(3, 10))


def test_an_owner_sees_its_freed_room_at_once_only_if_so_chosen() -> None:
    for freed_at_once, expected in ((True, 1), (False, 0)):
        bench = Bench(policy=replace(POLICY, freed_at_once=freed_at_once))
        bench.submit(100, 1)
        bench.decide(100)
        bench.commit(200)
        held = bench.cell.allocations()
        released = bench.cell.release(held.allocation, held.owner, 300)
        bench.tell(300, ended(ChangeKind.FINISHED, released))
        assert bench.agent.view.free[0, 0] == expected


def test_a_restarted_master_makes_the_view_start_over() -> None:
    bench = Bench()
    bench.submit(100, 1)
    bench.decide(100)
    bench.commit(200)
    bench.tell(10_000, SyncDue(1))
    bench.sync(10_000, epoch=1)
    [request] = bench.sent(SyncRequest)
    assert request.version.tolist() == [0, 0]
    assert (bench.agent.view.free <= 0).all()
    bench.sync(10_001, epoch=1)
    assert bench.agent.view.free[:, 0].tolist() == [0, 1, 1, 1]


def ages(bench: Bench, now_us: int) -> tuple[list[int], list[int]]:
    """Staleness: at each sync since the last call, and as sampled now."""
    records = {record.table: record.columns for record in bench.agent.finish(now_us)}
    return records["syncs"]["age_us"].tolist(), records["agents"]["staleness_us"].tolist()


def test_the_first_sync_after_a_restart_is_as_old_as_the_restarted_agent() -> None:
    bench = Bench(start_us=60_000_000)
    assert ages(bench, 60_000_400) == ([0, 0], [400])


def test_a_view_that_starts_over_is_as_old_as_what_it_held_before() -> None:
    bench = Bench()
    bench.tell(10_000, SyncDue(1))
    bench.sync(10_000)
    ages(bench, 10_000)
    bench.tell(20_000, SyncDue(2))
    bench.sync(20_000, epoch=1)  # answered by a restarted master
    bench.sync(20_300, epoch=1)
    assert ages(bench, 20_500) == ([10_300, 10_300], [200])


def test_omega_syncs_before_every_round() -> None:
    bench = Bench(sync="every_attempt")
    bench.submit(100, 1)
    assert bench.sent(SyncRequest) and not bench.sent(CommitRequest)
    bench.rival_takes(0)
    bench.sync(150)
    bench.decide(150)
    bench.commit(250)
    assert bench.cell.used[:, 0].tolist() == [1, 1, 0, 0]


def test_omegas_agents_wait_for_the_outcome_before_they_sync_again() -> None:
    """A sync sent beside the commit may be answered first, and the round be planned on a state
    without it."""
    bench = Bench(sync="every_attempt", policy=replace(POLICY, commit_pipelining=True))
    bench.submit(100, 1)
    bench.sync(150)
    bench.submit(160, 2)
    bench.decide(150)
    assert bench.sent(CommitRequest) and not bench.sent(SyncRequest)
    bench.commit(250)
    assert bench.sent(SyncRequest)


def test_without_periodic_syncs_an_agent_looks_again_after_a_gap_or_when_there_is_more_to_do() -> (
    None
):
    bench = Bench(machines=2, sync="every_attempt")
    taken = bench.rival_takes(0, 1)
    bench.submit(100, 1)
    bench.sync(100)
    bench.decide(100)
    [timer] = timers(bench)
    assert isinstance(timer.event, RetryDue) and timer.at_us == 200 + 10_000
    bench.submit(300, 2)
    bench.sync(300)
    assert bench.decide(300) > 0, "something new"
    assert bench.tell(timer.at_us, timer.event) == [], "it has looked since"
    bench.submit(10_500, 3)
    bench.sync(10_500)
    bench.decide(10_500)
    [timer] = timers(bench)
    bench.cell.release(taken, None, 15_000)
    bench.tell(timer.at_us, timer.event)
    bench.sync(timer.at_us)
    bench.decide(timer.at_us)
    bench.commit(timer.at_us + 200)
    assert bench.scheduler.offered == [[1], [1], [1], [1]] and bench.agent.queued == 2


def test_late_timers_sync_everything_that_was_due() -> None:
    bench = Bench(sync="diff_block")
    bench.tell(31_000, SyncDue(1))
    [request] = bench.sent(SyncRequest)
    assert request.partition.tolist() == [0, 1]
    [timer] = timers(bench)
    assert timer.at_us > 31_000


def test_a_view_knows_how_much_of_each_partition_is_in_use() -> None:
    bench = Bench(machines=4, partitions=2)
    assert bench.agent._view.used_permille().tolist() == [0, 0]
    bench.rival_takes(0, 2, 3)
    assert bench.agent._view.used_permille().tolist() == [0, 0], "as of the last sync"
    bench.tell(10_000, SyncDue(1))
    bench.sync(10_000)
    assert bench.agent._view.used_permille().tolist() == [500, 1000]
    take_down(bench, 1, 15_000)
    bench.tell(20_000, SyncDue(2))
    bench.sync(20_000)
    assert bench.agent._view.used_permille().tolist() == [1000, 1000], "of machines that are up"
