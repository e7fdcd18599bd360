"""The contract of a sync policy: which partitions an agent refreshes, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64

REFRESH_GAPS = 4  # the most gaps G that any partition goes without a periodic refresh


@dataclass(frozen=True, slots=True)
class SyncContext:
    """What a policy is made for: the agent `index` of the `agents` (N) of its sync set.

    Args:
        gap_us: The synchronisation gap G; of a policy without one, after what time an agent that
            found no room looks again.
        partitions: Their number, P.
        stream: The uint64 key of a random stream of the agent's own.
    """

    gap_us: int
    partitions: int
    index: int
    agents: int
    stream: int


@dataclass(frozen=True, slots=True)
class SyncFeedback:
    """What an agent has seen since its last periodic synchronisation.

    Args:
        now_us: The agent's time.
        claims: Claims whose outcome it learned, by partition, int64[P].
        conflicts: Those of them that were rejected as conflicts, int64[P].
        rows_changed: Machines that had changed when a partition was refreshed, int64[P].
        delay_us: The moving average of its scheduling delay.
        queued: Tasks that wait with it.
        used_permille: How much of the first resource is in use in each partition, as the view shows
            it, in thousandths, int64[P].
    """

    now_us: int
    claims: Int64
    conflicts: Int64
    rows_changed: Int64
    delay_us: int
    queued: int
    used_permille: Int64


class SyncPolicy(Protocol):
    """Decides for one agent which partitions it refreshes at its k-th periodic synchronisation, and
    when that is. k counts from 1; the full synchronisation at the start is not one of them.

    The agent asks for each k in ascending order: first due_us(k), then, once that time has come,
    partitions(k). Synchronisations that were due before the agent started are left out; when a
    runtime is late, several are done together. Periodic times are computed from k, never
    accumulated, so that integer division loses nothing over a run. A policy has no clock and draws
    no random numbers but from its stream, so that a run repeats: the same context and the same
    feedback lead to the same answers, and the same question asked twice gets the same answer.

    check_sync_policy (conformance.py) tests whether a policy keeps to this. Answers are checked in
    every run, too (checked.py).
    """

    @property
    def at_every_attempt(self) -> bool:
        """Whether the agent also refreshes everything before each decision round, as in
        Omega."""
        ...

    @property
    def retry_us(self) -> int | None:
        """How long an agent that found no room waits before it looks again; None if its periodic
        synchronisations wake it."""
        ...

    @property
    def wants_feedback(self) -> bool:
        """Whether observe() is called."""
        ...

    def due_us(self, k: int) -> int | None:
        """When the k-th synchronisation is due, in microseconds since the start of the run: later
        than the one before it; None if there are no (more) periodic ones. Every partition is
        refreshed at least once in REFRESH_GAPS gaps."""
        ...

    def partitions(self, k: int) -> Int32:
        """The partitions that it refreshes, each once, in the order of refreshing: int32[n], an
        array that does not change afterwards."""
        ...

    def observe(self, feedback: SyncFeedback) -> None:
        """Learn what has happened since the last synchronisation. Called when the k-th one is due,
        before partitions(k) and due_us(k + 1); once for all those that are done together."""
        ...


class PeriodicSync:
    """The usual answers of a policy with periodic synchronisations and nothing else."""

    __slots__ = ()

    @property
    def at_every_attempt(self) -> bool:
        return False

    @property
    def retry_us(self) -> int | None:
        return None

    @property
    def wants_feedback(self) -> bool:
        return False

    def observe(self, feedback: SyncFeedback) -> None:
        """Ignore it."""

    def latest(self, now_us: int) -> int | None:
        """The number of the last synchronisation that is due by now_us, from which an agent goes on
        where it has left out many because nothing happened (SyncSchedule); None if only asking for
        each of them tells."""
        return None


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
