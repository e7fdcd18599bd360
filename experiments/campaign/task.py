"""Tasks: what many runs consist of, whoever plans them and whoever reads their results; and the
store of these results.

A task depends on nothing but itself and, where it says so, on the result of the task before it. So
tasks run in any order, on any machine, and a lost one is simply run again.

A store keeps results on disk, so that many runs can be stopped at any time and go on later:

<key>.json      the figures (the model Kept), of tasks that have some
<key>.npz       arrays that a task keeps under the name ARRAYS
<key>-NAME.npz  arrays that it keeps under another name

Each file is whole or absent, and says which version of Agora made it: what another one made is not
used, but made again.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.model_files import read_model, write_model, writing
from experiments.analysis.summary_model import FORMAT, Version
from experiments.files import read_arrays, write_arrays
from experiments.version import version_text
from parsync.metrics.quantity import Figures, counted
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


ARRAYS = ""
_VERSION = "agora_version"  # among the arrays of a file


class Kept(Figures, Generic[F]):
    """The figures of a task.

    Attributes:
        version: The version of Agora that ran it.
        arm, seed: Of the task, for people who read the file.
    """

    format: Version = FORMAT
    version: str
    arm: str
    seed: int
    figures: F


class Store(Generic[F]):
    """A folder of results.

    Args:
        folder: It is made by the first run.
        figures: The model of the figures; NoneType of tasks that have none.
    """

    def __init__(self, folder: Path, figures: type[F]) -> None:
        self._folder = folder
        has_figures = figures is not NoneType
        self._model: Any = Kept.__class_getitem__(figures) if has_figures else None
        self._version = version_text()

    def make(self) -> None:
        """Make the folder if it is missing. Raises AgoraError if that cannot be done."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AgoraError(f"{self._folder}: {error.strerror}") from error

    def get(self, key: str, keeps: Collection[str] = ()) -> Measured[F] | None:
        """The result of a task; None if it was not run, was run by another version of Agora, or
        its files cannot be used: it is then run again.

        Args:
            key: Of the task.
            keeps: The arrays that are asked for.
        """
        found = self._read(key, keeps)
        return found if isinstance(found, Measured) else None

    def has(self, key: str, keeps: Collection[str] = ()) -> bool:
        """Whether get() has the result of a task."""
        return isinstance(self._read(key, keeps), Measured)

    def result(self, key: str, keeps: Collection[str] = ()) -> Measured[F]:
        """The result of a task that was run. Raises AgoraError if it cannot be read."""
        found = self._read(key, keeps)
        if not isinstance(found, Measured):
            raise AgoraError(found or f"{self._folder / key}: the result of a run is missing")
        return found

    def unusable(self, wanted: Mapping[str, Collection[str]]) -> str:
        """What is kept of tasks and cannot be used, as a sentence for people; "" if that is
        nothing.

        Args:
            wanted: By the key of each task: the arrays that are asked for.
        """
        found = (self._read(key, keeps) for key, keeps in wanted.items())
        wrong = [kept for kept in found if isinstance(kept, str)]
        if wrong:
            verb = "is" if len(wrong) == 1 else "are"
            number = counted(len(wrong), "kept run")
            return f"{number} cannot be used and {verb} made again: {wrong[0]}."
        return ""

    def unknown(self, keys: Collection[str]) -> str:
        """A sentence for people if no kept run is of these tasks, which are all that this folder is
        for; "" otherwise."""
        files = sum(1 for _ in self._folder.glob("*.json"))
        if keys and files and not any((self._folder / f"{key}.json").exists() for key in keys):
            return (
                f"{counted(files, 'kept run')} cannot be used: the files that the workload reads "
                "have changed since, or Agora has."
            )
        return ""

    def put(self, key: str, task: Task[F], measured: Measured[F]) -> None:
        """Keep the result of a task under the key that it had when it began. Raises AgoraError if
        it cannot be written."""
        for name, arrays in measured.arrays.items():
            path = self._arrays(key, name)
            with writing(path):
                write_arrays(path, {**arrays, _VERSION: np.array(self._version)})
        if self._model is not None:  # last: whoever finds it finds all
            label, seed = task.named()
            kept = self._model(
                version=self._version, arm=label, seed=seed, figures=measured.figures
            )
            write_model(self._folder / f"{key}.json", kept)

    def _read(self, key: str, keeps: Collection[str]) -> Measured[F] | str | None:
        """What is kept of a task; why it cannot be used; None if it is not there."""
        figures: Any = None
        arrays: dict[str, Arrays] = {}
        try:
            if self._model is not None:
                path = self._folder / f"{key}.json"
                if not path.exists():
                    return None
                kept = read_model(path, self._model)
                if kept.version != self._version:
                    return f"{path}: of another version of Agora ({kept.version})"
                figures = kept.figures
            for name in keeps:
                path = self._arrays(key, name)
                if not path.exists():
                    return None
                its = read_arrays(path)
                if (version := str(its.pop(_VERSION, "unknown"))) != self._version:
                    return f"{path}: of another version of Agora ({version})"
                arrays[name] = its
        except AgoraError as error:
            return str(error)
        return Measured(cast(F, figures), arrays)

    def _arrays(self, key: str, name: str) -> Path:
        return self._folder / (f"{key}.npz" if name == ARRAYS else f"{key}-{name}.npz")
