"""A sync policy as its agent uses it: an answer that breaks the contract ends the arm with one line
that names the policy and the rule, instead of an error far from its cause."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from parsync.protocols import _native
from parsync.protocols.optimistic.sync.policy import PeriodicSync, SyncFeedback, SyncPolicy
from schedulers.entry_points import raised
from schedulers.interface import ContractBroken
from shared_state.tasks import Int32

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
        try:
            due_us = self._policy.due_us(k)
        except (Exception, SystemExit) as error:
            self._failed(k, error)
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
        try:
            partitions = self._policy.partitions(k)
        except (Exception, SystemExit) as error:
            self._failed(k, error)
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
        try:
            latest = self._policy.latest(now_us)
        except (Exception, SystemExit) as error:
            self._failed(self._last_k, error)
        if latest is None:
            return None
        if not isinstance(latest, int | np.integer) or not -LATEST_US < latest < LATEST_US:
            got = _described(latest)
            raise self._broken(self._last_k, f"latest: expected an int or None, got {got}")
        return int(latest)

    def observe(self, feedback: SyncFeedback) -> None:
        """As SyncPolicy.observe."""
        try:
            self._policy.observe(feedback)
        except (Exception, SystemExit) as error:
            self._failed(self._last_k, error)

    def _flag(self, name: str) -> bool:
        value = self._property(name)
        if not isinstance(value, bool):
            raise self._broken(0, f"{name}: expected True or False, got {_described(value)}")
        return value

    def _retry_us(self) -> int | None:
        value = self._property("retry_us")
        if value is not None and (type(value) is not int or value < 1):
            got = _described(value)
            raise self._broken(0, f"retry_us: expected an int of 1 or more or None, got {got}")
        if value is not None and value >= LATEST_US:
            raise self._broken(0, f"retry_us: expected less than {LATEST_US}, got {value}")
        return value

    def _property(self, name: str) -> Any:
        try:
            return getattr(self._policy, name)
        except (Exception, SystemExit) as error:
            self._failed(0, error)

    def _failed(self, k: int, error: BaseException) -> NoReturn:
        """Raise SyncPolicyBroken for what the policy raised, unless that is want of memory."""
        if isinstance(error, MemoryError):
            raise error
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
