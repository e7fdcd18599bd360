"""Runs of ParSync's models: simulations and searches whose results are a few small arrays.

They take seconds, not minutes, and need no configuration of the platform. What they have in common
is here, so that one engine (engine.py) can run, keep and continue them.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state.errors import AgoraError

Arrays = Mapping[str, NDArray[Any]]

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
        """The content hash of what decides the results and of their format, 32 hexadecimal digits;
        not of the label."""
        before = self.run_before(seed)
        content = {
            "format": FORMAT,
            "kind": type(self).__name__,
            "content": self.content(),
            "before": None if before is None else before[0].key(before[1]),
            "seed": seed,
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelTask:
    """A run under a seed, with the results of the run before it."""

    run: ModelRun
    seed: int
    before: Arrays | None = None

    def __str__(self) -> str:
        return f"'{self.run.label}', seed {self.seed}"


@dataclass(frozen=True, slots=True)
class ModelRunFailed:
    """Why a run has no results, in one line."""

    reason: str


def measured(task: ModelTask) -> dict[str, NDArray[Any]] | ModelRunFailed:
    """The results of a run under a seed, in a process of its own."""
    try:
        return task.run.measure(task.seed, task.before)
    except AgoraError as error:
        return ModelRunFailed(f"{task}: {error}")
    except MemoryError:
        return ModelRunFailed(f"{task}: not enough memory")


def number(arrays: Arrays, name: str) -> float | None:
    """A single number among the results; None where there is none (nan)."""
    value = float(arrays[name])
    return None if np.isnan(value) else value
