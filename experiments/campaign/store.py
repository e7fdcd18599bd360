"""The results of tasks on disk, so that many runs can be stopped at any time and go on later.

<key>.json      the figures (the model Kept), of tasks that have some
<key>.npz       arrays that a task keeps under the name ARRAYS
<key>-NAME.npz  arrays that it keeps under another name

Each file is whole or absent, and says which version of Agora made it: what another one made is not
used, but made again.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import NoneType
from typing import Any, Generic, cast

import numpy as np

from experiments.analysis.model_files import read_model, write_model, writing
from experiments.analysis.summary_model import VERSION, Version
from experiments.campaign.task import Arrays, F, Measured, Task
from experiments.series_files import read_arrays, write_arrays
from experiments.version import version_text
from parsync.metrics.quantity import Figures, counted
from shared_state.errors import AgoraError

ARRAYS = ""
_VERSION = "agora_version"  # among the arrays of a file


class Kept(Figures, Generic[F]):
    """The figures of a task.

    Attributes:
        version: The version of Agora that ran it.
        arm, seed: Of the task, for people who read the file.
    """

    format: Version = VERSION
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

    def unusable(self, keys: Collection[str]) -> str:
        """What is kept of these tasks and cannot be used, as a sentence for people; "" if that is
        nothing."""
        found = (self._read(key, ()) for key in dict.fromkeys(keys))
        wrong = [kept for kept in found if isinstance(kept, str)]
        if wrong:
            run = "runs" if len(wrong) == 1 else "run"
            return f"{counted(len(wrong), 'kept run')} cannot be used and {run} again: {wrong[0]}."
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
