"""When an agent synchronises its view, with which partitions, and how old the view is."""

from __future__ import annotations

import numpy as np

from parsync.core import events
from parsync.core.effects import SetTimer, StartDecision
from parsync.core.events import CommitRequest, SyncRequest
from parsync.protocols.optimistic.events import RetryDue, SyncDue
from schedulers.interface import ChangeKind
from tests.fixtures.changed import changed as replace
from tests.unit.agent_bench import POLICY, Bench


def test_an_agent_with_nothing_free_waits_for_its_view_to_change() -> None:
    bench = Bench()
    bench.submit(100, *range(6))
    bench.decide(100)
    bench.commit(600)
    assert bench.agent.queued == 2
    assert not [effect for effect in bench.effects if isinstance(effect, StartDecision)]
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
        ended = events.TasksEnded(
            ChangeKind.FINISHED,
            released.task,
            released.allocation,
            released.machine,
            released.request,
            released.version,
        )
        bench.tell(300, ended)
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
    [timer] = [effect for effect in bench.effects if isinstance(effect, SetTimer)]
    assert isinstance(timer.event, RetryDue) and timer.at_us == 200 + 10_000
    bench.submit(300, 2)
    bench.sync(300)
    assert bench.decide(300) > 0, "something new"
    assert bench.tell(timer.at_us, timer.event) == [], "it has looked since"
    bench.submit(10_500, 3)
    bench.sync(10_500)
    bench.decide(10_500)
    [timer] = [effect for effect in bench.effects if isinstance(effect, SetTimer)]
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
    [timer] = [effect for effect in bench.effects if isinstance(effect, SetTimer)]
    assert timer.at_us > 31_000


def test_a_view_knows_how_much_of_each_partition_is_in_use() -> None:
    bench = Bench(machines=4, partitions=2)
    assert bench.agent._view.used_permille().tolist() == [0, 0]
    bench.rival_takes(0, 2, 3)
    assert bench.agent._view.used_permille().tolist() == [0, 0], "as of the last sync"
    bench.tell(10_000, SyncDue(1))
    bench.sync(10_000)
    assert bench.agent._view.used_permille().tolist() == [500, 1000]
    bench.cell.set_machines(np.array([1], np.int32), np.array([False]), 15_000)
    bench.tell(20_000, SyncDue(2))
    bench.sync(20_000)
    assert bench.agent._view.used_permille().tolist() == [1000, 1000], "of machines that are up"
