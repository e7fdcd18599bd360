"""The locking protocol: pessimistic concurrency, as a control beside optimistic protocols.

ParSync (section 5) names locks as a way to schedule without conflicts, which "can block the actions
of other schedulers and increase scheduling delay due to reduced concurrent processing". Here a
scheduler locks the partitions that it looks at, from before it learns their state until its claims
on them are committed. So no other scheduler of the protocol can take what it sees as free.
"""

from __future__ import annotations

from parsync.protocols.capability import ProtocolCapability
from parsync.protocols.locking.agent import LockingAgent
from parsync.protocols.locking.events import EVENTS, KIND
from parsync.protocols.locking.lock_table import LockTable
from parsync.protocols.locking.options import LockingOptions
from parsync.protocols.spec import GroupReach, Member, ProtocolSpec
from schedulers.capability import Capability
from shared_state.errors import AgoraError

_REFUSED = {
    Capability.KEEPS_PENDING: "keeps the tasks that wait",
    Capability.EVICTS: "ends running tasks",
}


def check(members: tuple[Member, ...], partitions: int) -> None:
    """Raise AgoraError if a group locks more partitions than there are, or has schedulers that this
    protocol cannot drive."""
    for member in members:
        locked = member.options.locked_partitions
        if locked is not None and locked > partitions:
            raise AgoraError(
                f"group '{member.name}': locked_partitions: expected at most {partitions}, the "
                f"partitions of the arm, got {locked}"
            )
        for capability, what in _REFUSED.items():
            if capability in member.capabilities:
                raise AgoraError(
                    f"group '{member.name}': protocol '{KIND}' cannot drive a scheduler that {what}"
                )


def reach(options: LockingOptions) -> GroupReach:
    """What a scheduler of a group may use: in a round, what it locks."""
    return GroupReach(partitions_at_once=options.locked_partitions)


SPEC = ProtocolSpec(
    KIND,
    LockingOptions,
    LockingAgent,
    cell_side=LockTable,
    events=EVENTS,
    capabilities=frozenset({ProtocolCapability.RUNS_SCHEDULERS, ProtocolCapability.SYNCHRONISES}),
    check=check,
    reach=reach,
)
