"""Sync policies: which partitions an agent refreshes, and when. Their contract; every policy by
name: ours, and those of packages with an entry point in the group `agora.sync_policies`; and the
check of every answer.

A new policy is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.sync_policies"]
    my_policy = "my_package.my_module:SPEC"

The built-in ones are native, and so is SyncSchedule, which says when an agent synchronises next and
what it has seen since the last time: parsync/protocols/native/sync.hpp says what each does. How
stale views are on average under each: parsync/model/equations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from pydantic import BaseModel

from parsync.protocols import _native
from parsync.protocols._native import SyncSchedule as SyncSchedule  # agents use it from here
from schedulers.entry_points import (
    EntryPointGroup,
    NoOptions,
    cause,
    is_model,
    parse_options,
    raised,
    wrong_field,
)
from schedulers.interface import ContractBroken
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

    check_sync_policy (sync_conformance.py) tests whether a policy keeps to this. Answers are
    checked in every run, too (CheckedSyncPolicy).
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


ENTRY_POINTS = "agora.sync_policies"

_HERE = "parsync.protocols.optimistic.sync"
BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "diff_block": f"{_HERE}:DIFF_BLOCK",
        "diff_single": f"{_HERE}:DIFF_SINGLE",
        "every_attempt": f"{_HERE}:EVERY_ATTEMPT",
        "same_block": f"{_HERE}:SAME_BLOCK",
        "state_aligned": f"{_HERE}:STATE_ALIGNED",
        "state_staggered": f"{_HERE}:STATE_STAGGERED",
    }
)


@dataclass(frozen=True, slots=True)
class SyncPolicySpec:
    """A sync policy.

    Args:
        kind: Its name in configurations.
        make: Creates the policy of one agent from validated options. It raises AgoraError naming
            `gap_s` (`retry_s`) or `partitions` where they do not suit the policy.
        options: A pydantic model that forbids unknown fields.
        periodic: Whether a group that uses it has a synchronisation gap, gap_s. If not, it has
            retry_s in its place, which the context gives as gap_us.
    """

    kind: str
    make: Callable[[Any, SyncContext], SyncPolicy]
    options: type[BaseModel] = NoOptions
    periodic: bool = True

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options, validated. AgoraError naming the first that is unknown or wrong."""
        return parse_options("sync policy", self.kind, self.options, options)


def kinds() -> tuple[str, ...]:
    """The names of all sync policies, ascending."""
    return _GROUP.kinds()


def get(kind: str) -> SyncPolicySpec:
    """The spec of a policy. AgoraError if there is none, or if its entry point does not lead to a
    SyncPolicySpec of that name."""
    return _GROUP.get(kind)


def make_sync_policy(kind: str, options: Mapping[str, Any], context: SyncContext) -> SyncPolicy:
    """The policy that a configuration names, for one agent. AgoraError for an unknown policy or
    option, where gap or partitions do not suit it, and if the policy cannot be made."""
    spec = get(kind)
    parsed = spec.parse_options(options)
    try:
        return spec.make(parsed, context)
    except AgoraError:
        raise
    except Exception as error:  # of a policy that is somebody else's
        raise AgoraError(f"sync policy {kind!r}: cannot make it: {cause(error)}") from error


def _wrong(spec: SyncPolicySpec) -> str:
    return wrong_field(
        spec,
        (
            ("make", callable(spec.make), "a callable"),
            ("options", is_model(spec.options), "a BaseModel"),
            ("periodic", isinstance(spec.periodic, bool), "a bool"),
        ),
    )


_GROUP = EntryPointGroup("sync policy", ENTRY_POINTS, BUILT_IN, SyncPolicySpec, _wrong)


def _periodic(
    kind: str, make: Callable[[SyncContext], SyncPolicy], in_turn: bool = False
) -> SyncPolicySpec:
    """in_turn: agents refresh different partitions at a time."""

    def checked(options: NoOptions, context: SyncContext) -> SyncPolicy:
        check_gap(context)
        if in_turn:
            check_partitions(kind, context)
        return make(context)

    return SyncPolicySpec(kind, checked)


def _every_attempt(options: NoOptions, context: SyncContext) -> SyncPolicy:
    if context.gap_us < 1:
        raise AgoraError(
            f"retry_s: expected at least {seconds(1)} with every_attempt, got "
            f"{seconds(context.gap_us)}"
        )
    return _native.EveryAttemptSync(context)


DIFF_BLOCK = _periodic("diff_block", lambda of: _native.BlockSync(of, same_block=False), True)
DIFF_SINGLE = _periodic("diff_single", _native.SinglePartitionSync, True)
EVERY_ATTEMPT = SyncPolicySpec("every_attempt", _every_attempt, periodic=False)
SAME_BLOCK = _periodic("same_block", lambda of: _native.BlockSync(of, same_block=True), True)
STATE_ALIGNED = _periodic("state_aligned", lambda of: _native.StateSync(of, staggered=False))
STATE_STAGGERED = _periodic("state_staggered", lambda of: _native.StateSync(of, staggered=True))


LATEST_US = 1 << 62  # of any time
_INT32 = np.dtype(np.int32)


