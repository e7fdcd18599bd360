"""Staleness: how old each partition of a view is, and in which order an agent trusts them."""

from __future__ import annotations

from parsync.protocols import _native
from shared_state.tasks import Int32, Int64


def freshness_order(synced_us: Int64, latest: int) -> Int32:
    """The partitions from the freshest to the stalest, int32[P].

    Partitions synced at the same instant follow `latest`, the last one of the agent's own rotation,
    backwards and wrapping around. After a sync of everything, agents rotate from different places,
    so that they do not all try equally fresh partitions in the same order. The partitions of a
    block are tried from the last one backwards.
    """
    order: Int32 = _native.freshness_order(synced_us, latest)
    return order


def average_staleness_us(synced_us: Int64, now_us: int) -> int:
    """Mean over partitions of the time since each was synced (ParSync section 5.1), floored."""
    mean_us: int = _native.average_staleness_us(synced_us, now_us)
    return mean_us
