"""A check of schedulers, check_conformance(SPEC): does a kind keep the contract of interface.py?

The function drives two equal schedulers of the kind through rounds on small cells with rivals,
rejections, ended tasks, failures, gangs, preferences, tasks too large for any machine and
partitions that were never synced. Every plan is checked as in a run (schedulers.checked). Besides,
both schedulers must make the same decisions. One only plans, and must leave every machine of the
view unchanged. The other plans and claims, in one step if its class offers that
(interface.ClaimingScheduler).

The numbers of Plan.partitions_scanned that a kind states are held against the rule that Plan gives
(broken_scan_rule). Every number is checked where the rule leaves one answer: single tasks on cells
with full, small and large partitions, and batches of equal tasks on a cell of slots. A kind that
states no number has nothing to check, because the platform counts for it.

The checks of sync policies, slot prices, metrics and workloads use NonConformance, require(),
located() and move_global_draws(), too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from schedulers.checked import CheckedScheduler
from schedulers.interface import (
    Capability,
    ChangeKind,
    ClaimedPlan,
    ContractBroken,
    PartitionRanking,
    PendingReason,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from schedulers.registry import SchedulerSpec
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from shared_state.random import Stream, stream_key
from shared_state.tasks import NO_GANG, CellSpec, Int32, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CommitMode, CommitResult, PartitionDelta, Transaction
from shared_state.view import ClusterView

MACHINES = 30
RACK = 5
PARTITIONS = 3
ROUNDS = 14
OURS, RIVAL = 0, 1
ROUND_US = 100_000
# Of the cells that scans are counted on.
SCAN_PARTITIONS = 4
MACHINES_EACH = 3
SCAN_MACHINES = SCAN_PARTITIONS * MACHINES_EACH
ROOM = 5  # of an empty machine; 1 in the cell of slots
SINGLE_TASKS = 24
BATCHES = 6
BATCH = 7  # tasks: not a multiple of the number of partitions


class NonConformance(AssertionError):
    """Something does not keep the contract of its kind. The message says which promise was broken,
    and where."""


def require(condition: bool, promise: str) -> None:
    """Raise NonConformance, which names the promise, unless the condition holds."""
    if not condition:
        raise NonConformance(promise)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add where it was to the message of a promise that is broken in the block."""
    try:
        yield
    except ContractBroken as broken:
        raise NonConformance(f"{broken.rule} ({where})") from broken
    except (AgoraError, NonConformance) as broken:
        raise NonConformance(f"{broken} ({where})") from broken


def move_global_draws() -> None:
    """Move numpy's global state of draws, on which no part of a run may rest."""
    np.random.seed(np.random.randint(1 << 30))  # noqa: NPY002


def check_conformance(
    spec: SchedulerSpec, options: Mapping[str, Any] | None = None, seed: int = 1
) -> None:
    """Check that schedulers of a kind keep the contract; takes about a second.

    Args:
        spec: The kind.
        options: Its options, as a run would give them.
        seed: Of the worlds that are made.

    Raises:
        NonConformance: The contract is broken. The message says how.
    """
    parsed = spec.parse_options(options or {})
    capabilities = spec.with_options(parsed).capabilities
    for dimensions in (1, 2):
        for ranking in PartitionRanking:
            world = _World.make(dimensions, seed)
            try:
                twins = (world.scheduler(spec, parsed), world.scheduler(spec, parsed))
            except ContractBroken as broken:
                raise NonConformance(broken.rule) from broken
            _Trial(world, twins, capabilities, ranking).run()
    broken_rule = broken_scan_rule(spec, parsed, seed)
    if broken_rule is not None:
        raise NonConformance(broken_rule)


