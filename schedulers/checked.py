"""A scheduler as its agent calls it: with every plan checked.

Whatever a scheduler does against its contract is a ContractBroken. It says which scheduler did it,
in which round, and which rule it broke. The rules that a plan can break are those of PlanCheck.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from schedulers import _native
from schedulers.entry_points import raised, shortened
from schedulers.greedy.scheduler import GreedyScheduler, NativePlanner
from schedulers.interface import (
    NONE,
    Capability,
    ChangeKind,
    ClaimedPlan,
    ClaimingScheduler,
    ContractBroken,
    PendingReason,
    Plan,
    PlanContext,
    Scheduler,
    SchedulerEnvironment,
    SharingScheduler,
    TaskChanges,
    claims_in_one_step,
)
from schedulers.mapreduce.jobs import MapReduceJobs
from schedulers.objective import PlacementConstraints
from schedulers.prices.interface import DemandCounts, SharesDemand
from schedulers.registry import SchedulerSpec
from schedulers.running_tasks import OwnAllocations, RunningTasks
from schedulers.scoring.scheduler import ScoringScheduler
from schedulers.unplaceable import (
    UnplaceableUnits,
    with_unplaceable,
)
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG, CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.view import ClusterView


class Overdue(BaseException):
    """Raised by a runtime inside a call of a scheduler that takes too long.

    It is not an Exception, so that a scheduler that swallows its own does not swallow it.
    """

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"has not returned after {limit_s:g} s")


MOST = (1 << 63) - 1  # of a count
_INT64, _INT32, _INT8 = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.int8)
_PLAN_COLUMNS = ("task", "machine", "request", "gang", "evict", "pending", "pending_reason")
_BUFFERS = (np.ndarray, bytearray)  # (native code hands its results over as memoryviews)
_REST = ("machine", "evict", "pending", "pending_reason")  # beside the columns of the tasks


class CheckedScheduler:
    """Hands every call on to `scheduler` and checks what comes back. A Scheduler itself.

    Attributes:
        calling: The call that is under way, "" if none is; other threads and signal handlers may
            read it. Constructors are called here, too (build).
        planner: The scheduler in native code, if it is a placer of this repository whose plans need
            nothing of Python: its plans are those that plan_and_claim() makes. None for others.
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
            UnplaceableUnits.by_size(table, environment.cell)
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
        self.planner: NativePlanner | None = None
        if isinstance(scheduler, GreedyScheduler | ScoringScheduler) and self._claiming is not None:
            self.planner = scheduler.planner(table) if scheduler.plans_natively else None
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
            rule = _failure("build()", error, spec.build)
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
        claimed: ClaimedPlan = self._call(
            self._claiming, "plan_and_claim", self._table, task, view, context
        )
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
        plan: Plan = self._call(self._scheduler, "plan", tasks, view, context)
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
        self._call(self._scheduler, "observe", changes)

    def take_new_demand(self) -> Int64:
        """As SharesDemand.take_new, of a scheduler that shares demand. Raises ContractBroken."""
        assert self._shared_demand is not None, "Capability.SHARES_DEMAND is declared"
        task: Int64 = self._call(self._shared_demand, "take_new")
        is_column = task.__class__ is np.ndarray and task.dtype == np.int64 and task.ndim == 1
        if not is_column or _native.first_outside(task, 0, len(self._table) - 1) >= 0:
            raise self.broken("take_new(): expected the ids of tasks, int64[n]")
        return task

    def learn_demand(self, counts: DemandCounts, over_us: int) -> None:
        """As SharesDemand.learn_demand, of a scheduler that shares demand. Raises
        ContractBroken."""
        assert self._shared_demand is not None, "Capability.SHARES_DEMAND is declared"
        self._call(self._shared_demand, "learn_demand", counts, over_us)

    def overdue(self, limit_s: float) -> ContractBroken | None:
        """The error that says that the call under way takes longer than limit_s; None if there is
        none."""
        calling = self.calling
        return self.broken(f"{calling} {Overdue(limit_s)}") if calling else None

    def broken(self, rule: str) -> ContractBroken:
        """The error that says that this scheduler broke the rule, in this round."""
        return ContractBroken(self._name, self._kind, self._round, rule)

    def _call(self, target: object, method: str, *arguments: Any) -> Any:
        """Call a method of the scheduler, or of what learns demand in it. Raises ContractBroken for
        what it raises: not Ctrl-C, nor want of memory."""
        self.calling = call = f"{method}()"
        try:
            return getattr(target, method)(*arguments)
        except BaseException as error:
            self.calling = ""
            if isinstance(error, Overdue):
                raise self.broken(f"{call} {error}") from error
            if isinstance(error, Exception | SystemExit) and not isinstance(error, MemoryError):
                raise self.broken(_failure(call, error, self._scheduler)) from error
            raise
        finally:
            self.calling = ""


