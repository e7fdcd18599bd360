"""The cell: outcomes of commits, initial states, machines, deltas, checkpoints, what is refused.
Random histories are in tests/properties/test_cell_reference.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parsync.core.codec import Codec
from parsync.core.events import SyncReply
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import CommitMode, CommitResult, ConflictCheck, Reason, Transaction
from tests.fixtures.same import same

NOW_US = 1_000
TOGETHER = CommitMode.ALL_OR_NOTHING
ACCEPTED, STALE, FULL, DOWN, EVICTED, GANG, DUPLICATE, HELD = Reason


def make_spec(capacity: Sequence[Sequence[int]], permille: int = 1000) -> CellSpec:
    array = np.array(capacity, np.int64)
    rows, dimensions = array.shape
    names = tuple(f"resource_{r}" for r in range(dimensions))
    rack = (np.arange(rows) // 4).astype(np.int32)
    return CellSpec(names, array, rack, np.zeros(rows, np.int64), np.full(dimensions, permille))


def make_cell(
    capacity: Sequence[Sequence[int]] = ((4, 4),) * 8, partitions: int = 1, permille: int = 1000
) -> Cell:
    spec = make_spec(capacity, permille)
    return Cell(spec, Partitioning.by_topology(spec, partitions))


def claims(tasks: list[int], machines: list[int], requests: Any = None, **more: Any) -> Transaction:
    """Claims of scheduler 0 for one unit of everything, checked by their sequence numbers if these
    are given."""
    dtypes = {"gang": np.int64, "seqnum": np.uint32, "evict": np.int64}
    more |= {name: np.array(more[name], dtype) for name, dtype in dtypes.items() if name in more}
    check = ConflictCheck.SEQUENCE_NUMBER if "seqnum" in more else ConflictCheck.RESOURCE_FIT
    rows = [[1]] * len(tasks) if requests is None else requests
    return Transaction(
        more.pop("scheduler", 0),
        1,
        np.array(tasks, np.int64),
        np.array(machines, np.int32),
        np.array(rows, np.int64).reshape(len(tasks), -1 if tasks else 1),
        np.full(len(tasks), 400, np.int64),
        conflict_check=check,
        **more,
    )


def commit(cell: Cell, transaction: Transaction) -> CommitResult:
    return cell.commit(transaction, NOW_US)


def place(cell: Cell, tasks: list[int], machines: list[int], owner: int = 0) -> list[int]:
    dimensions = len(cell.spec.dimensions)
    result = commit(cell, claims(tasks, machines, [[1] * dimensions] * len(tasks), scheduler=owner))
    assert result.accepted.all()
    return result.allocation.tolist()


def load(cell: Cell, tasks: list[int], machines: list[int], request: Any, owners: Any) -> Any:
    columns = np.array(tasks), np.array(machines, np.int32), np.array(request, np.int64)
    return cell.load(*columns, np.array(owners, np.int32))


def set_machines(cell: Cell, machines: list[int], up: list[bool]) -> Any:
    return cell.set_machines(np.array(machines, np.int32), np.array(up), NOW_US)


def release(cell: Cell, allocation: list[int], owner: list[int] | None = None) -> Any:
    owners = None if owner is None else np.array(owner, np.int32)
    return cell.release(np.array(allocation, np.int64), owners, NOW_US)


def test_accepted_claims_take_room_and_get_allocations() -> None:
    cell = make_cell([[2, 8], [2, 8]], partitions=2)
    result = commit(cell, claims([5, 6], [0, 0], [[1, 3], [1, 5]]))
    assert result.reason.tolist() == [0, 0]
    assert len(set(result.allocation.tolist())) == 2 and (result.allocation >= 0).all()
    assert result.rival.tolist() == [-1, -1] and result.age_us.tolist() == [600, 600]
    assert result.version.tolist() == [1, 1] and len(result.evicted) == 0 and result.sequence == 1
    assert cell.used.tolist() == [[2, 8], [0, 0]]
    assert cell.seqnum.tolist() == [2, 0] and cell.versions.tolist() == [1, 0]


# Each after task 0 of scheduler 7 was placed on machine 0: cell, claims, reasons, rivals.
OUTCOMES: dict[str, tuple[list[list[int]], Transaction, list[int], list[int]]] = {
    "claims before count, and the rival is who else was there": (
        [[2]],
        claims([1, 2], [0, 0]),
        [ACCEPTED, FULL],
        [-1, 7],
    ),
    "nobody is a rival of itself": ([[1]], claims([1], [0], scheduler=7), [FULL], [-1]),
    "a smaller claim fits behind a larger": (
        [[5]],
        claims([1, 2], [0, 0], [[5], [4]]),
        [FULL, ACCEPTED],
        [7, -1],
    ),
    "every dimension must fit": (
        [[9, 1], [9, 9]],
        claims([1, 2], [0, 1], [[1, 1], [9, 9]]),
        [FULL, ACCEPTED],
        [7, -1],
    ),
    "a task may be claimed at one machine after the other": (
        [[1], [1]],
        claims([1, 1], [0, 1]),
        [FULL, ACCEPTED],
        [7, -1],
    ),
    "numbers are those before the transaction": (
        [[9], [9]],
        claims([1, 2, 3, 4], [0, 1, 1, 0], seqnum=[0, 0, 0, 1]),
        [STALE, ACCEPTED, ACCEPTED, ACCEPTED],
        [7, -1, -1, -1],
    ),
    "a task is placed once": (
        [[9], [9]],
        claims([1, 1, 0], [0, 1, 1]),
        [ACCEPTED, DUPLICATE, DUPLICATE],
        [-1, -1, -1],
    ),
    "one group without gangs": (
        [[1], [1], [0]],
        claims([1, 2, 3], [2, 1, 0], commit_mode=TOGETHER),
        [FULL, GANG, FULL],
        [-1, -1, 7],
    ),
    "gangs stand and fall apart": (
        [[2], [1]],
        claims([1, 2, 3, 4], [0, 0, 0, 1], gang=[1, 1, 2, 2], commit_mode=TOGETHER),
        [GANG, FULL, ACCEPTED, ACCEPTED],
        [-1, 7, -1, -1],
    ),
    "gangs do not matter to incremental commits": (
        [[2]],
        claims([1, 2], [0, 0], gang=[1, 1]),
        [ACCEPTED, FULL],
        [-1, 7],
    ),
    "nothing is claimed": ([[1]], claims([], []), [], []),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes_of_claims(name: str) -> None:
    capacity, transaction, reasons, rivals = OUTCOMES[name]
    cell = make_cell(capacity)
    place(cell, [0], [0], owner=7)
    before = cell.state_digest()
    result = commit(cell, transaction)
    assert result.reason.tolist() == reasons and result.rival.tolist() == rivals
    assert (result.allocation >= 0).tolist() == [reason == ACCEPTED for reason in reasons]
    if ACCEPTED not in reasons:
        assert cell.state_digest() == before, "a rejected transaction changes nothing"


@pytest.mark.parametrize("restored", [False, True])
def test_the_rival_is_the_last_of_the_others_however_often_the_loser_claimed_since(
    restored: bool,
) -> None:
    cell = make_cell([[6]])
    for task, scheduler in enumerate((1, 2, 3, 3, 2, 3)):
        place(cell, [task], [0], scheduler)
    if restored:
        cell = Cell.restore(cell.spec, cell.partitioning, cell.checkpoint())
    named = {
        loser: commit(cell, claims([9], [0], scheduler=loser)).rival.tolist() for loser in (1, 2, 3)
    }
    assert named == {1: [3], 2: [3], 3: [2]}


def test_overcommit_is_an_integer_floor() -> None:
    cell = make_cell([[3]], permille=1500)  # limit 4
    assert commit(cell, claims([0, 1], [0, 0], [[4], [1]])).reason.tolist() == [ACCEPTED, FULL]


def test_a_grandfathered_machine_takes_no_claim_until_it_has_drained() -> None:
    cell = make_cell([[4, 4]])
    ids = load(cell, [0, 1], [0, 0], [[3, 1], [3, 1]], [2, 2])
    assert cell.used.tolist() == [[6, 2]]
    result = commit(cell, claims([5], [0], [[1, 1]]))
    assert result.reason.tolist() == [FULL] and result.rival.tolist() == [2]
    of_nothing_overdrawn = commit(cell, claims([6, 7], [0, 0], [[0, 2], [0, 1]]))
    assert of_nothing_overdrawn.reason.tolist() == [ACCEPTED, FULL]
    release(cell, ids[:1])
    assert commit(cell, claims([5], [0], [[1, 1]])).reason.tolist() == [ACCEPTED]


# Tasks 0 and 1 of scheduler 0 run on machines 0 and 1, task 2 of scheduler 9 on machine 2, and task
# 3 of scheduler 0 has ended on machine 0; each holds 1 of 1. Claims, victims by their tasks,
# reasons, who of the victims ends.
EVICTIONS: dict[str, tuple[Transaction, list[int], list[int], list[int]]] = {
    "for a claim": (claims([5], [0]), [0], [ACCEPTED], [0]),
    "for nobody": (claims([], []), [0, 0], [], [0]),
    "not for a claim that fails": (claims([5], [0], [[3]]), [0], [FULL], []),
    "a swap": (claims([0, 1], [1, 0]), [0, 1], [ACCEPTED, ACCEPTED], [0, 1]),
    "a chain of moves breaks where its head is rejected": (
        claims([0, 1], [1, 2]),
        [0, 1],
        [FULL, FULL],
        [],
    ),
    "a second claim is no duplicate of one that was rejected": (
        claims([0, 5, 5], [2, 0, 0]),
        [0],
        [FULL, FULL, FULL],
        [],
    ),
    "a gang that fails keeps its victims": (
        claims([5, 6], [0, 2], commit_mode=TOGETHER),
        [0],
        [GANG, FULL],
        [],
    ),
    "those of others are protected": (claims([5], [2]), [2], [EVICTED], []),
    "one that is gone": (claims([5], [0]), [3], [EVICTED], []),
    "a task that has ended is not moved": (claims([3], [0]), [3], [DUPLICATE], []),
}


@pytest.mark.parametrize("name", EVICTIONS)
def test_victims_end_only_for_claims_that_are_accepted(name: str) -> None:
    transaction, victims, reasons, ended = EVICTIONS[name]
    cell = make_cell([[2], [1], [1]])
    id_of = dict(zip([0, 1, 3], place(cell, [0, 1, 3], [0, 1, 0]), strict=True))
    id_of[2] = place(cell, [2], [2], owner=9)[0]
    load(cell, [90], [0], [[1]], [0])
    release(cell, [id_of[3]])
    result = commit(cell, replace(transaction, evict=np.array([id_of[task] for task in victims])))
    assert result.reason.tolist() == reasons
    assert result.evicted.tolist() == [id_of[task] for task in ended]
    if ended:
        assert cell.describe(result.evicted).task.tolist() == ended


@pytest.mark.parametrize(
    ("priority", "tasks", "reasons", "evicted"),
    [
        (None, [2], [EVICTED], False),  # own tasks only
        ([0, 0, 1], [2], [ACCEPTED], True),
        ([1, 0, 1], [2], [EVICTED], False),  # of the same priority
        # a claim of lower priority on the same machine would use the room, too
        ([1, 0, 2, 1], [2, 3], [EVICTED, EVICTED], False),
        ([0, 0, 1], [0], [DUPLICATE], False),  # nobody takes over another's task
        ([0, 0, 1], [], [], False),  # nor ends it for nothing
    ],
)
def test_tasks_of_others_end_only_for_claims_of_higher_priority(
    priority: list[int] | None, tasks: list[int], reasons: list[int], evicted: bool
) -> None:
    spec = make_spec([[2], [2]])
    of_tasks = None if priority is None else np.array(priority, np.int32)
    cell = Cell(spec, Partitioning.by_topology(spec, 1), of_tasks)
    running = load(cell, [0], [0], [[2]], [7])
    result = commit(cell, claims(tasks, [0] * len(tasks), scheduler=1, evict=running))
    assert result.reason.tolist() == reasons
    assert result.evicted.tolist() == (running.tolist() if evicted else [])
    assert cell.used[0, 0] == (1 if evicted else 2)


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
        ("request", np.array([[1, 1], [1, 1]]), r"request: expected an array int64\[2, 1\]"),
        ("request", np.array([[1.0], [1.0]]), "request: expected"),
        ("synced_us", np.zeros(3, np.int64), r"synced_us: expected an array int64\[2\]"),
        ("gang", np.zeros(1, np.int64), "gang: expected"),
        ("seqnum", np.zeros(2, np.int64), r"seqnum: expected an array uint32\[n\]"),
        ("seqnum", None, "seqnum: expected under SEQUENCE_NUMBER"),
        ("evict", np.zeros(1, np.int32), "evict: expected"),
        ("scheduler", -1, "scheduler: expected"),
    ],
)
def test_bad_claims_are_named_and_change_nothing(field: str, value: object, message: str) -> None:
    cell = make_cell([[5], [5]])
    before = cell.state_digest()
    good = claims([0, 1], [0, 1], gang=[1, 1], seqnum=[0, 0], evict=[0], commit_mode=TOGETHER)
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


def test_a_partitioning_of_another_cell_is_refused() -> None:
    with pytest.raises(AgoraError, match="of 4 machines, the cell has 8"):
        Cell(make_spec([[1]] * 8), Partitioning.by_topology(make_spec([[1]] * 4), 2))


@pytest.mark.parametrize(
    ("task", "machine", "owner", "message"),
    [
        ([1, 2], [0, 8], [0, 0], r"machine\[1\]"),
        ([1, 2], [0, 7], [0, 0], r"machine\[1\]: expected a machine that is up"),
        ([1, 1], [0, 1], [0, 0], "task: 1 is named twice"),
        ([1, 0], [0, 1], [0, 0], r"task\[1\]: expected a task that is not placed"),
        ([1, -1], [0, 1], [0, 0], "task: expected ids"),
        ([1, 2], [0, 1], [0, -1], r"owner\[1\]"),
    ],
)
def test_a_bad_initial_state_is_named_and_changes_nothing(
    task: list[int], machine: list[int], owner: list[int], message: str
) -> None:
    cell = make_cell()
    place(cell, [0], [0])
    set_machines(cell, [7], [False])
    before = cell.state_digest()
    with pytest.raises(ValueError, match=message):
        load(cell, task, machine, np.ones((2, 2)), owner)
    assert cell.state_digest() == before


def test_the_id_of_an_ended_allocation_never_ends_a_later_one() -> None:
    cell = make_cell()
    [old] = place(cell, [0], [0])
    assert len(release(cell, [old], [2])) == 0, "of another owner"
    assert release(cell, [old, old, -1, 99, 1 << 50]).allocation.tolist() == [old]
    assert place(cell, [1], [0]) != [old]
    assert len(release(cell, [old])) == 0
    assert cell.allocations(0).task.tolist() == [1] and len(cell.allocations(7)) == 0
    with pytest.raises(ValueError, match=r"allocation\[0\]"):
        cell.describe(np.array([old]))


def test_a_machine_that_goes_down_loses_its_tasks_and_they_may_be_placed_again() -> None:
    cell = make_cell(partitions=2)
    a, b, _ = place(cell, [0, 1, 2], [3, 3, 4], owner=1)
    lost = set_machines(cell, [3, 3], [False, True])
    assert lost.allocation.tolist() == [a, b] and lost.task.tolist() == [0, 1]
    assert lost.version.tolist() == [2, 2] and cell.versions.tolist() == [2, 1]
    assert cell.up.all() and not cell.used[3].any()
    place(cell, [0], [5])
    with pytest.raises(ValueError, match=r"machine\[1\]"):
        set_machines(cell, [0, 8], [False, False])
    assert cell.up.all()


def test_the_views_are_live_and_read_only() -> None:
    cell = make_cell(partitions=2)
    used, seqnum, up, versions = views = cell.used, cell.seqnum, cell.up, cell.versions
    assert [view.shape for view in views] == [(8, 2), (8,), (8,), (2,)]
    assert [view.dtype for view in views] == [np.int64, np.uint32, np.bool_, np.int64]
    place(cell, [0], [6])
    set_machines(cell, [1], [False])
    assert used[6].tolist() == [1, 1] and seqnum.tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    assert up.tolist() == [True, False] + [True] * 6 and versions.tolist() == [1, 1]
    for view in views:
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
    del cell
    assert used[6].tolist() == [1, 1]


def test_a_delta_holds_what_changed_since() -> None:
    cell = make_cell(partitions=2)
    place(cell, [0], [5])
    since = int(cell.versions[1])
    place(cell, [1, 2], [6, 1])
    delta = cell.delta_since(1, since, NOW_US, with_seqnum=True)
    numbers = (delta.partition, delta.from_version, delta.to_version, delta.at_us)
    assert numbers == (1, since, since + 1, NOW_US)
    assert delta.row.tolist() == [2] and delta.used.tolist() == [[1, 1]]
    assert delta.up.tolist() == [True] and delta.seqnum is not None and delta.seqnum.tolist() == [1]
    assert len(cell.delta_since(1, since + 1, NOW_US, with_seqnum=False).row) == 0
    snapshot = cell.snapshot(1, NOW_US, with_seqnum=False)
    assert snapshot.row.tolist() == [0, 1, 2, 3] and snapshot.from_version == 0
    assert snapshot.seqnum is None
    for partition, version in ((2, 0), (0, 2), (0, -1)):
        with pytest.raises(ValueError, match=r"partition|version"):
            cell.delta_since(partition, version, NOW_US, with_seqnum=False)


@pytest.mark.parametrize(
    ("amount", "dtype"), [(127, "i1"), (128, "i2"), (1 << 15, "i4"), (1 << 31, "i8")]
)
def test_a_delta_uses_the_narrowest_type(amount: int, dtype: str) -> None:
    cell = make_cell([[1 << 40] * 2])
    load(cell, [0], [0], [[1, amount]], [0])
    delta = cell.snapshot(0, NOW_US, with_seqnum=False)
    assert delta.used.dtype == np.dtype(dtype) and delta.used[0].tolist() == [1, amount]
    assert delta.row.dtype == np.uint16


def test_rows_beyond_65536_take_four_bytes() -> None:
    cell = make_cell([[1]] * 65_537)
    place(cell, [0], [65_536])
    assert cell.snapshot(0, NOW_US, with_seqnum=False).row.dtype == np.uint32


@pytest.mark.parametrize("with_seqnum", [False, True])
def test_encoded_deltas_come_back_and_a_step_stays_under_100_kb(with_seqnum: bool) -> None:
    cell = make_cell([[30_000] * 2] * 10_000)
    load(cell, [0], [0], [[1, 1]], [0])
    rows = np.random.default_rng(3).permutation(10_000)[:2000].tolist()
    request = np.random.default_rng(4).integers(0, 30_000, (2000, 2))
    commit(cell, claims(list(range(1, 2001)), rows, request))
    set_machines(cell, rows[:10], [False] * 10)
    delta = cell.delta_since(0, 1, NOW_US, with_seqnum)
    assert len(delta.row) == 2000
    codec = Codec()
    packed = codec.encode(SyncReply(1, (delta,)))
    assert len(packed) < (23_000 if with_seqnum else 15_000) < 100_000
    empty = cell.delta_since(0, delta.to_version, NOW_US, with_seqnum)
    for one in (delta, empty):
        assert same(codec.decode(codec.encode(SyncReply(1, (one,)))).deltas[0], one)


def busy_cell() -> Cell:
    cell = make_cell(partitions=2)
    first = place(cell, [0, 1, 2, 70], [0, 1, 2, 7])
    release(cell, first[:2])
    set_machines(cell, [2], [False])
    return cell


def test_a_restored_cell_goes_on_as_the_original() -> None:
    original = busy_cell()
    checkpoint = original.checkpoint()
    restored = Cell.restore(original.spec, original.partitioning, checkpoint)
    assert restored.state_digest() == original.state_digest()
    assert restored.checkpoint() == checkpoint
    for cell in (original, restored):
        assert place(cell, [5, 6], [0, 3]) == place(busy_cell(), [5, 6], [0, 3])
        cell.release(cell.allocations().allocation[1:2], None, NOW_US)
    assert restored.state_digest() == original.state_digest()


def test_the_digest_depends_on_the_state_and_not_on_the_room_it_has() -> None:
    cell, other = make_cell(), make_cell()
    assert cell.state_digest() == other.state_digest()
    place(cell, [1000], [0])
    assert cell.state_digest() != other.state_digest()
    for one in (cell, other):
        set_machines(one, [0], [False])
    assert cell.state_digest() != other.state_digest(), "versions and generations differ"
    assert len(cell.allocations()) == 0


def test_a_damaged_or_foreign_checkpoint_is_refused() -> None:
    cell = busy_cell()
    good = cell.checkpoint()
    flipped = good[:40] + bytes([good[40] ^ 1]) + good[41:]
    for broken in (b"", good[:-1], good[:20], flipped, b"x" + good):
        with pytest.raises(AgoraError, match="cell checkpoint: damaged"):
            Cell.restore(cell.spec, cell.partitioning, broken)
    with pytest.raises(AgoraError, match="another partitioning"):
        Cell.restore(cell.spec, Partitioning.by_topology(cell.spec, 3), good)
    with pytest.raises(AgoraError, match="another cell"):
        Cell.restore(make_spec(((5, 5),) * 8), cell.partitioning, good)
