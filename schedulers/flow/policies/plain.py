"""Policies without a goal, as Firmament's public code has them: to test, to compare with, and to
see what a round takes when costs decide nothing."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.cluster import ClusterWide
from schedulers.flow.policies.interface import MachineLoad, Policy, TimePrice
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import refuse_constraints
from shared_state.random import hash64, stream_key
from shared_state.tasks import Int64, TaskBatch

NO_PRICE = TimePrice(0, 1_000_000)


class Trivial(ClusterWide):
    """Constant costs: any place is as good as any other, and better than waiting (Firmament's
    public code, src/scheduling/flow/trivial_cost_model.cc, TrivialCostModel).

        T --2--> X --0--> M --0--> S
        T --5--> U_j --0--> S

    The arcs of cost 0 that the original adds from each task to machines drawn at random are left
    out.
    """

    def __init__(self, place_cost: int, unscheduled_cost: int, wait_price: TimePrice) -> None:
        super().__init__(wait_price)
        self._place_cost = place_cost
        self._unscheduled_cost = unscheduled_cost

    def via_cluster(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._place_cost)

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._unscheduled_cost)

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._place_cost)

    def largest_cost(self) -> int:
        return max(self._place_cost, self._unscheduled_cost)


class Void(ClusterWide):
    """No costs at all, so that every flow is optimal: whether a task is placed, and where, is what
    the solver finds first (Firmament's public code, src/scheduling/flow/void_cost_model.cc,
    VoidCostModel).

        T --0--> X --0--> M --0--> S
        T --0--> U_j --0--> S

    In the original each task class has an aggregator of its own in place of X; at no cost, they
    lead to the same places.
    """

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return np.zeros(len(tasks), np.int64)


class Random(ClusterWide):
    """Costs drawn at random (Firmament's public code, src/scheduling/flow/random_cost_model.cc,
    RandomCostModel). With the largest cost C and draws d < 1 of their own:

        T --d * unscheduled--> X --1 + d * C / 2--> M --0--> S
        T --unscheduled = C / 2 + 1 + d * C / 2--> U_j --waiting--> S

    The original draws anew in every round; here a task and a machine keep what they drew, and the
    price of waiting sees to it that tasks which drew low costs of waiting are placed at last. Its
    aggregators of task classes, which lead to machines drawn at random, are left out.
    """

    def __init__(self, largest_cost: int, key: int, wait_price: TimePrice) -> None:
        super().__init__(wait_price)
        self._half = largest_cost // 2
        self._key = key

    def via_cluster(self, tasks: TaskBatch) -> Int64:
        unscheduled = self.unscheduled_cost(tasks)
        return (self._draw(tasks.task, 0) * unscheduled) >> 31

    def into_machine(self, machine: Int64, load: MachineLoad) -> Int64:
        return 1 + (self._draw(machine, 1) * self._half >> 31)

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return self._half + 1 + (self._draw(tasks.task, 2) * self._half >> 31)

    def largest_cost(self) -> int:
        return 2 * self._half + 1

    def _draw(self, of: Int64, which: int) -> Int64:
        """A number below 2^31 for each, which does not change: int64[n]."""
        return (hash64(of, self._key + which) >> np.uint64(33)).astype(np.int64)


class TrivialOptions(BaseModel):
    """Options of the trivial policy."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    place_cost: int = Field(2, ge=0, le=1_000_000_000, description="the cost of any place")
    unscheduled_cost: int = Field(
        5, ge=0, le=1_000_000_000, description="the cost of a task left waiting"
    )


class VoidOptions(BaseModel):
    """The policy without costs has no options."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RandomOptions(BaseModel):
    """Options of the random policy."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    largest_cost: int = Field(
        1000,
        ge=2,
        le=1_000_000_000,
        description="the largest cost that is drawn, give or take 1",
    )
    draw: int = Field(0, ge=0, description="a seed: another number draws other costs")


class _TrivialAndFlow(TrivialOptions, FlowOptions):
    """What build_trivial() gets."""


class _RandomAndFlow(RandomOptions, FlowOptions):
    """What build_random() gets."""


def build_trivial(options: _TrivialAndFlow, environment: SchedulerEnvironment) -> Trivial:
    refuse_constraints(environment.catalog, "trivial")
    price = wait_price(options, NO_PRICE)
    return Trivial(options.place_cost, options.unscheduled_cost, price)


def build_void(options: FlowOptions, environment: SchedulerEnvironment) -> Void:
    refuse_constraints(environment.catalog, "void")
    return Void(wait_price(options, NO_PRICE))


def build_random(options: _RandomAndFlow, environment: SchedulerEnvironment) -> Random:
    refuse_constraints(environment.catalog, "random")
    key = stream_key(options.draw, "flow policy random")
    return Random(options.largest_cost, key, wait_price(options, Policy.wait_price))


TRIVIAL = PolicySpec("trivial", TrivialOptions, build_trivial)
VOID = PolicySpec("void", VoidOptions, build_void)
RANDOM = PolicySpec("random", RandomOptions, build_random)
