"""Interference classes of tasks: how much tasks disturb each other on one machine. Until runs model
that, what class a task is of is an option.

The animals are those of Xie and Loh (*Dynamic classification of program memory behaviors in CMPs*,
2008), as Firmament's public code has them: turtles hardly use the shared cache, sheep use it and do
not mind, rabbits need it and are fast, devils thrash it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from shared_state.random import hash64, stream_key
from shared_state.tasks import ENTIRE, Int64, TaskBatch, TaskClass

ANIMALS = ("turtle", "sheep", "rabbit", "devil")
Animal = Literal["turtle", "sheep", "rabbit", "devil"]
ClassName = Literal["batch", "service", "mapreduce"]
Shares = Animal | dict[Animal, int]


class InterferenceOptions(BaseModel):
    """Options of policies that know interference classes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    interference: dict[ClassName, Shares] = Field(
        {"batch": "sheep", "service": "rabbit", "mapreduce": "devil"},
        description="the interference class of each class of tasks (batch, service, mapreduce):"
        " turtle, sheep, rabbit or devil, or a table with the share of the jobs that are of each,"
        " in permille; a class of tasks that is not named is sheep",
    )

    @field_validator("interference")
    @classmethod
    def _whole(cls, given: dict[ClassName, Shares]) -> dict[ClassName, Shares]:
        for name, shares in given.items():
            if isinstance(shares, str):
                continue
            if any(share < 0 for share in shares.values()) or sum(shares.values()) != ENTIRE:
                raise ValueError(f"{name}: expected shares that add up to {ENTIRE} permille")
        return given


class InterferenceClasses:
    """Which interference class tasks are of: int64, an index of ANIMALS. Where jobs are drawn, all
    tasks of a job are of one class."""

    def __init__(self, interference: Mapping[ClassName, Shares]) -> None:
        self._key = stream_key(0, "interference classes")
        # by task class and animal: the share of the jobs that are of it or of one before it
        self._up_to = np.zeros((len(TaskClass), len(ANIMALS)), np.int64)
        for task_class in TaskClass:
            shares = interference.get(_NAMES[task_class], "sheep")
            table = {shares: ENTIRE} if isinstance(shares, str) else shares
            self._up_to[task_class] = np.cumsum([table.get(_ANIMAL[a], 0) for a in ANIMALS])

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


_NAMES: dict[TaskClass, ClassName] = {
    TaskClass.BATCH: "batch",
    TaskClass.SERVICE: "service",
    TaskClass.MAPREDUCE: "mapreduce",
}
_ANIMAL: dict[str, Animal] = {
    "turtle": "turtle",
    "sheep": "sheep",
    "rabbit": "rabbit",
    "devil": "devil",
}
