"""Interference classes of tasks: how much tasks disturb each other on one machine. Until runs model
that, what class a task is of is an option.

The animals are those of Xie and Loh (*Dynamic classification of program memory behaviors in CMPs*,
2008), as Firmament's public code has them: turtles hardly use the shared cache, sheep use it and do
not mind, rabbits need it and are fast, devils thrash it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from shared_state.random import hash64, stream_key
from shared_state.tasks import ENTIRE, Int64, TaskBatch, TaskClass

ANIMALS = ("turtle", "sheep", "rabbit", "devil")
CLASSES = {task_class.name.lower(): task_class for task_class in TaskClass}
# The interference class of tasks, or the share of the jobs that are of each, in permille.
Shares = str | dict[str, int]


class InterferenceOptions(BaseModel):
    """Options of policies that know interference classes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    interference: dict[str, Shares] = Field(
        {"batch": "sheep", "service": "rabbit", "mapreduce": "devil"},
        description="the interference class of each class of tasks (batch, service, mapreduce):"
        " turtle, sheep, rabbit or devil, or a table with the share of its jobs in each, in"
        " permille; classes of tasks that are not named are sheep",
    )

    @field_validator("interference")
    @classmethod
    def _known_interference(cls, given: dict[str, Shares]) -> dict[str, Shares]:
        for name, shares in given.items():
            if name not in CLASSES:
                raise ValueError(f"expected {_either(CLASSES)}, got {name!r}")
            table = _as_table(shares)
            for animal in table:
                if animal not in ANIMALS:
                    raise ValueError(f"{name}: expected {_either(ANIMALS)}, got {animal!r}")
            if min(table.values(), default=0) < 0 or sum(table.values()) != ENTIRE:
                raise ValueError(f"{name}: expected shares that add up to {ENTIRE} permille")
        return given


class InterferenceClasses:
    """Which interference class tasks are of: int64, an index of ANIMALS. Where jobs are drawn, all
    tasks of a job are of one class."""

    def __init__(self, interference: Mapping[str, Shares]) -> None:
        self._key = stream_key(0, "interference classes")
        # by task class and animal: the share of the jobs that are of it or of one before it
        self._up_to = np.zeros((len(TaskClass), len(ANIMALS)), np.int64)
        for name, task_class in CLASSES.items():
            table = _as_table(interference.get(name, "sheep"))
            self._up_to[task_class] = np.cumsum([table.get(animal, 0) for animal in ANIMALS])

    def of(self, tasks: TaskBatch) -> Int64:
        """The class of each task: int64[n]."""
        draw = (hash64(tasks.job, self._key) % np.uint64(ENTIRE)).astype(np.int64)
        up_to = self._up_to[tasks.task_class]
        found: Int64 = (up_to <= draw[:, None]).sum(axis=1)
        return found

    def counts(self, tasks: TaskBatch, machine: Int64, machines: int) -> Int64:
        """How many of these tasks (on machine, int64[n]) are of each class: int64[M, 4]."""
        cell = machine * len(ANIMALS) + self.of(tasks)
        counted = np.bincount(cell, minlength=machines * len(ANIMALS))
        return counted.astype(np.int64).reshape(machines, len(ANIMALS))


def _as_table(shares: Shares) -> dict[str, int]:
    return {shares: ENTIRE} if isinstance(shares, str) else shares


def _either(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"
