"""The coordinator: it follows the load phases, and divides the cell among quota groups.

In rounds it gathers from the schedulers what each quota group has been allocated and will need, and
calculates what it can be allocated (ParSync, supplement B).

In each round every agent is asked. When all have answered, the cell is divided among the quota
groups, and the limit of each group among the agents, by the same rule (fair_shares()). What an
agent's tasks of a group hold already is its minimum there, so that only what is left moves. The
grants of all agents for a group sum to at most its limit, and the limits to at most the cell. So
agents that keep their grants keep the limits without asking each other.

An agent that does not answer before the next round counts with its last answer.

A grant that is smaller than what an agent holds ends no task at first. If the quotas say so, an
agent that stays above its grant for a while is told to give back what it holds above it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event
from parsync.core.events import (
    PhaseDue,
    QuotaGrant,
    QuotaReport,
    QuotaRequest,
    QuotaRoundDue,
    QuotaShares,
    Started,
)
from parsync.core.quotas import LARGEST_WEIGHT, Capacity, QuotaSpec
from parsync.metrics.record import Record
from shared_state.tasks import ENTIRE, Int64


class Coordinator:
    """Follows the load phases of the workload, and divides the cell among quota groups if the arm
    has some.

    In a live run its actor shows the phase to people. In virtual time nobody asks for it. There it
    is a participant all the same: both runtimes drive the same participants, and its events are
    part of the digest that a run is known by.

    Args:
        start_us: When each phase begins, ascending.
        quotas: Its rounds; None: the arm has no quota groups.

    Attributes:
        phase: The present one, -1 before the first.
    """

    def __init__(self, start_us: tuple[int, ...], quotas: QuotaRounds | None = None) -> None:
        self._start_us = start_us
        self._quotas = quotas
        self.phase = -1

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Started():
                first = [] if self._quotas is None else self._quotas.begin(now_us, 0)
                return self._arm(0) + first
            case PhaseDue(phase):
                self.phase = phase
                return self._arm(phase + 1)
            case QuotaReport() if self._quotas is not None:
                return self._quotas.on_report(now_us, event)
            case QuotaRoundDue(number) if self._quotas is not None:
                return self._quotas.begin(now_us, number)
        raise TypeError(f"coordinator cannot handle {type(event).__name__}")

    def finish(self, now_us: int) -> list[Record]:
        """Hand out no measurements: the coordinator makes none."""
        return []

    def _arm(self, phase: int) -> list[Effect]:
        if phase >= len(self._start_us):
            return []
        return [SetTimer(self._start_us[phase], PhaseDue(phase))]


class QuotaRounds:
    """The rounds of one run.

    Args:
        spec: The quota groups.
        capacity: Of the cell.
        agents: How many there are; their addresses are 0 to agents - 1.
    """

    def __init__(self, spec: QuotaSpec, capacity: Capacity, agents: int) -> None:
        self._interval_us = spec.interval_us
        self._capacity = capacity
        self._agents = agents
        whole = capacity.amount.max(axis=0)[:, None]  # shares are of the cell with all machines up
        self._minimum = whole * [group.minimum_permille for group in spec.groups] // ENTIRE
        self._maximum = np.ascontiguousarray(spec.largest(capacity).T)
        self._weight = np.array([group.weight for group in spec.groups], np.int64)
        self._equal = np.ones(agents, np.int64)
        shape = (agents, len(spec.groups), len(whole))
        self._held, self._waiting = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._reclaim_after_us = spec.reclaim_after_us
        # since when an agent holds more of a group than its grant; -1: it does not
        self._above_us = np.full(shape[:2], -1, np.int64)
        self._round = 0
        self._missing: set[int] = set()  # agents that have not answered in this round

    def begin(self, now_us: int, number: int) -> list[Effect]:
        """Begin a round: settle the last one if answers are missing, and ask every agent."""
        effects = self._settled(now_us) if self._missing else []
        self._round = number
        self._missing = set(range(self._agents))
        effects += [Send(agent, QuotaRequest(number)) for agent in range(self._agents)]
        following = max(number + 1, now_us // self._interval_us + 1)
        effects.append(SetTimer(following * self._interval_us, QuotaRoundDue(following)))
        return effects

    def on_report(self, now_us: int, report: QuotaReport) -> list[Effect]:
        """Take an agent's answer."""
        self._held[report.agent] = report.held
        self._waiting[report.agent] = report.waiting
        if report.round != self._round:
            return []
        self._missing.discard(report.agent)
        return [] if self._missing else self._settled(now_us)

    def _settled(self, now_us: int) -> list[Effect]:
        """Compute what each group and agent may take, and tell them."""
        # resource by group by agent
        held, waiting = (np.ascontiguousarray(a.T) for a in (self._held, self._waiting))
        wanted = (held + waiting).sum(axis=2)
        shares, limits = shares_and_limits(
            self._capacity.at(now_us), self._minimum, wanted, self._maximum, self._weight
        )
        most = np.broadcast_to(limits[..., None], held.shape)
        _, grants = shares_and_limits(
            limits, np.minimum(held, most), held + waiting, most, self._equal
        )
        self._missing.clear()
        granted = np.ascontiguousarray(grants.T)  # agent by group by resource
        reclaimed = self._reclaimed(now_us, granted)
        effects: list[Effect] = [
            Send(agent, QuotaGrant(self._round, granted[agent], reclaimed[agent]))
            for agent in range(self._agents)
        ]
        columns = (np.ascontiguousarray(amount.T) for amount in (wanted, shares, limits))
        effects.append(Send(MASTER, QuotaShares(self._round, *columns)))
        return effects

    def _reclaimed(self, now_us: int, granted: Int64) -> Int64:
        """What agents are to give back, int64[N, G, R]: all that they hold above their grants of a
        group, once they have held more for long enough. Then they have as long again."""
        above = np.maximum(self._held - granted, 0)
        if self._reclaim_after_us is None:
            return np.zeros_like(above)
        is_above = above.any(axis=2)
        since_us = np.where(self._above_us < 0, now_us, self._above_us)
        due = is_above & (now_us - since_us >= self._reclaim_after_us)
        self._above_us = np.where(is_above, np.where(due, now_us, since_us), -1)
        return np.where(due[..., None], above, 0)


