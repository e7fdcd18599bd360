"""Tasks: what many runs consist of, whoever plans them and whoever reads their results.

A task depends on nothing but itself and, where it says so, on the result of the task before it. So
tasks run in any order, on any machine, and a lost one is simply run again.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from numpy.typing import NDArray

from shared_state.errors import AgoraError

F = TypeVar("F")  # the figures of a result

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)  # slots and a generic alias do not go together
class Measured(Generic[F]):
    """The result of a task.

    Attributes:
        figures: A model of numbers; None of a task that has arrays only.
        arrays: By the names that the task gives them in `keeps`.
    """

    figures: F
    arrays: Mapping[str, Arrays] = field(default_factory=dict)


class Task(ABC, Generic[F]):
    """One run under one seed. Its process and its machine may be others, so it can be pickled."""

    @abstractmethod
    def named(self) -> tuple[str, int]:
        """Its label and its seed, for people."""

    def __str__(self) -> str:
        label, seed = self.named()
        return f"'{label}', seed {seed}"

    @abstractmethod
    def key(self) -> str:
        """What decides the result, as content_key() writes it. Tasks with equal keys are run
        once."""

    @property
    def expected_s(self) -> float:
        """About how many seconds of a processor it takes; 0 where only its planner can tell.
        The longest are begun first, so that no processor waits long for the last one."""
        return 0.0

    @property
    def keeps(self) -> Collection[str]:
        """The names of the arrays that are measured, beside the figures."""
        return ()

    def also(self, other: Self) -> Self:
        """The task that also measures what another one with the same key does."""
        return self

    def before(self) -> Self | None:
        """The task whose result this one begins with; None: it begins with nothing. What it begins
        with is part of its key, so results do not depend on where a stopped command was."""
        return None

    def accepts(self, kept: Measured[F]) -> bool:
        """Whether a result that is kept will do; else the task is run again."""
        return True

    @abstractmethod
    def measure(self, before: Measured[F] | None) -> Measured[F]:
        """The result. Called in a process of its own.

        Args:
            before: The result of the task before it.

        Raises:
            AgoraError: It does not get to its end; names the task.
        """


@dataclass(frozen=True)
class Job(Generic[F]):
    """A task and the result that it begins with: all that another process needs."""

    task: Task[F]
    before: Measured[F] | None = None

    def __str__(self) -> str:
        return str(self.task)


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a task has no result, in one line."""

    reason: str


def outcome(job: Job[F]) -> Measured[F] | Failed:
    """The result of a task, or why it did not get to its end."""
    try:
        return job.task.measure(job.before)
    except AgoraError as error:
        return Failed(str(error))
    except MemoryError:
        return Failed(f"{job}: not enough memory")


def content_key(content: Mapping[str, Any]) -> str:
    """The hash of what decides a result, as values that JSON has: 32 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
