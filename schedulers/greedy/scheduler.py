"""The scheduler of the greedy kinds: each task in turn goes to the machine that its kind prefers,
found by one native kernel (native/placer.hpp). It evicts nothing, and has no memory between plans.

PatientScheduler adds delay scheduling (Zaharia et al., EuroSys 2010) to every kind: a task waits
for a preferred machine until its patience ends, and then takes any. It keeps the tasks that it
leaves waiting. A waiting task holds up no other. Each plan looks once at the preferred machines of
each set that has waiting tasks, and searches a place only for tasks that may find one. Patience is
one time for all tasks, or what slot prices make worth it (PatienceByPrice).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from operator import mul
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from schedulers import _native
from schedulers.decision_clock import PS_PER_OPERATION, Modelled
from schedulers.interface import (
    NO_REASON,
    NONE,
    ChangeKind,
    ClaimedPlan,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.objective import native_catalog
from schedulers.prices import registry
from schedulers.prices.interface import SharesDemand, SlotPriceEstimator, SlotPrices
from schedulers.prices.registry import ONE_PERMILLE, PriceMode, PriceOptions, PriceScope
from shared_state.tasks import NO_GANG, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView

# ParSync section 4.3: 0.25 ms per task.
DECISION = Modelled(job_us=0, task_ns=250_000, partition_ns=0)
# Counted work: picoseconds per plan, per task, per row looked at and per row ranked. Predicted over
# true time of 432 cases (six kinds, three rankings, cells of 2,000 to 100,000 machines): median
# 1.0, 10 % below 0.8, 10 % above 1.3; of load spreading median 0.87, 10 % below 0.77.
# tests/benchmarks/calibrate_greedy_work.py makes the fit again.
WEIGHTS_PS = (8_000_000, 61_000, 1_030, 20_500)
# By slot prices, with the refresh of what is kept by price: of 360 cases (all kinds but weighted
# sampling) median 1.0, 10 % below 0.8, 10 % above 1.2. With the weights above it was 0.7.
PRICED_WEIGHTS_PS = (9_800_000, 149_000, 1_630, 18_900)
NONE_OF_THEM: NDArray[np.bool_] = np.zeros(0, np.bool_)
NO_STATS: Mapping[str, int] = MappingProxyType({})


class PlacementKind(IntEnum):
    """Which row of a pool a task gets (values as in native/placer.hpp)."""

    RANDOM = 0
    RANDOMIZED_FIRST_FIT = 1
    FIRST_FIT = 2
    BEST_FIT = 3
    LOAD_SPREADING = 4
    WEIGHTED_SAMPLING = 5


class GreedyOptions(PriceOptions):
    """Options of the greedy kinds. Strategy, retries and decision time are the agent's.

    Attributes:
        patience_s: How long after its submission a task waits for one of its preferred machines
            before it takes any other (delay scheduling: Zaharia et al., EuroSys 2010). A task
            whose preferences list no machine never waits so.
        patience_by_price: Whether a task waits so while slot prices make it worth it
            (PatienceByPrice), but no longer than patience_s if that is given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    patience_s: float = Field(0.0, ge=0, le=1e6)
    patience_by_price: bool = False

    @model_validator(mode="after")
    def _knows_prices(self) -> Self:
        if self.patience_by_price and self.prices == registry.NONE:
            raise ValueError("patience_by_price: needs prices")
        return self

    @property
    def patience_us(self) -> int:
        return round(self.patience_s * 1e6)


class Placement(NamedTuple):
    """What the kernel found for n tasks.

    Attributes:
        machine: int32[n], -1 where left waiting.
        searches: Searches for a task's place.
        looked_at: Rows looked at.
        ranked: Rows put in order, and moved in it.
        partitions_scanned: As in Plan.
    """

    machine: Int32
    searches: int
    looked_at: int
    ranked: int
    partitions_scanned: int


