"""Transactions: what a scheduler asks of the cell, and the cell's explained answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int32, Int64

NO_RIVAL = -1
NO_ALLOCATION = -1


class ConflictCheck(IntEnum):
    """Omega section 5.2: fine-grained (does it still fit?) or coarse-grained (has the machine changed?) conflict detection."""

    RESOURCE_FIT = 0
    SEQUENCE_NUMBER = 1


class CommitMode(IntEnum):
    """Omega section 3.4: accept all but the conflicting claims, or all claims of a gang group or none of them.

    Under ALL_OR_NOTHING claims with gang NO_GANG form one group: the transaction.
    """

    INCREMENTAL = 0
    ALL_OR_NOTHING = 1


class Reason(IntEnum):
    """Why a claim was rejected. Conflicts are STALE, FULL and EVICTED; the others are counted apart."""

    ACCEPTED = 0
    STALE = 1  # the machine's sequence number moved since the view was synced
    FULL = 2  # the request does not fit what is free
    MACHINE_DOWN = 3
    EVICTED = 4  # a victim this claim counted on is gone or is not its to evict
    GANG = 5  # fitted, but another claim of its gang did not
    DUPLICATE = 6  # the task is placed already


@dataclass(frozen=True, slots=True)
class Transaction:
    """k claims of one scheduler.

    sequence: 1, 2, ... per scheduler. task: int64[k]; machine: int32[k]; request: int64[k, R]; synced_us: int64[k], the cell time of the
    state the claim was planned on (its partition's last sync): ages are differences of the cell's time. gang: int64[k], or None (all
    NO_GANG). seqnum: uint32[k], the machine's sequence number as seen; None under RESOURCE_FIT. evict: int64[e], allocation ids
    that end first so that the claims fit; None for no eviction.
    """

    scheduler: int
    sequence: int
    task: Int64
    machine: Int32
    request: Int64
    synced_us: Int64
    mode: CommitMode = CommitMode.INCREMENTAL
    check: ConflictCheck = ConflictCheck.RESOURCE_FIT
    gang: Int64 | None = None
    seqnum: NDArray[np.uint32] | None = None
    evict: Int64 | None = None

    def __len__(self) -> int:
        return len(self.task)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The answer to a Transaction of k claims; accepted + rejected == k, and a rejected transaction changed nothing.

    reason: int8[k] (Reason; 0 = accepted). allocation: int64[k], NO_ALLOCATION where rejected. rival: int32[k], the scheduler that
    last claimed the machine where rejected as stale or full, else NO_RIVAL. age_us: int64[k], cell time minus the time of the state the
    claim was planned on. version: int64[k], the claim's partition version after this commit: a view synced to at least it has seen
    the outcome. evicted: int64[j], allocation ids ended by this commit.
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


@dataclass(frozen=True, slots=True)
class PartitionDelta:
    """Rows of one partition that changed in versions (from_version, to_version]; from_version 0 is a snapshot of all rows.

    row: uint16 or uint32[k], offset within the partition, ascending. used: [k, R], narrowest signed dtype that holds it.
    up: bool[k]. seqnum: uint32[k], or None for schedulers that do not check it. at_us: the cell's time when taken.
    """

    partition: int
    from_version: int
    to_version: int
    at_us: int
    row: NDArray[np.unsignedinteger]
    used: NDArray[np.signedinteger]
    up: NDArray[np.bool_]
    seqnum: NDArray[np.uint32] | None