@dataclass
class _World:
    """The true cell, the view under test and the tasks there will be: rows of `tasks`, offered in
    order."""

    spec: CellSpec
    partitioning: Partitioning
    environment: SchedulerEnvironment
    cell: Cell
    view: ClusterView
    tasks: TaskBatch
    stream: Stream

    @staticmethod
    def make(dimensions: int, seed: int) -> _World:
        stream = Stream(stream_key(seed, "conformance", dimensions))
        capacity = stream.integers(MACHINES * dimensions, 5).reshape(MACHINES, dimensions) + 1
        spec = CellSpec(
            ("cpu", "memory")[:dimensions],
            capacity,
            np.arange(MACHINES, dtype=np.int32) // RACK,
            stream.integers(MACHINES, 1000),
            np.full(dimensions, 1000, np.int64),
        )
        partitioning = Partitioning.by_topology(spec, PARTITIONS)
        catalog = _catalog()
        environment = SchedulerEnvironment("conformance", spec, partitioning.offsets, catalog)
        n = ROUNDS * 30
        request = stream.integers(n * dimensions, 3).reshape(n, dimensions) + (dimensions == 1)
        request[~request.any(axis=1), 0] = 1
        request[stream.integers(n, 40) == 0] = 100
        triple = np.arange(n) // 3
        gang = np.where(stream.integers(n // 3, 4)[triple] == 0, triple, NO_GANG)
        tasks = TaskBatch(
            np.arange(n, dtype=np.int64),
            np.arange(n, dtype=np.int64) // 10,
            request,
            stream.integers(n, 3).astype(np.int32),
            np.arange(n, dtype=np.int64) // 30 * ROUND_US,
            stream.integers(n, catalog.sets).astype(np.int32),
            gang,
            np.zeros(n, np.int8),
        )
        view = ClusterView(spec, partitioning)
        cell = Cell(spec, partitioning)
        return _World(spec, partitioning, environment, cell, view, tasks, stream)

    def scheduler(self, spec: SchedulerSpec, options: BaseModel) -> CheckedScheduler:
        """A scheduler of the kind whose plans are checked as in a run."""
        return CheckedScheduler.build(spec, options, self.environment, self.tasks)


def _catalog() -> PreferenceCatalog:
    """A catalog: no preferences; three machines and their racks; every third machine at two costs;
    two racks."""
    third = range(0, MACHINES, 3)
    return PreferenceCatalog(
        np.array([0, 0, 3, 3 + len(third), 3 + len(third)], np.int64),
        np.array([3, 7, 22, *third], np.int32),
        np.array([1, 1, 1, *(m % 2 for m in third)], np.int64),
        np.array([0, 0, 3, 3, 5], np.int64),
        np.array([0, 1, 4, 2, 3], np.int32),
        np.array([5, 5, 6, 2, 2], np.int64),
        np.array([0, 10, 10, 10], np.int64),
        np.array([0, 50, 50, 50], np.int64),
    )


@dataclass
class _Trial:
    """Rounds of one scheduler and its twin, which sees the same and must do the same."""

    world: _World
    twins: tuple[CheckedScheduler, CheckedScheduler]
    capabilities: frozenset[Capability]
    ranking: PartitionRanking
    # offered before, nowhere yet
    waiting: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    # of these, evicted or lost since the last plan
    evicted_or_lost: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    running: dict[int, tuple[int, int]] = field(default_factory=dict)  # allocation -> task, machine
    sequence: int = 0
    now_us: int = 0

    def run(self) -> None:
        where = f"{len(self.world.spec.dimensions)} dimensions, {self.ranking.name}"
        for number in range(ROUNDS):
            self.now_us = (number + 1) * ROUND_US
            with located(f"{where}, round {number}"):
                if number == 0:
                    unknown = np.array([10**6])
                    self._notify(ChangeKind.FINISHED, unknown, np.array([0]), unknown)
                self._round(number)

    def _round(self, number: int) -> None:
        world = self.world
        self._sync(number)
        self._rival_claims()
        fresh = np.zeros(0, np.int64) if number == 5 else np.arange(number * 30, number * 30 + 30)
        keeps = Capability.KEEPS_PENDING in self.capabilities
        offered = np.concatenate([self.evicted_or_lost if keeps else self.waiting, fresh])
        self.evicted_or_lost = self.evicted_or_lost[:0]
        order = np.roll(np.arange(PARTITIONS, dtype=np.int32), number)
        context = PlanContext(self.now_us, stream_key(1, "decision", number), self.ranking, order)
        batch = world.tasks.take(offered)
        before = world.view.free.copy()
        plan = self.twins[0].plan(batch, world.view, context)
        require(np.array_equal(world.view.free, before), "plan() leaves the view as it found it")
        claimed = self.twins[1].plan_and_claim(offered, world.view, context)
        self._same(plan, claimed.plan)
        self._claimed(claimed, offered, before)
        too_large = plan.pending[plan.pending_reason == PendingReason.TOO_LARGE]
        self.waiting = np.setdiff1d(
            np.setdiff1d(np.union1d(self.waiting, fresh), plan.task), too_large
        )
        self._commit(plan, claimed.ticket)
        self._end_some()
        if number in (6, 9):
            self._toggle_machines(up=number == 9)

    def _sync(self, number: int) -> None:
        """Nothing is known in round 0, part of the cell in round 1; later every partition or only
        one is brought up to date."""
        known = (
            []
            if number == 0
            else range(PARTITIONS - 1)
            if number == 1
            else [number % PARTITIONS]
            if number % 4 == 0
            else range(PARTITIONS)
        )
        for p in known:
            self.world.view.apply(
                self.world.cell.delta_since(p, int(self.world.view.versions[p]), self.now_us, False)
            )

    # --- what two plans must hold ---

    def _same(self, plan: Plan, twin: Plan) -> None:
        for name in ("task", "machine", "request", "gang", "evict", "pending", "pending_reason"):
            require(
                np.array_equal(getattr(plan, name), getattr(twin, name)),
                f"plan.{name} is a function of what the scheduler saw",
            )
        same = (
            plan.operations == twin.operations
            and plan.partitions_scanned == twin.partitions_scanned
            and plan.priced_machines == twin.priced_machines
        )
        require(same, "counted work is a function of what the scheduler saw")
        require(
            plan.retry_at_us == twin.retry_at_us,
            "plan.retry_at_us is a function of what the scheduler saw",
        )
        require(
            plan.operations > 0 or not len(plan.task),
            "plan.operations: expected more than 0 for a round that placed tasks",
        )

    def _claimed(self, claimed: ClaimedPlan, offered: Int64, before: Int64) -> None:
        """Check what a plan about the offered tasks took out of the view, which showed `before`
        (int64[M, R]) free."""
        plan, view = claimed.plan, self.world.view
        left = before.copy()
        np.subtract.at(left, plan.machine, plan.request)
        require(
            np.array_equal(view.free, left),
            "planning and claiming takes the plan's claims out of the view, and nothing else",
        )
        require(
            np.array_equal(claimed.synced_us, view.synced_at(plan.machine)),
            "claimed.synced_us is when each claim's machine was synced",
        )
        require(
            not claimed.in_full or np.array_equal(plan.task, offered),
            "claimed.in_full: expected False for a plan that does not claim every task offered, in "
            "their order",
        )

    # --- what happens to it ---

    def _notify(
        self, kind: ChangeKind, task: Int64, machine: Int32 | Int64, allocation: Int64
    ) -> None:
        for scheduler in self.twins:
            scheduler.observe(
                TaskChanges(kind, self.now_us, task, machine.astype(np.int32), allocation)
            )

    def _transaction(
        self, scheduler: int, task: Int64, machine: Int32, request: Int64, **more: Any
    ) -> CommitResult:
        self.sequence += 1
        synced_us = np.full(len(task), self.now_us, np.int64)
        transaction = Transaction(
            scheduler,
            self.sequence,
            task,
            machine,
            request,
            synced_us,
            CommitMode.ALL_OR_NOTHING,
            **more,
        )
        return self.world.cell.commit(transaction, self.now_us)

    def _rival_claims(self) -> None:
        """The view does not show these: some of the plan's claims will be rejected."""
        stream, world = self.world.stream, self.world
        task = 10**7 + self.sequence * 100 + np.arange(6)
        machine = stream.integers(6, MACHINES).astype(np.int32)
        request = np.ones((6, len(world.spec.dimensions)), np.int64)
        result = self._transaction(RIVAL, task, machine, request, gang=np.arange(6))
        ended = result.allocation[result.accepted][::2]
        world.cell.release(np.ascontiguousarray(ended), None, self.now_us)

    def _commit(self, plan: Plan, ticket: int) -> None:
        world = self.world
        single = plan.gang == NO_GANG
        gang = np.where(single, 10**8 + np.arange(len(single)), plan.gang)
        result = self._transaction(
            OURS, plan.task, plan.machine, plan.request, gang=gang, evict=plan.evict
        )
        world.view.settle(ticket, result.reason, result.version)
        won = result.accepted
        evicted = np.array(
            [self.running.pop(a) for a in result.evicted.tolist()], np.int64
        ).reshape(-1, 2)
        if len(evicted):
            self._notify(ChangeKind.EVICTED, evicted[:, 0], evicted[:, 1], result.evicted)
        self._notify(
            ChangeKind.COMMITTED, plan.task[won], plan.machine[won], result.allocation[won]
        )
        self._notify(
            ChangeKind.REJECTED, plan.task[~won], plan.machine[~won], result.allocation[~won]
        )
        for allocation, task, machine in zip(
            result.allocation[won].tolist(),
            plan.task[won].tolist(),
            plan.machine[won].tolist(),
            strict=True,
        ):
            self.running[allocation] = (task, machine)
        self.waiting = np.union1d(self.waiting, plan.task[~won])
        self._offer_again(evicted[:, 0])

    def _end_some(self) -> None:
        """A third of what runs ends; the owner sees its slots at once."""
        allocations = np.array(sorted(self.running), np.int64)
        ended = allocations[self.world.stream.integers(len(allocations), 3) == 0]
        released = self.world.cell.release(np.ascontiguousarray(ended), None, self.now_us)
        own = released.owner == OURS
        self.world.view.released(
            released.machine[own], released.request[own], released.version[own]
        )
        if Capability.WANTS_ENDS in self.capabilities:
            self._notify(ChangeKind.FINISHED, released.task, released.machine, released.allocation)
        for allocation in released.allocation.tolist():
            del self.running[allocation]

    def _toggle_machines(self, up: bool) -> None:
        machine = np.arange(0, MACHINES, 4, dtype=np.int32)
        lost = self.world.cell.set_machines(machine, np.full(len(machine), up), self.now_us)
        own = lost.owner == OURS
        self._notify(ChangeKind.LOST, lost.task[own], lost.machine[own], lost.allocation[own])
        for allocation in lost.allocation[own].tolist():
            del self.running[allocation]
        self._offer_again(lost.task[own])

    def _offer_again(self, task: Int64) -> None:
        self.waiting = np.union1d(self.waiting, task)
        self.evicted_or_lost = np.union1d(self.evicted_or_lost, task)


@dataclass(frozen=True, slots=True)
class _Case:
    """Equal tasks, what the view shows free (int64[SCAN_MACHINES]), and the order of freshness."""

    limit: int
    tasks: int
    request: int
    free: Int64
    order: Int32


def broken_scan_rule(spec: SchedulerSpec, options: BaseModel, seed: int) -> str | None:
    """The first number that breaks the rule, as `field: what is wrong`; None if none does."""
    for number, case in enumerate(_cases(seed)):
        for ranking in PartitionRanking:
            plan = _plan(spec, options, case, ranking, stream_key(seed, "scans", number))
            if plan.partitions_scanned is None:
                continue
            expected = _expected(plan, case, ranking)
            if isinstance(expected, str):
                return f"plan.partitions_scanned: expected None, {expected} under {ranking.name}"
            if plan.partitions_scanned != expected:
                return (
                    f"plan.partitions_scanned: expected {expected} under {ranking.name}, "
                    f"got {plan.partitions_scanned} (tasks: {case.tasks}, of request "
                    f"{case.request}; free, by machine: {case.free.tolist()}; partitions of "
                    f"{MACHINES_EACH} machines, freshest first: {case.order.tolist()})"
                )
    return None


def _cases(seed: int) -> Iterator[_Case]:
    stream = Stream(stream_key(seed, "scan cases", 0))
    for _ in range(SINGLE_TASKS):
        largest = np.array([0, 1, ROOM])[stream.integers(SCAN_PARTITIONS, 3)]  # room by partition
        most = np.repeat(largest, MACHINES_EACH)
        free = np.minimum(stream.integers(SCAN_MACHINES, ROOM + 1), most)
        request = 1 + int(stream.integers(1, ROOM)[0])
        yield _Case(ROOM, 1, request, free, _order(stream))
    for _ in range(BATCHES):
        yield _Case(1, BATCH, 1, stream.integers(SCAN_MACHINES, 2), _order(stream))


def _order(stream: Stream) -> Int32:
    return stream.permutation(SCAN_PARTITIONS).astype(np.int32)


def _plan(
    spec: SchedulerSpec, options: BaseModel, case: _Case, ranking: PartitionRanking, stream: int
) -> Plan:
    """The plan of a new scheduler, as it states it."""
    cell = CellSpec(
        ("slots",),
        np.full((SCAN_MACHINES, 1), case.limit, np.int64),
        np.arange(SCAN_MACHINES, dtype=np.int32) // MACHINES_EACH,
        np.zeros(SCAN_MACHINES, np.int64),
        np.array([1000], np.int64),
    )
    partitioning = Partitioning(np.arange(SCAN_PARTITIONS + 1, dtype=np.int64) * MACHINES_EACH)
    view = ClusterView(cell, partitioning)
    used = (case.limit - case.free)[:, None]
    rows = np.arange(MACHINES_EACH, dtype=np.uint16)
    up = np.ones(MACHINES_EACH, np.bool_)
    for p in range(SCAN_PARTITIONS):
        view.apply(PartitionDelta(p, 0, 1, 1, rows, used[partitioning.rows(p)], up, None))
    environment = SchedulerEnvironment(
        "conformance", cell, partitioning.offsets, PreferenceCatalog.empty()
    )
    n = case.tasks
    tasks = TaskBatch(
        np.arange(n, dtype=np.int64),
        np.zeros(n, np.int64),
        np.full((n, 1), case.request, np.int64),
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        np.full(n, NO_GANG, np.int64),
        np.zeros(n, np.int8),
    )
    return spec.build(options, environment).plan(
        tasks, view, PlanContext(1, stream, ranking, case.order)
    )


def _expected(plan: Plan, case: _Case, ranking: PartitionRanking) -> int | str:
    """The number that the rule gives for this plan, or how the plan shows that its scheduler does
    not search in the order of the ranking."""
    place = np.argsort(case.order)  # of each partition in the order of freshness
    free = case.free.copy()
    count = 0
    # Equal tasks: those placed in fresher partitions may be taken to have been placed before.
    claims = plan.machine[np.argsort(place[plan.machine // MACHINES_EACH], kind="stable")]
    for machine in [*claims.tolist(), *[None] * (case.tasks - len(claims))]:
        is_open = _by_place(free > 0, case.order)
        if ranking in (PartitionRanking.LATENCY_FIRST, PartitionRanking.FRESHEST_PREFERRED):
            upto = SCAN_PARTITIONS
            if machine is not None:
                upto = int(place[machine // MACHINES_EACH]) + 1
                fits = _by_place(free >= case.request, case.order)
                if fits[: upto - 1].any():
                    return "as a fresher partition than the one chosen had room for a task"
            count += int(np.count_nonzero(is_open[:upto]))
        elif is_open.any():
            count += SCAN_PARTITIONS
        if machine is not None:
            free[machine] -= case.request
    return count


def _by_place(machines: NDArray[np.bool_], order: Int32) -> NDArray[np.bool_]:
    """Whether any machine of a partition is among these (bool[M]): bool[P], freshest partition
    first."""
    in_partition = machines.reshape(SCAN_PARTITIONS, MACHINES_EACH)
    any_of_them: NDArray[np.bool_] = np.logical_or.reduce(in_partition, axis=1)[order]
    return any_of_them
