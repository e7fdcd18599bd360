"""Quincy's policy: the placement costs of the workload as arcs."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from schedulers import _native
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
from schedulers.flow.policies.waiting_bounds import (
    FairShares,
    GangAdmission,
    WaitingBounds,
)
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import placement_cost, refuse_constraints
from shared_state.tasks import NOWHERE_ELSE, CellSpec, Int64, PreferenceCatalog, TaskBatch

# A task that costs as much placed as waiting for a preferred machine is placed.
TIE_TOWARDS_PLACING = 1
# By how much the cost of waiting for preferred machines rises while patience lasts, at most.
PATIENCE_STEPS = 64


def dearest_place(catalog: PreferenceCatalog) -> int:
    """The cost of the most expensive placement that a catalog allows."""
    elsewhere = catalog.elsewhere_cost[catalog.elsewhere_cost != NOWHERE_ELSE]
    return max(
        int(cost.max(initial=0)) for cost in (catalog.machine_cost, catalog.rack_cost, elsewhere)
    )


def dearest_machine(catalog: PreferenceCatalog) -> Int64:
    """int64[K]: the highest machine cost of each set, 0 of a set without machines."""
    dearest = np.zeros(catalog.sets, np.int64)
    owner = np.repeat(np.arange(catalog.sets), np.diff(catalog.machine_offsets))
    np.maximum.at(dearest, owner, catalog.machine_cost)
    return dearest


def patience_price(catalog: PreferenceCatalog, patience_us: int) -> TimePrice:
    """The price of waiting for preferred machines: it distinguishes tasks by their age, and yet
    waiting stays cheaper than any place that costs more than the dearest of those machines."""
    dearest = dearest_machine(catalog)
    has_machines = np.diff(catalog.machine_offsets) > 0
    of_rack = np.repeat(np.arange(catalog.sets), np.diff(catalog.rack_offsets))
    dearer_by = np.concatenate(
        [
            (catalog.elsewhere_cost - dearest)[has_machines],
            (catalog.rack_cost - dearest[of_rack])[has_machines[of_rack]],
        ]
    )
    smallest = int(dearer_by[dearer_by > 0].min(initial=PATIENCE_STEPS + 2))
    steps = min(PATIENCE_STEPS, smallest - 2)
    if steps <= 0 or patience_us == 0:
        return Policy.patience_price
    return TimePrice(1, -(-patience_us // steps))


class Quincy(Policy):
    """Quincy's locality-oriented policy: the workload's placement costs as arcs (Quincy section
    4.2; Firmament section 3.3, Fig. 6b).

        T --machine_cost--> M --0--> S                  preferred machines
        T --rack_cost--> R --0--> M                     preferred racks
        T --elsewhere_cost--> X --0--> R                anywhere, if the set is no constraint
        T --0--> K --machine_cost, rack_cost--> M, R    large sets, instead of the first two
        T --dearest machine + 1--> W --waiting--> S     while the patience of T lasts
        T --unscheduled + place_margin (+ dearest)--> U_j --waiting--> S
        running T --(cost here - stay_margin - progress)--> M     under preemption

    A set K of more than `max_task_arcs` machines and racks is an equivalence class: its tasks share
    one aggregator with the set's arcs, and the cost of every path is the same as with arcs of their
    own. The flow takes the cheapest path, so catalogs should list machines at no more than their
    rack, and racks at no more than elsewhere.

    may_wait: a task waits while that costs less than its best free place. Without it, waiting costs
    as much more as the dearest place of the catalog, so tasks wait only where there is no room; who
    waits then is decided as before, because all cost the same more.

    Quincy's own costs have no margins, and a second of progress counts 1 where a second of waiting
    counts 0.5 and a GB from another rack 2.
    """

    def __init__(
        self,
        cell: CellSpec,
        catalog: PreferenceCatalog,
        options: QuincyOptions,
        wait_price: TimePrice,
    ) -> None:
        patience_us = round(options.patience_s * 1e6)
        self.wait_price = wait_price
        self.patience_us = patience_us
        self.patience_price = patience_price(catalog, patience_us)
        # In whole seconds: a finer quantum would change the arcs of all running tasks every round.
        progress = options.progress_cost
        if progress is None:
            progress = catalog.wait_cost * 1_000_000 // catalog.wait_quantum_us
        self.progress_price = TimePrice(progress, 1_000_000)
        self._stay_margin = options.stay_margin
        self._catalog = catalog
        self._waiting_surcharge = options.place_margin
        if not options.may_wait:
            self._waiting_surcharge += dearest_place(catalog)
        self._rack = cell.rack
        self._racks = int(self._rack[-1]) + 1 if cell.machines else 0
        self._rack_begin = np.searchsorted(self._rack, np.arange(self._racks + 1))
        self._patient_wait_cost = dearest_machine(catalog) + TIE_TOWARDS_PLACING
        self._patient_wait_cost[np.diff(catalog.machine_offsets) == 0] = -1
        self._machine = catalog.machine.astype(np.int64)  # as heads of arcs
        self._listed_rack = to_aggregator(1 + catalog.rack.astype(np.int64))
        listed = np.diff(catalog.machine_offsets) + np.diff(catalog.rack_offsets)
        self._shared = listed > options.max_task_arcs
        self._some_share = bool(self._shared.any())
        self._some_constrain = bool(np.any(catalog.elsewhere_cost == NOWHERE_ELSE))

    # Aggregators: X is 0, rack r is 1 + r, preference set k is 1 + racks + k.

    @property
    def aggregators(self) -> int:
        return 1 + self._racks + self._catalog.sets

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        is_set = aggregator > self._racks
        is_rack = (aggregator > 0) & ~is_set
        parts = [self._rack_to_machines(aggregator[is_rack] - 1)]
        if np.any(aggregator == 0):
            parts.append(self._cluster_to_racks())
        if np.any(is_set):
            parts.append(self._set_to_preferred(aggregator[is_set] - 1 - self._racks))
        return join_arcs(parts)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        row = np.arange(len(tasks))
        preference = tasks.preference.astype(np.int64)
        parts = [self._to_cluster(row, preference)]
        own_row, own_set = row, preference
        if self._some_share:
            shares = self._shared[preference]
            own_row, own_set = row[~shares], preference[~shares]
        parts.append(self._to_preferred_machines(own_row, own_set))
        if len(self._catalog.rack):
            parts.append(self._to_preferred_racks(own_row, own_set))
        if len(own_row) < len(row):
            aggregator = to_aggregator(1 + self._racks + preference[shares])
            parts.append(TaskArcs(row[shares], aggregator, np.zeros(len(aggregator), np.int64)))
        return join_arcs(parts)

    def is_elsewhere(self, aggregator: Int64) -> NDArray[np.bool_]:
        return aggregator <= self._racks

    @property
    def one_arc_elsewhere(self) -> bool:
        return True

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return self._catalog.elsewhere_cost[tasks.preference]

    def largest_cost(self) -> int:
        waiting = int(self._catalog.unscheduled_cost.max(initial=0)) + self._waiting_surcharge
        return max(waiting, dearest_place(self._catalog))

    def patient_wait_cost(self, tasks: TaskBatch) -> Int64:
        """Just above the dearest machine of the task's set: a task is placed on any of them, and
        nowhere else while other places cost more."""
        return self._patient_wait_cost[tasks.preference]

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return self._catalog.unscheduled_cost[tasks.preference] + self._waiting_surcharge

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        """Below the cost of placing it there anew by a margin, so that ties never move a task."""
        cost, _ = placement_cost(
            self._catalog, self._rack, tasks.preference, machine.astype(np.int32)
        )
        return cost - self._stay_margin

    def aggregator_name(self, aggregator: int) -> str:
        if aggregator == 0:
            return "X"
        if aggregator <= self._racks:
            return f"R{aggregator - 1}"
        return f"K{aggregator - 1 - self._racks}"

    def _to_cluster(self, row: Int64, preference: Int64) -> TaskArcs:
        cost = self._catalog.elsewhere_cost[preference]
        if self._some_constrain:
            free = cost != NOWHERE_ELSE
            row, cost = row[free], cost[free]
        return TaskArcs(row, np.full(len(row), to_aggregator(0)), cost)

    def _to_preferred_machines(self, row: Int64, preference: Int64) -> TaskArcs:
        catalog = self._catalog
        return TaskArcs(
            *_native.listed_arcs(
                catalog.machine_offsets, self._machine, catalog.machine_cost, row, preference
            )
        )

    def _to_preferred_racks(self, row: Int64, preference: Int64) -> TaskArcs:
        catalog = self._catalog
        return TaskArcs(
            *_native.listed_arcs(
                catalog.rack_offsets, self._listed_rack, catalog.rack_cost, row, preference
            )
        )

    def _set_to_preferred(self, preference: Int64) -> AggregatorArcs:
        tail = 1 + self._racks + preference
        machines = self._to_preferred_machines(tail, preference)
        arcs = join_arcs([machines, self._to_preferred_racks(tail, preference)])
        return AggregatorArcs(arcs.row, arcs.head, arcs.cost, np.zeros(len(arcs.row), np.int64))

    def _cluster_to_racks(self) -> AggregatorArcs:
        zero = np.zeros(self._racks, np.int64)
        return AggregatorArcs(zero, to_aggregator(1 + np.arange(self._racks)), zero, zero)

    def _rack_to_machines(self, rack: Int64) -> AggregatorArcs:
        begin, size = self._rack_begin[rack], self._rack_begin[rack + 1] - self._rack_begin[rack]
        machine: Int64 = _native.ranges(begin, size)
        zero = np.zeros(len(machine), np.int64)
        return AggregatorArcs(1 + np.repeat(rack, size), machine, zero, zero)


class BoundedQuincy(Quincy):
    """Quincy's policy with bounds of the flow through each U_j (waiting_bounds.py):

    T --unscheduled + place_margin (+ dearest)--> U_j --waiting, lower..upper tasks--> S
    """

    observes_running = True

    def __init__(
        self,
        cell: CellSpec,
        catalog: PreferenceCatalog,
        options: QuincyOptions,
        wait_price: TimePrice,
        bounds: WaitingBounds,
    ) -> None:
        super().__init__(cell, catalog, options, wait_price)
        self._bounds = bounds

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self._bounds.observe(cell)

    def waiting_group(self, tasks: TaskBatch) -> Int64:
        return self._bounds.waiting_group(tasks)

    def waiting_bounds(
        self, group: Int64, tasks: Int64, load: MachineLoad
    ) -> tuple[Int64, Int64] | None:
        return self._bounds.waiting_bounds(group, tasks, load)


class QuincyOptions(BaseModel):
    """Options of Quincy's policy."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    may_wait: bool = Field(
        False,
        description="a task waits while that costs less than its best free place (as in Quincy);"
        " off: it is placed whenever there is room",
    )
    max_task_arcs: int = Field(
        16,
        ge=0,
        description="tasks that prefer the same set of more machines and racks than this share an"
        " aggregator",
    )
    patience_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        allow_inf_nan=False,
        description="for how many seconds after its submission a task may wait at no cost for one"
        " of its preferred machines; afterwards waiting costs as if this were 0",
    )
    place_margin: int = Field(
        1,
        ge=0,
        le=1_000_000_000,
        description="how much more waiting costs than the workload says: from 1 on, a task is"
        " placed if that costs as much as waiting (Quincy: 0)",
    )
    stay_margin: int = Field(
        1,
        ge=0,
        le=1_000_000_000,
        description="preemption: how much less it costs a running task to stay than to be placed on"
        " its machine anew: from 1 on, ties never move a task (Quincy: 0)",
    )
    progress_cost: int | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description="preemption: what each second that a task has run takes off the cost of staying"
        " (Quincy: twice the price of a second of waiting); unset: the workload's price of a second"
        " of waiting",
    )
    fair_share: bool = Field(
        False,
        description="jobs get fair shares of the places: it is bounded how many tasks of each job"
        " wait; not together with patience_s or priority_preemption, nor for workloads with"
        " constraints",
    )
    admit_gangs: bool = Field(
        False,
        description="gangs are admitted while there is room for all their tasks; those of admitted"
        " gangs are placed, those of others wait; not together with fair_share, patience_s or"
        " priority_preemption, nor for workloads with constraints",
    )

    @model_validator(mode="after")
    def _bounds_stand_alone(self) -> Self:
        """Refuse beside bounds of who waits whatever else decides that."""
        if not (self.fair_share or self.admit_gangs):
            return self
        if self.fair_share and self.admit_gangs:
            raise ValueError("fair_share and admit_gangs both bound who waits; set one of them")
        name = "fair_share" if self.fair_share else "admit_gangs"
        if self.patience_s:
            raise ValueError(f"{name} bounds who waits; it cannot stand beside patience_s")
        # an option of flow schedulers, in one table with these; it places tasks that have to wait
        if getattr(self, "priority_preemption", False):
            raise ValueError(f"{name} bounds who waits; it cannot stand beside priority_preemption")
        return self


class _Options(QuincyOptions, FlowOptions):
    """What build() gets."""


def build(options: _Options, environment: SchedulerEnvironment) -> Quincy:
    cell, catalog = environment.cell, environment.catalog
    price = wait_price(options, TimePrice(catalog.wait_cost, catalog.wait_quantum_us))
    if not (options.fair_share or options.admit_gangs):
        return Quincy(cell, catalog, options, price)
    return BoundedQuincy(cell, catalog, options, price, _bounds(options, catalog))


def _bounds(options: _Options, catalog: PreferenceCatalog) -> WaitingBounds:
    """What bounds the flow through unscheduled aggregators.

    Raises:
        AgoraError: There may be no flow that keeps the bounds.
    """
    name = "fair_share" if options.fair_share else "admit_gangs"
    refuse_constraints(catalog, f"quincy with {name}")
    return FairShares(options.preemption) if options.fair_share else GangAdmission()


SPEC = PolicySpec("quincy", QuincyOptions, build)
