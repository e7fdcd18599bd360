"""Rounds of a flow policy on a small cell, each compared with an exhaustive search.

A **statement** says again, in plain arithmetic and without a graph, what a policy's documentation
says that places, waiting and running on cost. The search tries every way to place, or leave
waiting, the few tasks of a round. The scheduler's flow has to cost as much as the cheapest way, and
so do the placements that it plans.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schedulers.flow.kinds import build
from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.interface import Plan
from shared_state.random import Stream
from shared_state.tasks import NO_GANG, CellSpec, Int64, PreferenceCatalog, TaskBatch
from tests.flow_world import FLOW, RIVAL, FlowWorld, environment

MOST_TASKS = 5  # in the graph: with 3 machines, 1024 ways
RIVALS = 1_000_000  # the first id of tasks of the other scheduler


@dataclass(frozen=True)
class Round:
    """What the search knows of a round: n tasks in the graph, M machines.

    Attributes:
        tasks: Waiting ones, then, under preemption, running ones.
        machine: int64[n], where each runs; -1: it waits.
        since_us: int64[n], since when.
        joined: bool[n], whether each joined the graph in this round.
        now_us: The time.
        total, used, free: int64[M], in tasks: what each machine holds, all tasks on it, and what is
            left.
        limit, left: int64[M, R], the same in resources: what there is, and what is left.
        running: All running tasks of the scheduler, whether or not they are in the graph.
        running_on: int64, where these run.
    """

    tasks: TaskBatch
    machine: Int64
    since_us: Int64
    joined: NDArray[np.bool_]
    now_us: int
    total: Int64
    used: Int64
    free: Int64
    limit: Int64
    left: Int64
    running: TaskBatch
    running_on: Int64

    @property
    def room(self) -> Int64:
        """int64[M]: how many of the tasks in the graph each machine can have."""
        on = self.machine[self.machine >= 0]
        return self.free + np.bincount(on, minlength=len(self.free))

    def waited(self, quantum_us: int) -> Int64:
        """Quanta since each task was submitted: int64[n]."""
        return self.now_us // quantum_us - self.tasks.submit_us // quantum_us

    def ran(self, quantum_us: int) -> Int64:
        """Quanta since each task began to run: int64[n]."""
        return self.now_us // quantum_us - self.since_us // quantum_us


class Statement:
    """What a policy's placements cost. By default everything costs nothing."""

    def begin(self, now: Round) -> None:
        """Take note of a round, before its costs are asked for."""

    def started(self, tasks: TaskBatch, machine: Int64, at_us: int) -> None:
        """Take note of tasks that run."""

    def ended(self, tasks: TaskBatch, machine: Int64, at_us: int) -> None:
        """Take note of tasks that have ended."""

    def place(self, now: Round) -> Int64:
        """int64[n, M]: what each task costs on each machine, placed anew."""
        return np.zeros((len(now.tasks), len(now.total)), np.int64)

    def wait(self, now: Round) -> Int64:
        """int64[n]: what each task costs that is left waiting."""
        return np.zeros(len(now.tasks), np.int64)

    def stay(self, now: Round) -> Int64:
        """int64[n]: what each running task costs that runs on."""
        return np.zeros(len(now.tasks), np.int64)

    def together(self, now: Round, placed: Int64) -> Int64:
        """int64[w]: what so many tasks placed anew on each machine (int64[w, M]) cost more."""
        return np.zeros(len(placed), np.int64)

    def allows(self, now: Round, choice: Int64) -> NDArray[np.bool_]:
        """bool[w]: whether the policy allows each way (choice: int64[w, n], M: waits)."""
        return np.ones(len(choice), bool)

    def offset(self, now: Round) -> int:
        """What the costs in the graph sum up to more than those that are stated, whatever the
        choice."""
        return 0


