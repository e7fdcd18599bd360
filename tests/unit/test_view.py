"""ClusterView: examples and bad input. Histories of syncs, claims, answers and releases are in
tests/properties/test_view_model.py."""

import numpy as np
import pytest

from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec
from shared_state.transaction import PartitionDelta, Reason
from shared_state.view import ClusterView, StaticCellState


def cell(machines=4, slots=2, dimensions=1):
    return CellSpec(
        tuple("abc"[:dimensions]),
        np.full((machines, dimensions), slots, np.int64),
        np.zeros(machines, np.int32),
        np.zeros(machines, np.int64),
        np.full(dimensions, 1000, np.int64),
    )


def delta(used, first=0, last=1, at_us=1, rows=None, up=None, partition=0, seqnum=None):
    used = np.array(used, np.int16).reshape(len(used), -1)
    rows = np.arange(len(used)) if rows is None else np.array(rows)
    up = np.ones(len(used), bool) if up is None else np.array(up)
    return PartitionDelta(partition, first, last, at_us, rows.astype(np.uint16), used, up, seqnum)


@pytest.fixture
def view():
    view = ClusterView(cell(), Partitioning(np.array([0, 4])))
    view.apply(delta([0, 0, 1, 2]))
    return view


def free(view):
    return view.free[:, 0].tolist()


def machines(*rows):
    return np.array(rows, np.int32)


def slots(*amounts):
    return np.array(amounts, np.int64).reshape(-1, 1)


def test_a_claim_stays_taken_until_the_sync_that_shows_its_outcome(view):
    ticket = view.claim(machines(0, 1), slots(1, 1))
    view.apply(delta([1], 1, 2, 2, rows=[3]))  # says nothing of the claims
    assert free(view) == [1, 1, 1, 1]
    view.settle(ticket, np.array([Reason.ACCEPTED, Reason.FULL], np.int8), np.array([5, 5]))
    view.apply(delta([0], 2, 4, 3, rows=[0]))
    assert free(view) == [1, 1, 1, 1]
    view.apply(delta([1, 2], 4, 5, 4, rows=[0, 1]))  # own claim on 0, the winners on 1
    assert free(view) == [1, 0, 1, 1]


def test_a_machine_is_closed_while_its_number_is_not_known():
    numbered = ClusterView(cell(), Partitioning(np.array([0, 4])), with_seqnum=True)
    numbered.apply(delta([0, 0, 0, 0], seqnum=np.arange(7, 11, dtype=np.uint32)))
    ticket = numbered.claim(machines(0, 1, 2), slots(1, 1, 1))
    assert numbered.open_rows == 1 and (numbered.free[:3] < 0).all()
    numbered.settle(
        ticket, np.array([Reason.STALE, Reason.FULL, Reason.ACCEPTED], np.int8), np.array([3, 3, 3])
    )
    assert numbered.open_rows == 3 and free(numbered)[1:] == [1, 1, 2] and free(numbered)[0] < 0
    assert numbered.seqnum.tolist()[1:] == [8, 10, 10]
    numbered.apply(delta([1], 1, 2, 2, rows=[3], seqnum=np.array([11], np.uint32)))
    assert free(numbered)[0] < 0, "not the version in which the claim was stale"
    numbered.apply(delta([1, 1], 2, 3, 3, rows=[0, 2], seqnum=np.array([8, 10], np.uint32)))
    assert free(numbered) == [1, 2, 1, 1] and numbered.seqnum.tolist() == [8, 8, 10, 11]


def test_views_share_a_terrain_and_nothing_else():
    spec, partitioning = cell(), Partitioning(np.array([0, 4]))
    static_state = StaticCellState(spec, partitioning)
    one, other = (ClusterView(spec, partitioning, static_state=static_state) for _ in range(2))
    one.apply(delta([0, 0, 0, 0]))
    assert one.open_rows == 4 and other.open_rows == 0


def test_arrays_are_windows_that_cannot_be_written(view):
    window = view.free
    view.claim(machines(0), slots(1))
    assert window[0, 0] == 1
    with pytest.raises(ValueError):
        window[0, 0] = 7