class SyncPolicyBroken(ContractBroken):
    """A sync policy broke its contract.

    Args: as of ContractBroken, with the policy's kind, and the number of the synchronisation.
    """

    def __str__(self) -> str:
        return (
            f"sync policy '{self.kind}' of scheduler '{self.scheduler}', synchronisation "
            f"{self.round}: {self.rule}"
        )


class CheckedSyncPolicy:
    """A SyncPolicy that checks every answer of another one.

    Args:
        policy: Whose answers are checked.
        kind: Its name in configurations.
        scheduler: The agent's name.
        partitions: Their number, P.

    Raises:
        SyncPolicyBroken: From any method, when the policy raises an exception or its answer has the
            wrong type or is out of range.
    """

    def __init__(self, policy: SyncPolicy, kind: str, scheduler: str, partitions: int) -> None:
        self._policy = policy
        self._kind = kind
        self._scheduler = scheduler
        self._count = partitions
        self._last_k, self._last_us = 0, -LATEST_US  # what was asked for last, and when it is
        self.at_every_attempt = self._flag("at_every_attempt")
        self.wants_feedback = self._flag("wants_feedback")
        self.retry_us = self._retry_us()

    def due_us(self, k: int) -> int | None:
        """As SyncPolicy.due_us."""
        due_us = self._asked(k, "due_us", k)
        if due_us is None:
            return None
        if type(due_us) is not int or not -LATEST_US < due_us < LATEST_US:
            raise self._broken(k, f"due_us: expected an int or None, got {_described(due_us)}")
        if k > self._last_k and due_us <= self._last_us:
            expected = f"a time after {self._last_us}, that of {self._last_k}"
            raise self._broken(k, f"due_us: expected {expected}, got {due_us}")
        self._last_k, self._last_us = k, due_us
        return due_us

    def partitions(self, k: int) -> Int32:
        """As SyncPolicy.partitions."""
        partitions = self._asked(k, "partitions", k)
        if type(partitions) is not np.ndarray:
            got = _described(partitions)
            raise self._broken(k, f"partitions: expected an int32 array, got {got}")
        if partitions.dtype != _INT32 or partitions.ndim != 1:
            got = f"{partitions.dtype}{list(partitions.shape)}"
            raise self._broken(k, f"partitions: expected int32[n], got {got}")
        numbers = partitions.tolist()  # there are few: numpy's calls would take longer
        if numbers and (min(numbers) < 0 or max(numbers) >= self._count):
            outside = next(number for number in numbers if not 0 <= number < self._count)
            raise self._broken(
                k, f"partitions: expected numbers below {self._count}, got {outside}"
            )
        if len(set(numbers)) < len(numbers):
            twice = max(numbers, key=numbers.count)
            raise self._broken(k, f"partitions: {twice} appears twice")
        return partitions

    def latest(self, now_us: int) -> int | None:
        """As PeriodicSync.latest; None for a policy of another make."""
        if not isinstance(self._policy, PeriodicSync):
            return None
        latest = self._asked(self._last_k, "latest", now_us)
        if latest is None:
            return None
        if not isinstance(latest, int | np.integer) or not -LATEST_US < latest < LATEST_US:
            got = _described(latest)
            raise self._broken(self._last_k, f"latest: expected an int or None, got {got}")
        return int(latest)

    def observe(self, feedback: SyncFeedback) -> None:
        """As SyncPolicy.observe."""
        self._asked(self._last_k, "observe", feedback)

    def _flag(self, name: str) -> bool:
        value = self._asked(0, name)
        if not isinstance(value, bool):
            raise self._broken(0, f"{name}: expected True or False, got {_described(value)}")
        return value

    def _retry_us(self) -> int | None:
        value = self._asked(0, "retry_us")
        if value is not None and (type(value) is not int or value < 1):
            got = _described(value)
            raise self._broken(0, f"retry_us: expected an int of 1 or more or None, got {got}")
        if value is not None and value >= LATEST_US:
            raise self._broken(0, f"retry_us: expected less than {LATEST_US}, got {value}")
        return value

    def _asked(self, k: int, name: str, *given: Any) -> Any:
        """What one of the policy's properties or, with arguments, methods answers. SyncPolicyBroken
        if it raises anything, unless that is want of memory."""
        try:
            answer = getattr(self._policy, name)
            return answer(*given) if given else answer
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:
            raise self._broken(k, raised(error, self._policy)) from error

    def _broken(self, k: int, rule: str) -> SyncPolicyBroken:
        return SyncPolicyBroken(self._scheduler, self._kind, k, rule)


def make_checked_policy(
    policy: SyncPolicy, kind: str, scheduler: str, partitions: int
) -> SyncPolicy:
    """The policy with its answers checked, as CheckedSyncPolicy; a native one, which keeps its
    contract, as it is."""
    if isinstance(policy, _native.SyncPolicy):
        return policy
    return CheckedSyncPolicy(policy, kind, scheduler, partitions)


def _described(value: Any) -> str:
    """A value by its type, and itself if it is short."""
    text = repr(value)
    of_type = f"a {type(value).__name__}"
    return f"{of_type}, {text}" if len(text) <= 40 and "\n" not in text else of_type
