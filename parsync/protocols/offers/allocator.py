"""The allocator of the protocol of offers, a participant beside the master.

What is offered is decided in native code (parsync/protocols/native/offer_allocator.hpp). This
module has the triggers of its runs, and keeps the offers from when they are made to their end.

An offer is made once the cell holds its room, or at once where offers do not hold room. It ends
exactly once: accepted, declined, rescinded or expired. Then its room is free again, except what
claims took.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event
from parsync.core.events import (
    HoldEnd,
    HoldReply,
    HoldRequest,
    HoldsReleased,
    SampleDue,
)
from parsync.metrics.kinds.offers import OFFERS, TABLES
from parsync.metrics.record import Measurements, Record
from parsync.protocols import _native
from parsync.protocols.base import BaseCellSide
from parsync.protocols.offers.events import (
    AllocationDue,
    ExpiryDue,
    IntervalDue,
    Offers,
    OffersAnswered,
    OffersRescinded,
    Revive,
    Subscribe,
    Suppress,
    TasksWanted,
)
from parsync.protocols.offers.options import RIVALS, OffersSharedOptions
from parsync.protocols.spec import Environment, Member
from schedulers.interface import ChangeKind
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.random import WORD
from shared_state.tasks import Int32, Int64

_NEVER = -1  # the epoch of an agent that has not subscribed
# Room and time are multiplied; so the room of the whole cell is counted in about so many units.
_UNITS = 1 << 26
_PPM = 1_000_000


class _Outstanding:
    """The offers without an answer, by ascending id: offer and made_us int64[n], agent and machine
    int32[n], amount int64[n, R]."""

    __slots__ = ("agent", "amount", "machine", "made_us", "offer")

    def __init__(
        self, offer: Int64, agent: Int32, machine: Int32, amount: Int64, made_us: Int64
    ) -> None:
        self.offer, self.agent, self.machine = offer, agent, machine
        self.amount, self.made_us = amount, made_us

    def columns(self) -> tuple[NDArray[Any], ...]:
        return self.offer, self.agent, self.machine, self.amount, self.made_us

    def take(self, rows: NDArray[Any]) -> _Outstanding:
        return _Outstanding(
            self.offer[rows],
            self.agent[rows],
            self.machine[rows],
            self.amount[rows],
            self.made_us[rows],
        )

    def join(self, other: _Outstanding) -> _Outstanding:
        pairs = zip(self.columns(), other.columns(), strict=True)
        return _Outstanding(*(np.concatenate(pair) for pair in pairs))

    def rows_of(self, offer: Int64) -> tuple[Int64, NDArray[np.bool_]]:
        """The rows of those of some offers, int64[k], that are still without an answer, and which
        of the k they are."""
        place = np.searchsorted(self.offer, offer)
        known = place < len(self.offer)
        known[known] = self.offer[place[known]] == offer[known]
        return place[known], known


class Allocator(BaseCellSide):
    """Offers free room to the protocol's agents: a participant beside the master.

    Triggers of an allocation run are, as in Mesos: a timer, for all machines; an agent that
    subscribes or revives, for all; a machine that comes up, for this one. Room that is freed or
    declined waits for one of these, unless an option says otherwise. At most one run is pending;
    further triggers add their machines to it.
    """

    def __init__(self, environment: Environment, cell: Cell) -> None:
        super().__init__(environment, cell)
        options: OffersSharedOptions = environment.options
        spec, members = cell.spec, environment.members
        machines, resources = spec.limit.shape
        agents = max(member.first_agent + member.count for member in members)
        for member in members:
            _check_member(member, options)
        self._address = environment.cell_side
        self._request = environment.table.request
        self._sample_us = environment.sample_us
        self._interval_us = round(options.interval_s * 1e6)
        self._allocation_us = round(options.allocation_s * 1e6)
        self._timeout_us = None
        if options.offer_timeout_s is not None:
            self._timeout_us = round(options.offer_timeout_s * 1e6)
        self._locks, self._freed_triggers = options.lock, options.freed_room_triggers
        self._refuse_us = np.zeros(agents, np.int64)  # by agent; 0: no filter
        # by agent; the last entry stands for all agents after those of the protocol
        self._is_own = np.zeros(agents + 1, np.bool_)
        self._allocator = _make_allocator(environment, spec.limit)
        for member in members:
            refuse_us = round(member.options.refuse_s * 1e6)
            for agent in range(member.first_agent, member.first_agent + member.count):
                name = f"{member.name}-{agent - member.first_agent}"
                self._allocator.add_framework(agent, name, member.options.role)
                self._allocator.deactivate(agent)
                self._is_own[agent] = True
                self._refuse_us[agent] = max(refuse_us, self._interval_us) if refuse_us else 0
        self._first_agent = int(np.flatnonzero(self._is_own)[0])
        total = int(spec.limit[:, 0].sum())
        self._unit = max(1, total // _UNITS)
        self._units = max(1, total // self._unit)
        self._records = Measurements(TABLES)

        self._epoch = np.full(agents, _NEVER, np.int64)
        self._offers = _Outstanding(
            np.zeros(0, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
            np.zeros((0, resources), np.int64),
            np.zeros(0, np.int64),
        )
        self._asked = self._offers  # offers whose room the cell is asked to hold
        self._last_offer = 0  # the id of the last one that was only announced
        self._requests = 0
        self._candidates = np.zeros(machines, np.bool_)  # of the pending run
        self._is_pending = False
        self._rivals_use = np.zeros(resources, np.int64)
        self._rivals_changed = False
        # by agent, since the last sample: made, accepted, declined, rescinded, expired, held, used
        self._counts = np.zeros((7, agents), np.int64)
        self._runs = 0

    # What happens.

    def on_started(self, now_us: int) -> list[Effect]:
        """Set the timers: those of an earlier epoch of the cell are gone."""
        effects: list[Effect] = [
            SetTimer((now_us // self._interval_us + 1) * self._interval_us, IntervalDue()),
            self._sample_timer(now_us),
        ]
        if self._is_pending:
            effects.append(SetTimer(now_us + self._allocation_us, AllocationDue()))
        if self._timeout_us is not None and len(self._offers.offer):
            effects.append(SetTimer(self._next_expiry_us(), ExpiryDue()))
        return effects

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Handle a message, or a timer."""
        match event:
            case OffersAnswered():
                return self._on_answered(now_us, event)
            case HoldReply(_, hold):
                return self._on_held(now_us, hold)
            case AllocationDue():
                return self._allocate(now_us)
            case IntervalDue():
                following = (now_us // self._interval_us + 1) * self._interval_us
                self._candidates[:] = True
                return [SetTimer(following, IntervalDue()), *self._allocate(now_us)]
            case Subscribe(agent, epoch, suppressed):
                return self._on_subscribed(now_us, agent, epoch, suppressed)
            case Suppress(agent, epoch):
                if epoch == self._epoch[agent]:
                    self._allocator.suppress(agent)
                return []
            case Revive(agent, epoch):
                if epoch != self._epoch[agent]:
                    return []
                self._allocator.revive(agent)
                return self._trigger(now_us)
            case TasksWanted(agent, epoch, request, tasks):
                if epoch == self._epoch[agent]:
                    self._allocator.want(agent, request, tasks)
                return []
            case ExpiryDue():
                return self._expire(now_us)
            case SampleDue():
                self._record(now_us)
                return [*self._records.flush(), self._sample_timer(now_us)]
        raise TypeError(f"allocator cannot handle {type(event).__name__}")

    def on_tasks_started(
        self, now_us: int, task: Int64, allocation: Int64, machine: Int32, owner: Int32
    ) -> list[Effect]:
        """Charge what tasks use to their agent, or to the rivals."""
        self._charge(task, owner, +1)
        return []

    def on_tasks_ended(
        self,
        now_us: int,
        change: ChangeKind,
        task: Int64,
        allocation: Int64,
        machine: Int32,
        owner: Int32,
    ) -> list[Effect]:
        """Un-charge what tasks used."""
        self._charge(task, owner, -1)
        return self._trigger(now_us, machine) if self._freed_triggers else []

    def on_machines_changed(
        self, now_us: int, machine: Int32, up: NDArray[np.bool_]
    ) -> list[Effect]:
        """Offer what comes up. Offers on what goes down end: those that hold room by the cell's
        message."""
        self._allocator.on_machines_changed(machine, up)
        effects: list[Effect] = []
        if not self._locks:
            lost = np.isin(self._offers.machine, machine[~up])
            effects += self._rescind(now_us, np.flatnonzero(lost), 3)
        if up.any():
            effects += self._trigger(now_us, machine[up])
        return effects

    def on_holds_ended(
        self, now_us: int, hold: Int64, remainder: Int64, cause: HoldEnd
    ) -> list[Effect]:
        """The cell has ended holds: a transaction named them, or their machine was lost."""
        rows, known = self._offers.rows_of(hold)
        if cause is HoldEnd.LOST:
            return self._rescind(now_us, rows, 3, released=False)
        left = remainder[known]
        accepted = self._end(now_us, rows, 1, self._offers.amount[rows] - left)
        self._refuse(now_us, accepted, left)
        return self._trigger(now_us, accepted.machine) if self._freed_triggers else []

    def finish(self, now_us: int) -> list[Record]:
        """Return the measurements that were not handed out yet."""
        self._record(now_us)
        return self._records.flush()

    # Agents come and answer.

    def _on_subscribed(self, now_us: int, agent: int, epoch: int, suppressed: bool) -> list[Effect]:
        """An agent begins. What an earlier one was offered and did not answer ends."""
        if epoch <= self._epoch[agent]:
            return []
        self._epoch[agent] = epoch
        own = np.flatnonzero(self._offers.agent == agent)
        effects = self._release(self._end(now_us, own, 3))
        self._allocator.deactivate(agent)  # forget filters, too
        self._allocator.activate(agent)
        if suppressed:
            self._allocator.suppress(agent)
            return effects
        return effects + self._trigger(now_us)

    def _on_answered(self, now_us: int, event: OffersAnswered) -> list[Effect]:
        """End offers that were declined, or that claims rest on where they hold nothing."""
        if event.epoch != self._epoch[event.agent]:
            return []
        rows, known = self._offers.rows_of(event.accepted)
        used = event.accepted_amount[known]
        accepted = self._end(now_us, rows, 1, used)
        self._refuse(now_us, accepted, accepted.amount - used)
        rows, _ = self._offers.rows_of(event.declined)
        declined = self._end(now_us, rows, 2)
        self._refuse(now_us, declined, declined.amount)
        effects = self._release(declined)
        if self._freed_triggers and len(declined.offer):
            effects += self._trigger(now_us, declined.machine)
        return effects

    # Offers are made.

    def _trigger(self, now_us: int, machine: Int32 | None = None) -> list[Effect]:
        """Ask for an allocation run over machines, int32[k]; None: over all."""
        self._candidates[slice(None) if machine is None else machine] = True
        if self._is_pending:
            return []
        self._is_pending = True
        return [SetTimer(now_us + self._allocation_us, AllocationDue())]

    def _allocate(self, now_us: int) -> list[Effect]:
        """Run: over the candidates of all triggers so far."""
        self._is_pending = False
        if len(self._asked.offer):  # what is free is known once the master has answered
            return self._trigger(now_us, np.zeros(0, np.int32))
        self._runs += 1
        candidates = np.flatnonzero(self._candidates & self.cell.up).astype(np.int32)
        self._candidates[:] = False
        cell = self.cell
        free = cell.spec.limit - cell.used - cell.held
        if not self._locks:
            np.subtract.at(free, self._offers.machine, self._offers.amount)
        if self._rivals_changed:
            self._allocator.set_rivals_use(self._rivals_use)
            self._rivals_changed = False
        agent, machine, amount = self._allocator.allocate(now_us, candidates, free)
        n = len(agent)
        if not n:
            return []
        made_us = np.full(n, now_us, np.int64)
        if not self._locks:
            offer = self._last_offer + 1 + np.arange(n, dtype=np.int64)
            self._last_offer += n
            return self._make(now_us, _Outstanding(offer, agent, machine, amount, made_us))
        self._asked = _Outstanding(np.zeros(n, np.int64), agent, machine, amount, made_us)
        self._requests += 1
        request = HoldRequest(self._address, self._requests, agent, machine, amount)
        return [Send(MASTER, request)]

    def _on_held(self, now_us: int, hold: Int64) -> list[Effect]:
        """The cell holds what it was asked for, but for what is gone."""
        asked, self._asked = self._asked, self._asked.take(np.zeros(0, np.int64))
        refused = asked.take(hold < 0)
        self._allocator.on_offers_ended(refused.agent, refused.amount)
        asked.offer = hold
        asked = asked.take(hold >= 0)
        return self._make(now_us, asked)

    def _make(self, now_us: int, made: _Outstanding) -> list[Effect]:
        """Send offers to their agents."""
        effects: list[Effect] = []
        if self._timeout_us is not None and not len(self._offers.offer) and len(made.offer):
            effects.append(SetTimer(now_us + self._timeout_us, ExpiryDue()))
        self._offers = self._offers.join(made)
        for agent in _distinct(made.agent):
            own = made.take(made.agent == agent)
            self._counts[0, agent] += len(own.offer)
            epoch = int(self._epoch[agent])
            offers = Offers(epoch, now_us, own.offer, own.machine, own.amount)
            effects.append(Send(agent, offers))
        return effects

    # Offers end.

    def _end(self, now_us: int, rows: Int64, how: int, used: Int64 | None = None) -> _Outstanding:
        """End offers by rows, int64[k], counted as `how`, a row of the counts. used: int64[k, R],
        what was claimed of each; None: nothing. Returns them."""
        ended = self._offers.take(rows)
        if not len(rows):
            return ended
        stay = np.ones(len(self._offers.offer), np.bool_)
        stay[rows] = False
        self._offers = self._offers.take(stay)
        self._allocator.on_offers_ended(ended.agent, ended.amount)
        counts, lasted_us = self._counts, now_us - ended.made_us
        np.add.at(counts[how], ended.agent, 1)
        np.add.at(counts[5], ended.agent, ended.amount[:, 0] // self._unit * lasted_us)
        if used is not None:
            np.add.at(counts[6], ended.agent, used[:, 0] // self._unit * lasted_us)
        return ended

    def _refuse(self, now_us: int, ended: _Outstanding, amount: Int64) -> None:
        """Filter what agents did not want of offers, int64[k, R]."""
        has_some = amount.any(axis=1) & (self._refuse_us[ended.agent] > 0)
        for agent in _distinct(ended.agent[has_some]):
            own = has_some & (ended.agent == agent)
            until_us = now_us + int(self._refuse_us[agent])
            self._allocator.refuse(agent, ended.machine[own], amount[own], until_us)

    def _release(self, ended: _Outstanding) -> list[Effect]:
        """Release the room that ended offers held."""
        if not self._locks or not len(ended.offer):
            return []
        return [Send(MASTER, HoldsReleased(ended.offer))]

    def _rescind(self, now_us: int, rows: Int64, how: int, released: bool = True) -> list[Effect]:
        """End offers by rows, and tell their agents. released: whether their room is to be given
        back."""
        ended = self._end(now_us, rows, how)
        effects = self._release(ended) if released else []
        for agent in _distinct(ended.agent):
            offer = ended.offer[ended.agent == agent]
            effects.append(Send(agent, OffersRescinded(int(self._epoch[agent]), offer)))
        return effects

    def _expire(self, now_us: int) -> list[Effect]:
        """End the offers that had no answer for too long."""
        assert self._timeout_us is not None, "only then the timer is set"
        old = self._offers.made_us <= now_us - self._timeout_us
        effects = self._rescind(now_us, np.flatnonzero(old), 4)
        if len(self._offers.offer):
            effects.append(SetTimer(self._next_expiry_us(), ExpiryDue()))
        return effects

    def _next_expiry_us(self) -> int:
        assert self._timeout_us is not None
        return int(self._offers.made_us.min()) + self._timeout_us

    # Shares and measurements.

    def _charge(self, task: Int64, owner: Int32, sign: int) -> None:
        own = self._is_own.take(owner, mode="clip")
        request = self._request[task]
        if not own.all():
            self._rivals_use += sign * request[~own].sum(axis=0)
            self._rivals_changed = True
            owner, request = owner[own], request[own]
        change = self._allocator.on_allocated if sign > 0 else self._allocator.on_freed
        change(owner, request)

    def _record(self, now_us: int) -> None:
        """Add a row per agent for the interval that ends."""
        agents, shares = self._allocator.shares()
        is_first = agents == self._first_agent
        counts = self._counts[:, agents]
        parts = [[value * _PPM // self._units for value in row] for row in counts[5:].tolist()]
        self._records.add(
            OFFERS,
            len(agents),
            now_us,
            agents,
            *counts[:5],
            *(np.array(part, np.int64) for part in parts),
            shares,
            np.where(is_first, shares.max() - shares.min(), 0),
            is_first.astype(np.int64),
            np.where(is_first, self._runs, 0),
        )
        self._counts[:] = 0
        self._runs = 0

    def _sample_timer(self, now_us: int) -> SetTimer:
        following = now_us // self._sample_us + 1
        return SetTimer(following * self._sample_us, SampleDue(following))

    # Checkpoints.

    def checkpoint(self) -> Any:
        """The whole state."""
        return (
            self._allocator.state(),
            self._records.held(),
            self._epoch,
            self._offers.columns(),
            self._asked.columns(),
            (self._last_offer, self._requests, self._is_pending, self._runs),
            self._candidates,
            self._rivals_use,
            self._rivals_changed,
            self._counts,
        )

    def restore(self, state: Any) -> None:
        """Take the state that checkpoint() returned."""
        allocator, records, epoch, offers, asked, numbers, candidates, use, changed, counts = state
        self._allocator.restore(allocator)
        self._records.restore(records)
        self._epoch, self._candidates = epoch.copy(), candidates.copy()
        self._offers, self._asked = _Outstanding(*offers), _Outstanding(*asked)
        self._last_offer, self._requests, self._is_pending, self._runs = numbers
        self._rivals_use, self._rivals_changed = use.copy(), changed
        self._counts = counts.copy()


def _distinct(agent: Int32) -> list[int]:
    """The different agents among these, ascending."""
    found: list[int] = np.flatnonzero(np.bincount(agent)).tolist()
    return found


def _check_member(member: Member, options: OffersSharedOptions) -> None:
    """Raise AgoraError if a group's options do not go with those of the arm."""
    own = member.options
    if options.rivals == "role" and own.role.split("/")[0] == RIVALS:
        raise AgoraError(
            f"group '{member.name}': role: '{RIVALS}' is that of other schedulers, as rivals ="
            " 'role' says"
        )
    at_once = options.freed_room_triggers and round(options.allocation_s * 1e6) == 0
    if at_once and own.refuse_s == 0:
        raise AgoraError(
            f"group '{member.name}': refuse_s: expected more than 0 with freed_room_triggers unless"
            " allocation_s is: what is declined would be offered again at once, for ever"
        )


def _make_allocator(environment: Environment, limit: Int64) -> _native.OfferAllocator:
    """The native allocator of an arm, without frameworks."""
    options: OffersSharedOptions = environment.options
    machines, resources = limit.shape
    total = limit.sum(axis=0)
    roles = list(options.roles.items())
    weight = np.array([round(role.weight * 1000) for _, role in roles], np.int64)
    guarantee = np.zeros((len(roles), resources), np.int64)
    most = np.full((len(roles), resources), -1, np.int64)
    for row, (_, role) in enumerate(roles):
        guarantee[row] = [int(one) * round(role.guarantee * 1000) // 1000 for one in total]
        if role.limit < 1:
            most[row] = [int(one) * round(role.limit * 1000) // 1000 for one in total]
    turn = {"cell": machines, "machines": options.machines_per_offer}.get(options.granularity)
    return _native.OfferAllocator(
        seed=environment.seed & WORD,
        name="offers",
        capacity=np.ascontiguousarray(limit),
        role=[name for name, _ in roles],
        weight_permille=weight,
        guarantee=guarantee,
        limit=most,
        # Mesos: 0.01 cpus or 32 MB. Units differ here, so a thousandth of the largest machine
        smallest=np.maximum(1, limit.max(axis=0) // 1000),
        random=options.sorter == "random",
        task_sized=options.granularity == "task",
        machines_per_turn=1 if turn is None else turn,
        rivals_role=RIVALS if options.rivals == "role" else None,
    )