def _failure(call: str, error: BaseException, owner: object) -> str:
    """What a call of somebody's code raised. A message on bad input says what is wrong itself; the
    line that found it would send its reader to the wrong place."""
    if isinstance(error, AgoraError):
        return str(error)
    return f"{call} raised {raised(error, owner)}"


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


class PlanCheck:
    """Checks the plans of one scheduler, in the order in which they are made, against what it was
    told: which tasks wait, what they ask for, and what its view shows free.

    A conflict breaks no rule: a plan rests on a view that may be out of date. A scheduler that
    claims no more than its own view shows keeps the contract, whatever the cell answers.

    Args:
        table: Every task (row = id).
        capabilities: The capabilities of the kind.
        constraints: On which machines tasks may run; None: on all.
    """

    def __init__(
        self,
        table: TaskBatch,
        capabilities: Set[Capability],
        constraints: PlacementConstraints | None = None,
    ) -> None:
        self._table = table
        self._constraints = constraints
        self._dimensions = table.request.shape[1]
        self._has_gangs = bool((table.gang != NO_GANG).any())
        self._waiting = None  # native/contract.hpp
        if Capability.KEEPS_PENDING in capabilities:
            gang = table.gang if self._has_gangs else NONE
            self._waiting = _native.PendingTasks(len(table), gang)
        self._own = OwnAllocations() if Capability.EVICTS in capabilities else None

    def observe(self, changes: TaskChanges) -> None:
        """What the scheduler is told of its tasks."""
        if self._waiting is not None:
            if changes.kind is ChangeKind.REJECTED:
                self._waiting.rejected(changes.task)
            elif changes.kind is ChangeKind.ADOPTED:
                self._waiting.adopted(changes.task)
        if self._own is None:
            return
        if changes.kind in (ChangeKind.COMMITTED, ChangeKind.ADOPTED):
            self._own.add(changes.allocation, changes.task, changes.machine)
        elif changes.kind is not ChangeKind.REJECTED:
            self._own.remove(changes.allocation)

    def tasks_considered(self, plan: Plan) -> int:
        """How many tasks a round with this plan was about: those claimed, pending, or kept."""
        if self._waiting is None:
            return len(plan.task) + len(plan.pending)
        return len(plan.task) + int(self._waiting.count())

    def broken_rule(
        self,
        plan: object,
        tasks: TaskBatch,
        view: ClusterView,
        now_us: int,
        running: RunningTasks | None = None,
    ) -> str | None:
        """The first rule that the plan breaks, as `field: what is wrong`; None if it breaks none.

        Args:
            tasks, view, now_us, running: What plan() was given, the view as it was then.
        """
        if not isinstance(plan, Plan):
            return f"plan(): expected a Plan, got {type(plan).__name__}"
        if self._waiting is None and _places_all(plan, tasks, view):
            return self._constraint(plan)
        broken = _counts(plan) or _retry(plan, now_us) or self._columns(plan) or self._ids(plan)
        if broken is not None:
            return broken
        return (
            self._tasks(plan, tasks.task)
            or self._claims(plan)
            or self._reasons(plan)
            or self._gangs(plan)
            or self._evictions(plan, running)
            or self._oversubscribed(plan, view, running)
            or self._constraint(plan)
        )

    # --- columns ---------------------------------------------------------------------------------

    def _columns(self, plan: Plan) -> str | None:
        claims, waiting = _length(plan.task), _length(plan.pending)
        for name, column, dtype, shape in (
            ("task", plan.task, _INT64, (claims,)),
            ("machine", plan.machine, _INT32, (claims,)),
            ("request", plan.request, _INT64, (claims, self._dimensions)),
            ("gang", plan.gang, _INT64, (claims,)),
            ("evict", plan.evict, _INT64, (_length(plan.evict),)),
            ("pending", plan.pending, _INT64, (waiting,)),
            ("pending_reason", plan.pending_reason, _INT8, (waiting,)),
        ):
            if column.__class__ is np.ndarray and column.dtype is dtype and column.shape == shape:
                continue  # nearly always
            if not isinstance(column, np.ndarray):
                got = f"a {type(column).__name__}"
            elif column.dtype != dtype or column.shape != shape:
                got = f"{column.dtype}{list(column.shape)}"
            else:
                continue
            return f"plan.{name}: expected an array {dtype}{list(shape)}, got {got}"
        return None

    # --- tasks -----------------------------------------------------------------------------------

    def _ids(self, plan: Plan) -> str | None:
        for name, task in (("task", plan.task), ("pending", plan.pending)):
            unknown = _native.first_outside(task, 0, len(self._table) - 1)
            if unknown >= 0:
                return f"plan.{name}: there is no task {task[unknown]}"
        return None

    def _tasks(self, plan: Plan, offered: Int64) -> str | None:
        """Tasks that wait are claimed, every task of the call is claimed or pending, none twice."""
        waiting = self._waiting
        if waiting is not None:
            if waiting.take_round(offered, plan.task, plan.pending):
                return None
            return _wrong_tasks(plan, offered, waiting.all())
        named = np.concatenate([plan.task, plan.pending])
        if np.array_equal(np.sort(named), np.sort(offered)):
            return None
        return _wrong_tasks(plan, offered, offered)

    def _claims(self, plan: Plan) -> str | None:
        """Claims carry their tasks' requests and gangs."""
        request, gang = self._table.request, self._table.gang
        i, of_request = _native.first_differing_claim(
            plan.task, plan.request, plan.gang, request, gang, self._dimensions
        )
        if i < 0:
            return None
        task = plan.task[i]
        if of_request:
            return (
                f"plan.request: task {task} asks for {_amounts(plan.request[i])}, "
                f"its request is {_amounts(request[task])}"
            )
        return f"plan.gang: task {task} is of gang {gang[task]}, not {plan.gang[i]}"

    def _reasons(self, plan: Plan) -> str | None:
        """Each is a PendingReason, and none is TOO_LARGE: those tasks are not offered."""
        if not len(plan.pending):
            return None
        reason = plan.pending_reason
        if reason.min() < 0 or reason.max() >= len(PendingReason):
            i = int(np.flatnonzero((reason < 0) | (reason >= len(PendingReason)))[0])
            return (
                f"plan.pending_reason: task {plan.pending[i]}: expected a PendingReason, "
                f"0 to {len(PendingReason) - 1}, got {reason[i]}"
            )
        too_large = plan.pending[reason == PendingReason.TOO_LARGE]
        if not len(too_large):
            return None
        return (
            f"plan.pending_reason: task {too_large[0]} fits a machine of the cell, but is said to "
            "be TOO_LARGE (tasks that are too large are not offered)"
        )

    def _gangs(self, plan: Plan) -> str | None:
        """Check that of a gang all tasks that wait are claimed, or none."""
        if not self._has_gangs:
            return None
        claimed = plan.gang[plan.gang != NO_GANG]
        if not len(claimed):
            return None
        if self._waiting is not None:
            torn = claimed[self._waiting.in_gang(claimed) > 0]
        else:
            torn = claimed[np.isin(claimed, self._table.gang[plan.pending])]
        if not len(torn):
            return None
        count = int(np.count_nonzero(claimed == torn[0]))
        return (
            f"plan.task: gang {torn[0]}: {count} of its tasks are claimed, "
            "and others are left waiting"
        )

    # --- places ----------------------------------------------------------------------------------

    def _evictions(self, plan: Plan, running: RunningTasks | None) -> str | None:
        evict = plan.evict
        if not len(evict):
            return None
        if self._own is None and running is None:
            return "plan.evict: expected none, as its kind has no Capability.EVICTS"
        others = evict
        if self._own is not None:
            known, _, _ = self._own.find(evict)
            others = evict[~known]
            if len(others) and running is None:
                return f"plan.evict: allocation {others[0]} is not one of its running tasks"
        if len(others):
            assert running is not None, "else all are its own"
            unknown = others[~np.isin(others, running.allocation)]
            if len(unknown):
                return f"plan.evict: allocation {unknown[0]} is not in context.running"
            victims = running.take(np.isin(running.allocation, others))
            above_all = 1 << 31  # priorities are int32
            lowest = np.full(int(victims.machine.max()) + 1, above_all, np.int64)
            there = plan.machine < len(lowest)
            np.minimum.at(lowest, plan.machine[there], self._table.priority[plan.task[there]])
            claimed = lowest[victims.machine]
            forbidden = np.flatnonzero((claimed == above_all) | (claimed <= victims.priority))
            if len(forbidden):
                return (
                    f"plan.evict: allocation {victims.allocation[forbidden[0]]}: expected claims "
                    "on its machine, all of higher priority"
                )
        ascending = np.sort(evict)
        twice = ascending[1:][ascending[1:] == ascending[:-1]]
        return f"plan.evict: allocation {twice[0]} appears twice" if len(twice) else None

    def _oversubscribed(
        self, plan: Plan, view: ClusterView, running: RunningTasks | None
    ) -> str | None:
        """Claims fit what the view shows free, and what the evictions free."""
        freed = amount = None
        if len(plan.evict):
            parts = []
            if self._own is not None:
                parts.append(self._own.find(plan.evict)[1:])
            if running is not None:
                rows = np.isin(running.allocation, plan.evict)
                if self._own is not None:
                    rows &= ~self._own.find(running.allocation)[0]
                parts.append((running.task[rows], running.machine[rows]))
            freed = np.concatenate([machine for _, machine in parts])
            amount = self._table.request[np.concatenate([task for task, _ in parts])]
        i = view.first_oversubscribed(plan.machine, plan.request, freed, amount)
        if i < 0:
            return None
        machine = int(plan.machine[i])
        place = f"plan.machine: task {plan.task[i]}"
        if not 0 <= machine < len(view.up):
            return f"{place}: there is no machine {machine}, the cell has {len(view.up)}"
        if not view.up[machine]:
            return f"{place}: machine {machine} is down, or was never synced, in its view"
        before = plan.machine[:i] == machine
        free = view.free[machine] - plan.request[:i][before].sum(axis=0)
        if freed is not None and amount is not None:
            free = free + amount[freed == machine].sum(axis=0)
        suffix = ", less its earlier claims" if before.any() else ""
        return (
            f"{place} asks machine {machine} for {_amounts(plan.request[i])}, "
            f"its view shows {_amounts(free)} free{suffix}"
        )

    def _constraint(self, plan: Plan) -> str | None:
        """Check that tasks that may run on some machines only are placed on these."""
        if self._constraints is None:
            return None
        i = self._constraints.first_broken(self._table.preference[plan.task], plan.machine)
        if i < 0:
            return None
        return (
            f"plan.machine: task {plan.task[i]} may not run on machine {plan.machine[i]}: its "
            "preference set is a constraint, and does not list it"
        )


