"""Scheduling graphs: a network and the meaning of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.network import FlowNetwork


class TaskGraph:
    """Tasks are the last nodes. Their arcs are the first ones of the network; those of a task are
    adjacent.
    """

    network: FlowNetwork
    tasks: int

    sink = 0

    @property
    def first_task(self) -> int:
        return self.network.num_nodes - self.tasks

    @cached_property
    def task_arc_begin(self) -> Int64Array:
        """The arcs of task i are task_arc_begin[i] .. task_arc_begin[i + 1]: int64[tasks + 1]."""
        tail = self.network.tail
        count = np.bincount(tail[tail >= self.first_task] - self.first_task, minlength=self.tasks)
        return np.concatenate([[0], np.cumsum(count)])


@dataclass(frozen=True)
class SchedulingGraph(TaskGraph):
    """Node ids: sink 0, cluster aggregator X 1, then racks, machines, unscheduled aggregators,
    tasks.
    """

    network: FlowNetwork
    racks: int
    machines: int
    jobs: int
    tasks: int
    slots_per_machine: int
    machines_per_rack: int

    cluster = 1

    @property
    def first_rack(self) -> int:
        return 2

    @property
    def first_machine(self) -> int:
        return self.first_rack + self.racks

    @property
    def first_unscheduled(self) -> int:
        return self.first_machine + self.machines


@dataclass(frozen=True)
class NetworkAwareGraph(TaskGraph):
    """Node ids: sink 0, then request aggregators, machines, unscheduled aggregators, tasks."""

    network: FlowNetwork
    requests: Int64Array  # MB/s that each aggregator stands for
    machines: int
    jobs: int
    tasks: int
    slots_per_machine: int
    used: Int64Array  # MB/s of each machine's link

    first_aggregator = 1

    @property
    def first_machine(self) -> int:
        return self.first_aggregator + self.requests.size

    @property
    def first_unscheduled(self) -> int:
        return self.first_machine + self.machines
