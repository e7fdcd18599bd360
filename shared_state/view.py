"""What one scheduler believes about the cell (native/view.hpp).

It is the synced state, with the scheduler's own claims and releases overlaid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shared_state import _native
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int32, Int64
from shared_state.transaction import PartitionDelta


class StaticCellState(_native.StaticCellState):  # type: ignore[misc] # compiled
    """What never changes about a cell's machines: limits, weights, partitions.

    Views of one cell may share it. A row's weight is its slot score, at least 1.

    Raises:
        ValueError: Limits are outside 0..2^50, the sum of the scores exceeds 2^62 - 1, there are
            more than eight dimensions, or the offsets do not run from 0 to the number of machines.
    """

    def __init__(self, spec: CellSpec, partitioning: Partitioning) -> None:
        super().__init__(spec.limit, spec.slot_score, partitioning.offsets)

    def fits_when_empty(self, request: Int64) -> NDArray[np.bool_]:
        """Whether some machine would hold each request (int64[n, R]) if it were empty: bool[n]."""
        fits = np.empty(len(request), np.bool_)
        super().fit_empty_machines(request, fits)
        return fits


class ClusterView(_native.ClusterView):  # type: ignore[misc] # compiled
    """One scheduler's view of M machines, R dimensions and P partitions.

    The arrays are read-only windows on the view's own memory, not copies: they change with it. A
    view of one resource whose limits are at most 127, without sequence numbers, keeps a byte per
    machine until somebody reads `free` or `up`; from then on it keeps those columns (9 B per
    machine). A view serves one thread at a time. Calls that raise ValueError have changed nothing.

    Attributes:
        free: int64[M, R] = limit - used as synced - own claims not yet in the synced state + own
            slots freed since; -1 in every dimension where the machine is down or its partition was
            never synced; 2^55 less, so that nothing fits, where the machine's sequence number is
            not known (settle).
        up: bool[M].
        seqnum: uint32[M], only `with_seqnum`.
        synced_us: int64[P], cell time of the state held, -1 = never.
        versions: int64[P].
        open_rows: Machines that are up and have some room, in some dimension.
        claims_in_flight: Calls of claim() that are neither settled nor withdrawn.
    """

    free: Int64
    up: NDArray[np.bool_]
    seqnum: NDArray[np.uint32]
    synced_us: Int64
    versions: Int64
    open_rows: int
    claims_in_flight: int
    first_oversubscribed: Callable[..., int]  # documented there; called once per plan

    def __init__(
        self,
        spec: CellSpec,
        partitioning: Partitioning,
        with_seqnum: bool = False,
        static_state: StaticCellState | None = None,
    ) -> None:
        """A view that knows nothing yet.

        Args:
            spec: The cell.
            partitioning: Of the same cell.
            with_seqnum: Whether to keep sequence numbers.
            static_state: Of the same cell and partitioning, to share its memory (18 to 22 B per
                machine) between views.
        """
        super().__init__(
            StaticCellState(spec, partitioning) if static_state is None else static_state,
            with_seqnum,
        )

    def apply(self, delta: PartitionDelta) -> None:
        """Bring a partition up to date.

        Claims in flight, or settled at a version later than the delta's, stay overlaid.

        Raises:
            ValueError: The delta starts after the version held or goes back, is a snapshot (or the
                first of its partition) and does not hold all rows, or carries no sequence numbers
                although the view keeps them.
        """
        super().apply(delta)

    def claim(self, machine: Int32, request: Int64) -> int:
        """Take request int64[k, R] off machine int32[k] at once, and until settled.

        Claims may overdraw a machine, as those that rely on evictions do.

        Returns: The ticket, for settle() or withdraw().
        """
        ticket: int = super().claim(machine, request)
        return ticket

    def synced_at(self, machine: Int32) -> Int64:
        """The cell time of the state held of each machine int32[k]: int64[k], -1 = never synced.

        Raises:
            ValueError: There is no such machine.
        """
        synced_us: Int64 = super().synced_at(machine)
        return synced_us

    def settle(self, ticket: int, reason: NDArray[np.int8], version: Int64) -> None:
        """Take in the cell's answer to a ticket's claims.

        A claim stays overlaid until its partition is synced to `version`: the synced state then
        shows its allocation or whoever won. Claims rejected as GANG or DUPLICATE lost to nobody and
        return to the view at once.

        With sequence numbers, a machine takes no other claim from claim() on until this call, which
        moves its number by the accepted claims (they were accepted, so it was the one seen). If the
        claim was STALE somebody else has moved it, and it stays closed until synced.

        Args:
            ticket: Of claim().
            reason: int8[k], as in CommitResult.
            version: int64[k], as in CommitResult.

        Raises:
            ValueError: The ticket is not in flight.
        """
        super().settle(ticket, reason, version)

    def withdraw(self, ticket: int) -> None:
        """Return the claims of a ticket, which were never sent, to the view at once.

        Raises:
            ValueError: The ticket is not in flight.
        """
        super().withdraw(ticket)

    def released(self, machine: Int32, request: Int64, version: Int64) -> None:
        """Show the scheduler's own slots that were freed, at once.

        Args:
            machine: int32[k], where.
            request: int64[k, R], what was freed.
            version: int64[k], the version of the machine's partition that shows it.
        """
        super().released(machine, request, version)

    def reset(self) -> None:
        """Forget the synced state: all partitions are unsynced, at version 0.

        Claims in flight stay in flight: settle or withdraw them.
        """
        super().reset()
