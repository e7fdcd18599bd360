"""Releases, machines, initial state, deltas, checkpoints: the cell outside of commits."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.core.codec import Codec
from parsync.core.events import SyncReply
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import PartitionDelta, Transaction

NOW_US = 50


def make_spec(machines: int, dimensions: int = 2, capacity: int = 4) -> CellSpec:
    return CellSpec(
        tuple(f"resource_{r}" for r in range(dimensions)),
        np.full((machines, dimensions), capacity, np.int64),
        (np.arange(machines) // 4).astype(np.int32),
        np.zeros(machines, np.int64),
        np.full(dimensions, 1000),
    )


def make_cell(machines: int = 8, partitions: int = 2, **spec: int) -> Cell:
    made = make_spec(machines, **spec)
    return Cell(made, Partitioning.by_topology(made, partitions))


def place(cell: Cell, tasks: list[int], machines: list[int], owner: int = 0) -> list[int]:
    request = np.ones((len(tasks), len(cell.spec.dimensions)), np.int64)
    zero = np.zeros(len(tasks), np.int64)
    result = cell.commit(
        Transaction(owner, 1, np.array(tasks), np.array(machines, np.int32), request, zero), NOW_US
    )
    assert result.accepted.all()
    return result.allocation.tolist()


def ids(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def owners(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


def machine_rows(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


def test_release_is_idempotent_and_checks_the_owner() -> None:
    cell = make_cell()
    a, b = place(cell, [0, 1], [0, 5], owner=3)
    assert len(cell.release(ids([a]), owners([2]), NOW_US)) == 0
    released = cell.release(ids([b, a, b]), owners([3, 3, 3]), NOW_US)
    assert released.allocation.tolist() == [b, a] and released.machine.tolist() == [5, 0]
    assert released.task.tolist() == [1, 0] and released.owner.tolist() == [3, 3]
    assert released.request.tolist() == [[1, 1], [1, 1]] and released.version.tolist() == [2, 2]
    versions = cell.versions.tolist()
    assert len(cell.release(ids([a, b, -1, 99, 1 << 50]), None, NOW_US)) == 0
    assert cell.versions.tolist() == versions and not cell.used.any()


def test_the_id_of_an_ended_allocation_never_ends_a_later_one() -> None:
    cell = make_cell()
    old = place(cell, [0], [0])
    cell.release(ids(old), None, NOW_US)
    new = place(cell, [1], [0])
    assert new != old
    assert len(cell.release(ids(old), None, NOW_US)) == 0
    assert cell.allocations().allocation.tolist() == new
    with pytest.raises(ValueError, match=r"allocation\[0\]"):
        cell.describe(ids(old))


def test_a_machine_that_goes_down_loses_its_tasks_and_they_may_be_placed_again() -> None:
    cell = make_cell()
    a, b, c = place(cell, [0, 1, 2], [3, 3, 4], owner=1)
    lost = cell.set_machines(machine_rows([3, 3]), np.array([False, True]), NOW_US)
    assert lost.allocation.tolist() == [a, b] and lost.task.tolist() == [0, 1]
    assert lost.version.tolist() == [2, 2] and cell.versions.tolist() == [2, 1]
    assert cell.up.all() and not cell.used[3].any()
    place(cell, [0], [5])
    assert len(cell.release(ids([a, b]), None, NOW_US)) == 0
    assert sorted(cell.allocations(1).allocation.tolist()) == [c]
    versions = cell.versions.tolist()
    assert len(cell.set_machines(machine_rows([0]), np.array([True]), NOW_US)) == 0
    assert cell.versions.tolist() == versions
    with pytest.raises(ValueError, match=r"machine\[1\]"):
        cell.set_machines(machine_rows([0, 8]), np.array([False, False]), NOW_US)
    assert cell.up.all()


def test_allocations_by_owner() -> None:
    cell = make_cell()
    mine = place(cell, [0, 1], [0, 1], owner=1)
    place(cell, [2], [2], owner=2)
    assert cell.allocations(1).allocation.tolist() == mine
    assert len(cell.allocations()) == 3 and len(cell.allocations(7)) == 0


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
    cell.set_machines(machine_rows([7]), np.array([False]), NOW_US)
    before = cell.state_digest()
    with pytest.raises(ValueError, match=message):
        cell.load(ids(task), machine_rows(machine), np.ones((2, 2), np.int64), owners(owner))
    assert cell.state_digest() == before


def test_the_views_are_live_and_read_only() -> None:
    cell = make_cell()
    used, seqnum, up, versions = cell.used, cell.seqnum, cell.up, cell.versions
    assert (used.shape, used.dtype, seqnum.shape, seqnum.dtype) == (
        (8, 2),
        np.int64,
        (8,),
        np.uint32,
    )
    assert (up.dtype, versions.shape, versions.dtype) == (np.bool_, (2,), np.int64)
    place(cell, [0], [6])
    cell.set_machines(machine_rows([1]), np.array([False]), NOW_US)
    assert used[6].tolist() == [1, 1] and seqnum.tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    assert up.tolist() == [True, False] + [True] * 6 and versions.tolist() == [1, 1]
    for view in (used, seqnum, up, versions):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
    del cell
    assert used[6].tolist() == [1, 1]


def test_a_delta_holds_what_changed_since() -> None:
    cell = make_cell()
    place(cell, [0], [5])
    since = int(cell.versions[1])
    place(cell, [1, 2], [6, 1])
    delta = cell.delta_since(1, since, NOW_US, with_seqnum=True)
    assert (delta.partition, delta.from_version, delta.to_version, delta.at_us) == (
        1,
        since,
        since + 1,
        NOW_US,
    )
    assert delta.row.tolist() == [2] and delta.used.tolist() == [[1, 1]]
    assert delta.up.tolist() == [True] and delta.seqnum is not None and delta.seqnum.tolist() == [1]
    assert len(cell.delta_since(1, since + 1, NOW_US, with_seqnum=False).row) == 0
    snapshot = cell.snapshot(1, NOW_US, with_seqnum=False)
    assert (
        snapshot.row.tolist() == [0, 1, 2, 3]
        and snapshot.seqnum is None
        and snapshot.from_version == 0
    )


@pytest.mark.parametrize(("partition", "version"), [(2, 0), (0, 1), (0, -1)])
def test_a_delta_of_nowhere_or_of_the_future_is_refused(partition: int, version: int) -> None:
    with pytest.raises(ValueError, match=r"partition|version"):
        make_cell().delta_since(partition, version, NOW_US, with_seqnum=False)


@pytest.mark.parametrize(
    ("amount", "dtype"), [(127, "i1"), (128, "i2"), (1 << 15, "i4"), (1 << 31, "i8")]
)
def test_a_delta_uses_the_narrowest_type(amount: int, dtype: str) -> None:
    cell = make_cell(capacity=1 << 40)
    cell.load(ids([0]), machine_rows([0]), np.array([[1, amount]]), owners([0]))
    delta = cell.snapshot(0, NOW_US, with_seqnum=False)
    assert delta.used.dtype == np.dtype(dtype) and delta.used[0].tolist() == [1, amount]
    assert delta.row.dtype == np.uint16


def test_rows_beyond_65536_take_four_bytes() -> None:
    cell = make_cell(machines=65_537, partitions=1, dimensions=1)
    place(cell, [0], [65_536])
    assert cell.snapshot(0, NOW_US, with_seqnum=False).row.dtype == np.uint32


def assert_equal(a: PartitionDelta, b: PartitionDelta) -> None:
    assert (a.partition, a.from_version, a.to_version, a.at_us) == (
        b.partition,
        b.from_version,
        b.to_version,
        b.at_us,
    )
    for mine, other in ((a.row, b.row), (a.used, b.used), (a.up, b.up), (a.seqnum, b.seqnum)):
        assert (mine is None) == (other is None)
        if mine is not None and other is not None:
            assert mine.dtype == other.dtype and mine.shape == other.shape and (mine == other).all()


@pytest.mark.parametrize("with_seqnum", [False, True])
def test_encoded_deltas_come_back_and_a_step_stays_under_100_kb(with_seqnum: bool) -> None:
    cell = make_cell(machines=10_000, partitions=1, capacity=30_000)
    cell.load(ids([0]), machine_rows([0]), np.array([[1, 1]]), owners([0]))
    rows = np.random.default_rng(3).permutation(10_000)[:2000].astype(np.int32)
    request = np.random.default_rng(4).integers(0, 30_000, (2000, 2))
    cell.commit(
        Transaction(0, 1, np.arange(1, 2001), rows, request, np.zeros(2000, np.int64)), NOW_US
    )
    cell.set_machines(rows[:10], np.zeros(10, bool), NOW_US)
    delta = cell.delta_since(0, 1, NOW_US, with_seqnum)
    assert len(delta.row) == 2000
    codec = Codec()
    packed = codec.encode(SyncReply(1, (delta,)))
    assert len(packed) < (23_000 if with_seqnum else 15_000) < 100_000
    assert_equal(codec.decode(packed).deltas[0], delta)
    empty = cell.delta_since(0, delta.to_version, NOW_US, with_seqnum)
    assert_equal(codec.decode(codec.encode(SyncReply(1, (empty,)))).deltas[0], empty)


def busy_cell() -> Cell:
    cell = make_cell()
    first = place(cell, [0, 1, 2, 70], [0, 1, 2, 7])
    cell.release(ids(first[:2]), None, NOW_US)
    cell.set_machines(machine_rows([2]), np.array([False]), NOW_US)
    return cell


def test_a_restored_cell_goes_on_as_the_original() -> None:
    original = busy_cell()
    checkpoint = original.checkpoint()
    restored = Cell.restore(original.spec, original.partitioning, checkpoint)
    assert (
        restored.state_digest() == original.state_digest() and restored.checkpoint() == checkpoint
    )
    for cell in (original, restored):
        assert place(cell, [5, 6], [0, 3]) == place(busy_cell(), [5, 6], [0, 3])
        cell.release(cell.allocations().allocation[1:2], None, NOW_US)
    assert restored.state_digest() == original.state_digest()
    assert (restored.used == original.used).all() and (restored.seqnum == original.seqnum).all()


def test_the_digest_depends_on_the_state_and_not_on_the_room_it_has() -> None:
    cell, other = make_cell(), make_cell()
    assert cell.state_digest() == other.state_digest()
    a = place(cell, [1000], [0])
    assert cell.state_digest() != other.state_digest()
    cell.set_machines(machine_rows([0]), np.array([False]), NOW_US)
    other.set_machines(machine_rows([0]), np.array([False]), NOW_US)
    assert cell.state_digest() != other.state_digest(), "versions and generations differ"
    assert a and len(cell.allocations()) == 0


def test_a_damaged_or_foreign_checkpoint_is_refused() -> None:
    cell = busy_cell()
    good = cell.checkpoint()
    for broken in (
        b"",
        good[:-1],
        good[:20],
        good[:40] + bytes([good[40] ^ 1]) + good[41:],
        b"x" + good,
    ):
        with pytest.raises(AgoraError, match="cell checkpoint: damaged"):
            Cell.restore(cell.spec, cell.partitioning, broken)
    with pytest.raises(AgoraError, match="another partitioning"):
        Cell.restore(cell.spec, Partitioning.by_topology(cell.spec, 3), good)
    with pytest.raises(AgoraError, match="another cell"):
        Cell.restore(make_spec(8, capacity=5), cell.partitioning, good)


def test_a_partitioning_of_another_cell_is_refused() -> None:
    with pytest.raises(AgoraError, match="of 4 machines, the cell has 8"):
        Cell(make_spec(8), Partitioning.by_topology(make_spec(4), 2))