def test_sequence_numbers_are_kept_only_when_asked_for(view):
    with pytest.raises(ValueError, match="without sequence numbers"):
        _ = view.seqnum
    checking = ClusterView(cell(), Partitioning(np.array([0, 4])), with_seqnum=True)
    with pytest.raises(ValueError, match="lacks the sequence numbers"):
        checking.apply(delta([0, 0, 0, 0]))
    checking.apply(delta([0, 0, 0, 0], seqnum=np.array([1, 2, 3, 4], np.uint32)))
    assert checking.seqnum.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (delta([0], 2, 3, rows=[0]), "starts at version 2"),
        (delta([0, 0, 0, 0], 0, 0), "ends at version 0"),
        (delta([0], 0, 2, rows=[0]), "snapshot"),
        (delta([0], 1, 2, rows=[4]), "row 4"),
        (delta([0, 0], 1, 2, rows=[1, 1]), "ascend"),
        (delta([-1], 1, 2, rows=[1]), "used"),
        (delta([0], 1, 2, rows=[1], partition=1), "no partition 1"),
        (delta([0], 1, 2, at_us=0, rows=[1]), "earlier"),
        (delta([[0, 0]], 1, 2, rows=[1]), "used"),
    ],
)
def test_bad_deltas_are_refused(view, bad, message):
    before = free(view)
    with pytest.raises(ValueError, match=message):
        view.apply(bad)
    assert free(view) == before and view.versions[0] == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.claim(machines(4), slots(1)), "no machine 4"),
        (lambda v: v.claim(machines(0), slots(-1)), r"request\[0\]"),
        (lambda v: v.claim(machines(0, 1), slots(1, 1 << 51)), r"request\[1\]"),
        (lambda v: v.claim(machines(0, 1), slots(1)), "request"),
        (lambda v: v.claim(machines(*[0] * 2000), slots(*[1 << 50] * 2000)), "in flight"),
        (lambda v: v.settle(1, np.zeros(0, np.int8), np.zeros(0, np.int64)), "ticket 1 is not"),
        (
            lambda v: v.settle(
                v.claim(machines(0), slots(0)), np.zeros(2, np.int8), np.zeros(2, np.int64)
            ),
            "holds 1",
        ),
        (
            lambda v: v.settle(
                v.claim(machines(0), slots(0)), np.full(1, 8, np.int8), np.zeros(1, np.int64)
            ),
            "reason 8",
        ),
        (lambda v: v.released(machines(0), slots(1), np.array([1, 2])), "version per machine"),
    ],
)
def test_bad_calls_are_refused(view, call, message):
    before = free(view)
    with pytest.raises(ValueError, match=message):
        call(view)
    assert free(view) == before


def test_bad_terrain_is_refused():
    partitioning = Partitioning(np.array([0, 5]))
    with pytest.raises(ValueError, match="0 to the number of machines"):
        StaticCellState(cell(), partitioning)
    with pytest.raises(ValueError, match="2\\^50"):
        StaticCellState(cell(slots=1 << 51), Partitioning(np.array([0, 4])))
    heavy = CellSpec(
        ("a",),
        np.ones((2, 1), np.int64),
        np.zeros(2, np.int32),
        np.full(2, 1 << 62),
        np.array([1000]),
    )
    with pytest.raises(ValueError, match="sum of all weights"):
        StaticCellState(heavy, Partitioning(np.array([0, 2])))


def test_what_fits_no_machine_at_all():
    spec = CellSpec(
        ("cpu", "gpu"),
        np.array([[8, 0], [4, 1], [4, 0], [8, 0]], np.int64),
        np.zeros(4, np.int32),
        np.zeros(4, np.int64),
        np.array([1000, 1000]),
    )
    static_state = StaticCellState(spec, Partitioning(np.array([0, 4])))
    requests = np.array([[8, 0], [4, 1], [5, 1], [9, 0], [0, 0]], np.int64)
    assert static_state.fits_when_empty(requests).tolist() == [True, True, False, False, True]
    assert static_state.fits_when_empty(requests[:0]).tolist() == []


def test_the_first_claim_that_does_not_fit_is_found_and_nothing_changes():
    """Against the sum of what is asked of each machine."""
    random = np.random.default_rng(3)
    for _ in range(300):
        view = ClusterView(cell(5, 4, 2), Partitioning(np.array([0, 3, 5])))
        view.apply(delta(random.integers(0, 5, (3, 2)), up=random.random(3) < 0.8))
        view.claim(machines(*random.integers(0, 3, 2)), np.ones((2, 2), np.int64))
        before, opened = view.free.copy(), view.open_rows
        machine = random.integers(-1, 6, 5).astype(np.int32)
        request = random.integers(0, 3, (5, 2))
        freed = random.integers(0, 5, 2).astype(np.int32)
        amount = random.integers(0, 2, (2, 2))
        left = before.copy()
        np.add.at(left, freed, amount)
        expected = -1
        for i, (row, asked) in enumerate(zip(machine.tolist(), request, strict=True)):
            is_up = 0 <= row < 5 and view.up[row]
            if not is_up or ((left[row] < asked) & (asked > 0)).any():
                expected = i
                break
            left[row] -= asked
        assert view.first_oversubscribed(machine, request, freed, amount) == expected
        assert np.array_equal(view.free, before) and view.open_rows == opened


def test_bad_arguments_of_first_oversubscribed_are_refused(view):
    with pytest.raises(ValueError, match="freed"):
        view.first_oversubscribed(machines(0), slots(1), machines(7), slots(1))
    with pytest.raises(ValueError, match="request"):
        view.first_oversubscribed(machines(0, 1), slots(1))
    with pytest.raises(ValueError, match="machine"):
        view.first_oversubscribed(np.zeros(1, np.int64), slots(1))


def test_each_machine_is_as_old_as_its_partition():
    view = ClusterView(cell(), Partitioning(np.array([0, 1, 4])))
    assert view.synced_at(machines(0, 3)).tolist() == [-1, -1]
    view.apply(delta([0, 1, 2], at_us=700, partition=1))
    assert view.synced_at(machines(3, 0, 1)).tolist() == [700, -1, 700]
    assert view.synced_at(machines()).tolist() == []
    for row in (-1, 4):
        with pytest.raises(ValueError, match="machine: there is no such machine"):
            view.synced_at(machines(row))


def test_claims_in_flight_are_counted_until_settled_or_withdrawn(view):
    first, second = view.claim(machines(0), slots(1)), view.claim(machines(1), slots(1))
    assert view.claims_in_flight == 2
    view.withdraw(first)
    view.settle(second, np.array([Reason.ACCEPTED], np.int8), np.array([5]))
    assert view.claims_in_flight == 0
