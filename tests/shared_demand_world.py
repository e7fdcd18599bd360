"""Agents that share demand, and their ledger, without a cell: messages wait until a test lets them
through."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from parsync.core.codec import Codec
from parsync.protocols.optimistic.events import EVENTS, DemandReply
from parsync.protocols.optimistic.shared_demand import DemandExchange, DemandLedger
from parsync.protocols.spec import AgentEnvironment, Environment, Member
from schedulers.decision_clock import Modelled
from schedulers.interface import Capability
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.tasks import TaskBatch
from tests.price_world import catalog_of, cell_of

CODEC = Codec(EVENTS)


class CountingScheduler:
    """Counts the tasks of each set that it was offered, or learnt of, and nothing is forgotten."""

    def __init__(self, preference):
        self._preference = preference
        self._offered, self._new = set(), []
        self.tasks, self.squares = Counter(), Counter()
        self.over_us = []

    def offer(self, task):
        for one in task:
            if one not in self._offered:
                self._offered.add(one)
                self._new.append(one)
                self.tasks[int(self._preference[one])] += 1

    def take_new_demand(self):
        new, self._new = np.array(self._new, np.int64), []
        return new

    def learn_demand(self, counts, over_us):
        assert counts.preference.dtype == np.int32 and len(set(counts.preference.tolist())) == len(
            counts.preference
        )
        self.over_us.append(over_us)
        for preference, tasks, squares in zip(*(column.tolist() for column in counts), strict=True):
            self.tasks[preference] += tasks
            self.squares[preference] += squares


def environment_of(preference, sets, agents=1, capacity=(2,), catalog=None):
    """The environment of a protocol whose tasks (row = id) have these preference sets."""
    n = len(preference)
    table = TaskBatch(
        np.arange(n),
        np.zeros(n, np.int64),
        np.ones((n, 1), np.int64),
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.array(preference, np.int32),
        np.full(n, -1, np.int64),
        np.zeros(n, np.int8),
    )
    spec = cell_of(capacity)
    member = Member("sharing", 0, agents, None, frozenset({Capability.SHARES_DEMAND}))
    catalog = catalog or catalog_of([(90, {0: 20})] * sets)
    return Environment(
        1, (member,), spec, Partitioning.by_topology(spec, 1), catalog, table, -16, 100_000
    )


def agent_of(environment, index):
    """An agent's environment, as far as demand is concerned."""
    clock, member = Modelled(0, 0, 0), environment.members[0]
    return AgentEnvironment(environment, index, f"sharing-{index}", member, None, clock, None)


class SharedDemandWorld:
    """Agents 0 to N - 1 and their ledger. Messages go through the codec; those between two arrive
    in the order of sending."""

    def __init__(self, preference, sets, agents, schedulers=None, catalog=None, capacity=(2,)):
        self.preference = np.array(preference, np.int32)
        self.environment = environment_of(preference, sets, agents, capacity, catalog)
        self.cell = Cell(self.environment.cell, self.environment.partitioning)
        self.ledger = DemandLedger(self.environment, self.cell)
        self.to_ledger = [deque() for _ in range(agents)]
        self.to_agent = [deque() for _ in range(agents)]
        self.schedulers = schedulers or [CountingScheduler(self.preference) for _ in range(agents)]
        self.exchanges = [self._exchange(agent) for agent in range(agents)]
        self.replies = []
        self.now_us = 0

    def _exchange(self, agent):
        return DemandExchange(agent_of(self.environment, agent), self.schedulers[agent], 0)

    def report(self, agent):
        self._send(agent, self.exchanges[agent].report())

    def request(self, agent):
        self._send(agent, self.exchanges[agent].request(self.now_us))

    def _send(self, agent, effects):
        for effect in effects:
            assert effect.to == -16
            self.to_ledger[agent].append(CODEC.encode(effect.event))

    def ledger_handles(self, agent):
        """Deliver the first message of an agent to the ledger."""
        if self.to_ledger[agent]:
            event = CODEC.decode(self.to_ledger[agent].popleft())
            for effect in self.ledger.handle(self.now_us, event):
                self.to_agent[effect.to].append(CODEC.encode(effect.event))

    def agent_handles(self, agent):
        """Deliver the first message to an agent."""
        if self.to_agent[agent]:
            reply = CODEC.decode(self.to_agent[agent].popleft())
            assert isinstance(reply, DemandReply)
            self.replies.append(reply)
            self.exchanges[agent].on_reply(self.now_us, reply)

    def restart_agent(self, agent):
        """Kill its host: what was on the way to it, or was not handed over, is lost."""
        self.to_ledger[agent].clear()
        self.to_agent[agent].clear()
        self.schedulers[agent] = CountingScheduler(self.preference)
        self.exchanges[agent] = self._exchange(agent)
        self.request(agent)

    def restart_cell(self):
        """Bring the ledger back from a checkpoint."""
        state = CODEC.decode(CODEC.encode(self.ledger.checkpoint()))
        self.ledger = DemandLedger(self.environment, self.cell)
        self.ledger.restore(state)

    def synchronise(self):
        """Everything is reported and learnt."""
        agents = range(len(self.exchanges))
        for agent in agents:
            self.report(agent)
            while self.to_ledger[agent]:
                self.ledger_handles(agent)
        for agent in agents:
            while self.to_agent[agent]:
                self.agent_handles(agent)
            for _ in range(1000):
                self.request(agent)
                self.ledger_handles(agent)
                self.agent_handles(agent)
                if self.replies[-1].waiting == 0:
                    break