class GreedyScheduler:
    """Places each task of a batch, in order, on the machine that ranking and kind prefer in the
    view as the tasks before it left it.

    Tasks of a gang are placed together or not at all. `work` counts what the last plan did: plans
    (1), tasks, rows looked at, rows ranked.

    Attributes:
        shared_demand: What learns demand in it, if it shares demand (SharingScheduler).
        learning: The counted work of the last plan's prices, in units of PS_PER_OPERATION.
        priced_machines: For how many machines prices were made anew for the last plan.

    Args:
        kind: Which row of a pool a task gets.
        environment: Where the scheduler lives.
        preferred_first: Whether every task that can have a preferred machine gets one before the
            others are placed.
    """

    work: tuple[int, int, int, int]

    def __init__(
        self, kind: PlacementKind, environment: SchedulerEnvironment, preferred_first: bool = False
    ) -> None:
        self._kind = int(kind)
        self._preferred_first = preferred_first
        self._estimator: SlotPriceEstimator | None = None
        self._prices: SlotPrices | None = None  # of the last plan
        self._rows: Any = None  # the rows of its view by price (native/priced_rows.hpp)
        self.shared_demand: SharesDemand | None = None
        self.learning = self.priced_machines = 0
        self._catalog = native_catalog(environment.catalog, environment.cell)
        self._table: TaskBatch | None = None
        self._columns: _NativeTasks | None = None  # of that table
        self._planner: NativePlanner | None = None  # of its tasks
        self._weights_ps = WEIGHTS_PS

    def place_by(
        self,
        options: PriceOptions,
        estimator: SlotPriceEstimator,
        shared_demand: SharesDemand | None = None,
    ) -> None:
        """Place by the prices of an estimator from now on, as the options say. shared_demand: what
        learns demand in it, if it shares demand."""
        self._estimator = estimator
        self._rows = _native.PricedRows(
            self._catalog,
            options.price_mode is PriceMode.PAID,
            options.price_weight_permille,
            options.price_scope is PriceScope.ELSEWHERE,
        )
        self._weights_ps, self._planner = PRICED_WEIGHTS_PS, None
        self.shared_demand = shared_demand

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        prices = self.learn(tasks.task, tasks.preference, tasks.request, view, context)
        found = self.place(
            view, tasks.request, tasks.preference, tasks.gang, context, prices=prices
        )
        operations = self._operations(len(tasks), found.searches, found.looked_at, found.ranked)
        return Plan.from_machines(
            tasks,
            found.machine,
            operations=operations,
            partitions_scanned=found.partitions_scanned,
            priced_machines=self.priced_machines,
        )

    def plan_and_claim(
        self, table: TaskBatch, task: Int64, view: ClusterView, context: PlanContext
    ) -> ClaimedPlan:
        """Plan and claim in one native call (ClaimingScheduler)."""
        planner = self.planner(table)
        prices = None
        if self._estimator is not None:
            assert self._columns is not None, "planner() makes them"
            preference, request = self._columns.columns_of(task)
            prices = self.learn(task, preference, request, view, context)
        found, self.work = plan_natively(planner, task, view, context, prices)
        return claimed_plan(found, task, self.learning, self.priced_machines)

    def planner(self, table: TaskBatch) -> NativePlanner:
        """What plans tasks of a table in native code. Shares the table's arrays."""
        if table is not self._table or self._planner is None:
            self._table = table
            self._columns = _native.TaskColumns(table.request, table.preference, table.gang)
            self._planner = _native.GreedyPlanner(
                self._catalog, self._columns, self._kind, self._preferred_first, self._weights_ps
            )
        assert self._planner is not None
        return self._planner

    @property
    def plans_natively(self) -> bool:
        """Whether planner() alone plans as plan_and_claim() does: nothing is learned in Python."""
        return type(self) is GreedyScheduler and self._estimator is None

    def learn(
        self,
        task: Int64,
        preference: Int32,
        request: Int64,
        view: ClusterView,
        context: PlanContext,
    ) -> object:
        """Tell the estimator of prices which tasks a plan is about: ids int64[n], preferences
        int32[n], requests int64[n, R]. Returns the prices for the plan, as place() takes them; None
        if the scheduler knows none. ValueError if they are not as the estimator's contract says.
        """
        if self._estimator is None:
            return None
        if len(task):
            self._estimator.offered(task, preference, request)
        prices = self._estimator.update(view, context.now_us)
        self.learning = self._estimator.operations
        self.priced_machines = len(prices.price) if self.learning else 0
        if prices is not self._prices:
            self._rows.set_prices(prices.price, prices.slots, prices.unit)
            self._prices = prices
        return self._rows

    def known_prices(self, view: ClusterView) -> tuple[SlotPrices, int]:
        """The prices of the last plan, and the lowest of an open machine in the view. For a
        scheduler that places by prices."""
        assert self._prices is not None
        return self._prices, self._rows.lowest_price(view)

    def place(
        self,
        view: ClusterView,
        request: Int64,
        preference: Int32,
        gang: Int64,
        context: PlanContext,
        waits: NDArray[np.bool_] = NONE_OF_THEM,
        kept: NDArray[np.bool_] = NONE_OF_THEM,
        prices: object = None,
    ) -> Placement:
        """Find places for n tasks (request int64[n, R], preference int32[n], gang int64[n]) in a
        view, which is left unchanged.

        Args:
            waits: bool[n], which tasks take a preferred machine or none; empty: none of them.
            kept: bool[n], which tasks were offered before, so that the partitions that they look at
                do not count again; empty: none of them.
            prices: As learn() returns them.
        """
        return Placement(
            *_native.place(
                view,
                self._catalog,
                request,
                preference,
                gang,
                context.partition_order,
                int(context.ranking),
                int(context.quality),
                self._kind,
                context.stream,
                self._preferred_first,
                waits,
                kept,
                prices,
            )
        )

    def _operations(self, tasks: int, searches: int, looked_at: int, ranked: int) -> int:
        """The counted work of a plan, that for its prices with it; `work` shows it until the next,
        without prices."""
        self.work = (1, searches if self._preferred_first else tasks, looked_at, ranked)
        return int(sum(map(mul, self._weights_ps, self.work))) // PS_PER_OPERATION + self.learning

    def observe(self, changes: TaskChanges) -> None:
        """Ignore the changes: every plan starts from the view (Capability.IGNORES_CHANGES)."""


