"""Transactions: what a scheduler asks of the cell, and the cell's explained answer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state.packing import pack_columns, unpack_columns
from shared_state.static_frozen import static_frozen
from shared_state.tasks import Int32, Int64

NO_RIVAL = -1
NO_ALLOCATION = -1


class ConflictCheck(IntEnum):
    """How the cell detects conflicts (as in Omega's simulator).

    RESOURCE_FIT is fine-grained: does the claim still fit? SEQUENCE_NUMBER is coarse-grained: has
    the machine taken another claim?
    """

    RESOURCE_FIT = 0
    SEQUENCE_NUMBER = 1


class CommitMode(IntEnum):
    """Whether claims stand alone or together (as in Omega's simulator).

    INCREMENTAL accepts all but the conflicting claims. ALL_OR_NOTHING accepts all claims of a gang
    or none of them; claims with gang NO_GANG form one group: the transaction.
    """

    INCREMENTAL = 0
    ALL_OR_NOTHING = 1


class EvictionPolicy(IntEnum):
    """Whose tasks a transaction may end."""

    OWN = 0  # the scheduler's
    # and those of other schedulers, for claims on their machine, all of which are of higher
    # priority
    LOWER_PRIORITY = 1


class Reason(IntEnum):
    """Why a claim was rejected.

    Conflicts are STALE, FULL and EVICTED; the others are counted apart.
    """

    ACCEPTED = 0
    STALE = 1  # the machine's sequence number moved since the view was synced
    FULL = 2  # the request does not fit what is free
    MACHINE_DOWN = 3
    EVICTED = 4  # does not fit, and a victim named on its machine is gone or may not be ended
    GANG = 5  # fitted, but another claim of its gang did not
    DUPLICATE = 6  # the task is placed already, or has run to its end


CONFLICTS = (int(Reason.STALE), int(Reason.FULL), int(Reason.EVICTED))
_IS_CONFLICT = np.isin(np.arange(len(Reason)), CONFLICTS)


def is_conflict(reason: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which of the Reasons are conflicts; of the same shape."""
    return _IS_CONFLICT[reason]


@static_frozen
class Transaction:
    """k claims of one scheduler.

    Attributes:
        scheduler: Its number.
        sequence: 1, 2, ... per scheduler. Claims that others make for it count elsewhere.
        task: int64[k].
        machine: int32[k].
        request: int64[k, R].
        synced_us: int64[k], the cell's time of the state that the claim was planned on (its
            partition's last sync): ages are differences of the cell's time.
        commit_mode: Whether claims are accepted one by one or in groups.
        conflict_check: How conflicts are detected.
        gang: int64[k], or None if all are NO_GANG.
        seqnum: uint32[k], the machine's sequence number as seen; None under RESOURCE_FIT.
        evict: int64[e], allocations that end first so that the claims fit: this scheduler's own, or
            others' where the cell permits it (native/commit.cpp); None for no eviction. One ends
            only if a claim that relies on it is accepted: the claim that places its task anew, or
            else any claim on its machine. If there is none, an own one ends.
    """

    scheduler: int
    sequence: int
    task: Int64
    machine: Int32
    request: Int64
    synced_us: Int64
    commit_mode: CommitMode = CommitMode.INCREMENTAL
    conflict_check: ConflictCheck = ConflictCheck.RESOURCE_FIT
    gang: Int64 | None = None
    seqnum: NDArray[np.uint32] | None = None
    evict: Int64 | None = None

    def __len__(self) -> int:
        return len(self.task)


@static_frozen
class CommitResult:
    """The answer to a Transaction of k claims.

    accepted + rejected == k, and a rejected transaction changed nothing.

    Attributes:
        sequence: Of the transaction.
        reason: int8[k], a Reason; 0 is accepted.
        allocation: int64[k], NO_ALLOCATION where rejected.
        rival: int32[k], the other scheduler that last claimed the machine, where rejected as stale
            or full; NO_RIVAL where nobody else did, and for other outcomes.
        age_us: int64[k], the cell's time minus that of the state the claim was planned on.
        version: int64[k], of the claim's partition after this commit: a view synced to it, or
            later, has seen the outcome.
        evicted: int64[j], the allocations ended by this commit.
    """

    sequence: int
    reason: NDArray[np.int8]
    allocation: Int64
    rival: Int32
    age_us: Int64
    version: Int64
    evicted: Int64

    @property
    def accepted(self) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self.reason == 0
        return mask


@static_frozen
class PartitionDelta:
    """The rows of a partition that changed in versions (from_version, to_version].

    Attributes:
        partition: Its number.
        from_version: 0 for a snapshot of all rows.
        to_version: The partition's version.
        at_us: The cell's time when it was taken.
        row: uint16[k] or uint32[k], offsets within the partition, ascending.
        used: [k, R], of the narrowest signed dtype that holds it.
        up: bool[k].
        seqnum: uint32[k], or None for schedulers that do not check it.
    """

    partition: int
    from_version: int
    to_version: int
    at_us: int
    row: NDArray[np.unsignedinteger]
    used: NDArray[np.signedinteger]
    up: NDArray[np.bool_]
    seqnum: NDArray[np.uint32] | None


EncodedTransaction = tuple[int, int, int, int, int, bytes]


def encode_transaction(transaction: Transaction) -> EncodedTransaction:
    """A transaction as integers and bytes (msgpack can pack it): scheduler, sequence, commit mode,
    conflict check, which optional columns there are, packed columns."""
    t = transaction
    if t.gang is None and t.seqnum is None and t.evict is None:
        columns = pack_columns(t.task, t.machine, t.request, t.synced_us)
        return (t.scheduler, t.sequence, int(t.commit_mode), int(t.conflict_check), 0, columns)
    optional = (t.gang, t.seqnum, t.evict)
    present = sum(1 << bit for bit, column in enumerate(optional) if column is not None)
    columns = pack_columns(
        t.task, t.machine, t.request, t.synced_us, *(c for c in optional if c is not None)
    )
    return (t.scheduler, t.sequence, int(t.commit_mode), int(t.conflict_check), present, columns)


def decode_transaction(encoded: Sequence[Any]) -> Transaction:
    """The inverse of encode_transaction. ValueError if the parts do not fit together."""
    try:
        scheduler, sequence, commit_mode, conflict_check, present, packed = encoded
        task, machine, request, synced_us, *rest = unpack_columns(packed)
        gang, seqnum, evict = (rest.pop(0) if present >> bit & 1 else None for bit in range(3))
        if rest:
            raise ValueError("more columns than there should be")
        return Transaction(
            scheduler,
            sequence,
            task,
            machine,
            request,
            synced_us,
            CommitMode(commit_mode),
            ConflictCheck(conflict_check),
            gang,
            seqnum,
            evict,
        )
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"encoded transaction: malformed ({error})") from error
