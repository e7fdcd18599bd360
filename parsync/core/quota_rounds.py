"""The coordinator's rounds: who holds and wants how much, and how much each may take (ParSync,
supplement B: the coordinator gathers from schedulers what each quota group has been allocated and
will need, and calculates what it can be allocated).

In each round every agent is asked. When all have answered, the cell is divided among the quota
groups, and the limit of each group among the agents, by the same rule (fair_shares.py). What an
agent's tasks of a group hold already is its minimum there, so that only what is left moves. The
grants of all agents for a group sum to at most its limit, and the limits to at most the cell. So
agents that keep their grants keep the limits without asking each other.

An agent that does not answer before the next round counts with its last answer.
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
from parsync.core.quotas import ENTIRE, Capacity, QuotaSpec


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
        self._maximum = whole * [group.maximum_permille for group in spec.groups] // ENTIRE
        self._weight = np.array([group.weight for group in spec.groups], np.int64)
        self._equal = np.ones(agents, np.int64)
        shape = (agents, len(spec.groups), len(whole))
        self._held, self._waiting = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
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
        effects: list[Effect] = [
            Send(agent, QuotaGrant(self._round, np.ascontiguousarray(grants[..., agent].T)))
            for agent in range(self._agents)
        ]
        columns = (np.ascontiguousarray(amount.T) for amount in (wanted, shares, limits))
        effects.append(Send(MASTER, QuotaShares(self._round, *columns)))
        return effects
