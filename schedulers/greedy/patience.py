"""Delay scheduling (Zaharia et al., EuroSys 2010) for every greedy kind: a task waits for a
preferred machine until its patience ends, and then takes any.

The scheduler keeps the tasks that it leaves waiting. A waiting task holds up no other. Each plan
looks once at the preferred machines of each set that has waiting tasks, and searches a place only
for tasks that may find one.

Patience is one time for all tasks, or what slot prices make worth it (PatienceByPrice).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul

import numpy as np
from numpy.typing import NDArray

from schedulers import _native
from schedulers.decision_time import PS_PER_OPERATION
from schedulers.greedy.scheduler import GreedyScheduler
from schedulers.interface import (
    ChangeKind,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.objective import native_catalog
from schedulers.prices.interface import SharesDemand, SlotPrices
from schedulers.prices.options import ONE_PERMILLE, PriceOptions, PriceScope
from shared_state.tasks import NO_GANG, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView

# Counted work: as scheduler.WEIGHTS_PS, and per task left waiting. A plan handles the columns of
# waiting tasks besides. Predicted over true time of 48 cases of load spreading (up to 10,000 tasks
# that wait, 2,000 to 100,000 machines): median 1.0, 10 % below 0.8, 10 % above 1.1. The same
# benchmark makes the fit again.
WEIGHTS_PS = (43_600_000, 190_000, 4_100, 8_600, 19_500)
_PRICED_OUT = PendingReason.PRICED_OUT
_NO_TASKS: Int64 = np.zeros(0, np.int64)
LONGEST_US = 10**12  # of patience by price where waiting costs nothing, or no limit is given
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class _Queue:
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

    def __len__(self) -> int:
        return len(self.task)

    def take(self, rows: NDArray[np.intp]) -> _Queue:
        return _Queue(
            self.task[rows],
            self.request[rows],
            self.preference[rows],
            self.gang[rows],
            self.submit_us[rows],
        )

    def join(self, other: _Queue) -> _Queue:
        """The tasks of both: not in order yet."""
        return _Queue(
            np.concatenate([self.task, other.task]),
            np.concatenate([self.request, other.request]),
            np.concatenate([self.preference, other.preference]),
            np.concatenate([self.gang, other.gang]),
            np.concatenate([self.submit_us, other.submit_us]),
        )


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
        tried = queue if len(rows) == len(queue) else queue.take(rows)
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
            is_left = np.ones(len(queue), np.bool_)
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
            operations=sum(map(mul, WEIGHTS_PS, self.work)) // PS_PER_OPERATION
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
            return self._kept, np.ones(len(self._kept), np.bool_)
        queue = self._kept.join(_Queue.of(tasks))
        kept = np.arange(len(queue)) < len(self._kept)
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
        """Learn what slots cost now.

        Args:
            prices: Of all machines.
            lowest_price: Of the next slot of any open machine.
        """
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