class _NativeTasks(Protocol):
    """The columns of all tasks that placing reads."""

    def columns_of(self, task: Int64) -> tuple[Int32, Int64]:
        """The preferences, int32[n], and requests, int64[n, R], of tasks int64[n]."""
        ...


class NativePlanner(Protocol):
    """A placer of this repository in native code (TaskPlanner in native/placer.hpp)."""

    def plan_and_claim(
        self,
        view: ClusterView,
        task: Int64,
        partition_order: Int32,
        ranking: int,
        quality: int,
        stream: int,
        now_us: int,
        prices: object,
    ) -> tuple[NativePlan, tuple[int, int, int, int]]:
        """Place tasks, int64[n], and take their claims out of the view. prices: of a greedy placer,
        as GreedyScheduler.learn() returns them; None: there are none.

        Returns:
            The plan, and its counted work as the scheduler's `work` shows it.
        """
        ...


# A plan as native code hands it over: task, machine, request, gang, synced_us, pending and
# pending_reason (None: none is), ticket, operations, partitions_scanned.
NativePlan = tuple[
    Int64, Int32, Int64, Int64, Int64, Int64 | None, NDArray[np.int8] | None, int, int, int
]


def plan_natively(
    planner: NativePlanner,
    task: Int64,
    view: ClusterView,
    context: PlanContext,
    prices: object = None,
) -> tuple[NativePlan, tuple[int, int, int, int]]:
    """NativePlanner.plan_and_claim() in this context."""
    return planner.plan_and_claim(
        view,
        task,
        context.partition_order,
        int(context.ranking),
        int(context.quality),
        context.stream,
        context.now_us,
        prices,
    )


def claimed_plan(
    found: NativePlan, task: Int64, learning: int = 0, priced_machines: int = 0
) -> ClaimedPlan:
    """The plan about tasks int64[n] that native code has made. learning: the counted work of its
    prices, in units of PS_PER_OPERATION; priced_machines: as in Plan."""
    placed, machine, request, gang, synced_us, pending, reason, ticket, operations, scanned = found
    plan = Plan(
        placed,
        machine,
        request,
        gang,
        NONE,
        NONE if pending is None else pending,
        NO_REASON if reason is None else reason,
        operations + learning,
        scanned,
        NO_STATS,
        None,
        priced_machines,
    )
    return ClaimedPlan(plan, synced_us, ticket, placed is task)


# Counted work: as WEIGHTS_PS, and per task left waiting. A plan handles the columns of
# waiting tasks besides. Predicted over true time of 48 cases of load spreading (up to 10,000 tasks
# that wait, 2,000 to 100,000 machines): median 1.0, 10 % below 0.8, 10 % above 1.1. The same
# benchmark makes the fit again.
PATIENT_WEIGHTS_PS = (43_600_000, 190_000, 4_100, 8_600, 19_500)
_PRICED_OUT = PendingReason.PRICED_OUT
_NO_TASKS: Int64 = np.zeros(0, np.int64)
LONGEST_US = 10**12  # of patience by price where waiting costs nothing, or no limit is given
_LARGEST = 2**62


class _Queue(NamedTuple):
    """n tasks in order of submission; of those submitted together in order of their first offer.

    Columns are as in TaskBatch.
    """

    task: Int64
    request: Int64
    preference: Int32
    gang: Int64
    submit_us: Int64

    @staticmethod
    def of(tasks: TaskBatch) -> _Queue:
        return _Queue(tasks.task, tasks.request, tasks.preference, tasks.gang, tasks.submit_us)

    def take(self, rows: NDArray[np.intp]) -> _Queue:
        columns: Any = (column[rows] for column in self)
        return _Queue(*columns)

    def join(self, other: _Queue) -> _Queue:
        """The tasks of both: not in order yet."""
        pairs: Any = zip(self, other, strict=True)
        return _Queue(*(np.concatenate(pair) for pair in pairs))


