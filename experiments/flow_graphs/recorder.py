"""Records the rounds of a flow scheduler while a run goes on, without a part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from experiments.flow_graphs.neighbourhood import Neighbourhood, neighbourhood, whole
from experiments.flow_graphs.ways import TaskWays, Ways
from schedulers.flow.scheduler import FlowScheduler
from schedulers.flow.snapshot import GraphSnapshot, NodeKind, snapshot
from schedulers.interface import Plan, PlanContext, Scheduler, TaskChanges
from schedulers.prices.interface import SharesDemand
from shared_state.tasks import TaskBatch
from shared_state.view import ClusterView

# What one can look at: more nodes and arcs than these in a round are refused.
MOST_NODES, MOST_ARCS = 300, 2_500
MOST_ROUNDS = 200  # of one page


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What a task is, beside its node.

    Attributes:
        machine: Where it runs; None if it waits.
        claimed: The machine on which the round places it; None if on none.
        evicted: Whether the round ends it.
    """

    task: int
    job: int
    gang: int
    priority: int
    request: tuple[int, ...]
    submit_us: int
    machine: int | None
    claimed: int | None
    evicted: bool


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """A round of a flow scheduler.

    Attributes:
        number: From 0 on.
        at_us: When it began.
        graph: The graph with the round's flow: all of it, or the part around the chosen tasks.
        hidden: int per node, how many arcs there are not in `graph`.
        tasks: The tasks in `graph`, by row of its nodes.
        ways: Their ways, by row of its nodes.
        offered: The tasks that the scheduler was told to place since the round before.
        heard: What it was told of tasks since the round before.
        placed, waiting, evicted: How many tasks the round placed, left waiting, and ends.
    """

    number: int
    at_us: int
    graph: GraphSnapshot
    hidden: Sequence[int]
    tasks: dict[int, TaskFacts]
    ways: dict[int, TaskWays]
    offered: Sequence[int]
    heard: Sequence[TaskChanges]
    placed: int
    waiting: int
    evicted: int


@dataclass(slots=True)
class Wanted:
    """Which rounds and tasks are to be recorded.

    Attributes:
        first, end: Rounds from `first` on, before `end`.
        tasks: Rounds with one of these tasks in the graph, and the part of it around them. Empty:
            all rounds, and whole graphs.
    """

    first: int = 0
    end: int = MOST_ROUNDS
    tasks: frozenset[int] = frozenset()


@dataclass(slots=True)
class Recording:
    """What was recorded.

    Attributes:
        rounds: The rounds, in order.
        seen: How many rounds the scheduler had so far.
        too_large: The number, nodes and arcs of the first round that is too large to be looked at;
            nothing is recorded from then on.
        dimensions: The names of the cell's resources.
    """

    dimensions: tuple[str, ...] = ()
    rounds: list[RecordedRound] = field(default_factory=list)
    seen: int = 0
    too_large: tuple[int, int, int] | None = None


