"""A fluid problem made small: machines that the same sets list at the same costs are one class, and
sets with the same lists and run times are one set.

Both are exact: a plan of the small problem can be spread over the machines of a class in proportion
to their slots, and over the sets in proportion to their rates, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int32, Int64, PreferenceCatalog

Float64 = NDArray[np.float64]
UInt64 = NDArray[np.uint64]

NO_CLASS = -1
NO_RACK = -1
_SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)


class Problem(Protocol):
    """What a fluid problem has (fluid.FluidProblem)."""

    @property
    def catalog(self) -> PreferenceCatalog: ...
    @property
    def rack(self) -> Int32: ...
    @property
    def slots(self) -> Float64: ...
    @property
    def rate_per_s(self) -> Float64: ...
    @property
    def preferred_us(self) -> Float64: ...
    @property
    def elsewhere_us(self) -> Float64: ...


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
    """The small problem, with S sets and C classes of machines.

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
            for all, and run times are the same for all: then the problem is a maximum flow.
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


def compress(problem: Problem, by_cost: bool) -> FluidClasses:
    """Make a problem small.

    Args:
        problem: A fluid problem.
        by_cost: Whether costs matter. If not, every preferred place saves 1 and racks are ignored.
    """
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
    is_flow = not len(racks.set) and all(_alike(one) for one in (savings, *run_times))
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
