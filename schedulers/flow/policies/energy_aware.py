"""Energy-aware: batch tasks go where they add the least power, services where most room is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.cluster import ToEveryMachine
from schedulers.flow.policies.interface import (
    MachineLoad,
    Policy,
    TaskArcs,
    TimePrice,
    to_aggregator,
)
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import refuse_constraints
from shared_state.tasks import Int64, TaskBatch, TaskClass

P, B = 0, 1


class EnergyAware(ToEveryMachine):
    """Energy-aware placement. The slides draw the graph, with two aggregators P and B that they do
    not explain, and without costs. What the two stand for, and all costs, are Agora's own:

        service T --0--> P --spread * used // total of M--> M --0--> S       performance
        other T   --0--> B --task power (+ idle power of M if empty)--> M    batch
        T --unscheduled--> U_j --waiting--> S
        running T --0 - progress--> M                                        under preemption

    Services spread over the cell. Batch tasks fill machines that run something, and wake another
    one only where no machine that is awake has room: a machine with nothing to run is taken to
    sleep. What runs is what the round found; of the tasks of one round each pays for the machine
    that it wakes. The cores below the machines of the slides are left out.
    """

    def __init__(
        self,
        task_power: int,
        idle_power: int,
        spread: int,
        unscheduled_cost: int,
        wait_price: TimePrice,
    ) -> None:
        self.wait_price = wait_price
        self._task_power = task_power
        self._idle_power = idle_power
        self._spread = spread
        self._unscheduled_cost = unscheduled_cost

    @property
    def aggregators(self) -> int:
        return 2

    def aggregator_name(self, aggregator: int) -> str:
        return "PB"[aggregator]

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64:
        used = load.used[machine]
        spread = self._spread * used // np.maximum(load.total[machine], 1)
        power = self._task_power + np.where(used == 0, self._idle_power, 0)
        return np.where(tail == P, spread, power)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        serves: NDArray[np.bool_] = tasks.task_class == TaskClass.SERVICE
        row = np.arange(len(tasks))
        return TaskArcs(row, to_aggregator(np.where(serves, P, B)), np.zeros(len(row), np.int64))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._unscheduled_cost)

    def largest_cost(self) -> int:
        return max(self._unscheduled_cost, self._task_power + self._idle_power, self._spread)


class EnergyOptions(BaseModel):
    """Options of the energy-aware policy."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task_power: int = Field(
        20, ge=0, le=1_000_000, description="the power that a task adds to its machine, in watts"
    )
    idle_power: int = Field(
        100,
        ge=0,
        le=1_000_000,
        description="the power of a machine that is awake with nothing to run, in watts",
    )
    spread: int = Field(
        100,
        ge=0,
        le=1_000_000,
        description="the cost of a service on a full machine; on others in proportion",
    )
    unscheduled_cost: int = Field(
        1000,
        ge=0,
        le=1_000_000_000,
        description="the cost of a task left waiting; if it is less than task_power + idle_power,"
        " batch tasks at first wait for room on machines that are awake",
    )


class _Options(EnergyOptions, FlowOptions):
    """What build() gets."""


def build(options: _Options, environment: SchedulerEnvironment) -> EnergyAware:
    refuse_constraints(environment.catalog, "energy_aware")
    return EnergyAware(
        options.task_power,
        options.idle_power,
        options.spread,
        options.unscheduled_cost,
        wait_price(options, Policy.wait_price),
    )


SPEC = PolicySpec("energy_aware", EnergyOptions, build, ranked=False)