LARGEST_AMOUNT = 1 << 52  # of all claimants together: products with weights stay within int64

# Two different weighted shares j / v and k / w differ by at least 1 / (v * w). So at most one of
# them lies between two neighbouring fractions of this denominator.
_FRACTIONS = LARGEST_WEIGHT * LARGEST_WEIGHT + 1


def fair_shares(capacity: Int64, floor: Int64, ceiling: Int64, weight: Int64) -> Int64:
    """Divide capacities among n claimants: weighted max-min fair shares in integers.

    Claimant i has a weight w[i] and gets a share of at least floor[i] and at most ceiling[i]. A
    division of the capacity is weighted max-min fair if no share can grow, by one unit, without
    another shrinking whose weighted share (share / weight) is no larger after that. It is what
    water that rises at the same weighted level for all would give:

        share[i] = clamp(w[i] * level, floor[i], ceiling[i])

    with the highest level at which the shares fit the capacity (Bertsekas and Gallager, "Data
    Networks", 1992, section 6.5.2, with weights and floors).

    In integers a unit goes, one after the other, to the claimant below its ceiling whose weighted
    share with that unit, (share + 1) / weight, is the smallest; among equals to the first. So the
    shares are unique, and they are computed without a division that rounds.

    Where the floors do not fit, they are the ceilings of a division without floors.

    Args:
        capacity: int64[...], 0 or more, one for each division.
        floor, ceiling: int64[..., n], 0 <= floor <= ceiling.
        weight: int64[n], from 1 to LARGEST_WEIGHT.

    Returns:
        int64[..., n]. Its sums are at most the capacities; they are the capacities, or the sums of
        the ceilings where those are less.

    Raises:
        ValueError: An argument is out of its range.
    """
    _check(capacity, floor, ceiling, weight)
    short = (floor.sum(axis=-1) > capacity)[..., None]
    ceiling = np.where(short, floor, ceiling)
    if (ceiling.sum(axis=-1) <= capacity).all():
        return ceiling
    floor = np.where(short, 0, floor)

    def at(level: Int64, fraction: Int64) -> Int64:
        """The shares at level + fraction / _FRACTIONS, int64[...] each."""
        risen = weight * level[..., None] + weight * fraction[..., None] // _FRACTIONS
        clipped: Int64 = np.minimum(np.maximum(risen, floor), ceiling)
        return clipped

    def fits(shares: Int64) -> NDArray[np.bool_]:
        fit: NDArray[np.bool_] = shares.sum(axis=-1) <= capacity
        return fit

    none = np.zeros_like(capacity)
    whole = _last(none, ceiling.max(axis=-1, initial=0), lambda level: fits(at(level, none)))
    part = _last(none, np.full_like(capacity, _FRACTIONS - 1), lambda part: fits(at(whole, part)))
    shares = at(whole, part)
    # What the next fraction adds is one unit each, all of the same weighted share.
    more = at(whole, part + 1) - shares
    left = capacity - shares.sum(axis=-1)
    shares += np.where(np.cumsum(more, axis=-1) <= left[..., None], more, 0)
    return shares


def shares_and_limits(
    capacity: Int64, minimum: Int64, wanted: Int64, maximum: Int64, weight: Int64
) -> tuple[Int64, Int64]:
    """Divide capacities among n claimants that want different amounts.

    Args:
        capacity: int64[...].
        minimum: int64[..., n], what each gets in any case if it wants that much.
        wanted: int64[..., n].
        maximum: int64[..., n], minimum <= maximum.
        weight: int64[n].

    Returns:
        The shares int64[..., n], the fair division of what is wanted; and the limits int64[..., n]
        up to which claimants may go before the next division. To the shares, the limits add what
        nobody wants yet: it is dealt out by weight, up to the maximums, whatever the shares are,
        for a claimant that has much also needs more at a time. They sum to at most the capacity,
        too.
    """
    wanted = np.minimum(wanted, maximum)
    shares = fair_shares(capacity, np.minimum(minimum, wanted), wanted, weight)
    left = capacity - shares.sum(axis=-1)
    return shares, shares + fair_shares(left, np.zeros_like(shares), maximum - shares, weight)


def _last(low: Int64, high: Int64, holds: Callable[[Int64], NDArray[np.bool_]]) -> Int64:
    """The last value from low to high for which holds() is true: it is true for low, and false
    after the first for which it is false. int64[...] each."""
    while (low < high).any():
        middle = high - (high - low) // 2
        kept = holds(middle)
        low = np.where(kept, middle, low)
        high = np.where(kept, high, middle - 1)
    return low


def _check(capacity: Int64, floor: Int64, ceiling: Int64, weight: Int64) -> None:
    if not ((weight >= 1) & (weight <= LARGEST_WEIGHT)).all():
        raise ValueError(f"weight: expected 1 to {LARGEST_WEIGHT}")
    if (capacity < 0).any():
        raise ValueError("capacity: expected 0 or more")
    if (floor < 0).any() or (floor > ceiling).any():
        raise ValueError("floor: expected 0 <= floor <= ceiling")
    if (ceiling > LARGEST_AMOUNT // max(1, ceiling.shape[-1])).any():
        raise ValueError(f"ceiling: expected at most {LARGEST_AMOUNT} for all claimants together")
