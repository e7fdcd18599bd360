"""How slot prices enter the costs of a flow problem.

**tie.** The flow has the lowest total cost, and of all flows with that cost the lowest total price.
So all costs are multiplied by a scale that prices cannot outweigh. How large must it be? An optimal
flow is one that no simple cycle of the residual graph improves. If every simple cycle passes at
most k priced arcs forward and at most k backward, it changes the total price by at most k times the
highest price P. With a scale above k x P no cycle that lowers the price can raise the cost, and
none that raises the price can keep the cost from falling: the flow is optimal for (total cost,
total price) in lexicographic order. k does not depend on the number of tasks:

    all placements priced, no preemption     1: priced arcs end at the sink
    elsewhere only                           one per aggregator that leads there
    all placements priced, under preemption  one per machine: a chain of migrations

Prices are rounded down to at most RESOLUTION steps, and fewer where k is large, so that costs keep
their range.

**paid.** The flow has the lowest total of 1000 x cost + weight x price, in lowest terms.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.policies.policy import (
    MAX_COST,
    UNKNOWN_COST,
    AggregatorArcs,
    MachineLoad,
    Policy,
    TaskArcs,
    TimePrice,
)
from schedulers.prices.interface import SlotPrices
from schedulers.prices.options import ONE_PERMILLE, PriceMode, PriceOptions, PriceScope
from shared_state.errors import AgoraError
from shared_state.tasks import Int64, TaskBatch

# The highest price of a slot as a tie breaker. Finer differences of prices decide nothing: the
# emptier machine does. They would cost the solver a search for each step, most of it for noise.
RESOLUTION = (1 << 6) - 1
MAX_SCALE = 1 << 20  # coarser prices rather than a larger scale


class SlotState(NamedTuple):
    """Slots as a round finds them.

    Attributes:
        prices: What the next ones are worth.
        free: int64[M], in slots; the same array as the load's if a slot is a unit of the flow.
    """

    prices: SlotPrices
    free: Int64


class SlotPricing:
    """The rule by which a scheduler's slot prices become costs.

    Attributes:
        policy: The policy with its costs scaled.
        scale: By what.
        elsewhere_only: Whether placements on preferred machines have no price.
    """

    def __init__(
        self, options: PriceOptions, policy: Policy, machines: int, preemption: bool
    ) -> None:
        """
        Raises:
            AgoraError: The policy's costs, multiplied, leave the range of costs.
        """
        self.elsewhere_only = options.price_scope is PriceScope.ELSEWHERE
        if options.price_mode is PriceMode.PAID:
            common = gcd(ONE_PERMILLE, options.price_weight_permille)
            self.scale = ONE_PERMILLE // common
            self._weight: int | None = options.price_weight_permille // common
        else:
            in_cycle = 1
            if self.elsewhere_only:
                aggregators = np.arange(policy.aggregators)
                in_cycle = int(np.count_nonzero(policy.is_elsewhere(aggregators)))
            elif preemption:
                in_cycle = machines
            in_cycle = max(1, min(in_cycle, machines))
            self._highest = max(1, min(RESOLUTION, (MAX_SCALE - 1) // in_cycle))
            self.scale = in_cycle * self._highest + 1
            self._weight = None
        largest = policy.largest_cost()
        if largest * self.scale > MAX_COST:
            raise AgoraError(
                f'price_mode = "{options.price_mode}": costs are multiplied by {self.scale}, so '
                f"{policy.name} takes costs up to {MAX_COST // self.scale}, got {largest}"
            )
        self.policy: Policy = Scaled(policy, self.scale) if self.scale > 1 else policy

    def in_costs(self, price: Int64) -> Int64:
        """Prices of slots as costs of the scaled policy, in the same order: int64[M, L], as in
        SlotPrices."""
        if self._weight is not None:
            return np.minimum(price, MAX_COST + 1) * self._weight
        too_high = int(price[:, -1].max(initial=0)) // (self._highest + 1)
        return price >> too_high.bit_length() if too_high else price


class Scaled(Policy):
    """Another policy with all its costs and prices of time multiplied by `scale`, which leaves room
    for slot prices below one unit of cost."""

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