def costs(statement: Statement, now: Round, choice: Int64) -> tuple[Int64, NDArray[np.bool_]]:
    """What each way costs, and whether there is room for it (choice: int64[w, n], M: waits)."""
    n, machines = len(now.tasks), len(now.total)
    each = np.column_stack([statement.place(now), statement.wait(now)])
    runs = np.flatnonzero(now.machine >= 0)
    each[runs, now.machine[runs]] = statement.stay(now)[runs]
    cost = each[np.arange(n), choice].sum(axis=1)
    on = choice[:, :, None] == np.arange(machines)
    stays = choice == now.machine
    cost = cost + statement.together(now, (on & ~stays[:, :, None]).sum(axis=1))
    possible = np.all(on.sum(axis=1) <= now.room, axis=1) & statement.allows(now, choice)
    return cost, possible


def all_choices(now: Round) -> Int64:
    """Every way to place so many tasks on the machines or leave them waiting: int64[w, n]."""
    n, machines = len(now.tasks), len(now.total)
    ways = np.indices((machines + 1,) * n).reshape(n, (machines + 1) ** n).T
    return ways.astype(np.int64)


@dataclass
class Trial:
    """A scheduler with a policy on a small cell, and the statement of that policy.

    Args:
        spec: The machines.
        policy: Its name.
        options: Of the scheduler and the policy.
        statement: What it says it does.
        seed: Of what happens.
        request: int64[R], what every task asks for.
        gangs: Whether some tasks come in gangs.
        catalog: Of preference sets that tasks have; None: they have none.
    """

    spec: CellSpec
    policy: str
    options: dict[str, object]
    statement: Statement
    seed: int
    request: Int64 = field(default_factory=lambda: np.ones(1, np.int64))
    gangs: bool = False
    catalog: PreferenceCatalog | None = None

    def __post_init__(self) -> None:
        given = {"policy": self.policy, "certify_every": 1, **self.options}
        model = options_with_policy(FlowOptions, given)
        parsed = model.model_validate(given)
        self.preemption = bool(parsed.preemption)
        self.world = FlowWorld(self.spec, build(parsed, environment(self.spec, self.catalog)))
        self.stream = Stream(self.seed)
        self.known = TaskBatch.empty(len(self.request))
        self.waiting: list[int] = []
        self.in_graph: set[int] = set()
        self.began: dict[int, int] = {}
        self.placed = self.preempted = 0

    def run(self, rounds: int) -> None:
        """Let time pass: arrivals, a rival, a round, ends."""
        for _ in range(rounds):
            self.arrive()
            self.rival()
            now = self.observed()
            self.statement.begin(now)
            choice = all_choices(now)
            cost, possible = costs(self.statement, now, choice)
            assert possible.any(), "no way keeps the policy's bounds"
            least = int(cost[possible].min())
            plan = self.world.plan()
            solved = self.world.scheduler.graph.cost
            assert solved == least + self.statement.offset(now), (solved, least)
            self.check_plan(now, plan, least)
            self.after(now, plan)
            self.world.now_us += int(self.stream.integers(1, 3_000_000)[0])
            if self.stream.integers(1, 4)[0] > 0:
                self.world.sync()

    def arrive(self) -> None:
        """Offer a few new tasks, some of them submitted a while ago."""
        held = len(self.waiting) + (len(self.world.running(FLOW)) if self.preemption else 0)
        n = min(int(self.stream.integers(1, 5 if self.gangs else 4)[0]), MOST_TASKS - held)
        if n <= 0:
            return
        first, zero = len(self.known), np.zeros(n, np.int64)
        gang = np.full(n, NO_GANG)
        if self.gangs and self.stream.integers(1, 3)[0] > 0:
            gang[:] = first
        sets = 1 if self.catalog is None else self.catalog.sets
        now_us = self.world.now_us
        new = TaskBatch(
            np.arange(first, first + n),
            (first // 6 + self.stream.integers(n, 2)) if not self.gangs else zero + first,
            np.tile(self.request, (n, 1)),
            np.zeros(n, np.int32),
            np.maximum(now_us - self.stream.integers(n, 8_000_000), 0),
            self.stream.integers(n, sets).astype(np.int32),
            gang,
            self.stream.integers(n, 3).astype(np.int8),
        )
        if self.gangs:
            new.submit_us[:] = new.submit_us[0]
        self.known = TaskBatch.concatenate([self.known, new])
        self.waiting += new.task.tolist()
        self.world.offer(new)

    def rival(self) -> None:
        """Somebody else claims where there is room, now and then."""
        if self.stream.integers(1, 3)[0]:
            return
        left = self.spec.limit - self.world.cell.used
        roomy = np.flatnonzero(np.all(left >= 1, axis=1))
        if len(roomy):
            chosen = roomy[self.stream.integers(1, len(roomy))]
            self.world.rival_claims(chosen.tolist(), RIVALS + self.world.rounds)

    def observed(self) -> Round:
        """The round as the scheduler will find it."""
        held = self.world.cell.allocations(FLOW)
        on = held.machine.astype(np.int64)
        ids = np.array(sorted(self.waiting), np.int64)
        machine = np.full(len(ids), -1)
        if self.preemption:
            ids, machine = np.concatenate([ids, held.task]), np.concatenate([machine, on])
        left = self.world.view.free
        unit = np.maximum(self.request, 1)
        total = (self.spec.limit // unit).min(axis=1)
        free = np.maximum((left // unit).min(axis=1), 0)
        return Round(
            tasks=self.known.take(ids),
            machine=machine,
            since_us=np.array([self.began.get(one, 0) for one in ids.tolist()], np.int64),
            joined=np.array([one not in self.in_graph for one in ids.tolist()], bool),
            now_us=self.world.now_us,
            total=total,
            used=total - free,
            free=free,
            limit=self.spec.limit,
            left=left.copy(),
            running=self.known.take(held.task),
            running_on=on,
        )

    def check_plan(self, now: Round, plan: Plan, least: int) -> None:
        """What is planned costs as little. A running task that moves is only evicted at first, so
        its new place, which is not part of the plan, is the cheapest that is left."""
        machines = len(now.total)
        to = dict(zip(plan.task.tolist(), plan.machine.tolist(), strict=True))
        evicted = set(self.world.cell.describe(plan.evict).task.tolist())
        options = []
        for task, machine in zip(now.tasks.task.tolist(), now.machine.tolist(), strict=True):
            if machine < 0:
                options.append([to.get(task, machines)])
            elif task in evicted:
                options.append([other for other in range(machines + 1) if other != machine])
            else:  # it may stay although the flow would have it wait: nobody needs its place
                options.append([machine, machines])
        grid = np.meshgrid(*options, indexing="ij") if options else []
        ways = np.stack(grid, axis=-1).reshape(-1, len(options)) if options else None
        if ways is None:
            return
        cost, possible = costs(self.statement, now, ways.astype(np.int64))
        assert possible.any()
        assert int(cost[possible].min()) == least
        self.placed += len(to)
        self.preempted += len(evicted)

    def after(self, now: Round, plan: Plan) -> None:
        """What becomes of the plan, and of tasks that run."""
        world = self.world
        victims = world.cell.describe(plan.evict)
        result = world.commit(plan)
        won = plan.task[result.accepted]
        on = plan.machine[result.accepted].astype(np.int64)
        self.statement.started(self.known.take(won), on, world.now_us)
        self.began.update(dict.fromkeys(won.tolist(), world.now_us))
        evicted = victims.task[np.isin(plan.evict, result.evicted)]
        self.in_graph = set(now.tasks.task.tolist()) - set(evicted.tolist())
        if not self.preemption:
            self.in_graph -= set(won.tolist())
        gone = set(won.tolist())
        self.waiting = [one for one in self.waiting if one not in gone] + evicted.tolist()
        world.offer(self.known.take(evicted))
        running = world.running(FLOW)
        ending = running[self.stream.integers(len(running), 3) == 0]
        ended = world.cell.describe(ending)
        self.in_graph -= set(ended.task.tolist())
        world.now_us += int(self.stream.integers(1, 2_000_000)[0])
        self.statement.ended(
            self.known.take(ended.task), ended.machine.astype(np.int64), world.now_us
        )
        world.finish(ending)
        over = world.running(RIVAL)[:1]
        if len(over):  # which the view shows after the next sync
            world.cell.release(np.ascontiguousarray(over), None, world.now_us)
