"""A scheduler as its agent calls it: with every plan checked.

Whatever a scheduler does against its contract is a ContractBroken. It says which scheduler did it,
in which round, and which rule it broke.
"""

from __future__ import annotations

import traceback
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from schedulers import _native
from schedulers.capability import Capability
from schedulers.constraints import PlacementConstraints
from schedulers.greedy.scheduler import GreedyScheduler, NativePlanner
from schedulers.interface import (
    ClaimedPlan,
    ClaimingScheduler,
    ContractBroken,
    Plan,
    PlanContext,
    Scheduler,
    SchedulerEnvironment,
    SharingScheduler,
    TaskChanges,
    claims_in_one_step,
)
from schedulers.mapreduce.jobs import MapReduceJobs
from schedulers.plan_check import PlanCheck, shortened
from schedulers.prices.interface import DemandCounts, SharesDemand
from schedulers.registry import SchedulerSpec
from schedulers.unplaceable import (
    UnplaceableUnits,
    larger_than_every_machine,
    with_unplaceable,
)
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView


class Overdue(BaseException):
    """Raised by a runtime inside a call of a scheduler that takes too long.

    It is not an Exception, so that a scheduler that swallows its own does not swallow it.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"has not returned after {limit_s:g} s")


_PLAN_COLUMNS = ("task", "machine", "request", "gang", "evict", "pending", "pending_reason")
_BUFFERS = (np.ndarray, bytearray)  # (native code hands its results over as memoryviews)
_REST = ("machine", "evict", "pending", "pending_reason")  # beside the columns of the tasks


class CheckedScheduler:
    """Hands every call on to `scheduler` and checks what comes back. A Scheduler itself.

    Attributes:
        calling: The call that is under way, "" if none is; other threads and signal handlers may
            read it. Constructors are called here, too (build).
        greedy: The scheduler in native code, if it is a greedy placer of this repository that
            learns nothing in Python: its plans are those that plan_and_claim() makes. None for
            others.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        spec: SchedulerSpec,
        environment: SchedulerEnvironment,
        table: TaskBatch,
        unplaceable: UnplaceableUnits | None = None,
    ) -> None:
        """A scheduler with its checks.

        Args:
            scheduler: The scheduler.
            spec: Its kind, with the capabilities that its options give it.
            environment: What it was created with.
            table: Every task of the run (row = id).
            unplaceable: The units that it can never place; None: those larger than every machine.
        """
        self._scheduler = scheduler
        self._kind = spec.kind
        self._name = environment.name
        self._keeps_pending = Capability.KEEPS_PENDING in spec.capabilities
        self._unplaceable = (
            larger_than_every_machine(table, environment.cell)
            if unplaceable is None
            else unplaceable
        )
        constraints = PlacementConstraints.of(environment.catalog, environment.cell)
        self._check = PlanCheck(table, spec.capabilities, constraints)
        self._table = table
        self._claiming: ClaimingScheduler | None = None
        # their plans are checked one by one
        checked = {Capability.KEEPS_PENDING, Capability.EVICTS, Capability.PREEMPTS}
        if (
            claims_in_one_step(scheduler) and not checked & spec.capabilities
        ):  # (else the check follows each plan)
            _freeze(table)
            self._claiming = scheduler
        self.greedy: NativePlanner | None = None
        if isinstance(scheduler, GreedyScheduler) and scheduler is self._claiming:
            self.greedy = scheduler.planner(table) if scheduler.plans_natively else None
        self._round = 0
        self.calling = ""
        self._shared_demand: SharesDemand | None = None
        if Capability.SHARES_DEMAND in spec.capabilities:
            if isinstance(scheduler, SharingScheduler):
                self._shared_demand = scheduler.shared_demand
            if not isinstance(self._shared_demand, SharesDemand):
                raise self.broken(f"{Capability.SHARES_DEMAND}: expected shared_demand")

    @classmethod
    def build(
        cls,
        spec: SchedulerSpec,
        options: BaseModel,
        environment: SchedulerEnvironment,
        table: TaskBatch,
        unplaceable: UnplaceableUnits | None = None,
    ) -> CheckedScheduler:
        """A new scheduler. Raises ContractBroken if its constructor raises."""
        for shared in (environment.cell, environment.catalog, environment.mapreduce):
            if shared is not None:
                _freeze(shared)
        try:
            scheduler = spec.build(options, environment)
        except MemoryError:
            raise
        except Overdue as error:
            rule = f"build() {error}"
            raise ContractBroken(environment.name, spec.kind, 0, rule) from error
        except (Exception, SystemExit) as error:
            rule = _raised("build()", error)
            raise ContractBroken(environment.name, spec.kind, 0, rule) from error
        return cls(scheduler, spec.with_options(options), environment, table, unplaceable)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        """As Scheduler.plan, for tasks of any size.

        Units that can never be placed are not offered to the scheduler, and are pending in the plan
        as TOO_LARGE.

        Raises:
            ContractBroken: The scheduler broke a rule, or raised.
        """
        self._round += 1
        unplaceable = self._never_placed(tasks.task, context.now_us)
        if unplaceable is None:
            return self._plan(tasks, view, context)
        rest = tasks.take(~unplaceable)
        if len(rest) or self._keeps_pending:
            plan = self._plan(rest, view, context)
        else:
            nowhere = np.zeros(0, np.int32)
            plan = Plan.from_machines(rest, nowhere, operations=0, partitions_scanned=0)
        return with_unplaceable(plan, tasks.take(unplaceable))

    def plan_and_claim(self, task: Int64, view: ClusterView, context: PlanContext) -> ClaimedPlan:
        """Plan tasks (int64[n], ids) as plan() does, and take the claims out of the view.

        Raises:
            ContractBroken: The scheduler broke a rule, or raised.
        """
        if self._claiming is None or self._never_placed(task, context.now_us) is not None:
            tasks = self._table.take(task)
            return ClaimedPlan.claim(self.plan(tasks, view, context), tasks, view)
        in_flight = view.claims_in_flight
        self._round += 1
        self.calling = "plan_and_claim()"
        try:
            claimed = self._claiming.plan_and_claim(self._table, task, view, context)
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.calling = ""
        if claimed.__class__ is not ClaimedPlan:
            got = type(claimed).__name__
            raise self.broken(f"plan_and_claim(): expected a ClaimedPlan, got {got}")
        if view.claims_in_flight != in_flight + 1:
            raise self.broken("plan_and_claim(): expected the claims of one plan in the view")
        if claimed.plan.partitions_scanned is None:
            scanned = len(task) * len(context.partition_order)
            return claimed._replace(plan=claimed.plan.having_scanned(scanned))
        return claimed

    @property
    def unplaceable(self) -> UnplaceableUnits | None:
        """The units that it can never place, which are not offered to it; None: it can place
        all."""
        return self._unplaceable

    def _never_placed(self, task: Int64, now_us: int) -> NDArray[np.bool_] | None:
        """Which of these tasks can never be placed from now on, bool[n]; None if all can."""
        return None if self._unplaceable is None else self._unplaceable.among(task, now_us)

    def _plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        in_flight = view.claims_in_flight
        for column in (tasks.task, tasks.request, tasks.gang, context.partition_order):
            column.setflags(write=False)  # what the plan, or another round, rests on
        self.calling = "plan()"
        try:
            plan = self._scheduler.plan(tasks, view, context)
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.calling = ""
        if view.claims_in_flight != in_flight:
            raise self.broken("plan(): expected an unchanged view, got one with other claims")
        rule = self._check.broken_rule(plan, tasks, view, context.now_us, context.running)
        if rule is not None:
            raise self.broken(rule)
        if plan.partitions_scanned is None:
            scanned = len(tasks) * len(context.partition_order)
            plan = plan.having_scanned(scanned)
        return _read_only(plan, tasks)

    def tasks_considered(self, plan: Plan) -> int:
        """How many tasks the last plan, this one, was about: those offered to the scheduler and
        those that it had kept."""
        return self._check.tasks_considered(plan)

    def observe(self, changes: TaskChanges) -> None:
        """As Scheduler.observe. Raises ContractBroken."""
        self._check.observe(changes)
        for column in (changes.task, changes.machine, changes.allocation):
            column.setflags(write=False)
        self.calling = "observe()"
        try:
            self._scheduler.observe(changes)
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.calling = ""

    def take_new_demand(self) -> Int64:
        """As SharesDemand.take_new, of a scheduler that shares demand. Raises ContractBroken."""
        assert self._shared_demand is not None, "Capability.SHARES_DEMAND is declared"
        self.calling = "take_new()"
        try:
            task = self._shared_demand.take_new()
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.calling = ""
        is_column = task.__class__ is np.ndarray and task.dtype == np.int64 and task.ndim == 1
        if not is_column or _native.first_outside(task, 0, len(self._table) - 1) >= 0:
            raise self.broken("take_new(): expected the ids of tasks, int64[n]")
        return task

    def learn_demand(self, counts: DemandCounts, over_us: int) -> None:
        """As SharesDemand.learn_demand, of a scheduler that shares demand. Raises
        ContractBroken."""
        assert self._shared_demand is not None, "Capability.SHARES_DEMAND is declared"
        self.calling = "learn_demand()"
        try:
            self._shared_demand.learn_demand(counts, over_us)
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.calling = ""

    def overdue(self, limit_s: float) -> ContractBroken | None:
        """The error that says that the call under way takes longer than limit_s; None if there is
        none."""
        calling = self.calling
        return self.broken(f"{calling} {Overdue(limit_s)}") if calling else None

    def broken(self, rule: str) -> ContractBroken:
        """The error that says that this scheduler broke the rule, in this round."""
        return ContractBroken(self._name, self._kind, self._round, rule)

    def _failed(self, error: BaseException) -> None:
        """Raises ContractBroken if the error of the call under way is the scheduler's: not Ctrl-C,
        nor want of memory."""
        calling, self.calling = self.calling, ""
        if isinstance(error, Overdue):
            raise self.broken(f"{calling} {error}") from error
        if isinstance(error, Exception | SystemExit) and not isinstance(error, MemoryError):
            raise self.broken(_raised(calling, error)) from error


