"""What an agent has been offered and has not answered, and its view of the cell: just that."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.protocols.agent_view import AgentView
from parsync.protocols.spec import AgentEnvironment
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, PartitionDelta


class OfferedRoom:
    """The offers of one agent that are without an answer, n of them, and a view that shows their
    room: other machines look full.

    A round that begins is about all offers on hand. What comes meanwhile is for the next one.

    Args:
        environment: The agent's.

    Attributes:
        view: The agent's view.
        offer, machine, amount: int64[n], int32[n] and int64[n, R].
        in_round: bool[n], offers that the round under way is about.
        rescinded: bool[n], those of them that have ended meanwhile.
        made_us: int64[M], when the last offer of each machine was made.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        cell = environment.shared.cell
        self.view = OfferView(environment)
        self.made_us: Int64 = np.zeros(cell.machines, np.int64)
        self._of_machine = np.zeros((cell.machines, len(cell.dimensions)), np.int64)
        self.offer: Int64 = np.zeros(0, np.int64)
        self.machine: Int32 = np.zeros(0, np.int32)
        self.amount: Int64 = np.zeros((0, len(cell.dimensions)), np.int64)
        self.in_round: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.rescinded: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self.offer)

    def add(self, now_us: int, made_us: int, offer: Int64, machine: Int32, amount: Int64) -> None:
        """Offers have come; columns as in Offers."""
        self.offer = np.concatenate([self.offer, offer])
        self.machine = np.concatenate([self.machine, machine])
        self.amount = np.concatenate([self.amount, amount])
        none = np.zeros(len(offer), np.bool_)
        self.in_round = np.concatenate([self.in_round, none])
        self.rescinded = np.concatenate([self.rescinded, none])
        self.made_us[machine] = made_us
        np.add.at(self._of_machine, machine, amount)
        self._show(now_us, machine)
        self.view.changed = True

    def begin_round(self) -> None:
        """A round begins: it is about the offers on hand."""
        self.in_round[:] = True

    def on_machines_of(self, machine: Int32) -> NDArray[np.bool_]:
        """The offers of the round on some of these machines, int32[k]: bool[n]."""
        claimed = np.zeros(len(self.made_us), np.bool_)
        claimed[machine] = True
        on_these: NDArray[np.bool_] = self.in_round & claimed[self.machine]
        return on_these

    def rescind(self, now_us: int, offer: Int64) -> int:
        """The allocator has ended offers, int64[k]. Returns how many the agent still had. Those of
        the round under way stay until end_round(), because its claims rest on them, but show no
        room: that may be offered again."""
        ended = np.isin(self.offer, offer) & ~self.rescinded
        in_round = ended & self.in_round
        self._remove(now_us, ended & ~self.in_round)
        if in_round.any():
            in_round = np.isin(self.offer, offer)
            np.subtract.at(self._of_machine, self.machine[in_round], self.amount[in_round])
            self.rescinded |= in_round
            self._show(now_us, self.machine[in_round])
        return int(np.count_nonzero(ended))

    def end_round(self, now_us: int, kept: NDArray[np.bool_]) -> None:
        """The round is decided, and all its offers end but those that are kept, bool[n]."""
        self._remove(now_us, self.in_round & ~(kept & ~self.rescinded))
        self.in_round[:] = False

    def remove_all(self, now_us: int) -> Int64:
        """Forget all offers while no round is under way. Returns their ids."""
        assert not self.in_round.any(), "a round's offers end with the round"
        offer = self.offer
        self._remove(now_us, np.ones(len(offer), np.bool_))
        return offer

    def _remove(self, now_us: int, gone: NDArray[np.bool_]) -> None:
        if not gone.any():
            return
        machine, stay = self.machine[gone], ~gone
        shown = gone & ~self.rescinded
        np.subtract.at(self._of_machine, self.machine[shown], self.amount[shown])
        self.offer, self.machine, self.amount = (
            self.offer[stay],
            self.machine[stay],
            self.amount[stay],
        )
        self.in_round, self.rescinded = self.in_round[stay], self.rescinded[stay]
        self._show(now_us, machine)

    def _show(self, now_us: int, machine: Int32) -> None:
        """Show in the view what the offers on hand hold of machines, int32[k]."""
        changed = np.zeros(len(self._of_machine), np.bool_)
        changed[machine] = True
        rows = np.flatnonzero(changed).astype(np.int32)
        self.view.show(now_us, rows, self._of_machine[rows])


class OfferView(AgentView):
    """A view that shows room only where the agent has offers. It is never synchronised."""

    def __init__(self, environment: AgentEnvironment) -> None:
        super().__init__(environment)
        shared = environment.shared
        self._limit = shared.cell.limit
        self._offsets = shared.partitioning.offsets
        self._version = 0
        self._order = np.arange(shared.partitioning.count, dtype=np.int32)
        first = self._offsets[shared.partitioning.of_each()]
        # of each machine, its row in its partition
        self._row = (np.arange(len(first)) - first).astype(np.uint32)

    @property
    def order(self) -> Int32:
        """The partitions in their order: none is fresher than another."""
        return self._order

    def show(self, now_us: int, machine: Int32, room: Int64) -> None:
        """Show this room, int64[k, R], on machines int32[k] that ascend, and no room on all others
        if it is the first call."""
        if not self._version:
            everywhere = np.zeros((len(self._limit), room.shape[1]), np.int64)
            everywhere[machine] = room
            machine, room = np.arange(len(self._limit), dtype=np.int32), everywhere
        held = self.cell.versions.tolist() if self._version else [0] * len(self._order)
        self._version += 1
        # a partition has all changes so far, whether they concern it or not
        bounds = np.searchsorted(machine, self._offsets)
        row = self._row[machine]
        used = self._limit[machine] - room
        up = np.ones(len(machine), np.bool_)
        for partition in np.flatnonzero(np.diff(bounds)).tolist():
            own = slice(int(bounds[partition]), int(bounds[partition + 1]))
            delta = PartitionDelta(
                partition,
                held[partition],
                self._version,
                now_us,
                row[own],
                used[own],
                up[own],
                None,
            )
            self.cell.apply(delta)

    def settle(self, ticket: int, result: CommitResult) -> None:
        """Nothing is left to settle: a decided round's claims left the view with its offers."""

    def staleness_us(self, now_us: int) -> int:
        """An offer is true until it ends."""
        return 0
