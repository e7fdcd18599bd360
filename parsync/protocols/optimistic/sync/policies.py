"""Sync policies: which partitions an agent refreshes at its k-th periodic synchronisation, and when
(ParSync section 5.1, supplement A.3).

A policy belongs to one agent `index` of `agents` (N). G is the synchronisation gap. Every periodic
time is computed from k, never accumulated, so that integer division loses nothing over a run.
Average staleness lies in [G(N-1)/2N, G(N+1)/2N] under DiffSyn with blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shared_state.errors import AgoraError
from shared_state.tasks import Int32


class SyncPolicy(Protocol):
    """k counts an agent's periodic synchronisations from 1; the full sync at start is not one of
    them."""

    @property
    def at_every_attempt(self) -> bool:
        """True if the agent also refreshes everything before each decision round (Omega section
        3.4)."""
        ...

    @property
    def retry_us(self) -> int | None:
        """How long an agent that found no room waits before it looks again; None if its periodic
        synchronisations wake it."""
        ...

    def due_us(self, k: int) -> int | None:
        """When the k-th synchronisation is due; None if there are no periodic ones."""
        ...

    def partitions(self, k: int) -> Int32:
        """int32[...]: the partitions it refreshes, in the order of refreshing."""
        ...


class _Periodic:
    """Policies whose periodic synchronisations are all there is."""

    __slots__ = ()

    @property
    def at_every_attempt(self) -> bool:
        return False

    @property
    def retry_us(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class StateSync(_Periodic):
    """The whole state every G (section 4.3): all agents at multiples of G, or agent i at k G + i G
    / N when staggered."""

    gap_us: int
    partition_count: int
    index: int
    agents: int
    staggered: bool

    def due_us(self, k: int) -> int:
        offset_us = self.index * self.gap_us // self.agents if self.staggered else 0
        return k * self.gap_us + offset_us

    def partitions(self, k: int) -> Int32:
        return np.arange(self.partition_count, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class BlockSync(_Periodic):
    """P/N partitions every G/N: in round r agent i refreshes block (i + r) mod N (DiffSyn, section
    5.1), or everybody block r mod N (SameSyn, section 5.2)."""

    gap_us: int
    partition_count: int
    index: int
    agents: int
    same_block: bool

    def due_us(self, k: int) -> int:
        return k * self.gap_us // self.agents

    def partitions(self, k: int) -> Int32:
        block = (k if self.same_block else self.index + k) % self.agents
        first = block * self.partition_count // self.agents
        end = (block + 1) * self.partition_count // self.agents
        return np.arange(first, end, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class SinglePartitionSync(_Periodic):
    """DiffSyn one partition at a time, every G/P (supplement A.3); agents start evenly spread over
    the partitions."""

    gap_us: int
    partition_count: int
    index: int
    agents: int

    def due_us(self, k: int) -> int:
        return k * self.gap_us // self.partition_count

    def partitions(self, k: int) -> Int32:
        start = self.index * self.partition_count // self.agents
        return np.array([(start + k) % self.partition_count], dtype=np.int32)


@dataclass(frozen=True, slots=True)
class EveryAttemptSync:
    """Omega's: the whole state before every decision round, and never otherwise.

    Nobody tells of what changes meanwhile: an agent that found no room tries again after gap_us, or
    when it gets something new to do.
    """

    gap_us: int
    partition_count: int

    @property
    def at_every_attempt(self) -> bool:
        return True

    @property
    def retry_us(self) -> int:
        return self.gap_us

    def due_us(self, k: int) -> None:
        return None

    def partitions(self, k: int) -> Int32:
        return np.arange(self.partition_count, dtype=np.int32)


SYNC_POLICIES = (
    "state_aligned",
    "state_staggered",
    "diff_block",
    "diff_single",
    "same_block",
    "every_attempt",
)


def make_sync_policy(
    name: str, gap_us: int, partition_count: int, index: int, agents: int
) -> SyncPolicy:
    """The policy a configuration names, for agent `index` of `agents`.

    gap_us: G; under every_attempt, which has no periodic ones, after what time an agent that found
    no room tries again. Raises AgoraError for an unknown name, a gap that leaves no time between
    rounds, or fewer partitions than agents where agents are to refresh different partitions (P >=
    N, section 5.1).
    """
    if name not in SYNC_POLICIES:
        raise AgoraError(
            f"sync: unknown policy '{name}', expected one of {', '.join(SYNC_POLICIES)}"
        )
    if name == "every_attempt":
        if gap_us < 1:
            raise AgoraError(f"gap_us: expected at least 1 with {name}, got {gap_us}")
        return EveryAttemptSync(gap_us, partition_count)
    least_us = max(agents, partition_count)
    if gap_us < least_us:
        raise AgoraError(
            f"gap_us: expected at least {least_us}, one for each scheduler and partition, "
            f"got {gap_us}"
        )
    if name in ("state_aligned", "state_staggered"):
        return StateSync(
            gap_us, partition_count, index, agents, staggered=name == "state_staggered"
        )
    if partition_count < agents:
        raise AgoraError(
            f"partitions: expected at least {agents}, one for each scheduler, with {name} "
            f"(ParSync section 5.1), got {partition_count}"
        )
    if name == "diff_single":
        return SinglePartitionSync(gap_us, partition_count, index, agents)
    return BlockSync(gap_us, partition_count, index, agents, same_block=name == "same_block")