def _places_all(plan: Plan, tasks: TaskBatch, view: ClusterView) -> bool:
    """Whether the plan surely keeps the rules because it claims the very tasks of the call, where
    they fit, and says no more: what most rounds come to."""
    operations, scanned, pending = plan.operations, plan.partitions_scanned, plan.pending
    reason, evict = plan.pending_reason, plan.evict
    if not (
        plan.task is tasks.task
        and plan.request is tasks.request
        and plan.gang is tasks.gang
        and not plan.stats
        and plan.retry_at_us is None
        and operations.__class__ is int
        and 0 <= operations <= MOST
        and plan.priced_machines.__class__ is int
        and 0 <= plan.priced_machines <= MOST
        and (scanned is None or (scanned.__class__ is int and 0 <= scanned <= MOST))
        and pending.__class__ is reason.__class__ is evict.__class__ is np.ndarray
        and pending.dtype is evict.dtype is _INT64
        and reason.dtype is _INT8
        and pending.shape == reason.shape == evict.shape == (0,)
    ):
        return False
    try:
        return view.first_oversubscribed(plan.machine, plan.request) < 0
    except ValueError:  # not a column of machines
        return False


def _counts(plan: Plan) -> str | None:
    """Counted work is made of integers."""
    for name, count in (
        ("operations", plan.operations),
        ("partitions_scanned", plan.partitions_scanned),
        ("priced_machines", plan.priced_machines),
    ):
        if count is None and name == "partitions_scanned":
            continue
        if not _is_count(count):
            return f"plan.{name}: expected an integer from 0 to 2^63 - 1, got {_shown(count)}"
    if plan.stats.__class__ is dict and not plan.stats:
        return None
    if not isinstance(plan.stats, Mapping):
        return f"plan.stats: expected integers by name, got a {type(plan.stats).__name__}"
    for name, count in plan.stats.items():
        if name.__class__ is str and count.__class__ is int and 0 <= count <= MOST:
            continue  # nearly always
        if not isinstance(name, str):
            return f"plan.stats: expected integers by name, got a {type(name).__name__} as a name"
        if not _is_count(count):
            place = f"plan.stats[{_shown(name)}]"
            return f"{place}: expected an integer from 0 to 2^63 - 1, got {_shown(count)}"
    return None


