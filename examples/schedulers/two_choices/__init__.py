"""The power of two choices (Mitzenmacher, 2001): draw two machines at random for each task, and
place it on the one with more room."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.decision_clock import Modelled
from schedulers.interface import Plan, PlanContext, SchedulerEnvironment, TaskChanges
from schedulers.registry import SchedulerSpec
from shared_state.random import Stream
from shared_state.tasks import TaskBatch, fits
from shared_state.view import ClusterView


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    choices: int = Field(2, ge=1)  # machines drawn for each task


class TwoChoices:
    def __init__(self, options: Options, environment: SchedulerEnvironment) -> None:
        self.choices = options.choices

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        free = view.free.copy()
        count = len(tasks) * self.choices
        drawn = Stream(context.stream).integers(count, len(free)).reshape(-1, self.choices)
        machine = np.full(len(tasks), -1, np.int32)  # -1: left waiting
        for i in np.flatnonzero(tasks.gang < 0):  # it does not place gangs
            room = free[drawn[i]]
            fit = fits(tasks.request[i], room)
            if fit.any():
                machine[i] = drawn[i, np.where(fit, room.sum(axis=1), -1).argmax()]
                free[machine[i]] -= tasks.request[i]
        return Plan.from_machines(tasks, machine, operations=count)

    def observe(self, changes: TaskChanges) -> None:
        pass


SPEC = SchedulerSpec(
    "two_choices", Options, TwoChoices, Modelled(job_us=0, task_ns=250_000, partition_ns=0)
)
