"""The coordinator's rounds: who holds and wants how much, and how much each may take (ParSync,
supplement B: the coordinator gathers from schedulers what each quota group has been allocated and
will need, and calculates what it can be allocated).

In each round every agent is asked. When all have answered, the cell is divided among the quota
groups, and the limit of each group among the agents, by the same rule (fair_shares.py). What an
agent's tasks of a group hold already is its minimum there, so that only what is left moves. The
grants of all agents for a group sum to at most its limit, and the limits to at most the cell. So
agents that keep their grants keep the limits without asking each other.

An agent that does not answer before the next round counts with its last answer.

A grant that is smaller than what an agent holds ends no task at first. If the quotas say so, an
agent that stays above its grant for a while is told to give back what it holds above it.
"""

from __future__ import annotations

import numpy as np

from parsync.core.addresses import MASTER
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.events import (
    QuotaGrant,
    QuotaReport,
    QuotaRequest,
    QuotaRoundDue,
    QuotaShares,
)
from parsync.core.fair_shares import shares_and_limits
from parsync.core.quotas import Capacity, QuotaSpec
from shared_state.tasks import ENTIRE, Int64


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
