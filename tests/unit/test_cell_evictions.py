"""Transactions that name victims: which of them end."""

from __future__ import annotations

from shared_state.transaction import CommitMode, Reason
from tests.unit.test_cell_commit import NOW_US, claims, commit, make_cell


def test_a_victim_ends_and_its_task_may_be_placed_again() -> None:
    cell = make_cell([[1], [1]])
    victim = commit(cell, claims([0], [0])).allocation
    result = commit(cell, claims([1], [0], evict=victim.tolist()))
    assert (
        result.reason.tolist() == [Reason.ACCEPTED] and result.evicted.tolist() == victim.tolist()
    )
    record = cell.describe(result.evicted)
    assert (record.task.tolist(), record.machine.tolist(), record.owner.tolist()) == ([0], [0], [0])
    assert record.request.tolist() == [[1]] and record.version.tolist() == cell.versions.tolist()
    assert commit(cell, claims([0], [1])).reason.tolist() == [Reason.ACCEPTED]


def test_a_victim_stays_when_the_claim_that_relies_on_it_is_rejected() -> None:
    cell = make_cell([[2]])
    victim = commit(cell, claims([0], [0], [[2]])).allocation
    before = cell.state_digest()
    result = commit(cell, claims([1], [0], [[3]], evict=victim.tolist()))
    assert result.reason.tolist() == [Reason.FULL] and len(result.evicted) == 0
    assert cell.state_digest() == before


def test_a_victim_no_claim_relies_on_ends() -> None:
    cell = make_cell([[1], [1]])
    victim = commit(cell, claims([0], [0])).allocation
    result = commit(cell, claims([1], [1], evict=victim.tolist() * 2))
    assert result.evicted.tolist() == victim.tolist() and cell.used.tolist() == [[0], [1]]


def test_two_tasks_swap_full_machines() -> None:
    cell = make_cell([[1], [1]])
    both = commit(cell, claims([0, 1], [0, 1])).allocation.tolist()
    result = commit(cell, claims([0, 1], [1, 0], evict=both))
    assert result.reason.tolist() == [0, 0] and result.evicted.tolist() == both
    assert cell.used.tolist() == [[1], [1]] and len(cell.allocations()) == 2


def test_a_chain_of_moves_breaks_where_its_head_is_rejected() -> None:
    cell = make_cell([[1], [1], [1]])
    mine = commit(cell, claims([0, 1], [0, 1])).allocation.tolist()
    commit(cell, claims([2], [2], scheduler=9))
    # Task 1 would move to machine 2, which is full: so it stays, so task 0 cannot move to machine
    # 1, and stays, too.
    result = commit(cell, claims([0, 1], [1, 2], evict=mine))
    assert result.reason.tolist() == [Reason.FULL, Reason.FULL] and len(result.evicted) == 0
    assert result.rival.tolist() == [-1, 9], "machine 1 is held by nobody but the loser"
    assert cell.allocations(0).allocation.tolist() == mine


def test_a_second_claim_is_no_duplicate_of_one_that_was_rejected() -> None:
    cell = make_cell([[1], [1]])
    mine = commit(cell, claims([0], [0])).allocation.tolist()
    commit(cell, claims([2], [1], scheduler=9))
    # Task 0 would move to machine 1, which is full: so it stays, and there is no room for task 1.
    result = commit(cell, claims([0, 1, 1], [1, 0, 0], evict=mine))
    assert result.reason.tolist() == [Reason.FULL] * 3 and len(result.evicted) == 0


def test_a_gang_that_fails_keeps_its_victims() -> None:
    cell = make_cell([[1], [0]])
    victim = commit(cell, claims([0], [0])).allocation.tolist()
    result = commit(
        cell, claims([1, 2], [0, 1], commit_mode=CommitMode.ALL_OR_NOTHING, evict=victim)
    )
    assert result.reason.tolist() == [Reason.GANG, Reason.FULL] and len(result.evicted) == 0


def test_anothers_victim_is_protected() -> None:
    cell = make_cell([[1], [1]])
    victim = commit(cell, claims([0], [0], scheduler=1)).allocation.tolist()
    commit(cell, claims([1], [1], scheduler=1))
    result = commit(cell, claims([2, 3], [0, 1], scheduler=2, evict=victim))
    assert result.reason.tolist() == [Reason.EVICTED, Reason.FULL]
    assert result.rival.tolist() == [-1, 1] and len(result.evicted) == 0


def test_a_victim_that_is_gone() -> None:
    cell = make_cell([[2]])
    gone = commit(cell, claims([0, 1], [0, 0])).allocation
    cell.release(gone[:1], None, NOW_US)
    fits = commit(cell, claims([2], [0], evict=gone[:1].tolist()))
    assert fits.reason.tolist() == [Reason.ACCEPTED], "its room is free: nothing is missing"
    cell = make_cell([[2]])
    gone = commit(cell, claims([0, 1], [0, 0])).allocation
    cell.release(gone[:1], None, NOW_US)
    assert commit(cell, claims([2], [0], [[2]], evict=gone[:1].tolist())).reason.tolist() == [
        Reason.EVICTED
    ]


def test_moving_a_task_that_has_ended_is_a_duplicate() -> None:
    cell = make_cell([[1], [1]])
    allocation = commit(cell, claims([0], [0])).allocation
    cell.release(allocation, None, NOW_US)
    assert commit(cell, claims([0], [1], evict=allocation.tolist())).reason.tolist() == [
        Reason.DUPLICATE
    ]