class RoundRecorder:
    """A scheduler that hands every call on to a flow scheduler, and records its rounds.

    Args:
        scheduler: The scheduler.
        wanted: Which rounds.
        into: What receives them.
    """

    def __init__(self, scheduler: FlowScheduler, wanted: Wanted, into: Recording) -> None:
        self._scheduler = scheduler
        self._wanted = wanted
        self._into = into
        self._heard: list[TaskChanges] = []

    @property
    def shared_demand(self) -> SharesDemand | None:
        return self._scheduler.shared_demand

    def observe(self, changes: TaskChanges) -> None:
        self._scheduler.observe(changes)
        self._heard.append(changes)

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        plan = self._scheduler.plan(tasks, view, context)
        into, wanted = self._into, self._wanted
        number, into.seen = into.seen, into.seen + 1
        if (
            wanted.first <= number < wanted.end
            and into.too_large is None
            and len(into.rounds) < MOST_ROUNDS
        ):
            self._record(number, tasks, plan, context)
        self._heard = []
        return plan

    def _record(self, number: int, tasks: TaskBatch, plan: Plan, context: PlanContext) -> None:
        graph = snapshot(self._scheduler.graph, self._scheduler.table)
        chosen = self._wanted.tasks
        in_graph = {
            int(task): int(row)
            for row, task in zip(
                np.flatnonzero(graph.kind == NodeKind.TASK),
                graph.number[graph.kind == NodeKind.TASK],
                strict=True,
            )
        }
        shown = [row for task, row in in_graph.items() if not chosen or task in chosen]
        if chosen and not shown:
            return
        if not chosen and self._is_too_large(number, graph):
            return
        claimed = dict(zip(plan.task.tolist(), plan.machine.tolist(), strict=True))
        running = dict(zip(graph.running.tolist(), graph.machine.tolist(), strict=True))
        machine_of = running | claimed
        goes_to = {row: machine_of[task] for task, row in in_graph.items() if task in machine_of}
        ways = Ways(graph, goes_to)
        found = {row: ways.of(row) for row in shown}
        part = neighbourhood(graph, found) if chosen else whole(graph, found)
        if chosen and self._is_too_large(number, part.graph):
            return
        self._into.rounds.append(
            RecordedRound(
                number=number,
                at_us=context.now_us,
                graph=part.graph,
                hidden=part.hidden,
                tasks=self._facts(part, plan, claimed, running),
                ways=part.ways,
                offered=tasks.task.tolist(),
                heard=tuple(self._heard),
                placed=len(plan.task),
                waiting=len(graph.waiting) - len(np.intersect1d(graph.waiting, plan.task)),
                evicted=len(plan.evict),
            )
        )

    def _is_too_large(self, number: int, graph: GraphSnapshot) -> bool:
        nodes, arcs = len(graph.kind), len(graph.arc)
        if nodes > MOST_NODES or arcs > MOST_ARCS:
            self._into.too_large = number, nodes, arcs
        return self._into.too_large is not None

    def _facts(
        self,
        part: Neighbourhood,
        plan: Plan,
        claimed: dict[int, int],
        running: dict[int, int],
    ) -> dict[int, TaskFacts]:
        graph, table = part.graph, self._scheduler.table
        row = np.flatnonzero(graph.kind == NodeKind.TASK)
        task = graph.number[row]
        in_table = table.rows(task)
        batch = table.batch(in_table)
        evicted = np.isin(table.allocation[in_table], plan.evict) & np.isin(task, graph.running)
        return {
            int(row[i]): TaskFacts(
                task=int(task[i]),
                job=int(batch.job[i]),
                gang=int(batch.gang[i]),
                priority=int(batch.priority[i]),
                request=tuple(batch.request[i].tolist()),
                submit_us=int(batch.submit_us[i]),
                machine=running.get(int(task[i])),
                claimed=claimed.get(int(task[i])),
                evicted=bool(evicted[i]),
            )
            for i in range(len(row))
        }


class Watch:
    """Records one flow scheduler of a run, by its name: a parsync.runtime.assembly.SchedulerWatch.

    Attributes:
        recording: What was recorded.
        flow_schedulers: The names of all flow schedulers that were made.

    Args:
        wanted: Which rounds.
        name: The scheduler's; "": the first flow scheduler.
    """

    def __init__(self, wanted: Wanted, name: str = "") -> None:
        self.recording = Recording()
        self.flow_schedulers: list[str] = []
        self._wanted = wanted
        self._name = name

    def __call__(self, name: str, scheduler: Scheduler) -> Scheduler:
        if not isinstance(scheduler, FlowScheduler):
            return scheduler
        self.flow_schedulers.append(name)
        if self._name not in ("", name):
            return scheduler
        self._name = name
        return RoundRecorder(scheduler, self._wanted, self.recording)

    @property
    def scheduler(self) -> str:
        """The name of the recorded scheduler."""
        return self._name
