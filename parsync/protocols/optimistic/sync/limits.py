"""What periodic sync policies require of their gap and of the number of partitions."""

from __future__ import annotations

from parsync.protocols.optimistic.sync.policy import SyncContext
from shared_state.errors import AgoraError


def seconds(us: int) -> str:
    """A time as a configuration writes it, in seconds without an exponent."""
    whole, rest = divmod(us, 1_000_000)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".")


def check_gap(context: SyncContext) -> None:
    """Raise AgoraError if the gap leaves no time between two synchronisations."""
    least_us = max(context.agents, context.partitions)
    if context.gap_us < least_us:
        raise AgoraError(
            f"gap_s: expected at least {seconds(least_us)}, a microsecond for each scheduler and "
            f"partition, got {seconds(context.gap_us)}"
        )


def check_partitions(kind: str, context: SyncContext) -> None:
    """Raise AgoraError if there are fewer partitions than agents that are to refresh different ones
    (P >= N, ParSync section 5.1)."""
    if context.partitions < context.agents:
        raise AgoraError(
            f"partitions: expected at least {context.agents}, one for each scheduler, with {kind} "
            f"(ParSync section 5.1), got {context.partitions}"
        )
