"""What periodic sync policies require of their gap and of the number of partitions."""

from __future__ import annotations

from parsync.protocols.optimistic.sync.policy import SyncContext
from shared_state.errors import AgoraError


def check_gap(context: SyncContext) -> None:
    """Raise AgoraError if the gap leaves no time between two synchronisations."""
    least_us = max(context.agents, context.partitions)
    if context.gap_us < least_us:
        raise AgoraError(
            f"gap_us: expected at least {least_us}, one for each scheduler and partition, "
            f"got {context.gap_us}"
        )


def check_partitions(kind: str, context: SyncContext) -> None:
    """Raise AgoraError if there are fewer partitions than agents that are to refresh different ones
    (P >= N, ParSync section 5.1)."""
    if context.partitions < context.agents:
        raise AgoraError(
            f"partitions: expected at least {context.agents}, one for each scheduler, with {kind} "
            f"(ParSync section 5.1), got {context.partitions}"
        )
