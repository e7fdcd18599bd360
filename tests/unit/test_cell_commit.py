"""One test per outcome of a commit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import CommitMode, CommitResult, ConflictCheck, Reason, Transaction

NOW_US = 1_000
EMPTY = {
    "task": np.zeros(0, np.int64),
    "machine": np.zeros(0, np.int32),
    "request": np.zeros((0, 1), np.int64),
    "synced_us": np.zeros(0, np.int64),
}


def make_cell(capacity: list[list[int]], partitions: int = 1, permille: int = 1000) -> Cell:
    array = np.array(capacity, np.int64)
    rows, dimensions = array.shape
    names = tuple(f"resource_{r}" for r in range(dimensions))
    spec = CellSpec(
        names,
        array,
        np.arange(rows, dtype=np.int32),
        np.zeros(rows, np.int64),
        np.full(dimensions, permille),
    )
    return Cell(spec, Partitioning.by_topology(spec, partitions))


def claims(
    tasks: list[int],
    machines: list[int],
    requests: list[list[int]] | None = None,
    scheduler: int = 0,
    commit_mode: CommitMode = CommitMode.INCREMENTAL,
    gang: list[int] | None = None,
    seqnum: list[int] | None = None,
    evict: list[int] | None = None,
) -> Transaction:
    return Transaction(
        scheduler=scheduler,
        sequence=1,
        task=np.array(tasks, np.int64),
        machine=np.array(machines, np.int32),
        request=np.array(requests or [[1]] * len(tasks), np.int64),
        synced_us=np.full(len(tasks), 400, np.int64),
        commit_mode=commit_mode,
        conflict_check=ConflictCheck.RESOURCE_FIT
        if seqnum is None
        else ConflictCheck.SEQUENCE_NUMBER,
        gang=None if gang is None else np.array(gang, np.int64),
        seqnum=None if seqnum is None else np.array(seqnum, np.uint32),
        evict=None if evict is None else np.array(evict, np.int64),
    )


def commit(cell: Cell, transaction: Transaction) -> CommitResult:
    return cell.commit(transaction, NOW_US)


def state(cell: Cell) -> tuple[list[object], ...]:
    return cell.used.tolist(), cell.seqnum.tolist(), cell.up.tolist(), cell.versions.tolist()


def test_accepted_claims_take_room_and_get_allocations() -> None:
    cell = make_cell([[2, 8], [2, 8]], partitions=2)
    result = commit(cell, claims([5, 6], [0, 0], [[1, 3], [1, 5]]))
    assert result.reason.tolist() == [0, 0]
    assert len(set(result.allocation.tolist())) == 2 and (result.allocation >= 0).all()
    assert result.rival.tolist() == [-1, -1] and result.age_us.tolist() == [600, 600]
    assert result.version.tolist() == [1, 1] and len(result.evicted) == 0 and result.sequence == 1
    assert cell.used.tolist() == [[2, 8], [0, 0]]
    assert cell.seqnum.tolist() == [2, 0] and cell.versions.tolist() == [1, 0]


def test_full_names_the_rival_and_the_claims_before_count() -> None:
    cell = make_cell([[2]])
    commit(cell, claims([0], [0], scheduler=3))
    result = commit(cell, claims([1, 2, 3], [0, 0, 0], scheduler=4))
    assert result.reason.tolist() == [Reason.ACCEPTED, Reason.FULL, Reason.FULL]
    assert result.rival.tolist() == [-1, 3, 3], (
        "who else: 4 filled the machine itself, but 3 had begun"
    )
    assert commit(cell, claims([9], [0], scheduler=5)).rival.tolist() == [4]
    assert cell.used.tolist() == [[2]]


def test_nobody_is_named_where_only_the_loser_itself_claimed() -> None:
    cell = make_cell([[3]])
    assert commit(cell, claims([1, 2, 3, 4], [0, 0, 0, 0], scheduler=4)).rival.tolist() == [-1] * 4
    stale = claims([5], [0], scheduler=4, seqnum=[0])
    assert commit(cell, stale).reason.tolist() == [Reason.STALE] and commit(
        cell, stale
    ).rival.tolist() == [-1]


@pytest.mark.parametrize("restored", [False, True])
def test_the_rival_is_the_last_of_the_others_however_often_the_loser_claimed_since(
    restored: bool,
) -> None:
    cell = make_cell([[6]])
    for task, scheduler in enumerate((1, 2, 3, 3, 2, 3)):
        commit(cell, claims([task], [0], scheduler=scheduler))
    if restored:
        cell = Cell.restore(cell.spec, cell.partitioning, cell.checkpoint())
    named = {
        loser: commit(cell, claims([9], [0], scheduler=loser)).rival.tolist() for loser in (1, 2, 3)
    }
    assert named == {1: [3], 2: [3], 3: [2]}


def test_a_claim_that_does_not_fit_leaves_room_for_a_later_smaller_one() -> None:
    result = commit(make_cell([[4]]), claims([1, 2], [0, 0], [[5], [4]]))
    assert result.reason.tolist() == [Reason.FULL, Reason.ACCEPTED]


@pytest.mark.parametrize("scarce", [0, 1, 2])
def test_every_dimension_must_fit(scarce: int) -> None:
    request = [[2, 2, 2]]
    cell = make_cell([[2 if r != scarce else 1 for r in range(3)]])
    assert commit(cell, claims([1], [0], request)).reason.tolist() == [Reason.FULL]
    assert commit(make_cell([[2, 2, 2]]), claims([1], [0], request)).reason.tolist() == [
        Reason.ACCEPTED
    ]


def test_stale_compares_with_the_state_before_the_transaction() -> None:
    cell = make_cell([[9], [9]])
    commit(cell, claims([0], [0], scheduler=7))
    result = commit(cell, claims([1, 2, 3, 4], [0, 1, 1, 0], seqnum=[0, 0, 0, 1]))
    assert result.reason.tolist() == [
        Reason.STALE,
        Reason.ACCEPTED,
        Reason.ACCEPTED,
        Reason.ACCEPTED,
    ]
    assert result.rival.tolist() == [7, -1, -1, -1]
    assert cell.seqnum.tolist() == [2, 2]


def test_seqnum_moves_on_claims_and_not_on_releases() -> None:
    cell = make_cell([[9]])
    allocation = commit(cell, claims([0], [0])).allocation
    cell.release(allocation, None, NOW_US)
    assert cell.seqnum.tolist() == [1] and cell.versions.tolist() == [2]
    assert commit(cell, claims([1], [0], seqnum=[1])).reason.tolist() == [Reason.ACCEPTED]


def test_without_the_check_old_sequence_numbers_do_not_matter() -> None:
    cell = make_cell([[9]])
    commit(cell, claims([0], [0]))
    unchecked = replace(claims([1], [0], seqnum=[0]), conflict_check=ConflictCheck.RESOURCE_FIT)
    assert commit(cell, unchecked).reason.tolist() == [Reason.ACCEPTED]


def test_machine_down() -> None:
    cell = make_cell([[1], [1]])
    cell.set_machines(np.array([1], np.int32), np.array([False]), NOW_US)
    assert commit(cell, claims([0, 1], [1, 0])).reason.tolist() == [
        Reason.MACHINE_DOWN,
        Reason.ACCEPTED,
    ]
    cell.set_machines(np.array([1], np.int32), np.array([True]), NOW_US)
    assert commit(cell, claims([0], [1])).reason.tolist() == [Reason.ACCEPTED]


def test_duplicates_placed_in_this_batch_and_run_to_the_end() -> None:
    cell = make_cell([[9], [9]])
    first = commit(cell, claims([0, 0, 1], [0, 1, 1]))
    assert first.reason.tolist() == [Reason.ACCEPTED, Reason.DUPLICATE, Reason.ACCEPTED]
    assert commit(cell, claims([1], [0])).reason.tolist() == [Reason.DUPLICATE]
    cell.release(first.allocation[:1], None, NOW_US)
    assert commit(cell, claims([0], [0])).reason.tolist() == [Reason.DUPLICATE]


def test_a_task_rejected_at_one_machine_may_be_accepted_at_the_next() -> None:
    assert commit(make_cell([[0], [1]]), claims([5, 5], [0, 1])).reason.tolist() == [
        Reason.FULL,
        Reason.ACCEPTED,
    ]


def test_overcommit_is_an_integer_floor() -> None:
    cell = make_cell([[3]], permille=1500)  # limit 4
    assert commit(cell, claims([0, 1], [0, 0], [[4], [1]])).reason.tolist() == [
        Reason.ACCEPTED,
        Reason.FULL,
    ]


def test_a_grandfathered_machine_takes_no_claim_until_it_has_drained() -> None:
    cell = make_cell([[4, 4]])
    ids = cell.load(
        np.array([0, 1]),
        np.zeros(2, np.int32),
        np.array([[3, 1], [3, 1]]),
        np.array([2, 2], np.int32),
    )
    assert cell.used.tolist() == [[6, 2]]
    result = commit(cell, claims([5], [0], [[1, 1]]))
    assert result.reason.tolist() == [Reason.FULL] and result.rival.tolist() == [2]
    of_nothing_overdrawn = commit(cell, claims([6, 7], [0, 0], [[0, 2], [0, 1]]))
    assert of_nothing_overdrawn.reason.tolist() == [Reason.ACCEPTED, Reason.FULL]
    cell.release(ids[:1], None, NOW_US)
    assert commit(cell, claims([5], [0], [[1, 1]])).reason.tolist() == [Reason.ACCEPTED]


def test_a_rejected_transaction_changes_nothing() -> None:
    cell = make_cell([[1], [1]], partitions=2)
    commit(cell, claims([0], [0]))
    before, digest = state(cell), cell.state_digest()
    commit(cell, claims([1, 0], [0, 1], scheduler=8))
    commit(cell, claims([1, 2], [0, 1], scheduler=8, commit_mode=CommitMode.ALL_OR_NOTHING))
    assert state(cell) == before and cell.state_digest() == digest


def test_versions_move_once_per_commit_and_only_where_something_changed() -> None:
    cell = make_cell([[9], [9], [0]], partitions=3)
    result = commit(cell, claims([0, 1, 2], [0, 0, 2]))
    assert cell.versions.tolist() == [1, 0, 0] and result.version.tolist() == [1, 1, 0]


def test_all_or_nothing_without_gangs_is_one_group_and_judges_every_claim() -> None:
    cell = make_cell([[1], [1], [0], [0]])
    result = commit(cell, claims([0, 1, 2, 3], [2, 0, 3, 1], commit_mode=CommitMode.ALL_OR_NOTHING))
    assert result.reason.tolist() == [Reason.FULL, Reason.GANG, Reason.FULL, Reason.GANG]
    assert (
        cell.seqnum.tolist() == [0, 0, 0, 0]
        and cell.versions.tolist() == [0]
        and not cell.used.any()
    )
    assert (result.allocation == -1).all()


def test_gangs_stand_and_fall_apart() -> None:
    cell = make_cell([[1], [1], [1]])
    # Gang 1 comes first, needs machine 0 twice and fails; gang 2 then gets machine 0.
    result = commit(
        cell,
        claims(
            [0, 1, 2, 3], [0, 0, 0, 1], gang=[1, 1, 2, 2], commit_mode=CommitMode.ALL_OR_NOTHING
        ),
    )
    assert result.reason.tolist() == [Reason.GANG, Reason.FULL, Reason.ACCEPTED, Reason.ACCEPTED]
    assert cell.used.tolist() == [[1], [1], [0]]


def test_incremental_ignores_gangs() -> None:
    assert commit(make_cell([[1]]), claims([0, 1], [0, 0], gang=[1, 1])).reason.tolist() == [
        Reason.ACCEPTED,
        Reason.FULL,
    ]


def test_an_empty_transaction() -> None:
    cell = make_cell([[1]])
    result = commit(cell, replace(claims([0], [0]), **EMPTY))
    assert len(result.reason) == 0 and cell.versions.tolist() == [0]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("machine", np.array([0, 3], np.int32), r"machine\[1\]: expected a machine of the cell"),
        ("machine", np.array([-1, 0], np.int32), r"machine\[0\]"),
        ("machine", np.array([0, 0]), r"machine: expected an array int32\[n\]"),
        ("task", np.array([0, -4]), r"task\[1\]"),
        ("task", np.array([1 << 40, 0]), r"task\[0\]"),
        ("task", np.arange(4), r"request: expected an array int64\[4, 1\]"),
        ("request", np.array([[1], [-1]]), r"request\[1\]: expected amounts"),
        ("request", np.array([[1 << 62], [1]]), r"request\[0\]"),
        (
            "request",
            np.array([[1, 1], [1, 1]]),
            r"request: expected an array int64\[2, 1\]",
        ),
        ("request", np.array([[1.0], [1.0]]), "request: expected"),
        ("synced_us", np.zeros(3, np.int64), r"synced_us: expected an array int64\[2\]"),
        ("gang", np.zeros(1, np.int64), "gang: expected"),
        ("seqnum", np.zeros(2, np.int64), r"seqnum: expected an array uint32\[n\]"),
        ("seqnum", None, "seqnum: expected under SEQUENCE_NUMBER"),
        ("evict", np.zeros(1, np.int32), "evict: expected"),
        ("scheduler", -1, "scheduler: expected"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(field: str, value: object, message: str) -> None:
    cell = make_cell([[5], [5]])
    before = cell.state_digest()
    good = claims(
        [0, 1], [0, 1], gang=[1, 1], seqnum=[0, 0], evict=[0], commit_mode=CommitMode.ALL_OR_NOTHING
    )
    with pytest.raises(ValueError, match=message):
        commit(cell, replace(good, **{field: value}))
    assert cell.state_digest() == before
    assert commit(cell, good).reason.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("capacity", "permille", "message"),
    [
        ([[-1]], 1000, "capacity"),
        ([[1 << 50]], 1000, "capacity"),
        ([[1]], -1, "overcommit_permille"),
        ([[1] * 9], 1000, "1 to 8 resource"),
    ],
)
def test_a_malformed_spec_is_refused(
    capacity: list[list[int]], permille: int, message: str
) -> None:
    with pytest.raises(AgoraError, match=message):
        make_cell(capacity, permille=permille)


@pytest.mark.parametrize(
    ("priority", "tasks", "reasons", "evicted"),
    [
        (None, [2], [Reason.EVICTED], False),  # own tasks only
        ([0, 0, 1], [2], [Reason.ACCEPTED], True),
        ([1, 0, 1], [2], [Reason.EVICTED], False),  # of the same priority
        # a claim of lower priority on the same machine would use the room, too
        ([1, 0, 2, 1], [2, 3], [Reason.EVICTED, Reason.EVICTED], False),
        ([0, 0, 1], [0], [Reason.DUPLICATE], False),  # nobody takes over another's task
        ([0, 0, 1], [], [], False),  # nor ends it for nothing
    ],
)
def test_tasks_of_others_end_only_for_claims_of_higher_priority(
    priority: list[int] | None, tasks: list[int], reasons: list[int], evicted: bool
) -> None:
    spec = CellSpec(
        ("slots",),
        np.full((2, 1), 2, np.int64),
        np.zeros(2, np.int32),
        np.zeros(2, np.int64),
        np.array([1000]),
    )
    of_tasks = None if priority is None else np.array(priority, np.int32)
    cell = Cell(spec, Partitioning.by_topology(spec, 1), of_tasks)
    one = np.zeros(1, np.int32)
    running = cell.load(np.array([0]), one, np.array([[2]]), np.array([7], np.int32))
    k = len(tasks)
    result = cell.commit(
        Transaction(
            scheduler=1,
            sequence=1,
            task=np.array(tasks, np.int64),
            machine=np.zeros(k, np.int32),
            request=np.ones((k, 1), np.int64),
            synced_us=np.zeros(k, np.int64),
            evict=running,
        ),
        5,
    )
    assert result.reason.tolist() == reasons
    assert result.evicted.tolist() == (running.tolist() if evicted else [])
    assert cell.used[0, 0] == (1 if evicted else 2)
