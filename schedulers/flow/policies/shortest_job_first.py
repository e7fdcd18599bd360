"""Shortest job first: a place costs as much as the task is expected to run."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.interface import (
    AggregatorArcs,
    MachineLoad,
    ObservedCell,
    Policy,
    TaskArcs,
    TimePrice,
    join_arcs,
    to_aggregator,
)
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import SchedulerEnvironment, TaskChanges
from schedulers.objective import refuse_constraints
from schedulers.run_times import RunTimeEstimator
from shared_state.tasks import Int64, TaskBatch

X, Y = 0, 1  # the aggregators: the cluster, and the way to it of tasks that are young
NEITHER: Int64 = np.zeros(0, np.int64)
YOUNG = np.array([Y])


class ShortestJobFirst(Policy):
    """Shortest job first, with estimated run times (Firmament's public code,
    src/scheduling/flow/sjf_cost_model.cc, SJFCostModel).

    With r the run time that a task was expected to have when it joined the graph, and w what its
    waiting has cost so far, in the same unit, a place costs r + 1:

        T --r + 1--> X --0--> M --0--> S
        T --longest + 2--> U_j --w--> S
        running T ---r - progress--> M              under preemption

    so that of two tasks the shorter one is placed, unless the other has waited for as much longer.

    may_wait: waiting costs max(w, r), as in the original. A task then waits for as long as it will
    run, even where there is room. The waiting price of a job can only rise, so the graph has the
    equivalent: all costs of the task are less by max(w, r) - w, which rises on one arc for all
    tasks. No choice between two paths of a task changes by that.

        T --r + 1--> X
        T --1 - (time of submission)--> Y --(time)--> X        the cheaper one costs min(w, r) + 1
        T --0--> U_j --w--> S

    A running task has one arc more, at -r - progress, with r as expected when it began to run. It
    is protected by r and its progress, but with may_wait not also by max(w, r) - w.

    The estimate is the mean of the tasks of the same job that have ended, or else of the same class
    (run_times.py); the original's is the mean of the tasks of one program. What a run time counts
    is an option; the original multiplies milliseconds by 100 and says that these are tenths of a
    second. It gives running tasks no price; here they keep their place as long as that of others
    is not worth what they have done.
    """

    def __init__(
        self, unit_us: int, longest: int, unknown_us: int, may_wait: bool, wait_price: TimePrice
    ) -> None:
        self.wait_price = wait_price
        self.progress_price = TimePrice(1, unit_us)
        self._unit_us = unit_us
        self._longest = longest
        self._may_wait = may_wait
        self._estimator = RunTimeEstimator(unknown_us)
        self._quantum = 0  # of the waiting price, in this round
        self._y_is_open = self._y_is_stale = False

    @property
    def aggregators(self) -> int:
        return 2

    def aggregator_name(self, aggregator: int) -> str:
        return "XY"[aggregator]

    def learn(self, changes: TaskChanges) -> None:
        self._estimator.learn(changes)

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        quantum = now_us // self.wait_price.quantum_us
        self._y_is_stale = self._y_is_open and quantum != self._quantum
        self._quantum = quantum

    def stale_aggregators(self) -> Int64:
        return YOUNG if self._y_is_stale else NEITHER

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        parts = []
        if np.any(aggregator == X):
            machine = np.arange(len(load.total))
            zero = np.zeros(len(machine), np.int64)
            parts.append(AggregatorArcs(zero, machine, zero, zero))
        if np.any(aggregator == Y):
            self._y_is_open = True
            level = np.zeros(1, np.int64)
            cost = np.array([self.wait_price.cost * self._quantum])
            parts.append(AggregatorArcs(YOUNG, to_aggregator(level), cost, level))
        return join_arcs(parts)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        expected = self._expected(tasks)
        to_x = TaskArcs(row, np.full(len(row), to_aggregator(X)), expected + 1)
        if not self._may_wait:
            return to_x
        submitted = self.wait_price.cost * (tasks.submit_us // self.wait_price.quantum_us)
        to_y = TaskArcs(row, np.full(len(row), to_aggregator(Y)), 1 - submitted)
        return join_arcs([to_x, to_y])

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), 0 if self._may_wait else self._longest + 2)

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return self._expected(tasks) + 1

    def largest_cost(self) -> int:
        return self._longest + 2

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        return -self._expected(tasks)

    def _expected(self, tasks: TaskBatch) -> Int64:
        return np.minimum(self._estimator.estimate_us(tasks) // self._unit_us, self._longest)


class ShortestJobFirstOptions(BaseModel):
    """Options of shortest job first."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    may_wait: bool = Field(
        False,
        description="a task waits as long as it is expected to run before it takes a place; off:"
        " it waits only if there is no room",
    )
    unit_s: float = Field(
        0.1,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="seconds of expected run time that cost 1; waiting as long costs 1, too,"
        " unless wait_cost or wait_quantum_us is set",
    )
    longest_s: float = Field(
        86_400.0,
        gt=0,
        le=1e8,
        allow_inf_nan=False,
        description="the longest run time that is counted, in seconds; longer ones cost the same",
    )
    unknown_s: float = Field(
        60.0,
        ge=0,
        le=1e8,
        allow_inf_nan=False,
        description="the expected run time, in seconds, before any task of a class has ended",
    )


class _Options(ShortestJobFirstOptions, FlowOptions):
    """What build() gets."""


def build(options: _Options, environment: SchedulerEnvironment) -> ShortestJobFirst:
    refuse_constraints(environment.catalog, "shortest_job_first")
    unit_us = max(round(options.unit_s * 1e6), 1)
    return ShortestJobFirst(
        unit_us,
        round(options.longest_s * 1e6) // unit_us,
        round(options.unknown_s * 1e6),
        options.may_wait,
        wait_price(options, TimePrice(1, unit_us)),
    )


SPEC = PolicySpec("shortest_job_first", ShortestJobFirstOptions, build)
