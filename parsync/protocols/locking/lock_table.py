"""The lock table: who may decide on which partition.

It lives beside the master. A partition has at most one holder. Requests are served in the order in
which they come: the first waits until as many partitions are free as it asks for, and all others
wait behind it, so none waits forever. It is granted the partitions that were released longest ago:
their tasks have had the most time to end.

After the restart of a scheduler host, a new agent begins with LocksReleased in its new epoch. What
the agent before it held or asked for is forgotten then.
"""

from __future__ import annotations

import numpy as np

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.protocols.base import BaseCellSide
from parsync.protocols.locking.events import LockRequest, LocksGranted, LocksReleased
from parsync.protocols.spec import Environment
from shared_state.cell import Cell
from shared_state.tasks import Int32, Int64

FREE = -1


class LockTable(BaseCellSide):
    """The locks on all partitions.

    Its state is (releases so far; of each partition: its holder int32[P], or FREE, and the number
    of its last release int64[P]; the epoch of each agent int64[A]; the requests that wait, in their
    order: agent and count int64[w, 2]).
    """

    state: tuple[int, Int32, Int64, Int64, Int64]

    def __init__(self, environment: Environment, cell: Cell) -> None:
        super().__init__(environment, cell)
        partitions = environment.partitioning.count
        agents = max(member.first_agent + member.count for member in environment.members)
        self.state = (
            0,
            np.full(partitions, FREE, np.int32),
            np.zeros(partitions, np.int64),
            np.zeros(agents, np.int64),
            np.zeros((0, 2), np.int64),
        )

    @property
    def holder(self) -> Int32:
        """Who holds each partition, int32[P]; FREE: nobody."""
        return self.state[1]

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        """Take in a request or a release, and grant what can be granted."""
        match event:
            case LockRequest(agent, epoch, count):
                if self._is_current(agent, epoch):
                    self._wait(agent, count)
            case LocksReleased(agent, epoch):
                if self._is_current(agent, epoch):
                    self._release(agent)
            case _:
                raise TypeError(f"lock table cannot handle {type(event).__name__}")
        return self._grant()

    def _is_current(self, agent: int, epoch: int) -> bool:
        """Whether a message is of the agent that is alive. Forgets what an earlier one had."""
        epochs = self.state[3]
        if epoch > epochs[agent]:
            self._release(agent)
            epochs[agent] = epoch
        return bool(epoch == epochs[agent])

    def _wait(self, agent: int, count: int) -> None:
        releases, holder, released, epochs, waiting = self.state
        assert not (holder == agent).any(), "an agent that holds locks asks for none"
        assert not (waiting[:, 0] == agent).any(), "an agent asks once at a time"
        waiting = np.vstack([waiting, np.array([[agent, count]], np.int64)])
        self.state = (releases, holder, released, epochs, waiting)

    def _release(self, agent: int) -> None:
        releases, holder, released, epochs, waiting = self.state
        held = holder == agent
        holder[held] = FREE
        released[held] = releases + 1
        self.state = (releases + 1, holder, released, epochs, waiting[waiting[:, 0] != agent])

    def _grant(self) -> list[Effect]:
        releases, holder, released, epochs, waiting = self.state
        effects: list[Effect] = []
        while len(waiting):
            agent, count = waiting[0].tolist()
            free = np.flatnonzero(holder == FREE)
            if len(free) < count:
                break
            longest = np.argsort(released[free], kind="stable")[:count]
            partition = np.sort(free[longest]).astype(np.int32)
            holder[partition] = agent
            waiting = waiting[1:]
            effects.append(Send(agent, LocksGranted(int(epochs[agent]), partition)))
        self.state = (releases, holder, released, epochs, waiting)
        return effects
