"""Transactions: what a scheduler asks of the cell, and the cell's explained answer.

The classes themselves are native (native/transaction.hpp). Each is used like a frozen dataclass.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from shared_state._native import CommitResult, Holds, PartitionDelta, Transaction

__all__ = [
    "CONFLICTS",
    "NO_ALLOCATION",
    "NO_RIVAL",
    "CommitMode",
    "CommitResult",
    "ConflictCheck",
    "EvictionPolicy",
    "Holds",
    "PartitionDelta",
    "Reason",
    "Transaction",
    "is_conflict",
]

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

    Conflicts are STALE, FULL, EVICTED and HELD; the others are counted apart.
    """

    ACCEPTED = 0
    # the machine's sequence number moved since the view was synced, or the transaction names holds
    # and none of them was left on the machine
    STALE = 1
    FULL = 2  # the request does not fit what is free
    MACHINE_DOWN = 3
    EVICTED = 4  # does not fit, and a victim named on its machine is gone or may not be ended
    GANG = 5  # fitted, but another claim of its gang did not
    DUPLICATE = 6  # the task is placed already, or has run to its end
    HELD = 7  # does not fit, but would if nothing were held for offers


CONFLICTS = (int(Reason.STALE), int(Reason.FULL), int(Reason.EVICTED), int(Reason.HELD))
_IS_CONFLICT = np.isin(np.arange(len(Reason)), CONFLICTS)


def is_conflict(reason: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which of the Reasons are conflicts; of the same shape."""
    return _IS_CONFLICT[reason]
