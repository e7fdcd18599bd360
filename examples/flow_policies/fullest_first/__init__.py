"""Fills the fullest machines first; where room is short, batch tasks wait before services do."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.flow.policies.interface import AggregatorArcs, Policy, TaskArcs, to_aggregator
from schedulers.flow.policies.registry import PolicySpec
from shared_state.tasks import TaskClass


class FullestFirst(Policy):
    """
    T --0--> X --free room of M--> M --0--> sink
    T --waiting, of services twice that--> U_j --waiting price--> sink
    """

    aggregators = 1  # X

    def __init__(self, waiting):
        self.waiting = waiting  # costs more than any place

    def task_arcs(self, tasks):
        row = np.arange(len(tasks))
        return TaskArcs(row, np.full(len(row), to_aggregator(0)), np.zeros(len(row), np.int64))

    def unscheduled_cost(self, tasks):
        service = tasks.task_class == TaskClass.SERVICE
        return np.where(service, 2 * self.waiting, self.waiting)

    def aggregator_arcs(self, aggregator, load):
        machine = np.arange(len(load.free))
        none = np.zeros(len(machine), np.int64)
        return AggregatorArcs(tail=none, head=machine, cost=load.free, level=none)

    def machine_arc_cost(self, tail, level, machine, load):
        return load.free[machine]


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    waiting: int = Field(1_000_000, ge=1, description="The cost of leaving a batch task waiting.")


def build(options, environment):
    return FullestFirst(options.waiting)


SPEC = PolicySpec("fullest_first", Options, build)
