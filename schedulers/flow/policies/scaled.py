"""A policy whose costs are multiplied, which leaves room for slot prices below one unit of cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.policies.policy import (
    UNKNOWN_COST,
    AggregatorArcs,
    MachineLoad,
    Policy,
    TaskArcs,
    TimePrice,
)
from shared_state.tasks import Int64, TaskBatch


class Scaled(Policy):
    """Another policy with all its costs and prices of time multiplied by `scale`."""

    def __init__(self, policy: Policy, scale: int) -> None:
        self._policy = policy
        self._scale = scale
        self.patience_us = policy.patience_us
        self.patience_price = self._time_price(policy.patience_price)
        self.wait_price = self._time_price(policy.wait_price)
        self.progress_price = self._time_price(policy.progress_price)

    @property
    def name(self) -> str:
        return f"{self._policy.name}, its costs x {self._scale} for slot prices"

    @property
    def aggregators(self) -> int:
        return self._policy.aggregators

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        arcs = self._policy.aggregator_arcs(aggregator, load)
        return replace(arcs, cost=arcs.cost * self._scale)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        arcs = self._policy.task_arcs(tasks)
        return TaskArcs(arcs.row, arcs.head, arcs.cost * self._scale)

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return self._policy.unscheduled_cost(tasks) * self._scale

    def is_elsewhere(self, aggregator: Int64) -> NDArray[np.bool_]:
        return self._policy.is_elsewhere(aggregator)

    @property
    def one_arc_elsewhere(self) -> bool:
        return self._policy.one_arc_elsewhere

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        cost = self._policy.cost_anywhere(tasks)
        return np.where(cost == UNKNOWN_COST, cost, cost * self._scale)

    def largest_cost(self) -> int:
        return self._policy.largest_cost() * self._scale

    def patient_wait_cost(self, tasks: TaskBatch) -> Int64:
        cost = self._policy.patient_wait_cost(tasks)
        return np.where(cost < 0, cost, cost * self._scale)

    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        return self._policy.machine_arc_capacity(level, machine, load)

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        return self._policy.running_arc_cost(tasks, machine) * self._scale

    def _time_price(self, price: TimePrice) -> TimePrice:
        return replace(price, cost=price.cost * self._scale)
