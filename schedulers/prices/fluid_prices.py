"""Fluid: what one more slot would save if the tasks offered were placed all at once.

The tasks that hold slots at some time are a sample of the tasks offered: by Little's law as many of
each set as its share of these. Placed as cheaply as possible, preferred machines first, one more
slot of a machine saves the dual price of its capacity. With rates in place of a sample that is the
fluid problem of fluid.py without run times. Its dual prices are all or nothing: a machine is wanted
by more than it has room for, or it is not. So each update draws a few samples, and prices are the
means of what slots were worth in these: the randomised linear program for bid prices of Talluri and
van Ryzin (Transportation Science 33(2), 1999).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from flowsolver import UNBOUNDED, FlowNetwork, IncrementalSolver, Status
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.periodic import (
    ForgettingOptions,
    PeriodicEstimator,
    Renewal,
    hold_small_moves,
)
from schedulers.prices.registry import SlotPriceSpec
from schedulers.prices.running_mean import FRACTION_BITS, RunningMean
from shared_state.random import Stream, hash64, stream_key
from shared_state.tasks import Int32, Int64, PreferenceCatalog
from shared_state.view import ClusterView

MOST_TASKS = 1 << 18  # in a sample
# Counted work, in picoseconds: per task drawn, per operation of the solver, per machine and sample,
# and per entry of the catalog that a problem is made of.
TASK_PS = 30_000
SOLVER_PS = 30_000
MACHINE_PS = 10_000
ENTRY_PS = 500_000
RECENT = 1 << 14  # tasks offered last, of which samples are drawn


class FluidOptions(ForgettingOptions):
    """How often problems are solved.

    Attributes:
        samples: Problems per update.
    """

    update_s: float = Field(2.0, ge=1e-6, le=1e6)
    forget_s: float = Field(30.0, ge=1e-6, le=1e5)
    samples: int = Field(4, ge=1, le=1000)


class FluidPrices(PeriodicEstimator):
    """The price of a machine's next slot is the mean of what one more slot saves in samples of the
    tasks offered, whatever is busy."""

    def __init__(self, options: FluidOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us, options.forget_us, RECENT)
        self._catalog = environment.catalog
        self._name = environment.name
        self._samples = options.samples
        self._sample_us = options.update_us // options.samples or 1
        self._drawn = 0
        self._worth = RunningMean(environment.cell.machines, options.forget_us)
        self._problem: _Problem | None = None

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        recent = self.demand.recent_sets
        tasks, work_ps = min(self.slots.busy(view), MOST_TASKS), 0
        sets = np.unique(recent)
        problem = self._problem
        if problem is None or current is None or not np.array_equal(problem.sets, sets):
            problem = self._problem = _Problem.make(self._catalog, sets, self.slots.slots)
            work_ps = ENTRY_PS * problem.entries
        for _ in range(self._samples):
            stream = Stream(stream_key(0, f"fluid prices of {self._name}", self._drawn))
            self._drawn += 1
            drawn = recent[stream.integers(tasks, len(recent))]
            count = np.bincount(np.searchsorted(sets, drawn), minlength=len(sets))
            self._worth.add(problem.worth(count) << FRACTION_BITS, self._sample_us)
            work_ps += TASK_PS * tasks + SOLVER_PS * problem.solver.stats.operations
            work_ps += MACHINE_PS * problem.machines
        price = self._worth.rounded()[:, None]
        renewal = hold_small_moves(current, price, self.demand.mean_gain)
        return Renewal(renewal.price, renewal.work_ps + work_ps)


@dataclass(slots=True)
class _Problem:
    """Tasks of some sets on machines: set -> class of machines that the same sets list at the same
    costs -> sink, and set -> sink for those that are placed elsewhere.

    Attributes:
        sets: int32[S], the sets, ascending.
        machine: int64[n], machines that are listed, and
        class_of: int64[n], the class of each.
        machines: M.
        entries: Of the catalog that the sets list.
    """

    sets: Int32
    machine: Int64
    class_of: Int64
    machines: int
    solver: IncrementalSolver
    set_node: Int64
    class_node: Int64
    sink: int
    entries: int

    @staticmethod
    def make(catalog: PreferenceCatalog, sets: Int32, slots: Int64) -> _Problem:
        """The problem of these sets, with no tasks yet."""
        offsets = catalog.machine_offsets
        size = offsets[sets + 1] - offsets[sets]
        row = np.repeat(np.arange(len(sets)), size)
        entry = np.arange(len(row)) + np.repeat(offsets[sets] - np.cumsum(size) + size, size)
        listed = catalog.machine[entry].astype(np.int64)
        gain = np.maximum(catalog.elsewhere_cost[sets][row] - catalog.machine_cost[entry], 0)
        kept = (gain > 0) & (slots[listed] > 0)
        row, listed, gain = row[kept], listed[kept], gain[kept]
        highest = np.zeros(len(sets), np.int64)
        np.maximum.at(highest, row, gain)

        machine, position = np.unique(listed, return_inverse=True)
        signature = np.zeros((len(machine), 2), np.uint64)
        for salt in range(2):
            hashed = hash64(hash64(row, salt).astype(np.int64) ^ gain, 2 + salt)
            np.add.at(signature[:, salt], position, hashed)
        _, first, class_of = np.unique(signature, axis=0, return_index=True, return_inverse=True)
        class_of = class_of.reshape(-1)
        room = np.zeros(len(first), np.int64)
        np.add.at(room, class_of, slots[machine])

        leads = np.zeros(len(machine), np.bool_)
        leads[first] = True
        kept = leads[position]
        network = FlowNetwork()
        set_node = network.add_nodes(np.zeros(len(sets), np.int64))
        class_node = network.add_nodes(np.zeros(len(first), np.int64))
        sink = int(network.add_nodes([0])[0])
        head = class_node[class_of[position[kept]]]
        cost = highest[row[kept]] - gain[kept]
        network.add_arcs(set_node[row[kept]], head, UNBOUNDED, cost)
        network.add_arcs(set_node, sink, UNBOUNDED, highest)
        network.add_arcs(class_node, sink, room, 0)
        solver = IncrementalSolver(network)
        return _Problem(
            sets, machine, class_of, len(slots), solver, set_node, class_node, sink, len(entry)
        )

    def worth(self, tasks: Int64) -> Int64:
        """What one more slot of each machine saves, int64[M], if each set has so many tasks
        (int64[S])."""
        worth = np.zeros(self.machines, np.int64)
        self.solver.set_supply(self.set_node, tasks)
        self.solver.set_supply([self.sink], -tasks.sum(keepdims=True))
        status = self.solver.resolve()
        if status is not Status.OPTIMAL:
            raise ArithmeticError(f"prices 'fluid': the flow problem ended {status.name}")
        potential = self.solver.potential()
        above = np.maximum(potential[self.class_node] - potential[self.sink], 0)
        worth[self.machine] = above[self.class_of]
        return worth


SPEC = SlotPriceSpec("fluid", FluidOptions, FluidPrices, shares_demand=True)
