"""Octopus: places cost in proportion to the tasks that run on the machine when the round begins."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.cluster import ClusterWide
from schedulers.flow.policies.interface import MachineLoad, TimePrice
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import refuse_constraints
from shared_state.tasks import Int64, TaskBatch

VIA_CLUSTER = 1


class Octopus(ClusterWide):
    """Octopus, a form of load spreading (Firmament's public code,
    src/scheduling/flow/octopus_cost_model.cc, OctopusCostModel).

        T --1--> X --100 * running tasks--> M --0--> S      as wide as the machine's room
        T --1000000--> U_j --0--> S

    Each machine has one arc, whose cost follows its load from round to round. Within a round all
    places of a machine cost the same, so many tasks at once fill the emptiest machine before they
    turn to the next. Load spreading (load_spreading.py) has an arc for each task and is exact.

    The original prices the cores of a machine once more in the same way, so that its tasks spread
    over them; machines have no cores here.
    """

    def __init__(self, task_cost: int, unscheduled_cost: int, wait_price: TimePrice) -> None:
        super().__init__(wait_price)
        self._task_cost = task_cost
        self._unscheduled_cost = unscheduled_cost

    def via_cluster(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), VIA_CLUSTER)

    def into_machine(self, machine: Int64, load: MachineLoad) -> Int64:
        return self._task_cost * load.used[machine]

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64:
        return self.into_machine(machine, load)

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._unscheduled_cost)

    def largest_cost(self) -> int:
        return self._unscheduled_cost


class OctopusOptions(BaseModel):
    """Options of octopus."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task_cost: int = Field(
        100,
        ge=0,
        le=1_000_000,
        description="what each task that runs on a machine adds to the cost of a place there",
    )
    unscheduled_cost: int = Field(
        1_000_000, ge=0, le=1_000_000_000, description="the cost of a task left waiting"
    )


class _Options(OctopusOptions, FlowOptions):
    """What build() gets."""


def build(options: _Options, environment: SchedulerEnvironment) -> Octopus:
    refuse_constraints(environment.catalog, "octopus")
    price = wait_price(options, TimePrice(0, 1_000_000))
    return Octopus(options.task_cost, options.unscheduled_cost, price)


SPEC = PolicySpec("octopus", OctopusOptions, build)
