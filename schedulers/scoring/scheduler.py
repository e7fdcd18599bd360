"""The scheduler of the scoring kinds: filters, then scores, one task after the other.

Each task of a batch, in order, goes to the best machine in the view as the tasks before it left it.
The filters are those that the cell knows: the machine is up, the task fits, and its preference set
allows the machine if it is a constraint. What is best is the kind's: native/scoring_rules.hpp has
the rules with their sources, native/scorer.hpp what they share.

The kinds look at the whole view. They rank no partitions, whatever the strategy of their agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from operator import mul
from types import MappingProxyType

import numpy as np

from schedulers import _native
from schedulers.decision_clock import PS_PER_OPERATION
from schedulers.greedy.scheduler import NativePlanner, claimed_plan, plan_natively
from schedulers.interface import (
    NONE,
    ClaimedPlan,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.objective import native_catalog
from shared_state.tasks import Int32, Int64, TaskBatch
from shared_state.view import ClusterView


class ScoringKind(IntEnum):
    """Which scheduler's rule chooses a machine (values as in native/scorer.hpp)."""

    KUBERNETES = 0
    SWARMKIT = 1
    NOMAD = 2
    STRANDED = 3


# Counted work: picoseconds per plan, per task, per row held against the filters and per row scored.
# Every row scored is one that passed the filters, so a fit may put both into one weight. Predicted
# over true time of 36 cases of each kind (batches of 1 to 100 tasks, 2,000 to 50,000 machines, on a
# busy machine): medians 0.9 to 1.0; 10 % below 0.8, of nomad and stranded below 0.5 and 0.6.
# tests/benchmarks/calibrate_scoring_work.py makes the fits again.
WEIGHTS_PS: Mapping[ScoringKind, tuple[int, int, int, int]] = MappingProxyType(
    {
        ScoringKind.KUBERNETES: (6_200_000, 0, 4_600, 8_100),
        ScoringKind.SWARMKIT: (1_200_000, 520_000, 10_000, 0),
        ScoringKind.NOMAD: (9_700_000, 500_000, 19_000, 101_000),
        ScoringKind.STRANDED: (24_200_000, 0, 6_300, 0),
    }
)


@dataclass(frozen=True, slots=True)
class ScoringRule:
    """A kind's rule with its settings; each kind reads its own.

    Attributes:
        kind: The rule.
        percentage: Kubernetes: of the machines, how many that pass are enough; 0: adaptive.
        spread: Nomad: whether empty machines score highest, instead of full ones.
        enough: Stranded: how many machines that pass are enough.
        remembers: Whether the rule reads what became of the scheduler's own tasks.
    """

    kind: ScoringKind
    percentage: int = 0
    spread: bool = False
    enough: int = 1
    remembers: bool = False


class ScoringScheduler:
    """Places each task of a batch, in order, on the machine that its rule finds best.

    Tasks of a gang are placed together or not at all.

    Args:
        rule: The rule.
        environment: Where the scheduler lives.

    Attributes:
        looked_at: Rows that the last plan held against the filters.
    """

    def __init__(self, rule: ScoringRule, environment: SchedulerEnvironment) -> None:
        self._weights_ps = WEIGHTS_PS[rule.kind]
        self._table: TaskBatch | None = None
        self._planner: NativePlanner | None = None  # of the tasks of that table
        self.begin_work(0)
        self._scorer = _native.Scorer(
            native_catalog(environment.catalog, environment.cell),
            int(rule.kind),
            rule.percentage,
            rule.spread,
            rule.enough,
            rule.remembers,
        )

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        self.begin_work(len(tasks))
        machine, _ = self.search(tasks, view, context)
        return Plan.from_machines(tasks, machine, operations=self.operations)

    def plan_and_claim(
        self, table: TaskBatch, task: Int64, view: ClusterView, context: PlanContext
    ) -> ClaimedPlan:
        """Plan and claim in one native call (ClaimingScheduler)."""
        found, work = plan_natively(self.planner(table), task, view, context)
        _, self._tasks, self.looked_at, self._scored = work
        return claimed_plan(found, task)

    def planner(self, table: TaskBatch) -> NativePlanner:
        """What plans tasks of a table in native code. Shares the table's arrays."""
        if table is not self._table or self._planner is None:
            self._table = table
            self._planner = _native.ScoringPlanner(
                self._scorer,
                _native.TaskColumns(table.request, table.preference, table.gang),
                np.ascontiguousarray(table.job, np.int64),
                np.ascontiguousarray(table.task_class, np.int8),
                self._weights_ps,
            )
        assert self._planner is not None
        return self._planner

    @property
    def plans_natively(self) -> bool:
        """Whether planner() alone plans as plan_and_claim() does."""
        return type(self) is ScoringScheduler

    def search(
        self,
        tasks: TaskBatch,
        view: ClusterView,
        context: PlanContext,
        continues: bool = False,
        stop_at_wait: bool = False,
    ) -> tuple[Int32, int]:
        """Find a machine for each task, in order, in a view that is left unchanged.

        Args:
            tasks, view, context: As of a plan.
            continues: The call is about further tasks of a plan: random draws go on where those of
                the call before ended.
            stop_at_wait: Stop after the first task of no gang that finds none.

        Returns:
            int32[n], the machines, -1: none; and how many tasks it decided on.
        """
        machine, decided, filtered, scored = self._scorer.plan(
            view,
            tasks.task,
            tasks.job,
            tasks.request,
            tasks.preference,
            tasks.gang,
            tasks.task_class,
            context.stream,
            context.now_us,
            continues,
            stop_at_wait,
        )
        self.looked_at += filtered
        self._scored += scored
        return machine, decided

    def begin_work(self, tasks: int) -> None:
        """A plan about so many tasks begins: count its work."""
        self._tasks, self.looked_at, self._scored = tasks, 0, 0

    @property
    def work(self) -> tuple[int, int, int, int]:
        """What the last plan did: plans (1), tasks, rows held against the filters, rows scored."""
        return 1, self._tasks, self.looked_at, self._scored

    @property
    def operations(self) -> int:
        """The counted work of the last plan."""
        return int(sum(map(mul, self._weights_ps, self.work))) // PS_PER_OPERATION

    def observe(self, changes: TaskChanges) -> None:
        """Learn which tasks of its own run where, and which machines turned tasks away."""
        job = NONE if changes.adopted is None else changes.adopted.job
        self._scorer.observe(int(changes.kind), changes.at_us, changes.task, changes.machine, job)
