"""Room held for offers: what the cell answers, what the master sends, and what the audit finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parsync.core.addresses import WORKERS
from parsync.core.effects import Send
from parsync.core.event import Event
from parsync.core.events import (
    CommitRequest,
    HoldEnd,
    HoldReply,
    HoldRequest,
    HoldsEnded,
    HoldsReleased,
    MachinesChanged,
    RoomFreed,
    SampleDue,
    SyncReply,
    SyncRequest,
    TasksStarted,
)
from parsync.core.master import EndsNotice, MasterCore
from parsync.metrics.record import Record
from shared_state.cell import Cell
from shared_state.invariants import CellAudit, InvariantViolation
from shared_state.partition import Partitioning
from shared_state.tasks import Int64
from shared_state.transaction import Holds, Reason, Transaction, is_conflict
from tests.fixtures.cell_model import make_spec, rows_of
from tests.unit.agent_bench import make_table

ACCEPTED, STALE, FULL, DOWN, EVICTED, GANG, DUPLICATE, HELD = Reason
ALLOCATOR, LIMIT, NOW_US = -5, 4, 50
SPEC = make_spec([[LIMIT], [LIMIT], [LIMIT]])
PARTITIONING = Partitioning.by_topology(SPEC, 1)


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


def i64(*values: int) -> Int64:
    return np.array(values, np.int64)


def hold(cell: Cell, machine: int, amount: int, holder: int = 0) -> int:
    ids = cell.hold(i32(holder), i32(machine), i64(amount).reshape(1, 1), NOW_US)
    return int(ids[0])


def claims(
    machine: list[int],
    amount: int = 1,
    scheduler: int = 1,
    holds: Int64 | None = None,
    first_task: int = 0,
) -> Transaction:
    n = len(machine)
    task = np.arange(first_task, first_task + n)
    request = np.full((n, 1), amount)
    synced_us = np.zeros(n, np.int64)
    return Transaction(scheduler, 1, task, i32(*machine), request, synced_us, holds=holds)


def test_room_that_is_held_is_taken_for_everybody_and_named_as_such() -> None:
    cell = Cell(SPEC, PARTITIONING)
    assert hold(cell, 0, 3, holder=2) == 0
    assert hold(cell, 0, 2) == -1, "one unit is neither used nor held"
    result = cell.commit(claims([0, 0, 0], amount=1), NOW_US)
    assert result.reason.tolist() == [ACCEPTED, HELD, HELD]
    assert result.rival.tolist() == [-1, 2, 2] and is_conflict(result.reason).tolist()[1]
    assert cell.used.tolist() == [[1], [0], [0]] and cell.held.tolist() == [[3], [0], [0]]
    assert cell.delta_since(0, 0, NOW_US, with_seqnum=False).used.tolist() == [[4], [0], [0]]
    assert cell.commit(claims([0], amount=4, first_task=5), NOW_US).reason.tolist() == [FULL]


def test_a_scheduler_that_claims_what_it_holds_without_naming_it_has_no_rival() -> None:
    cell = Cell(SPEC, PARTITIONING)
    hold(cell, 0, LIMIT, holder=1)
    result = cell.commit(claims([0]), NOW_US)
    assert (result.reason.tolist(), result.rival.tolist()) == ([HELD], [-1])


def test_named_holds_end_whatever_becomes_of_the_claims() -> None:
    cell = Cell(SPEC, PARTITIONING)
    mine, others = hold(cell, 0, 3, holder=1), hold(cell, 1, 3, holder=2)
    result = cell.commit(claims([0, 0, 1, 2], amount=3, holds=i64(mine, others, 77)), NOW_US)
    # full: its own claim before it took the room; stale: it holds nothing there
    assert result.reason.tolist() == [ACCEPTED, FULL, STALE, STALE]
    assert rows_of(cell.ended_holds()) == [(mine, 1, 0, (3,))]
    assert cell.holds().hold.tolist() == [others] and cell.held.tolist() == [[0], [3], [0]]
    again = cell.commit(claims([0], holds=i64(mine), first_task=9), NOW_US)
    assert again.reason.tolist() == [STALE] and len(cell.ended_holds()) == 0


def test_room_held_is_not_given_to_evictors() -> None:
    cell = Cell(SPEC, PARTITIONING)
    placed = cell.commit(claims([0]), NOW_US).allocation
    hold(cell, 0, 3, holder=2)
    t = claims([0], amount=2, first_task=5)
    evicting = Transaction(1, 2, t.task, t.machine, t.request, t.synced_us, evict=placed)
    result = cell.commit(evicting, NOW_US)
    assert result.reason.tolist() == [HELD] and len(result.evicted) == 0


def test_a_machine_that_goes_down_ends_its_holds_and_holds_nothing_while_it_is_down() -> None:
    cell = Cell(SPEC, PARTITIONING)
    first = hold(cell, 1, 2)
    cell.set_machines(i32(1), np.array([False]), NOW_US)
    assert cell.ended_holds().hold.tolist() == [first] and not cell.held.any()
    assert hold(cell, 1, 0) == -1
    cell.set_machines(i32(1), np.array([True]), NOW_US)
    assert hold(cell, 1, LIMIT) > first


def test_a_checkpoint_is_as_before_where_nothing_was_ever_held() -> None:
    cell, other = Cell(SPEC, PARTITIONING), Cell(SPEC, PARTITIONING)
    assert len(cell.checkpoint()) == len(other.checkpoint())
    hold(cell, 0, 1)
    assert len(cell.checkpoint()) > len(other.checkpoint())
    cell.end_holds(i64(0), NOW_US)
    restored = Cell.restore(SPEC, PARTITIONING, cell.checkpoint())
    assert hold(restored, 0, 1) == 1, "ids are not given again"


@pytest.mark.parametrize(
    ("holder", "machine", "amount", "field"),
    [
        (-1, 0, [[1]], "holder"),
        (0, 3, [[1]], "machine"),
        (0, 0, [[-1]], "amount"),
        (0, 0, [[1, 1]], "amount"),
        (0, 0, [[1], [1]], "amount"),
    ],
)
def test_bad_holds_are_refused(
    holder: int, machine: int, amount: list[list[int]], field: str
) -> None:
    cell = Cell(SPEC, PARTITIONING)
    with pytest.raises(ValueError, match=rf"hold\.{field}"):
        cell.hold(i32(holder), i32(machine), np.array(amount), NOW_US)
    assert len(cell.holds()) == 0 and not cell.versions.any()


class World:
    """A master with an allocator beside it that watches the cell."""

    def __init__(self) -> None:
        self.master = MasterCore(
            Cell(SPEC, PARTITIONING),
            make_table(20),
            *(i64(), i32(), i32()),
            [EndsNotice.NEVER] * 3,
            1 << 40,
            watchers=(WORKERS, ALLOCATOR),
        )

    def send(self, event: Event) -> list[tuple[int, Event]]:
        effects = self.master.handle(NOW_US, event)
        return [(effect.to, effect.event) for effect in effects if isinstance(effect, Send)]

    def hold(self, holder: int, machine: int, amount: int) -> int:
        request = HoldRequest(
            ALLOCATOR, 8, i32(holder), i32(machine), np.array([[amount]], np.int64)
        )
        [(to, reply)] = self.send(request)
        assert to == ALLOCATOR and isinstance(reply, HoldReply) and reply.sequence == 8
        return int(reply.hold[0])

    def ended(self, event: Event) -> tuple[list[int], list[list[int]], int] | None:
        told = [(to, event) for to, event in self.send(event) if isinstance(event, HoldsEnded)]
        if not told:
            return None
        [(to, ended)] = told
        assert to == ALLOCATOR and isinstance(ended, HoldsEnded)
        return ended.hold.tolist(), ended.remainder.tolist(), ended.cause


def test_the_allocator_learns_what_an_accepted_offer_left() -> None:
    world = World()
    first, second, third = world.hold(1, 0, 2), world.hold(1, 0, 2), world.hold(1, 1, 4)
    assert world.hold(1, 0, 1) == -1
    transaction = claims([0, 0, 0, 2], holds=i64(first, second, third))
    ended = world.ended(CommitRequest(1, transaction))
    assert ended == ([first, second, third], [[0], [1], [4]], HoldEnd.ACCEPTED)
    assert world.ended(CommitRequest(1, claims([1], first_task=9))) is None


def test_queues_at_machines_learn_of_held_room_that_a_transaction_left() -> None:
    """After the starts of its claims: of three holds one was used up."""
    world = World()
    holds = i64(world.hold(1, 0, 2), world.hold(1, 0, 2), world.hold(1, 1, 4))
    sent = world.send(CommitRequest(1, claims([0, 0, 0, 2], holds=holds)))
    to_workers = [event for to, event in sent if to == WORKERS]
    assert [type(event) for event in to_workers] == [TasksStarted, RoomFreed]
    assert to_workers[1].machine.tolist() == [0, 1]


def test_the_allocator_learns_of_lost_machines_and_not_of_what_it_released() -> None:
    world = World()
    first, second = world.hold(0, 0, 2), world.hold(1, 1, 3)
    [(to, freed)] = world.send(HoldsReleased(i64(first, first, 99)))
    assert to == WORKERS and isinstance(freed, RoomFreed) and freed.machine.tolist() == [0]
    assert world.send(HoldsReleased(i64(first))) == []
    ended = world.ended(MachinesChanged(i32(0, 1), np.array([False, False])))
    assert ended == ([second], [[3]], HoldEnd.LOST)
    assert len(world.master.cell.holds()) == 0


def test_holds_survive_a_killed_cell_and_are_no_use_of_the_cell() -> None:
    world, restored = World(), World()
    kept = world.hold(2, 0, 3)
    world.send(CommitRequest(1, claims([1])))
    restored.master.restore(world.master.checkpoint())
    assert restored.master.cell.state_digest() == world.master.cell.state_digest()
    assert restored.master.cell.holds().hold.tolist() == [kept]
    assert restored.hold(0, 0, 1) == kept + 1
    [(_, reply)] = restored.send(SyncRequest(0, i32(0), i64(0), False))
    assert isinstance(reply, SyncReply) and reply.deltas[0].used.tolist() == [[4], [1], [0]]
    effects = restored.master.handle(NOW_US, SampleDue(1))
    [sample] = [one for one in effects if isinstance(one, Record) and one.table == "cell"]
    assert sample.columns["used_permille"].tolist() == [1000 // (3 * LIMIT)]


def held_audit(cell: Cell) -> CellAudit:
    audit = CellAudit(SPEC, PARTITIONING)
    audit.submitted(np.arange(20))
    audit.held(Holds(i64(hold(cell, 0, 3, 2)), i32(2), i32(0), i64(3).reshape(1, 1)), NOW_US)
    return audit


def test_the_audit_follows_holds() -> None:
    cell = Cell(SPEC, PARTITIONING)
    audit = held_audit(cell)
    for t in (claims([0, 0]), claims([0, 1], scheduler=2, holds=i64(0), first_task=7)):
        audit.commit(t, cell.commit(t, NOW_US), NOW_US)
    audit.delta(0, cell.delta_since(0, 0, NOW_US, with_seqnum=False))
    audit.matches(cell)


def test_the_audit_finds_holds_that_cannot_be() -> None:
    cell = Cell(SPEC, PARTITIONING)
    one = i64(1).reshape(1, 1)
    with pytest.raises(InvariantViolation, match="was answered 1"):
        held_audit(cell).held(Holds(i64(1), i32(1), i32(0), one * 2), NOW_US)
    with pytest.raises(InvariantViolation, match="given a second time"):
        held_audit(Cell(SPEC, PARTITIONING)).held(Holds(i64(0), i32(1), i32(1), one), NOW_US)
    with pytest.raises(InvariantViolation, match="had ended before"):
        held_audit(Cell(SPEC, PARTITIONING)).holds_ended(
            Holds(i64(5), i32(2), i32(0), one * 3), NOW_US
        )
    with pytest.raises(InvariantViolation, match="another holder, machine or amount"):
        held_audit(Cell(SPEC, PARTITIONING)).holds_ended(Holds(i64(0), i32(2), i32(0), one), NOW_US)
    with pytest.raises(InvariantViolation, match="holds another amount"):
        held_audit(Cell(SPEC, PARTITIONING)).matches(Cell(SPEC, PARTITIONING))