class PatientScheduler:
    """A greedy scheduler whose tasks wait for preferred machines.

    `work` counts what the last plan did: plans (1), searches for a place, rows looked at, rows
    ranked, and tasks left waiting.

    Args:
        greedy: Finds the places.
        environment: Where the scheduler lives.
        patience: How long after its submission a task waits for a preferred machine: so many
            microseconds, or while it is worth it.
    """

    work: tuple[int, int, int, int, int]

    def __init__(
        self,
        greedy: GreedyScheduler,
        environment: SchedulerEnvironment,
        patience: int | PatienceByPrice,
    ) -> None:
        self._greedy = greedy
        self._catalog = native_catalog(environment.catalog, environment.cell)
        self._patience = patience
        waits = PendingReason.WAITS_FOR_PREFERRED if isinstance(patience, int) else _PRICED_OUT
        self._reason = np.array([PendingReason.NO_ROOM, waits], np.int8)
        self._lists_machines = np.diff(environment.catalog.machine_offsets) > 0
        self._kept = _Queue.of(TaskBatch.empty(len(environment.cell.dimensions)))

    @property
    def shared_demand(self) -> SharesDemand | None:
        """What learns demand in it (SharingScheduler)."""
        return self._greedy.shared_demand

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        prices = self._greedy.learn(tasks.task, tasks.preference, tasks.request, view, context)
        if isinstance(self._patience, PatienceByPrice):
            self._patience.update(*self._greedy.known_prices(view))
        kept_may, looked_at = self._may_be_placed(view, context.now_us)
        queue, kept = self._queue(tasks)
        may = ~kept
        may[kept] = kept_may
        rows = np.flatnonzero(_with_gangs(may, queue.gang))
        waits = self._waits(queue, context.now_us)
        tried = queue if len(rows) == len(queue.task) else queue.take(rows)
        found = self._greedy.place(
            view,
            tried.request,
            tried.preference,
            tried.gang,
            context,
            waits[rows],
            kept[rows],
            prices,
        )
        placed = np.flatnonzero(found.machine >= 0)
        claimed = tried.take(placed)
        if len(placed):
            is_left = np.ones(len(queue.task), np.bool_)
            is_left[rows[placed]] = False
            left = np.flatnonzero(is_left)
            queue, waits, kept = queue.take(left), waits[left], kept[left]
        self._kept = queue
        new = np.flatnonzero(~kept)
        self.work = (1, found.searches, looked_at + found.looked_at, found.ranked, len(kept))
        return Plan(
            task=claimed.task,
            machine=found.machine[placed],
            request=claimed.request,
            gang=claimed.gang,
            evict=_NO_TASKS,
            pending=queue.task[new],
            pending_reason=self._reason[waits[new].astype(np.int8)],
            operations=sum(map(mul, PATIENT_WEIGHTS_PS, self.work)) // PS_PER_OPERATION
            + self._greedy.learning,
            partitions_scanned=found.partitions_scanned,
            retry_at_us=self._patience_ends_us(waits),
            priced_machines=self._greedy.priced_machines,
        )

    def observe(self, changes: TaskChanges) -> None:
        """Forget tasks that turn out to run. Claims that were rejected are offered again."""
        if changes.kind is ChangeKind.ADOPTED:
            self._kept = self._kept.take(np.flatnonzero(~np.isin(self._kept.task, changes.task)))

    def _queue(self, tasks: TaskBatch) -> tuple[_Queue, NDArray[np.bool_]]:
        """All tasks that wait, and which of them were kept: bool[n]."""
        if not len(tasks):
            return self._kept, np.ones(len(self._kept.task), np.bool_)
        queue = self._kept.join(_Queue.of(tasks))
        kept = np.arange(len(queue.task)) < len(self._kept.task)
        if (queue.submit_us[1:] >= queue.submit_us[:-1]).all():
            return queue, kept
        order = np.argsort(queue.submit_us, kind="stable")
        return queue.take(order), kept[order]

    def _waits(self, queue: _Queue, now_us: int) -> NDArray[np.bool_]:
        """bool[n]: which tasks wait for their preferred machines."""
        waits: NDArray[np.bool_] = queue.submit_us > now_us - self._patience_us(queue.preference)
        waits &= self._lists_machines[queue.preference]
        return waits

    def _may_be_placed(self, view: ClusterView, now_us: int) -> tuple[NDArray[np.bool_], int]:
        """bool[n], which of the kept tasks may find a place, and how many rows that took."""
        kept = self._kept
        may, looked_at = _native.may_be_placed(
            view, self._catalog, kept.request, kept.preference, self._waits(kept, now_us)
        )
        return may, looked_at

    def _patience_ends_us(self, waits: NDArray[np.bool_]) -> int | None:
        """When the patience of the first kept task that has some left (bool[n]) ends."""
        if not waits.any():
            return None
        if isinstance(self._patience, int):  # the first submitted is the first to give up
            return int(self._kept.submit_us[waits.argmax()]) + self._patience
        ends_us = self._kept.submit_us + self._patience_us(self._kept.preference)
        return int(ends_us[waits].min())

    def _patience_us(self, preference: Int32) -> int | Int64:
        """How long tasks of sets int32[n] wait after their submission: one time for all, or
        int64[n]."""
        return self._patience if isinstance(self._patience, int) else self._patience.of(preference)


