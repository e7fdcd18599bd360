"""What an agent has been offered and has not answered, and its view of the cell: just that."""

from __future__ import annotations

import numpy as np

from parsync.protocols import _native
from parsync.protocols.agent_view import AgentView
from parsync.protocols.spec import AgentEnvironment
from shared_state.tasks import Int32
from shared_state.transaction import CommitResult


class OfferedRoom(_native.OfferedRoom):
    """The offers of one agent that are without an answer, n of them, and a view that shows their
    room: other machines look full (native/offers_agent.hpp).

    A round that begins is about all offers on hand. What comes meanwhile is for the next one.

    Args:
        environment: The agent's.

    Attributes:
        view: The agent's view.
        offer, machine, amount: int64[n], int32[n] and int64[n, R].
        in_round: bool[n], offers that the round under way is about.
        rescinded: bool[n], those of them that have ended meanwhile.
        partitions: How many partitions they are in.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        self.view = OfferView(environment)
        super().__init__(self.view.cell)

    def add(self, now_us: int, event: _native.Offers) -> None:
        """Offers have come."""
        super().add(now_us, event)
        self.view.changed = True


class OfferView(AgentView):
    """A view that shows room only where the agent has offers. It is never synchronised."""

    def __init__(self, environment: AgentEnvironment) -> None:
        super().__init__(environment)
        self._order = np.arange(environment.shared.partitioning.count, dtype=np.int32)

    @property
    def order(self) -> Int32:
        """The partitions in their order: none is fresher than another."""
        return self._order

    def settle(self, ticket: int, result: CommitResult) -> None:
        """Nothing is left to settle: a decided round's claims left the view with its offers."""

    def staleness_us(self, now_us: int) -> int:
        """An offer is true until it ends."""
        return 0
