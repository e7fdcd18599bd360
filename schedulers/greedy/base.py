"""What the greedy kinds share: one native kernel (native/placer.hpp), no memory between plans, no
evictions."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from operator import mul

from pydantic import BaseModel, ConfigDict

from schedulers import _native
from schedulers.decision_time import PS_PER_OPERATION, Modelled
from schedulers.interface import Plan, PlanContext, SchedulerEnvironment, TaskChanges
from schedulers.objective import native_catalog
from shared_state.tasks import Int32, TaskBatch
from shared_state.view import ClusterView

# ParSync section 4.3: 0.25 ms per task.
DECISION = Modelled(job_us=0, task_ns=250_000, partition_ns=0)
# Counted work: picoseconds per plan, per task, per row looked at and per row ranked. Predicted over
# true time of 432 cases (six kinds, three rankings, cells of 2,000 to 100,000 machines): median
# 1.0, 10 % below 0.8, 10 % above 1.2. tests/benchmarks/calibrate_greedy_work.py makes the fit
# again.
WEIGHTS_PS = (9_700_000, 67_000, 970, 19_000)


class PlacementKind(IntEnum):
    """Which row of a pool a task gets (values as in native/placer.hpp)."""

    RANDOM = 0
    RANDOMIZED_FIRST_FIT = 1
    FIRST_FIT = 2
    BEST_FIT = 3
    LOAD_SPREADING = 4
    WEIGHTED_SAMPLING = 5


class NoOptions(BaseModel):
    """The greedy kinds have no options of their own: strategy, retries and decision time are the
    agent's."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class GreedyScheduler:
    """Places each task of a batch, in order, on the machine that ranking and kind prefer in the
    view as the tasks before it left it.

    Tasks of a gang are placed together or not at all. `work` counts what the last plan did: plans
    (1), tasks, rows looked at, rows ranked.
    """

    work: tuple[int, int, int, int]

    def __init__(self, kind: PlacementKind, environment: SchedulerEnvironment) -> None:
        self._kind = int(kind)
        self._catalog = native_catalog(environment.catalog, environment.cell)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        machine: Int32
        machine, looked_at, ranked, partitions_scanned = _native.place(
            view,
            self._catalog,
            tasks.request,
            tasks.preference,
            tasks.gang,
            context.partition_order,
            int(context.ranking),
            self._kind,
            context.stream,
        )
        self.work = (1, len(tasks), looked_at, ranked)
        counted = sum(map(mul, WEIGHTS_PS, self.work)) // PS_PER_OPERATION
        return Plan.from_machines(
            tasks, machine, operations=counted, partitions_scanned=partitions_scanned
        )

    def observe(self, changes: TaskChanges) -> None:
        """Ignore the changes: every plan starts from the view."""


def builder(kind: PlacementKind) -> Callable[[NoOptions, SchedulerEnvironment], GreedyScheduler]:
    """What a greedy kind's SchedulerSpec builds its schedulers with."""

    def build(options: NoOptions, environment: SchedulerEnvironment) -> GreedyScheduler:
        return GreedyScheduler(kind, environment)

    return build