def _with_gangs(marked: NDArray[np.bool_], gang: Int64) -> NDArray[np.bool_]:
    """The marks (bool[n]) with all tasks of the marked tasks' gangs."""
    gangs = gang[marked & (gang != NO_GANG)]
    return marked | np.isin(gang, gangs) if len(gangs) else marked


class PatienceByPrice:
    """How long tasks wait for their preferred machines while that is worth it.

    Waiting for a preferred machine saves what elsewhere costs more, each place with the price of
    its slot: the next slot elsewhere, and on the preferred machines the slot that ends the wait,
    the last free one. A task waits until the time that it has waited has cost as much as waiting
    saves. That is the rent-or-buy rule (Karlin et al., Algorithmica 1988): while prices stay as
    they are, waiting and then going elsewhere never costs more than twice what knowing the future
    would have saved.

    Args:
        options: How prices enter a decision.
        catalog: What placements and waiting cost.
        longest_us: No task waits longer; 0: no limit.
    """

    def __init__(
        self, options: PriceOptions, catalog: PreferenceCatalog, longest_us: int = 0
    ) -> None:
        self._catalog = catalog
        self._weight_permille = options.price_weight_permille
        self._listed_have_prices = options.price_scope is PriceScope.ALL
        self._longest_us = longest_us or LONGEST_US
        self._known: SlotPrices | None = None
        self._cheapest_listed = np.zeros(catalog.sets, np.int64)
        self._patience_us = np.zeros(catalog.sets, np.int64)

    def update(self, prices: SlotPrices, lowest_price: int) -> None:
        """Learn what slots cost now, and the lowest price of an open machine's next slot."""
        catalog = self._catalog
        if prices is not self._known:
            self._cheapest_listed = self._listed_costs(prices)
            self._known = prices
        elsewhere = catalog.elsewhere_cost + lowest_price * self._weight_permille // ONE_PERMILLE
        saved = np.maximum(elsewhere - self._cheapest_listed, 0)
        if catalog.wait_cost == 0:
            self._patience_us = np.where(saved > 0, self._longest_us, 0)
            return
        enough = (self._longest_us // catalog.wait_quantum_us + 1) * catalog.wait_cost
        quanta, rest = np.divmod(np.minimum(saved, min(enough, _LARGEST)), catalog.wait_cost)
        patience_us = quanta * catalog.wait_quantum_us
        patience_us += rest * catalog.wait_quantum_us // catalog.wait_cost
        self._patience_us = np.minimum(patience_us, self._longest_us)

    def of(self, preference: Int32) -> Int64:
        """How long tasks of sets preference, int32[n], wait after their submission: int64[n]."""
        waits: Int64 = self._patience_us[preference]
        return waits

    def _listed_costs(self, prices: SlotPrices) -> Int64:
        """The lowest cost and price of a listed machine's last free slot, by set: int64[K]. Of sets
        that list no machine the value means nothing."""
        catalog = self._catalog
        cost = catalog.machine_cost
        if self._listed_have_prices:
            last = np.clip(prices.slots - 1, 0, prices.price.shape[1] - 1)
            of_last = prices.price[np.arange(len(last)), last] * self._weight_permille
            cost = cost + (of_last // ONE_PERMILLE)[catalog.machine]
        lowest = np.zeros(catalog.sets, np.int64)
        lists = np.diff(catalog.machine_offsets) > 0
        if lists.any():
            lowest[lists] = np.minimum.reduceat(cost, catalog.machine_offsets[:-1][lists])
        return lowest
