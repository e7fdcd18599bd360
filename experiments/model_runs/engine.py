"""Runs of models, kept as soon as they are done, so that they can be stopped at any time.

A run may begin with the results of another one, such as the bracket of a search. So they are run in
waves: first those that begin with nothing, then those that only need what is done, and so on. What
a run begins with is part of its key. So the results do not depend on where a stopped command was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from experiments.campaign.pool import local_map
from experiments.interruption import Interruption
from experiments.kept_arrays import keep_arrays, kept_arrays
from experiments.model_runs.run import Arrays, ModelRun, ModelRunFailed, ModelTask, measured
from shared_state.errors import AgoraError


class ModelRuns:
    """The results of runs in a folder: <key>.npz, each whole or absent.

    Raises:
        AgoraError: The folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AgoraError(f"{folder}: {error.strerror}") from error
        self._folder = folder
        self._results: dict[str, Arrays] = {}

    def missing(self, runs: Sequence[ModelRun], seeds: Sequence[int]) -> list[ModelTask]:
        """What has not run yet, each once; nothing before what it begins with."""
        found: dict[str, ModelTask] = {}
        for seed in seeds:
            for run in runs:
                self._add_missing(run, seed, found)
        return list(found.values())

    def run(
        self, work: Sequence[ModelTask], interruption: Interruption, on_done: Callable[[], None]
    ) -> None:
        """Run what is missing, one run for each processor at a time.

        Args:
            work: What `missing` returned.
            interruption: Looked at several times a second.
            on_done: Called after each run.

        Raises:
            KeyboardInterrupt: A stop signal was received. What is done is kept.
            AgoraError: A run fails, or cannot be kept.
        """
        waiting = list(work)
        while waiting:
            ready = [task for task in waiting if self._is_ready(task)]
            later = [task for task in waiting if not self._is_ready(task)]
            # the longest first: no processor waits long for the last one
            ready.sort(key=lambda task: -task.run.expected_s)
            tasks = [ModelTask(task.run, task.seed, self._before(task)) for task in ready]
            with contextlib.closing(local_map(measured, tasks, interruption.check)) as results:
                for index, result in results:
                    if isinstance(result, ModelRunFailed):
                        raise AgoraError(result.reason)
                    self._keep(tasks[index], result)
                    on_done()
            waiting = later

    def results(
        self, runs: Sequence[ModelRun], seeds: Sequence[int]
    ) -> tuple[Mapping[str, Arrays], ...]:
        """The results of runs by label, seed by seed; all of them are done."""
        return tuple({run.label: self._results[run.key(seed)] for run in runs} for seed in seeds)

    def _add_missing(self, run: ModelRun, seed: int, found: dict[str, ModelTask]) -> None:
        key = run.key(seed)
        if key in found or self._has(key):
            return
        before = run.run_before(seed)
        if before is not None:
            self._add_missing(*before, found)
        found[key] = ModelTask(run, seed)

    def _is_ready(self, task: ModelTask) -> bool:
        before = task.run.run_before(task.seed)
        return before is None or before[0].key(before[1]) in self._results

    def _before(self, task: ModelTask) -> Arrays | None:
        before = task.run.run_before(task.seed)
        return None if before is None else self._results[before[0].key(before[1])]

    def _has(self, key: str) -> bool:
        """Whether there are results; those of another version, or damaged ones, are made again."""
        if key in self._results:
            return True
        arrays = kept_arrays(self._path(key))
        if arrays is None:
            return False
        self._results[key] = arrays
        return True

    def _keep(self, task: ModelTask, result: dict[str, NDArray[Any]]) -> None:
        key = task.run.key(task.seed)
        keep_arrays(self._path(key), result)
        self._results[key] = result

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npz"