def _retry(plan: Plan, now_us: int) -> str | None:
    """A time to call again is in the future."""
    at_us = plan.retry_at_us
    if at_us is None or (at_us.__class__ is int and now_us < at_us <= MOST):
        return None
    return f"plan.retry_at_us: expected None or an int above {now_us} (now_us), got {_shown(at_us)}"


def _is_count(value: Any) -> bool:
    return (value.__class__ is int or isinstance(value, np.integer)) and 0 <= int(value) <= MOST


def _shown(value: Any) -> str:
    """A value that a scheduler gave, whatever it is, in a few characters."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int) and plain.bit_length() > 128:
        return f"an integer of {plain.bit_length()} bits"
    if isinstance(plain, int | float | str):
        return shortened(repr(plain))
    return f"a {type(plain).__name__}"


def _length(column: object) -> int:
    return column.shape[0] if isinstance(column, np.ndarray) and column.ndim else 0


def _amounts(request: Int64) -> str:
    return f"({', '.join(map(str, request.tolist()))})"


def _wrong_tasks(plan: Plan, offered: Int64, waiting: Int64) -> str:
    """What is wrong with the tasks that a plan names.

    Args:
        waiting: Those that it may claim.
    """
    not_offered = plan.task[~np.isin(plan.task, waiting)]
    if len(not_offered):
        return f"plan.task: task {not_offered[0]} was not offered, or no longer waits"
    other = plan.pending[~np.isin(plan.pending, offered)]
    if len(other):
        return f"plan.pending: task {other[0]} was not offered in this round"
    both = np.intersect1d(plan.task, plan.pending)
    if len(both):
        return f"plan.pending: task {both[0]} is also claimed"
    for name, task in (("task", plan.task), ("pending", plan.pending)):
        ascending = np.sort(task)
        twice = ascending[1:][ascending[1:] == ascending[:-1]]
        if len(twice):
            return f"plan.{name}: task {twice[0]} appears twice"
    left = offered[~np.isin(offered, np.concatenate([plan.task, plan.pending]))]
    return f"plan.pending: task {left[0]} was offered, and is neither claimed nor pending"
