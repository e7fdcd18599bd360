"""Staleness: how old each partition of a view is, and in which order an agent trusts them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from shared_state.tasks import Int32, Int64


def freshness_order(synced_us: Int64, latest: int) -> Int32:
    """The partitions from the freshest to the stalest, int32[P].

    Partitions synced at the same instant follow `latest`, the last one of the agent's own rotation,
    backwards and wrapping around. Agents rotate from different places, so that equally fresh
    partitions are not tried in the same order by everybody.
    """
    count = len(synced_us)
    return np.argsort(_backwards(latest, count) - synced_us * count).astype(np.int32)


@lru_cache(maxsize=4096)
def _backwards(latest: int, count: int) -> Int64:
    """How far each partition is from `latest`, going backwards: int64[count]."""
    return (latest - np.arange(count)) % count


def average_staleness_us(synced_us: Int64, now_us: int) -> int:
    """Mean over partitions of the time since each was synced (ParSync section 5.1), floored."""
    return int(now_us - synced_us.sum() // len(synced_us))
