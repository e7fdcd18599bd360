"""Runs of ParSync's models: simulations and searches whose results are a few small arrays.

They take seconds, not minutes, and need no configuration of the platform. A run may begin with the
results of another one, such as the bracket of a search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.campaign.loop import KeptRuns, missing
from experiments.campaign.store import ARRAYS, Store
from experiments.campaign.task import Arrays, Measured, Task, content_key
from shared_state.errors import AgoraError

FIRST_SEED = 1
FORMAT = 2  # of the arrays that runs keep: one more whenever they change


def numbered_seeds(count: int) -> list[int]:
    """The first seeds, as the option --seeds counts them: 1 to N."""
    return list(range(FIRST_SEED, FIRST_SEED + count))


@dataclass(frozen=True)
class ModelRun(ABC):
    """One run of a model, whatever its seed.

    Attributes:
        label: Its name among others; unique in a figure.
    """

    label: str

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What decides the results besides the seed, as values that JSON has."""

    @abstractmethod
    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """The results under a seed.

        Args:
            seed: Of all random draws.
            before: The results of the run before it; None if there is none.

        Raises:
            AgoraError: A parameter is wrong.
        """

    @property
    @abstractmethod
    def expected_s(self) -> float:
        """About how many seconds of a processor it takes."""

    def run_before(self, seed: int) -> tuple[ModelRun, int] | None:
        """The run, and its seed, whose results this one begins with; None if there is none."""
        return None

    def key(self, seed: int) -> str:
        """The content hash of what decides the results and of their format; not of the label."""
        before = self.run_before(seed)
        content = {
            "format": FORMAT,
            "kind": type(self).__name__,
            "content": self.content(),
            "before": None if before is None else before[0].key(before[1]),
            "seed": seed,
        }
        return content_key(content)


@dataclass(frozen=True)
class ModelTask(Task[None]):
    """A run under a seed."""

    run: ModelRun
    seed: int

    def named(self) -> tuple[str, int]:
        return self.run.label, self.seed

    def key(self) -> str:
        return self.run.key(self.seed)

    @property
    def keeps(self) -> Collection[str]:
        return (ARRAYS,)

    @property
    def expected_s(self) -> float:
        return self.run.expected_s

    def before(self) -> ModelTask | None:
        before = self.run.run_before(self.seed)
        return None if before is None else ModelTask(*before)

    def measure(self, before: Measured[None] | None) -> Measured[None]:
        try:
            arrays = self.run.measure(self.seed, None if before is None else before.arrays[ARRAYS])
        except AgoraError as error:
            raise AgoraError(f"{self}: {error}") from error
        return Measured(None, {ARRAYS: arrays})


class ModelRuns(KeptRuns[None]):
    """The runs of models that are kept in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Store(folder, NoneType))

    def missing(self, runs: Sequence[ModelRun], seeds: Sequence[int]) -> list[ModelTask]:
        """What has not run yet, each once; nothing before what it begins with."""
        return missing([ModelTask(run, seed) for seed in seeds for run in runs], self._store)

    def results(
        self, runs: Sequence[ModelRun], seeds: Sequence[int]
    ) -> tuple[Mapping[str, Arrays], ...]:
        """The results of runs by label, seed by seed; all of them are done. Raises AgoraError if
        one cannot be read."""
        return tuple(
            {run.label: self.result(run.key(seed), (ARRAYS,)).arrays[ARRAYS] for run in runs}
            for seed in seeds
        )


def number(arrays: Arrays, name: str) -> float | None:
    """A single number among the results; None where there is none (nan)."""
    value = float(arrays[name])
    return None if np.isnan(value) else value
