"""Rounds of a flow scheduler on a cell that lives as in Firmament's simulator, timed one by one.

The cell has slots, one per task, and racks of 30 machines. Its tasks stand in for those of the
Google trace: run times are lognormal with the trace's quantiles, sizes of jobs Pareto, and the
input data of batch tasks follow from their run times (experiments/workloads/input_data.py). One job
in SERVICE_PART is a service, which reads nothing.

A cell is filled first, by a flow scheduler that is not measured. Then the scheduler of the run
takes it over: it is told of all running tasks, some of which have run for up to an hour. In most
runs it then plans one round that is not measured, so that an incremental solver has something to go
on from. What happens between the measured rounds is that of the kind of run.

A round is measured in processor time of this process: the solver alone, and the whole round from
changes to claims. Both depend on the machine; the counts beside them do not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from time import process_time_ns
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from experiments.campaign.task import Arrays
from experiments.studies.model_runs import ModelRun
from experiments.workloads.draws import bounded_pareto_table, draw
from experiments.workloads.input_data import WAITING_COST_PER_S, input_blocks, input_catalog
from flowsolver import AlgorithmChoice, IncrementalSolver, misplaced_tasks
from schedulers import registry
from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import (
    ChangeKind,
    PartitionRanking,
    Plan,
    PlanContext,
    SchedulerEnvironment,
    TaskChanges,
)
from shared_state.cell import Cell, Released
from shared_state.partition import Partitioning
from shared_state.random import Stream, stream_key
from shared_state.tasks import NO_GANG, CellSpec, Int64, PreferenceCatalog, TaskBatch, TaskClass
from shared_state.transaction import Transaction
from shared_state.view import ClusterView

RACK = 30  # machines, as in Firmament's simulator
US_PER_S = 1_000_000
# Lognormal, median 420 s: the slides' quantiles of batch tasks at speed-up 1.
RUN_MEAN_US, RUN_SIGMA = 1_639 * US_PER_S, 1.65
# 1.2 % of the trace's jobs have more than 1,000 tasks, some more than 20,000, and 1,800 jobs have
# about 150,000 tasks.
JOB_LARGEST, JOB_ALPHA = 20_000, 0.63
JOB_PART = 4  # no job has more tasks than one of so many slots
SERVICE_PART = 20
AGES = 8  # groups of running tasks, which began at different times
OLDEST_S = 3_600
CHANGED_PART = 100  # of the running tasks, one of so many ends in a steady round

Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """A cell, and the scheduler that runs it.

    Attributes:
        machines, slots: Machines, and slots of each.
        used_permille: Tasks at the beginning, in permille of the slots; above 1000 some wait.
        kind, options: Of the scheduler, as in the file of a run.
        job_tasks: Tasks of every job; None: drawn.
    """

    machines: int
    slots: int
    used_permille: int
    kind: str
    options: Options
    job_tasks: int | None = None

    @property
    def tasks(self) -> int:
        """At the beginning."""
        return self.machines * self.slots * self.used_permille // 1000

    @property
    def policy(self) -> str:
        """The policy's name."""
        name: str = self.options.get("policy", "quincy")
        return name


@dataclass(frozen=True, slots=True)
class RoundMeasured:
    """What a round took and did.

    Attributes:
        solve_ns, round_ns: Processor time of the solver, and of the whole round.
        operations: Counted by the solver.
        tasks: In the graph, waiting and running.
        waiting: Of them, waiting as the round begins.
        placed, migrated, preempted: By the round.
        unrouted: Tasks whose flow was not routed when its budget ended.
        used_permille: Slots in use after it.
    """

    solve_ns: int
    round_ns: int
    operations: int
    tasks: int
    waiting: int
    placed: int
    migrated: int
    preempted: int
    unrouted: int
    used_permille: int


class TimedSolver:
    """A solver whose solves are timed; otherwise it is the solver. spent_ns: processor time of the
    last resolve."""

    def __init__(self, solver: IncrementalSolver) -> None:
        self._solver = solver
        self.spent_ns = 0

    def resolve(self, **budget: Any) -> Any:
        begin_ns = process_time_ns()
        try:
            return self._solver.resolve(**budget)
        finally:
            self.spent_ns = process_time_ns() - begin_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)


@lru_cache(maxsize=1)
def _job_sizes() -> Int64:
    return bounded_pareto_table(JOB_LARGEST, JOB_ALPHA)


