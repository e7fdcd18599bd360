"""Load spreading: the next task of a machine costs more the more it runs already."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.interface import (
    AggregatorArcs,
    MachineLoad,
    Policy,
    TaskArcs,
    TimePrice,
    to_aggregator,
)
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import refuse_constraints
from shared_state.tasks import Int64, TaskBatch


class LoadSpreading(Policy):
    """Load spreading: a machine's next task costs in proportion to the tasks that it runs
    (Firmament section 3.3, Fig. 6a; as Docker SwarmKit).

        T --0--> X ==step * k==> M --0--> S      an arc for each task k that a machine can hold,
                                                 open where used <= k < total
        T --unscheduled--> U_j --waiting--> S

    The arcs of a machine never change their cost: when its load moves, another one opens. A machine
    of more than `levels` tasks gets `levels` arcs of several units each, cost at the first: the
    spread is then exact to that width. Everybody's tasks count as load. Running tasks go on at no
    cost, so even under preemption they stay. No machine is preferred.
    """

    def __init__(
        self, step_cost: int, unscheduled_cost: int, levels: int, wait_price: TimePrice
    ) -> None:
        self.wait_price = wait_price
        self._step = step_cost
        self._unscheduled = unscheduled_cost
        self._levels = levels
        self._dearest = 0  # place, when X comes into being
        self._arcs_of = np.zeros(0, np.int64)  # per machine, fixed when X comes into being

    @property
    def aggregators(self) -> int:
        return 1

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        self._arcs_of = np.clip(load.total, 1, self._levels)
        machine = np.repeat(np.arange(len(load.total)), self._arcs_of)
        first = np.cumsum(self._arcs_of) - self._arcs_of
        level = np.arange(len(machine)) - np.repeat(first, self._arcs_of)
        cost = self._step * (level * self._width(machine, load) + 1)
        self._dearest = int(cost.max(initial=0))
        return AggregatorArcs(np.zeros(len(machine), np.int64), machine, cost, level)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        n = len(tasks)
        return TaskArcs(np.arange(n), np.full(n, to_aggregator(0)), np.zeros(n, np.int64))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._unscheduled, np.int64)

    def aggregator_name(self, aggregator: int) -> str:
        return "X"

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._dearest)

    def largest_cost(self) -> int:
        return self._unscheduled

    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        width = self._width(machine, load)
        begin = np.maximum(level * width, load.used[machine])
        end = np.minimum((level + 1) * width, load.total[machine])
        capacity: Int64 = np.maximum(end - begin, 0)
        return capacity

    def _width(self, machine: Int64, load: MachineLoad) -> Int64:
        width: Int64 = np.maximum(-(-load.total[machine] // self._arcs_of[machine]), 1)
        return width


class LoadSpreadingOptions(BaseModel):
    """Options of load spreading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    step_cost: int = Field(
        100,
        ge=0,
        le=1_000_000,
        description="what each task already on a machine adds to the cost of the next",
    )
    unscheduled_cost: int = Field(
        1_000_000, ge=0, le=1_000_000_000, description="the cost of a task left waiting"
    )
    levels: int = Field(
        32,
        ge=1,
        description="the largest number of arcs to a machine; if it holds more tasks, each arc"
        " carries several at one cost",
    )


class _Options(LoadSpreadingOptions, FlowOptions):
    """What build() gets."""


def build(options: _Options, environment: SchedulerEnvironment) -> LoadSpreading:
    refuse_constraints(environment.catalog, "load_spreading")
    price = wait_price(options, Policy.wait_price)
    return LoadSpreading(options.step_cost, options.unscheduled_cost, options.levels, price)


SPEC = PolicySpec("load_spreading", LoadSpreadingOptions, build)
