"""The fluid problem: how far placements can be improved in steady state, and what a slot is worth.

Tasks of each preference set arrive at a constant rate. A plan says which part of each set's tasks
runs where. It is feasible if, on every machine, arrivals per second times run time is at most its
number of slots (Little's law: that is the mean number of busy slots). The best feasible plan bounds
what any scheduler reaches in steady state, for its long-run averages are such a plan too. Waiting
is free here, so a scheduler that places tasks without delay need not reach the bound.

    minimise    sum of cost[s, p] * x[s, p]      (or maximise x on preferred machines)
    subject to  sum over places p of x[s, p] = rate[s]                      for every set s
                sum over sets s of x[s, m] * duration[s, m] <= slots[m]     for every machine m

Queueing theory knows it as the static planning problem of a processing network (Harrison, Brownian
models of open processing networks, Annals of Applied Probability 10(1), 2000), there with the load
as its objective.

A place p of a set is one of the machines that it lists (the preferred ones), one of the racks that
it lists, or elsewhere. The duration is shorter on a preferred machine. A task that is placed in a
rack may take any machine of the rack, and one placed elsewhere any machine: machines, racks and the
cell are nested, so one constraint for each machine, rack and the cell says the same as variables
for every machine would.

This is a bound for schedulers that neither know run times nor move running tasks, in cells with
slots. Where a set stands for tasks of one known run time, it is a bound for all schedulers that do
not move running tasks. Where machines have several resources, `slots` counts tasks of typical size,
and the result is an estimate.

The dual value of a machine's constraint is its slot price: by how much the objective would improve
for each slot more.

Where preferred machines cost the same, all other places cost the same and all sets have the same
durations, the problem is a maximum flow, and it is solved in integers (preferred_flow). Otherwise
it is a linear program for HiGHS (cheapest_plan). Both take machines of equal lists as one
(FluidClasses).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from flowsolver import FlowNetwork, Status, solve
from shared_state.tasks import Int32, Int64, PreferenceCatalog

Float64 = NDArray[np.float64]
UInt64 = NDArray[np.uint64]

US_PER_S = 1e6
_US = 1e-6  # in seconds
_TOLERANCE = 1e-9  # of the cell's slots


class FluidObjective(Enum):
    """What a plan is to be best at."""

    PREFERRED_SHARE = "preferred_share"  # the part of tasks with preferred machines that gets one
    COST = "cost"  # the mean placement cost of all tasks


@dataclass(frozen=True, slots=True, eq=False)
class FluidProblem:
    """Constant arrivals at a cell.

    Attributes:
        catalog: K preference sets.
        rack: int32[M], of each machine.
        slots: float64[M], tasks that each machine holds at once, 0 or more.
        rate_per_s: float64[K], arrivals of each set, 0 or more.
        preferred_us: float64[K], mean run time of a set's tasks on its preferred machines.
        elsewhere_us: float64[K], on any other machine; no less than preferred_us.
        held_slots: Slots that other tasks hold, on machines that are not known.
    """

    catalog: PreferenceCatalog
    rack: Int32
    slots: Float64
    rate_per_s: Float64
    preferred_us: Float64
    elsewhere_us: Float64
    held_slots: float = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError naming the field that is wrong."""
        machines, sets = len(self.rack), self.catalog.sets
        for name, column, length in (
            ("slots", self.slots, machines),
            ("rate_per_s", self.rate_per_s, sets),
            ("preferred_us", self.preferred_us, sets),
            ("elsewhere_us", self.elsewhere_us, sets),
        ):
            if column.shape != (length,):
                raise ValueError(f"{name}: expected {length} numbers, got shape {column.shape}")
            wrong = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
            if len(wrong):
                raise ValueError(
                    f"{name}[{wrong[0]}]: expected a finite number of at least 0, got "
                    f"{column[wrong[0]]}"
                )
        longer = np.flatnonzero(self.preferred_us > self.elsewhere_us)
        if len(longer):
            raise ValueError(
                f"preferred_us[{longer[0]}]: expected at most elsewhere_us, "
                f"{self.elsewhere_us[longer[0]]}, got {self.preferred_us[longer[0]]}"
            )
        if not (np.isfinite(self.held_slots) and self.held_slots >= 0):
            raise ValueError(
                f"held_slots: expected a finite number of at least 0, got {self.held_slots}"
            )

    @property
    def prefers(self) -> NDArray[np.bool_]:
        """Whether each set lists a machine: bool[K]."""
        lists: NDArray[np.bool_] = np.diff(self.catalog.machine_offsets) > 0
        return lists


