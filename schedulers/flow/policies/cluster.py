"""Graphs that policies share: each aggregator leads to every machine; every task goes over one."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from schedulers.flow.policies.interface import (
    AggregatorArcs,
    MachineLoad,
    Policy,
    TaskArcs,
    TimePrice,
    to_aggregator,
)
from shared_state.tasks import Int64, TaskBatch


class ToEveryMachine(Policy):
    """Every aggregator has one arc to each machine, whose cost follows the machine's load."""

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        machines = len(load.total)
        tail = np.repeat(aggregator, machines)
        machine = np.tile(np.arange(machines), len(aggregator))
        level = np.zeros(len(tail), np.int64)
        cost = self.machine_arc_cost(tail, level, machine, load)
        return AggregatorArcs(tail, machine, cost, level)

    @abstractmethod
    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64: ...


class ClusterWide(Policy):
    """Every task goes through the cluster aggregator X, or waits:

        T --via_cluster--> X --into_machine--> M --0--> S
        T --unscheduled--> U_j --waiting--> S

    There is one arc to each machine, as wide as its room. Where a subclass says nothing else, an
    arc costs 0; a running task runs on at no cost, as long as it likes.
    """

    progress_price = TimePrice(0, 1_000_000)

    def __init__(self, wait_price: TimePrice) -> None:
        self.wait_price = wait_price

    @property
    def aggregators(self) -> int:
        return 1

    def aggregator_name(self, aggregator: int) -> str:
        return "X"

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        machine = np.arange(len(load.total))
        x = np.zeros(len(machine), np.int64)
        return AggregatorArcs(x, machine, self.into_machine(machine, load), x)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        return TaskArcs(row, np.full(len(row), to_aggregator(0)), self.via_cluster(tasks))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.zeros(len(tasks), np.int64)

    def via_cluster(self, tasks: TaskBatch) -> Int64:
        """What the arc of each task to X costs: int64[n]."""
        return np.zeros(len(tasks), np.int64)

    def into_machine(self, machine: Int64, load: MachineLoad) -> Int64:
        """What the arc from X to each of these machines (int64[k]) costs: int64[k]."""
        return np.zeros(len(machine), np.int64)
