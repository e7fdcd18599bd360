"""Whare-Map: places cost what run times there, beside such tasks, were like before."""

from __future__ import annotations

import numpy as np

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.cluster import ToEveryMachine
from schedulers.flow.policies.interface import (
    AggregatorArcs,
    MachineLoad,
    ObservedCell,
    TaskArcs,
    TimePrice,
    to_aggregator,
)
from schedulers.flow.policies.interference import (
    ANIMALS,
    InterferenceClasses,
    InterferenceOptions,
)
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import SchedulerEnvironment, TaskChanges
from schedulers.objective import refuse_constraints
from schedulers.run_times import MeanRunTimes, RunningSince, grown
from shared_state.tasks import Int64, TaskBatch

BEST = 100  # the cost of a place where tasks of a class run as fast as anywhere
LOWER_BOUND = 48  # of costs of waiting, as in the original
CLASSES = len(ANIMALS)
MOST_ALIKE = (1 << 15) - 1  # tasks of one class on a machine are told apart up to here


class WhareMap(ToEveryMachine):
    """Whare-Map: learn on which types of machines, and beside which tasks, those of a class run
    fast (Mars and Tang, ISCA 2013; Firmament's public code,
    src/scheduling/flow/wharemap_cost_model.cc, WhareMapCostModel).

        T --0--> K_c --min(psi(c, k), xi(c, L, k))--> M --0--> S     M of type k, with tasks L
        T --49 + average of c--> U_j --waiting--> S
        running T --0 - progress--> M                                under preemption

    K_c is an aggregator for each interference class c. A type k is all machines of equal capacity.
    L says how many of the scheduler's tasks of each class run on the machine. With the mean run
    times of tasks of class c that have ended,

        psi(c, k)     100 * (mean on machines of type k) // (mean on the best type); 0 if unknown
        xi(c, L, k)   100 * (mean on them beside tasks L) // (best mean of any k and L); if known
        average of c  100 * (mean of all) // (mean on the best type); 100 if unknown

    so that places which are not known yet are tried first. Waiting costs more from round to round,
    until even the worst place is worth it.

    The original counts picoseconds per instruction in place of run times, has a class for each
    command line, and takes the larger of average and waiting time where these are added here. It
    has nodes for types of machines, and arcs with xi to the best few machines; here the cheaper of
    both ways into a machine is its one arc, to all machines. Its best mean is the worst, by a
    comparison that is the wrong way round; here it is the best.
    """

    observes_running = True

    def __init__(
        self, capacity: Int64, classes: InterferenceClasses, wait_price: TimePrice
    ) -> None:
        self.wait_price = wait_price
        self._classes = classes
        self._running = RunningSince()
        _, machine_type = np.unique(capacity, axis=0, return_inverse=True)
        self._type = machine_type.reshape(-1).astype(np.int64)
        self._types = int(self._type.max(initial=-1)) + 1
        # As of the last round: the tasks that ran, ascending, and L of each machine
        self._ran = np.zeros(0, np.int64)
        self._beside = np.zeros((len(capacity), CLASSES), np.int64)
        self._company = _Companies()
        self._company_of = np.zeros(len(capacity), np.int64)  # number of each machine's L
        self._class = np.zeros(0, np.int64)  # by task id
        self._of_all, self._psi, self._xi = MeanRunTimes(), MeanRunTimes(), MeanRunTimes()
        self._best_psi_us = np.ones(CLASSES, np.int64)  # 1 where no mean is known
        self._best_xi_us = np.ones(CLASSES, np.int64)
        self._open = np.zeros(CLASSES, bool)
        self._learnt = np.zeros(CLASSES, bool)  # since the last round

    @property
    def aggregators(self) -> int:
        return CLASSES

    def aggregator_name(self, aggregator: int) -> str:
        return ANIMALS[aggregator]

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        machine = cell.machine.astype(np.int64)
        self._ran = np.sort(cell.running.task)
        self._beside = self._classes.counts(cell.running, machine, len(self._type))
        self._company_of = self._company.numbers(self._beside)

    def learn(self, changes: TaskChanges) -> None:
        """Take in run times. The company of a task is what ran beside it in the last round before
        it ended."""
        ended = self._running.ended(changes)
        asked = ended.task < len(self._class)
        task, machine, ran_us = ended.task[asked], ended.machine[asked], ended.ran_us[asked]
        if len(task) == 0:
            return
        of_class = self._class[task]
        beside = self._beside[machine]
        counted = np.flatnonzero(np.isin(task, self._ran))  # the task among those on its machine
        beside[counted, of_class[counted]] -= 1
        company = self._company.numbers(beside)
        self._of_all.add(of_class, ran_us)
        self._psi.add(self._psi_key(of_class, machine), ran_us)
        self._xi.add(self._xi_key(of_class, company, machine), ran_us)
        for one in np.unique(of_class).tolist():
            self._best_psi_us[one] = self._psi.least_mean_us(one, CLASSES)
            self._best_xi_us[one] = self._xi.least_mean_us(one, CLASSES)
        self._learnt[of_class] = True

    def stale_aggregators(self) -> Int64:
        stale = np.flatnonzero(self._learnt & self._open)
        self._learnt[:] = False
        return stale

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        self._open[aggregator] = True
        return super().aggregator_arcs(aggregator, load)

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64:
        psi, _ = self._psi.mean_us(self._psi_key(tail, machine))
        xi, known = self._xi.mean_us(self._xi_key(tail, self._company_of[machine], machine))
        cost = BEST * psi // self._best_psi_us[tail]
        beside = BEST * xi // self._best_xi_us[tail]
        return np.where(known, np.minimum(cost, beside), cost)

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        of_class = self._classes.of(tasks)
        self._class = grown(self._class, tasks.task, 0)
        self._class[tasks.task] = of_class
        zero = np.zeros(len(tasks), np.int64)
        return TaskArcs(np.arange(len(tasks)), to_aggregator(of_class), zero)

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        of_class = self._classes.of(tasks)
        mean_us, known = self._of_all.mean_us(of_class)
        average = np.where(known, BEST * mean_us // self._best_psi_us[of_class], BEST)
        return LOWER_BOUND + 1 + average

    def _psi_key(self, of_class: Int64, machine: Int64) -> Int64:
        key: Int64 = of_class + CLASSES * self._type[machine]
        return key

    def _xi_key(self, of_class: Int64, company: Int64, machine: Int64) -> Int64:
        key: Int64 = of_class + CLASSES * (self._type[machine] + self._types * company)
        return key


class _Options(InterferenceOptions, FlowOptions):
    """What build() gets."""


class _Companies:
    """Numbers, from 0 on, for how many tasks of each class run on a machine."""

    def __init__(self) -> None:
        self._number: dict[int, int] = {}

    def numbers(self, beside: Int64) -> Int64:
        """The number of each of these (int64[n, 4]): int64[n]."""
        shift = MOST_ALIKE.bit_length() * np.arange(CLASSES)
        code = (np.minimum(beside, MOST_ALIKE) << shift).sum(axis=1)
        known, place = np.unique(code, return_inverse=True)
        number = [self._number.setdefault(one, len(self._number)) for one in known.tolist()]
        return np.array(number, np.int64)[place]


def build(options: _Options, environment: SchedulerEnvironment) -> WhareMap:
    refuse_constraints(environment.catalog, "whare_map")
    return WhareMap(
        environment.cell.capacity,
        InterferenceClasses(options.interference),
        wait_price(options, TimePrice(1, 100_000)),
    )


SPEC = PolicySpec("whare_map", InterferenceOptions, build, ranked=False)