@dataclass(frozen=True, slots=True, eq=False)
class FluidOptimum:
    """The best plan of a fluid problem.

    Attributes:
        preferred_share: Of the tasks whose sets list machines, the part on these; None if there are
            no such tasks. The bound, if that is the objective.
        cost_mean: The mean placement cost of all tasks, in the catalog's unit; None if no task
            arrives. The bound, if that is the objective; else None.
        busy_slots: Slots that tasks hold on average, those of other tasks included.
        preferred_per_s: float64[K], tasks of each set that get a preferred machine.
        slot_price: float64[M], the dual values: by how much the objective would improve with one
            more slot of each machine. In units of cost per slot and second, or in preferred tasks
            per slot and second.
    """

    preferred_share: float | None
    cost_mean: float | None
    busy_slots: float
    preferred_per_s: Float64
    slot_price: Float64


@dataclass(frozen=True, slots=True)
class NoSteadyState:
    """More work arrives than the cell can do, however it is placed.

    Attributes:
        highest_load: The largest factor by which all rates could be multiplied; at most 1.
    """

    highest_load: float


def solve_fluid(problem: FluidProblem, objective: FluidObjective) -> FluidOptimum | NoSteadyState:
    """Find the best plan of a fluid problem.

    Raises:
        ArithmeticError: The linear program could not be solved to the end.
    """
    by_cost = objective is FluidObjective.COST
    classes = compress(problem, by_cost)
    capacity = float(problem.slots.sum()) - problem.held_slots
    if classes.one_saving is not None:
        found = preferred_flow(classes, classes.one_saving)
        fits = found.busy_slots <= capacity + _TOLERANCE * float(problem.slots.sum())
        plan = found if fits else None
    else:
        plan = cheapest_plan(classes, capacity)
    if plan is None:
        return NoSteadyState(_highest_load(problem, capacity))
    preferred_per_s = classes.by_set(plan.preferred_per_s, problem.rate_per_s)
    asked = float(problem.rate_per_s[problem.prefers].sum())
    arriving = float(problem.rate_per_s.sum())
    return FluidOptimum(
        preferred_share=min(1.0, float(preferred_per_s.sum()) / asked) if asked else None,
        cost_mean=plan.cost_per_s / arriving if by_cost and arriving else None,
        busy_slots=plan.busy_slots + problem.held_slots,
        preferred_per_s=preferred_per_s,
        slot_price=classes.by_machine(plan),
    )


def _highest_load(problem: FluidProblem, capacity: float) -> float:
    classes = compress(problem, by_cost=False)
    is_flow = classes.one_saving is not None
    load = highest_flow_load(classes, capacity) if is_flow else highest_load(classes, capacity)
    return min(1.0, load)  # within the tolerances of the solvers


def random_share(problem: FluidProblem) -> float | None:
    """The part of tasks with preferred machines that would get one if each took a slot at random,
    any slot of the cell being as likely to be free: the share of the cell's slots that its set
    lists, on average over the tasks. None if there are no such tasks, or no slots."""
    catalog, slots = problem.catalog, problem.slots
    asked, total = float(problem.rate_per_s[problem.prefers].sum()), float(slots.sum())
    if not asked or not total:
        return None
    sums = np.concatenate([[0.0], np.cumsum(slots[catalog.machine])])
    listed = sums[catalog.machine_offsets[1:]] - sums[catalog.machine_offsets[:-1]]
    return float(problem.rate_per_s @ listed) / (asked * total)


