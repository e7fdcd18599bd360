"""The kinds of slot prices of this repository: membership, occupancy, demand, implied, fluid and
potentials, each a class and its line for the registry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from flowsolver import UNBOUNDED, FlowNetwork, IncrementalSolver, Status
from schedulers import _native
from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import SlotPrices, no_prices
from schedulers.prices.periodic import (
    FRACTION_BITS,
    LEAST_MOVE,
    PRICE_PS,
    DemandOptions,
    ForgettingOptions,
    PeriodicEstimator,
    Renewal,
    RunningMean,
    UpdateOptions,
    hold_small_moves,
)
from schedulers.prices.registry import SlotPriceSpec
from shared_state.random import Stream, hash64, stream_key
from shared_state.tasks import Int32, Int64, PreferenceCatalog
from shared_state.view import ClusterView


class MembershipPrices(PeriodicEstimator):
    """Membership: a machine is as dear as the number of preference sets that list it.

    Of the sets offered so far, n list a machine and at most N any machine. The price is n / N x the
    mean gain of a preferred machine over any other, whatever is busy.
    """

    def __init__(self, options: UpdateOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us)

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        gain, listing = self.demand.mean_gain, self.demand.sets_listing
        price = gain * listing.astype("int64") // max(1, int(listing.max(initial=0)))
        return hold_small_moves(current, price[:, None], gain)


MEMBERSHIP = SlotPriceSpec("membership", UpdateOptions, MembershipPrices, shares_demand=True)


class OccupancyPrices(PeriodicEstimator):
    """Occupancy: the fuller a machine, the dearer its next slot.

    The next slot of a machine with b of C slots busy has the price b / C x the mean gain of a
    preferred machine over any other. Who takes the cheapest slot spreads tasks evenly over
    machines. The prices know nothing of demand, so what they gain is what spreading alone gains:
    the control of the other kinds.
    """

    def __init__(self, options: UpdateOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us)
        self._gain = 0  # that the prices were made of

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        gain, slots = self.demand.mean_gain, self.slots.slots[:, None]
        if current is not None and abs(gain - self._gain) <= gain // LEAST_MOVE:
            return Renewal(current, 0)
        self._gain = gain
        busy = np.arange(max(1, int(slots.max(initial=0))))
        price = gain * np.minimum(busy, slots) // np.maximum(slots, 1)
        return Renewal(price, PRICE_PS * price.size)


OCCUPANCY = SlotPriceSpec("occupancy", UpdateOptions, OccupancyPrices)


LOAD_BITS = 20  # of loads
SHARE_BITS = 30
DEMAND_MACHINE_PS = 40_000  # counted work per machine, in picoseconds


class DemandPrices(PeriodicEstimator):
    """Demand: a machine is as dear as the tasks that prefer it are many.

    The tasks that list a machine want nu of its C slots (OfferedDemand.load). The price is
    nu / (nu + C) x the gain of these tasks over any other machine, whatever is busy.
    """

    def __init__(self, options: DemandOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us, options.forget_us, pools=options.pool)

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        gain = self.demand.gain()
        load = self.demand.load(self.slots.busy(view)) >> 32 - LOAD_BITS
        wanted = load + (self.slots.slots << LOAD_BITS)
        scale = 1 + (wanted >> 31)  # keeps what follows within 63 bits
        share = (load // scale << SHARE_BITS) // np.maximum(wanted // scale, 1)
        price = gain * share + (1 << SHARE_BITS - 1) >> SHARE_BITS
        renewal = hold_small_moves(current, price[:, None], gain)
        return Renewal(renewal.price, renewal.work_ps + DEMAND_MACHINE_PS * len(price))


DEMAND = SlotPriceSpec("demand", DemandOptions, DemandPrices, shares_demand=True)


# Counted work, in picoseconds: per machine, per price computed and per price copied.
IMPLIED_MACHINE_PS = 10_000
IMPLIED_PRICE_PS = 12_000
COPY_PS = 500


class ImpliedPrices(PeriodicEstimator):
    """Implied cost: what a later task loses on average when a slot is taken now.

    The tasks that list a machine want nu of its C slots (OfferedDemand.load). With b slots busy,
    the price of the next is E(nu, C) / E(nu, b) x the gain of these tasks over any other machine,
    where E is Erlang's loss formula (Krishnan and Ott 1986, Kelly 1988; native/estimators.hpp).
    """

    def __init__(self, options: DemandOptions, environment: SchedulerEnvironment) -> None:
        super().__init__(environment, options.update_us, options.forget_us, pools=options.pool)
        self._price = np.zeros((0, 0), np.int64)  # as the next prices are, to be changed in place
        self._load = np.zeros(0, np.int64)  # what each row was computed for
        self._gain = np.zeros(0, np.int64)

    def renew(self, view: ClusterView, current: Int64 | None) -> Renewal:
        slots = self.slots.slots
        if current is None:
            levels = max(1, int(slots.max(initial=0)))
            self._price = np.zeros((len(slots), levels), np.int64)
            self._load, self._gain = np.full(len(slots), -1, np.int64), np.zeros_like(slots)
        levels = self._price.shape[1]
        computed, changed = _native.update_implied_prices(
            self._price,
            self._load,
            self._gain,
            self.demand.load(self.slots.busy(view)),
            slots,
            self.demand.gain(),
            levels,
        )
        work_ps = IMPLIED_MACHINE_PS * len(slots) + IMPLIED_PRICE_PS * computed * levels
        if current is not None and not changed:
            return Renewal(current, work_ps)
        return Renewal(self._price.copy(), work_ps + COPY_PS * self._price.size)


IMPLIED = SlotPriceSpec("implied", DemandOptions, ImpliedPrices, shares_demand=True)


MOST_TASKS = 1 << 18  # in a sample
# Counted work, in picoseconds: per task drawn, per operation of the solver, per machine and sample,
# and per entry of the catalog that a problem is made of.
TASK_PS = 30_000
SOLVER_PS = 30_000
FLUID_MACHINE_PS = 10_000
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
    """Fluid: what one more slot would save if the tasks offered were placed all at once.

    The tasks that hold slots at some time are a sample of the tasks offered: by Little's law as
    many of each set as its share of these. Placed as cheaply as possible, preferred machines first,
    one more slot of a machine saves the dual price of its capacity. With rates in place of a sample
    that is the fluid problem of fluid.py without run times. Its dual prices are all or nothing: a
    machine is wanted by more than it has room for, or it is not. So each update draws a few
    samples, and prices are the means of what slots were worth in these, whatever is busy: the
    randomised linear program for bid prices of Talluri and van Ryzin (Transportation Science 33(2),
    1999).
    """

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
            work_ps += FLUID_MACHINE_PS * problem.machines
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


FLUID = SlotPriceSpec("fluid", FluidOptions, FluidPrices, shares_demand=True)


MAX_PRICE = 1 << 32  # as of the other kinds
LONGEST_US = 1 << 22  # that is summed before it is averaged: keeps sums within 63 bits
# Counted work: picoseconds per update and per round, and of each per machine.
POTENTIAL_WEIGHTS_PS = (40_000_000, 4_000_000, 6_000, 1_500)


class PotentialOptions(ForgettingOptions):
    """How far back the average reaches.

    Attributes:
        forget_s: After this time, in seconds of the scheduler's time, what a slot was worth in a
            round counts 1/e.
    """

    forget_s: float = Field(30.0, ge=1e-6, le=1e5)


class PotentialPrices:
    """Potentials: what a flow scheduler's own optimum says that a slot is worth, over time.

    The potential of a machine less that of the sink is the dual price of the machine's capacity in
    a round: by how much the round would cost less with one more slot there. It looks at the tasks
    of the round alone. Where nothing waits and no task had to take a worse place, it is 0.

    The price of a machine's next slot is the mean over time of max(0, that difference), whatever is
    busy. A round counts for the time until the next.
    """

    operations: int

    def __init__(self, options: PotentialOptions, environment: SchedulerEnvironment) -> None:
        self.operations = 0
        self._update_us = options.update_us
        self._prices = no_prices(*environment.cell.capacity.shape)
        machines = environment.cell.machines
        self._worth = np.zeros(machines, np.int64)  # of a slot, as of the last round
        self._since_us = 0
        self._sum = np.zeros(machines, np.int64)  # of worth x microseconds, not averaged yet
        self._sum_us = 0
        self._mean = RunningMean(machines, options.forget_us)
        self._period = -1
        self._rounds = 0  # since the last update
        self._has_learnt = False

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """Ignore the tasks: the potentials know of them."""

    def learn_potentials(self, machine: Int64, sink: int, now_us: int) -> None:
        """Learn what slots are worth from now on (LearnsPotentials)."""
        self._count_until(now_us)
        np.clip(machine - sink, 0, MAX_PRICE, out=self._worth)
        self._rounds += 1
        self._has_learnt = True

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        """The prices of this period (SlotPriceEstimator.update)."""
        self.operations = 0
        period = now_us // self._update_us
        if period <= self._period or not self._has_learnt:
            return self._prices
        self._period = period
        self._count_until(now_us)
        self._average_sum()
        price = self._mean.rounded()
        current = self._prices.price
        renewal = hold_small_moves(current, price[:, None], int(price.max(initial=0)))
        if renewal.price is not current:
            self._prices = SlotPrices(renewal.price, self._prices.slots, self._prices.unit)
        self.operations = self._work()
        return self._prices

    def _work(self) -> int:
        rounds, self._rounds = self._rounds, 0
        per_update, per_round, update_machine, round_machine = POTENTIAL_WEIGHTS_PS
        machines = len(self._worth)
        work = (
            per_update + update_machine * machines + rounds * (per_round + round_machine * machines)
        )
        return work // PS_PER_OPERATION

    def _count_until(self, now_us: int) -> None:
        """Count what slots were worth up to now."""
        elapsed_us, self._since_us = now_us - self._since_us, now_us
        if self._sum_us + elapsed_us > LONGEST_US:
            self._average_sum()
        if elapsed_us > LONGEST_US:
            self._mean.add(self._worth << FRACTION_BITS, elapsed_us)
            return
        self._sum += self._worth * elapsed_us
        self._sum_us += elapsed_us

    def _average_sum(self) -> None:
        if self._sum_us:
            self._mean.add((self._sum << FRACTION_BITS) // self._sum_us, self._sum_us)
            self._sum[:] = self._sum_us = 0


POTENTIALS = SlotPriceSpec("potentials", PotentialOptions, PotentialPrices, needs_potentials=True)
