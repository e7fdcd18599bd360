"""CoCo: co-ordinated co-location, which keeps tasks apart that disturb each other."""

from __future__ import annotations

import numpy as np

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.cluster import ToEveryMachine
from schedulers.flow.policies.interface import (
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
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import refuse_constraints
from shared_state.tasks import Int64, TaskBatch

OMEGA = 1000  # the cost of a whole machine, in one resource
# What a running task (row) adds to the cost of a task that is placed beside it (column); both in
# the order of ANIMALS.
PENALTY = np.array(
    [
        [50, 50, 50, 50],
        [10, 50, 100, 200],
        [10, 50, 200, 1000],
        [10, 200, 1000, 200],
    ]
)
PENALTY.flags.writeable = False


class Coco(ToEveryMachine):
    """Co-ordinated co-location (the slides' co-location policy, which are without costs; these are
    from Firmament's public code, src/scheduling/flow/coco_cost_model.cc, CocoCostModel).

        T --request--> K_c --load of M + interference of c on M--> M --0--> S
        T --R * 1000 + request on the smallest machine + 2--> U_j --waiting--> S
        running T --0 - progress--> M                   under preemption

    K_c is an aggregator for each interference class c. Over all R resources,

        request       sum of 1000 * request // capacity of the largest machine
        load          sum of 1000 * (limit - free) // limit
        interference  sum of PENALTY[a, c] over the running tasks a of M, // tasks that M can hold

    all as the round found them: tasks of one round do not see each other. Only the scheduler's own
    tasks have classes that it knows; those of others count as load alone.

    The original has an aggregator for each job, for its request; here the room of machines counts
    requests. It divides the penalties among cores, of which a machine here has as many as tasks
    that it can hold, and scales them once more by e to the power of the machine's load, which
    would rest decisions on rounding. Its term of priority is the same for a place and for waiting,
    so it is left out. It has no costs under preemption.
    """

    observes_running = True

    def __init__(
        self,
        capacity: Int64,
        limit: Int64,
        classes: InterferenceClasses,
        wait_price: TimePrice,
    ) -> None:
        self.wait_price = wait_price
        self._classes = classes
        self._limit = np.maximum(limit, 1)
        machines = len(capacity)
        self._whole = OMEGA * capacity.shape[1]  # the cost of a machine that is full in everything
        self._largest = np.maximum(capacity.max(axis=0, initial=0), 1)
        self._smallest = np.maximum(capacity.min(axis=0, initial=1 << 40), 1)
        self._load = np.zeros(machines, np.int64)
        self._penalty = np.zeros((machines, len(ANIMALS)), np.int64)

    @property
    def aggregators(self) -> int:
        return len(ANIMALS)

    def aggregator_name(self, aggregator: int) -> str:
        return ANIMALS[aggregator]

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self._load = (OMEGA * np.maximum(self._limit - cell.free, 0) // self._limit).sum(axis=1)
        machine = cell.machine.astype(np.int64)
        self._penalty = self._classes.counts(cell.running, machine, len(self._limit)) @ PENALTY

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64:
        holds = np.maximum(load.total[machine], 1)
        cost: Int64 = self._load[machine] + self._penalty[machine, tail] // holds
        return cost

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        head = to_aggregator(self._classes.of(tasks))
        return TaskArcs(np.arange(len(tasks)), head, self._share(tasks, self._largest))

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        cost: Int64 = self._whole + self._share(tasks, self._smallest) + 2
        return cost

    def _share(self, tasks: TaskBatch, capacity: Int64) -> Int64:
        share: Int64 = (OMEGA * tasks.request // capacity).sum(axis=1)
        return share


class _Options(InterferenceOptions, FlowOptions):
    """What build() gets."""


def build(options: _Options, environment: SchedulerEnvironment) -> Coco:
    refuse_constraints(environment.catalog, "coco")
    return Coco(
        environment.cell.capacity,
        environment.cell.limit,
        InterferenceClasses(options.interference),
        wait_price(options, TimePrice(1, 100_000)),
    )


SPEC = PolicySpec("coco", InterferenceOptions, build, ranked=False)