def _freeze(columns: CellSpec | PreferenceCatalog | TaskBatch | MapReduceJobs) -> None:
    """Make the arrays read-only, so that a scheduler which writes to what all share fails."""
    for field in fields(columns):
        column = getattr(columns, field.name)
        if isinstance(column, np.ndarray):
            column.setflags(write=False)


def _read_only(plan: Plan, tasks: TaskBatch) -> Plan:
    """The plan as it was checked, whatever its scheduler does with its arrays afterwards. Arrays
    become read-only; what lies in a buffer, which the scheduler may use again, is copied."""
    copies: dict[str, Any] = {}
    in_full = plan.task is tasks.task and plan.request is tasks.request and plan.gang is tasks.gang
    for name in _REST if in_full else _PLAN_COLUMNS:
        column = getattr(plan, name)
        if len(column):
            if isinstance(column.base, _BUFFERS):
                column = copies[name] = column.copy()
            column.setflags(write=False)
    return replace(plan, **copies) if copies else plan


def _raised(call: str, error: BaseException) -> str:
    """`plan() raised ValueError: no such machine (last_fit.py, line 31)`."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message cannot be shown)"
    description = f"{call} raised {type(error).__name__}" + (f": {message}" if message else "")
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is ours
    if not frames:
        return shortened(description)
    home = str(Path(frames[0].filename).parent)
    place = [frame for frame in frames if frame.filename.startswith(home)][-1]
    return f"{shortened(description)} ({Path(place.filename).name}, line {place.lineno})"