def google_like_tasks(setting: Setting, count: int, seed: int) -> tuple[TaskBatch, Int64]:
    """Tasks in order of arrival, of whole jobs but for the last, and their run times in us,
    int64[count]. The preference of batch task k is k + 1."""
    stream = Stream(stream_key(seed, "flow_rounds/jobs"))
    if setting.job_tasks is None:
        size = 1 + draw(stream, _job_sizes(), count)  # at least as many tasks as jobs
        size = np.minimum(size, max(1, setting.machines * setting.slots // JOB_PART))
    else:
        size = np.full(count // setting.job_tasks + 1, setting.job_tasks)
    job = np.repeat(np.arange(len(size)), size)[:count]
    service = (stream.integers(len(size), SERVICE_PART) == 0)[job]
    run_us = Stream(stream_key(seed, "flow_rounds/run_times")).lognormal(
        count, RUN_MEAN_US, RUN_SIGMA
    )
    zero = np.zeros(count, np.int64)
    preference = np.where(service, 0, 1 + np.arange(count))
    tasks = TaskBatch(
        task=np.arange(count),
        job=job,
        request=np.ones((count, 1), np.int64),
        priority=zero.astype(np.int32),
        submit_us=zero,
        preference=preference.astype(np.int32),
        gang=np.full(count, NO_GANG, np.int64),
        task_class=np.where(service, np.int8(TaskClass.SERVICE), np.int8(TaskClass.BATCH)),
    )
    return tasks, run_us


class World:
    """A cell with one flow scheduler, which alone commits to it.

    Args:
        setting: The cell and the scheduler.
        further: Tasks that can arrive besides those of the beginning.
        seed: Of all draws.
        fill: Whether the cell is filled and taken over; else it is empty, and no task has arrived.
    """

    scheduler: FlowScheduler
    solver: TimedSolver

    def __init__(self, setting: Setting, further: int, seed: int, *, fill: bool = True) -> None:
        self.setting = setting
        machines = setting.machines
        rack = (np.arange(machines) // RACK).astype(np.int32)
        self.spec = CellSpec(
            ("slots",),
            np.full((machines, 1), setting.slots, np.int64),
            rack,
            np.zeros(machines, np.int64),
            np.array([1000]),
        )
        total = setting.tasks + further
        self.tasks, self.run_us = google_like_tasks(setting, total, seed)
        self.partitioning = Partitioning.by_topology(self.spec, 1)
        self.cell = Cell(self.spec, self.partitioning)
        self.view = ClusterView(self.spec, self.partitioning)
        self.catalog = self._catalog(seed)
        self.now_us = OLDEST_S * US_PER_S
        self.draws = Stream(stream_key(seed, "flow_rounds/changes"))
        self._seed = seed
        self._rounds = 0
        self._next = 0  # of the tasks that have not arrived
        self._offered: list[TaskBatch] = []
        if fill:
            self.arrive(setting.tasks)
            self._begin("flow", {"policy": setting.policy, "preemption": False})
            self.round()
            self._take_over()
        else:
            self._begin(setting.kind, setting.options)

    def arrive(self, count: int, job: int | None = None) -> TaskBatch:
        """The next tasks arrive, all of one job if it is given."""
        tasks = self.tasks.take(slice(self._next, self._next + count))
        if len(tasks) < count:
            raise ValueError(f"{count} tasks arrive, {len(tasks)} are left")
        tasks.submit_us[:] = self.now_us
        if job is not None:
            tasks.job[:] = job
        self._next += count
        self._offered.append(tasks)
        return tasks

    def end_some(self, count: int) -> None:
        """Some running tasks end, drawn at random."""
        held = np.sort(self.cell.allocations().allocation)
        self.end(held[np.sort(self.draws.permutation(len(held))[:count])])

    def end(self, allocation: Int64) -> Released:
        """These tasks end."""
        ended = self.cell.release(allocation, None, self.now_us)
        self._tell(ChangeKind.FINISHED, ended)
        return ended

    def allocations_of(self, task: Int64) -> Int64:
        """The allocations of those of these tasks that run."""
        held = self.cell.allocations()
        allocation: Int64 = np.sort(held.allocation[np.isin(held.task, task)])
        return allocation

    def places(self) -> Int64:
        """Where each task of the workload runs: int64[n], -1 of those that do not."""
        found = np.full(len(self.tasks), -1, np.int64)
        held = self.cell.allocations()
        found[held.task] = held.machine
        return found

    def round(self) -> RoundMeasured:
        """Plan, and commit what is planned. All claims fit: nobody else commits."""
        plan, round_ns = self._plan()
        solver = self.solver
        stats = solver.stats
        self._commit(plan)
        used = int(self.cell.used.sum()) * 1000 // (self.setting.machines * self.setting.slots)
        return RoundMeasured(
            solve_ns=solver.spent_ns,
            round_ns=round_ns,
            operations=stats.operations,
            tasks=plan.stats["tasks"],
            waiting=plan.stats["waiting"],
            placed=plan.stats["placed"],
            migrated=plan.stats["migrated"],
            preempted=plan.stats["preempted"],
            unrouted=plan.stats["unrouted"],
            used_permille=used,
        )

    def _plan(self) -> tuple[Plan, int]:
        self.view.apply(self.cell.delta_since(0, int(self.view.versions[0]), self.now_us, False))
        batch = TaskBatch.concatenate([TaskBatch.empty(1), *self._offered])
        self._offered = []
        self._rounds += 1
        context = PlanContext(
            self.now_us,
            stream_key(self._seed, "flow_rounds/plan", self._rounds),
            PartitionRanking.OPTIMISTIC,
            np.zeros(1, np.int32),
        )
        begin_ns = process_time_ns()
        plan = self.scheduler.plan(batch, self.view, context)
        return plan, process_time_ns() - begin_ns

    def _commit(self, plan: Plan) -> None:
        victims = self.cell.describe(plan.evict)
        transaction = Transaction(
            0,
            self._rounds,
            plan.task,
            plan.machine,
            plan.request,
            np.zeros(len(plan.task), np.int64),
            evict=plan.evict if len(plan.evict) else None,
        )
        ticket = self.view.claim(plan.machine, plan.request)
        result = self.cell.commit(transaction, self.now_us)
        self.view.settle(ticket, result.reason, result.version)
        if not result.accepted.all():
            raise RuntimeError("a claim of the only scheduler was rejected")
        self._tell_placed(ChangeKind.COMMITTED, plan.task, plan.machine, result.allocation)
        self._tell(ChangeKind.EVICTED, victims)
        again = self.tasks.take(np.sort(victims.task))
        self._offered.append(again)

    def _take_over(self) -> None:
        """The scheduler of the run begins, and adopts the tasks that run. Those that wait are
        offered to it."""
        held = self.cell.allocations()
        self._begin(self.setting.kind, self.setting.options)
        order = np.argsort(held.task)
        groups = np.array_split(order, AGES)
        for number, group in enumerate(groups, start=1):
            task = held.task[group]
            changes = TaskChanges(
                ChangeKind.ADOPTED,
                self.now_us - OLDEST_S * US_PER_S * number // AGES,
                task,
                held.machine[group],
                held.allocation[group],
                self.tasks.take(task),
            )
            self.scheduler.observe(changes)
        waiting = np.setdiff1d(np.arange(self._next), held.task)
        self._offered.append(self.tasks.take(waiting))

    def _begin(self, kind: str, options: Options) -> None:
        spec = registry.get(kind)
        environment = SchedulerEnvironment(kind, self.spec, self.partitioning.offsets, self.catalog)
        scheduler = spec.build(spec.parse_options(options), environment)
        if not isinstance(scheduler, FlowScheduler):
            raise TypeError(f"{kind}: expected a flow scheduler")
        self.scheduler = scheduler
        self.solver = TimedSolver(scheduler.graph.solver)
        scheduler.graph.solver = cast(IncrementalSolver, self.solver)

    def _catalog(self, seed: int) -> PreferenceCatalog:
        if self.setting.policy == "load_spreading":
            return PreferenceCatalog.empty()
        stream = Stream(stream_key(seed, "flow_rounds/input_data"))
        catalog = input_catalog(
            input_blocks(self.run_us), self.spec.rack, WAITING_COST_PER_S, stream
        )
        return replace(catalog, wait_cost=WAITING_COST_PER_S, wait_quantum_us=US_PER_S)

    def _tell(self, kind: ChangeKind, gone: Released) -> None:
        self._tell_placed(kind, gone.task, gone.machine, gone.allocation)

    def _tell_placed(
        self, kind: ChangeKind, task: Int64, machine: NDArray[np.int32], allocation: Int64
    ) -> None:
        self.scheduler.observe(TaskChanges(kind, self.now_us, task, machine, allocation))


@dataclass(frozen=True)
class CellRun(ModelRun):
    """Rounds of a cell.

    Attributes:
        setting: The cell and the scheduler.
        rounds: How many are measured.
        cost_s: About how many seconds of a processor it takes.
    """

    setting: Setting
    rounds: int
    cost_s: float

    @property
    def expected_s(self) -> float:
        return self.cost_s

    def content(self) -> dict[str, Any]:
        names = [one.name for one in fields(self) if one.name not in ("label", "cost_s")]
        content = {name: getattr(self, name) for name in names}
        setting = {one.name: getattr(self.setting, one.name) for one in fields(Setting)}
        return {**content, "setting": setting}

    @abstractmethod
    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """As of ModelRun."""


def columns(rounds: Sequence[RoundMeasured]) -> dict[str, NDArray[Any]]:
    """The fields of the rounds: int64[rounds] each."""
    return {
        one.name: np.array([getattr(measured, one.name) for measured in rounds], np.int64)
        for one in fields(RoundMeasured)
    }


@dataclass(frozen=True)
class SteadyRun(CellRun):
    """A cell in which some tasks end between two rounds, and as many arrive.

    Attributes:
        step_s: What passes between two rounds.
    """

    step_s: int = 30

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """The fields of each round (columns)."""
        world = World(self.setting, self._changed * self._all_rounds, seed)
        world.round()
        return columns(list(self._measured(world)))

    @property
    def _changed(self) -> int:
        return max(1, self.setting.tasks // CHANGED_PART)

    @property
    def _all_rounds(self) -> int:
        return self.rounds

    def _measured(self, world: World) -> Iterator[RoundMeasured]:
        for _ in range(self.rounds):
            yield self._next_round(world)

    def _next_round(self, world: World) -> RoundMeasured:
        world.now_us += self.step_s * US_PER_S
        world.end_some(self._changed)
        world.arrive(self._changed)
        return world.round()


@dataclass(frozen=True)
class SwitchingRun(SteadyRun):
    """A steady cell in which the scheduler's algorithm solves every other round. Another one goes
    on from its solution in the rounds between, which are measured.

    Attributes:
        second: The other algorithm: its name, and its settings as the option `algorithm` has them.
    """

    second: Options = field(default_factory=dict)

    @property
    def _all_rounds(self) -> int:
        return 2 * self.rounds

    def _measured(self, world: World) -> Iterator[RoundMeasured]:
        first = AlgorithmChoice(**self.setting.options["algorithm"][0])
        second = AlgorithmChoice(**self.second)
        for number in range(self.rounds):
            if number:
                world.solver.set_algorithm(first)
                self._next_round(world)
            world.solver.set_algorithm(second)
            yield self._next_round(world)


@dataclass(frozen=True)
class JobRun(CellRun):
    """A cell in which a job arrives in each measured round, and ends before the next.

    Attributes:
        job_tasks: How many tasks it has.
    """

    job_tasks: int = 1

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """The fields of each round (columns)."""
        world = World(self.setting, self.job_tasks * self.rounds, seed)
        world.round()
        new_job = int(world.tasks.job[-1]) + 1
        measured = []
        for number in range(self.rounds):
            world.now_us += US_PER_S
            job = world.arrive(self.job_tasks, new_job + number)
            measured.append(world.round())
            if number + 1 < self.rounds:
                world.now_us += US_PER_S
                world.end(world.allocations_of(job.task))
                world.round()
        return columns(measured)


@dataclass(frozen=True)
class StoppedRun(CellRun):
    """A job arrives in a cell, and the round that places it ends after parts of the work that the
    whole solve counts.

    Attributes:
        job_tasks: How many tasks the job has.
        parts: What parts, ascending.
    """

    job_tasks: int = 1
    parts: tuple[float, ...] = ()

    def measure(self, seed: int, before: Arrays | None) -> dict[str, NDArray[Any]]:
        """Of each part, int64[parts]: misplaced, tasks that the flow reached does not deliver, or
        to another machine than the optimum does; moved, tasks that are elsewhere after the round
        than after the whole one; unrouted, tasks that the round says have no flow. Of the whole
        round one number each: tasks, operations, solve_ns.
        """
        whole = self._before_the_round(seed, None)
        full = whole.round()
        places = whole.places()
        network, _, arcs = whole.solver.snapshot()
        optimum = whole.solver.flow(arcs)
        misplaced, moved, unrouted = [], [], []
        for part in self.parts:
            world = self._before_the_round(seed, max(1, int(part * full.operations)))
            unrouted.append(world.round().unrouted)
            reached = np.maximum(world.solver.flow_reached()[arcs], 0)
            misplaced.append(misplaced_tasks(network, reached, optimum))
            moved.append(np.count_nonzero(world.places() != places))
        return {
            "misplaced": np.array(misplaced, np.int64),
            "moved": np.array(moved, np.int64),
            "unrouted": np.array(unrouted, np.int64),
            "tasks": np.array(full.tasks),
            "operations": np.array(full.operations),
            "solve_ns": np.array(full.solve_ns),
        }

    def _before_the_round(self, seed: int, max_operations: int | None) -> World:
        options = self.setting.options
        if max_operations is not None:
            options = {**options, "max_operations": max_operations}
        world = World(replace(self.setting, options=options), self.job_tasks, seed)
        world.arrive(self.job_tasks, int(world.tasks.job[-1]) + 1)
        return world