NO_CLASS = NO_RACK = -1
_SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)  # of signatures


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The best plan of a small problem.

    Attributes:
        preferred_per_s: float64[S], tasks of each set that get a preferred machine.
        busy_slots: Slots that all tasks hold.
        cost_per_s: What all placements cost.
        class_price, rack_price: float64[C], float64[racks], the dual values.
        cell_price: Of the whole cell.
    """

    preferred_per_s: Float64
    busy_slots: float
    cost_per_s: float
    class_price: Float64
    rack_price: Float64
    cell_price: float


@dataclass(frozen=True, slots=True, eq=False)
class FluidClasses:
    """A fluid problem made small, with S sets and C classes of machines: machines that the same
    sets list at the same costs are one class, and sets with the same lists and run times are one
    set.

    Both are exact: a plan of the small problem can be spread over the machines of a class in
    proportion to their slots, and over the sets in proportion to their rates, and the other way
    round.

    An entry is a pair of a set and a class, or of a set and a rack, that it lists.

    Attributes:
        set_of: int64[K], the small set of each set; NO_CLASS where none arrive.
        class_of: int64[M], of each machine; NO_CLASS where no set lists it.
        rack: int32[M], of each machine; NO_RACK where racks do not matter.
        capacity: float64[C], slots of each class.
        rack_of: int32[C], the rack of each class; NO_RACK where racks do not matter.
        rack_capacity: float64[racks].
        entry_set, entry_class, entry_cost: int64[entries], the preferred machines, by set.
        rack_set, rack_entry, rack_cost: int64[rack entries], listed racks.
        rate_per_s, preferred_us, elsewhere_us, elsewhere_cost: float64[S].
        one_saving: By how much a preferred place is cheaper than any other, where that is the same
            for all and at least 0, and run times are the same for all: then the problem is a
            maximum flow.
    """

    set_of: Int64
    class_of: Int64
    rack: Int32
    capacity: Float64
    rack_of: Int32
    rack_capacity: Float64
    entry_set: Int64
    entry_class: Int64
    entry_cost: Int64
    rack_set: Int64
    rack_entry: Int64
    rack_cost: Int64
    rate_per_s: Float64
    preferred_us: Float64
    elsewhere_us: Float64
    elsewhere_cost: Float64
    one_saving: float | None

    def by_set(self, per_s: Float64, rate_per_s: Float64) -> Float64:
        """A rate of the small sets, float64[S], as that of the K sets."""
        found = np.zeros(len(self.set_of))
        known = self.set_of != NO_CLASS
        its = self.set_of[known]
        found[known] = per_s[its] * (rate_per_s[known] / self.rate_per_s[its])
        return found

    def by_machine(self, plan: Plan) -> Float64:
        """The price of a slot of each machine: that of its class, its rack and the cell."""
        price = np.full(len(self.class_of), plan.cell_price)
        listed = self.class_of != NO_CLASS
        price[listed] += plan.class_price[self.class_of[listed]]
        in_rack = self.rack != NO_RACK
        price[in_rack] += plan.rack_price[self.rack[in_rack]]
        return price


def compress(problem: FluidProblem, by_cost: bool) -> FluidClasses:
    """Make a problem small. by_cost: whether costs matter; if not, every preferred place saves 1
    and racks are ignored."""
    catalog, sets = problem.catalog, problem.catalog.sets
    arrives = problem.rate_per_s > 0
    listed = _Entries.of(catalog.machine_offsets, catalog.machine, catalog.machine_cost)
    listed = listed.where(arrives[listed.set])
    racks = _Entries.of(catalog.rack_offsets, catalog.rack, catalog.rack_cost)
    racks = racks.where(
        arrives[racks.set] & (racks.cost < catalog.elsewhere_cost[racks.set]) & by_cost
    )
    elsewhere_cost = catalog.elsewhere_cost
    if not by_cost:
        listed = replace(listed, cost=np.zeros(len(listed.cost), np.int64))
        elsewhere_cost = (np.diff(catalog.machine_offsets) > 0).astype(np.int64)
    rack = problem.rack if len(racks.set) else np.full(len(problem.rack), NO_RACK, np.int32)

    class_of, first = _classes(listed, rack)
    is_listed = class_of != NO_CLASS
    by_class = replace(listed, member=class_of[listed.member])
    by_class = by_class.where(_distinct(by_class.set, by_class.member))

    numbers = np.flatnonzero(arrives)
    signatures = [*by_class.by_set(sets), *racks.by_set(sets)]
    columns = [*signatures, elsewhere_cost, problem.preferred_us, problem.elsewhere_us]
    lead, small = _grouped([column[numbers] for column in columns])
    set_of = np.full(sets, NO_CLASS, np.int64)
    set_of[numbers] = small
    leads = numbers[lead]
    is_lead = np.zeros(sets, np.bool_)
    is_lead[leads] = True
    by_class, racks = by_class.where(is_lead[by_class.set]), racks.where(is_lead[racks.set])
    savings = elsewhere_cost[by_class.set] - by_class.cost
    asking = np.unique(by_class.set)
    run_times = problem.preferred_us[asking], problem.elsewhere_us[asking]
    is_flow = (
        not len(racks.set)
        and all(_alike(one) for one in (savings, *run_times))
        and (savings >= 0).all()
    )
    return FluidClasses(
        set_of=set_of,
        class_of=class_of,
        rack=rack,
        capacity=_sums(class_of[is_listed], problem.slots[is_listed], len(first)),
        rack_of=rack[first],
        rack_capacity=_sums(problem.rack, problem.slots, 0) if len(racks.set) else np.zeros(0),
        entry_set=set_of[by_class.set],
        entry_class=by_class.member,
        entry_cost=by_class.cost,
        rack_set=set_of[racks.set],
        rack_entry=racks.member,
        rack_cost=racks.cost,
        rate_per_s=_sums(small, problem.rate_per_s[numbers], len(leads)),
        preferred_us=problem.preferred_us[leads],
        elsewhere_us=problem.elsewhere_us[leads],
        elsewhere_cost=elsewhere_cost[leads].astype(np.float64),
        one_saving=float(savings[0] if len(savings) else 0) if is_flow else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """What sets list: set, member (a machine, class or rack) and cost, int64[n] each."""

    set: Int64
    member: Int64
    cost: Int64

    @staticmethod
    def of(offsets: Int64, member: Int32, cost: Int64) -> _Entries:
        """The rows of a compressed sparse list."""
        sets = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
        return _Entries(sets, member.astype(np.int64), cost)

    def where(self, kept: NDArray[np.bool_] | Int64) -> _Entries:
        """The entries of a mask, or of row numbers."""
        return _Entries(self.set[kept], self.member[kept], self.cost[kept])

    def by_set(self, sets: int) -> tuple[UInt64, UInt64]:
        """The signatures of the sets: equal where sets list the same at the same costs."""
        return _signatures(self.set, self.member, self.cost, sets)


def _classes(listed: _Entries, rack: Int32) -> tuple[Int64, Int64]:
    """Group the machines that are listed: the class of each machine int64[M], NO_CLASS where no set
    lists it, and the first machine of each class int64[C]."""
    machines = len(rack)
    signatures = _signatures(listed.member, listed.set, listed.cost, machines)
    numbers = np.flatnonzero(np.bincount(listed.member, minlength=machines) > 0)
    first, group = _grouped([rack[numbers], *(one[numbers] for one in signatures)])
    class_of = np.full(machines, NO_CLASS, np.int64)
    class_of[numbers] = group
    return class_of, numbers[first]


def _sums(group: Int64 | Int32, values: Float64, groups: int) -> Float64:
    """The sum of the values of each group."""
    sums: Float64 = np.bincount(group, values, minlength=groups).astype(np.float64)
    return sums


def _alike(values: NDArray[np.number[Any]]) -> bool:
    return not len(values) or bool((values == values[0]).all())


def _mixed(values: UInt64) -> UInt64:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014), elementwise."""
    mixed = values ^ (values >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _signatures(owner: Int64, member: Int64, cost: Int64, owners: int) -> tuple[UInt64, UInt64]:
    """Two 64-bit sums for each owner over its (member, cost) pairs: owners of equal pairs have
    equal sums, and the chance that others do is about 2^-128 for each two of them."""
    found = []
    for seed in _SEEDS:
        hashed = _mixed(_mixed(member.astype(np.uint64) + np.uint64(seed)) + cost.astype(np.uint64))
        sums = np.zeros(owners, np.uint64)
        np.add.at(sums, owner, hashed)
        found.append(sums)
    return found[0], found[1]


def _grouped(columns: list[NDArray[np.generic]]) -> tuple[Int64, Int64]:
    """Group rows that are equal in all columns: (the first row of each group, the group of each
    row). Groups are numbered by their first rows."""
    rows = len(columns[0])
    order = np.lexsort(columns)
    new = np.zeros(rows, np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    group = np.empty(rows, np.int64)
    group[order] = np.cumsum(new) - 1
    first = order[new]  # lexsort is stable: the smallest row of each group
    rank = np.empty(len(first), np.int64)
    by_row = np.argsort(first)
    rank[by_row] = np.arange(len(first))
    return first[by_row], rank[group]


def _distinct(left: Int64, right: Int64) -> Int64:
    """The rows of the first of each pair (left, right), ascending by pair."""
    width = int(right.max(initial=0)) + 1
    rows: Int64 = np.unique(left * width + right, return_index=True)[1]
    return rows


_PARTS = 1 << 20  # of a slot, one unit of flow
_LARGEST = 1 << 58  # of all supplies together
_MOST_STEPS = 100
_STEP = 1e-9  # of the load: a smaller one ends the search


@dataclass(frozen=True, slots=True, eq=False)
class _Flow:
    """A maximum flow.

    Attributes:
        preferred_per_s: float64[S], tasks of each set that get a preferred machine.
        is_cut: bool[C], whether a class is in the minimum cut: more slots there would help.
        is_placed: bool[S], whether a further task of each set would get a preferred machine, in
            place of none.
    """

    preferred_per_s: Float64
    is_cut: NDArray[np.bool_]
    is_placed: NDArray[np.bool_]


def preferred_flow(classes: FluidClasses, saving: float) -> Plan:
    """The plan with the most tasks on preferred machines, as a maximum flow.

    It applies where a preferred place saves the same for all tasks, and all sets have the same run
    times. Such a plan is then also the cheapest, and the one that holds the fewest slots, so the
    cell can do the work if it can with this plan.

    Flow goes from sets to the classes of machines that they list, in integer parts of a slot. A
    unit that finds no preferred machine costs 1, so the least cost is what the maximum flow leaves
    over, and the potentials are a minimum cut: a slot of a class is worth what it saves, or
    nothing.

    Args:
        classes: The small problem; all sets that list machines have the same run times.
        saving: By how much a preferred place is cheaper than any other.
    """
    flow = _solve(classes, classes.rate_per_s)
    preferred = flow.preferred_per_s
    length_s = float(classes.preferred_us[classes.entry_set].max(initial=0.0)) * _US
    all_elsewhere = float(classes.rate_per_s @ classes.elsewhere_cost)
    return Plan(
        preferred_per_s=preferred,
        busy_slots=_busy_slots(classes, classes.rate_per_s, preferred),
        cost_per_s=all_elsewhere - saving * float(preferred.sum()),
        class_price=np.where(flow.is_cut, saving / length_s if length_s else 0.0, 0.0),
        rack_price=np.zeros(0),
        cell_price=0.0,
    )


def highest_flow_load(classes: FluidClasses, capacity: float) -> float:
    """The largest factor by which all rates can be multiplied so that the cell can do the work.

    By Newton's method, from above: the slots that the best plan holds are a convex, piecewise
    linear function of the factor, and the minimum cut tells its slope.

    Args:
        classes: The small problem, as preferred_flow takes it, of more work than the cell can do.
        capacity: Slots of the whole cell that its tasks may hold.
    """
    load = 1.0
    for _ in range(_MOST_STEPS):
        rate = classes.rate_per_s * load
        flow = _solve(classes, rate)
        excess = _busy_slots(classes, rate, flow.preferred_per_s) - capacity
        further = np.where(flow.is_placed, classes.preferred_us, classes.elsewhere_us)
        step = excess / float(classes.rate_per_s @ further * _US)
        load = max(0.0, load - step)
        if step <= _STEP:
            break
    return load


def _solve(classes: FluidClasses, rate_per_s: Float64) -> _Flow:
    """The maximum flow for some rates of the sets."""
    sets, count = len(rate_per_s), len(classes.capacity)
    asks = np.zeros(sets, np.bool_)
    asks[classes.entry_set] = True
    work = np.where(asks, rate_per_s * classes.preferred_us * _US, 0.0)
    largest = float(work.sum()) + float(classes.capacity.sum()) + 1.0
    parts = float(min(_PARTS, _LARGEST / largest))
    supply = np.rint(work * parts).astype(np.int64)
    network = FlowNetwork()
    nodes = network.add_nodes(np.concatenate([supply, np.zeros(count + 1, np.int64)]))
    set_node, class_node, sink = nodes[:sets], nodes[sets : sets + count], nodes[-1]
    network.set_supply(nodes[-1:], -supply.sum(keepdims=True))
    from_set = classes.entry_set
    kept = network.add_arcs(
        set_node[from_set], class_node[classes.entry_class], supply[from_set], 0
    )
    room = np.rint(classes.capacity * parts).astype(np.int64)
    network.add_arcs(class_node, np.full(count, sink), room, 0)
    network.add_arcs(set_node, np.full(sets, sink), supply, 1)
    solution = solve(network)
    if solution.status is not Status.OPTIMAL:
        raise ArithmeticError(f"the fluid problem's maximum flow ended {solution.status.name}")
    units = np.bincount(from_set, solution.flow[kept], minlength=sets)
    share = np.divide(units, supply, out=np.ones(sets), where=supply > 0)
    above_sink = solution.potential - solution.potential[sink]
    return _Flow(
        preferred_per_s=np.where(asks, rate_per_s * np.minimum(share, 1.0), 0.0),
        is_cut=above_sink[class_node] > 0,
        is_placed=asks & (above_sink[set_node] <= 0),
    )


def _busy_slots(classes: FluidClasses, rate_per_s: Float64, preferred_per_s: Float64) -> float:
    left = rate_per_s - preferred_per_s
    return float(preferred_per_s @ classes.preferred_us + left @ classes.elsewhere_us) * _US


_INFEASIBLE = 2  # of scipy's statuses
MOST_COLUMNS = 2_000_000  # some minutes of work
# Beyond, interior points are faster (ParSync's cell with racks: 50 s instead of minutes). They are
# less robust where the cell can only just do the work.
_MOST_COLUMNS_OF_SIMPLEX = 300_000
_MOST_S = 60.0  # of one program


class _Program:
    """A small problem as a linear program, for HiGHS.

    Variables are the parts of each set's tasks that get each place, so the columns are its entries,
    its rack entries, and one for each set's tasks elsewhere. Rows with capacities are its classes,
    its racks, and the cell. Rows are divided by their capacities and costs by their mean, so that
    HiGHS's absolute tolerances mean the same for small and large cells.
    """

    def __init__(self, classes: FluidClasses, capacity: float) -> None:
        self.classes = classes
        sets = np.arange(len(classes.rate_per_s))
        in_class, rack_set, rack = classes.entry_class, classes.rack_set, classes.rack_entry
        self.set = np.concatenate([classes.entry_set, rack_set, sets])
        self.cost = np.concatenate(
            [classes.entry_cost, classes.rack_cost, classes.elsewhere_cost]
        ).astype(np.float64)
        rate = classes.rate_per_s[self.set]
        length_us = np.where(
            np.arange(len(self.set)) < len(in_class),
            classes.preferred_us[self.set],
            classes.elsewhere_us[self.set],
        )
        self.slots = rate * length_us * _US  # that a column of 1 holds
        room = np.concatenate([classes.capacity, classes.rack_capacity, [capacity]])
        self.room = np.where(room > 0, 1.0, 0.0)
        self.divisor = np.where(room > 0, room, 1.0)  # of each row, by which it was divided
        first_rack = len(classes.capacity)
        cell = first_rack + len(classes.rack_capacity)
        entries = np.arange(len(in_class))
        rack_entries = len(in_class) + np.arange(len(rack_set))
        nested = classes.rack_of[in_class] != NO_RACK
        every = np.arange(len(self.set))
        if len(every) > MOST_COLUMNS:
            raise ArithmeticError(f"the fluid problem has {len(every):,} variables: too many")
        self.row = np.concatenate(
            [
                in_class,
                first_rack + classes.rack_of[in_class[nested]].astype(np.int64),
                first_rack + rack,
                np.full(len(every), cell),
            ]
        )
        self.column = np.concatenate([entries, entries[nested], rack_entries, every])

    def solve(self, cost: Float64, extra: bool) -> Any:
        """Solve for these costs of the columns. With `extra`, a last column multiplies all
        rates."""
        columns = len(self.set) + extra
        limits = coo_array(
            (self.slots[self.column] / self.divisor[self.row], (self.row, self.column)),
            shape=(len(self.room), columns),
        ).tocsr()
        sets = len(self.classes.rate_per_s)
        value, row, column = np.ones(len(self.set)), self.set, np.arange(len(self.set))
        if extra:
            value = np.concatenate([value, np.full(sets, -1.0)])
            row = np.concatenate([row, np.arange(sets)])
            column = np.concatenate([column, np.full(sets, len(self.set))])
        placed = coo_array((value, (row, column)), shape=(sets, columns)).tocsr()
        return linprog(
            cost,
            A_ub=limits,
            b_ub=self.room,
            A_eq=placed,
            b_eq=np.zeros(sets) if extra else np.ones(sets),
            bounds=(0, None),
            method="highs-ds" if columns <= _MOST_COLUMNS_OF_SIMPLEX else "highs-ipm",
            options={"time_limit": _MOST_S},
        )


def cheapest_plan(classes: FluidClasses, capacity: float) -> Plan | None:
    """The plan of the lowest cost, None if the work is more than the cell can do; `capacity`: slots
    of the whole cell that its tasks may hold. ArithmeticError if HiGHS did not get to an optimum.
    """
    sets = len(classes.rate_per_s)
    if not sets:
        none = np.zeros(0)
        return Plan(none, 0.0, 0.0, none, np.zeros(len(classes.rack_capacity)), 0.0)
    program = _Program(classes, capacity)
    cost_per_s = program.cost * classes.rate_per_s[program.set]
    scale = float(np.abs(cost_per_s).mean()) or 1.0
    result = program.solve(cost_per_s / scale, extra=False)
    if result.status == _INFEASIBLE:
        return None
    _check(result)
    part = np.maximum(result.x, 0.0)
    its = classes.rate_per_s[classes.entry_set] * part[: len(classes.entry_set)]
    price = np.maximum(-result.ineqlin.marginals, 0.0) * scale / program.divisor
    count, racks = len(classes.capacity), len(classes.rack_capacity)
    return Plan(
        preferred_per_s=np.bincount(classes.entry_set, its, sets).astype(np.float64),
        busy_slots=float(program.slots @ part),
        cost_per_s=float(cost_per_s @ part),
        class_price=price[:count],
        rack_price=price[count : count + racks],
        cell_price=float(price[-1]),
    )


def highest_load(classes: FluidClasses, capacity: float) -> float:
    """As highest_flow_load, by a linear program; some work must arrive. ArithmeticError as
    cheapest_plan."""
    program = _Program(classes, capacity)
    cost = np.zeros(len(program.set) + 1)
    cost[-1] = -1.0
    result = program.solve(cost, extra=True)
    _check(result)
    return max(0.0, float(result.x[-1]))


def _check(result: Any) -> None:
    if result.status != 0:
        raise ArithmeticError(f"the fluid problem's linear program: {result.message}")
