"""One agent with a scripted scheduler and a real cell, told every event by a test."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from parsync.core import events
from parsync.core.addresses import CELL_SIDE
from parsync.core.effects import Effect, Send, SetTimer, StartDecision
from parsync.core.event import Event
from parsync.core.events import CommitReply, CommitRequest, SyncReply, SyncRequest
from parsync.protocols.optimistic.agent import OptimisticAgent
from parsync.protocols.optimistic.events import RoundDue
from parsync.protocols.optimistic.options import OptimisticOptions, make_strategy
from parsync.protocols.optimistic.sync import SyncContext, make_sync_policy
from parsync.protocols.spec import AgentEnvironment, Environment, Member
from schedulers.decision_clock import Modelled
from schedulers.interface import (
    Capability,
    ClaimedPlan,
    PendingReason,
    Plan,
    PlanContext,
    TaskChanges,
)
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int64, PreferenceCatalog, TaskBatch
from shared_state.transaction import CommitMode, Transaction
from shared_state.view import ClusterView

OPTIONS = OptimisticOptions(
    sync="state_aligned",
    gap_s=0.01,
    cut_at_sync=False,
    commit_pipelining=False,
    commit_mode=CommitMode.INCREMENTAL,
)
POLICY = OPTIONS
SAMPLE_US = 100_000
TASK_NS = 100_000


def none(dtype: type = np.int64) -> np.ndarray:
    return np.zeros(0, dtype)


def make_table(n: int) -> TaskBatch:
    return TaskBatch(
        np.arange(n),
        np.zeros(n, np.int64),
        np.ones((n, 1), np.int64),
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        np.full(n, -1, np.int64),
        np.zeros(n, np.int8),
    )


class LowestFree:
    """Claims the lowest machines the view shows free, or those of `script` while it lasts."""

    planner = None

    def __init__(self, table: TaskBatch) -> None:
        self.table = table
        self.script: list[list[int]] = []
        self.offered: list[list[int]] = []
        self.contexts: list[PlanContext] = []
        self.seen: list[TaskChanges] = []
        self.too_large: set[int] = set()
        self.retry_at_us: list[int] = []  # of the next plans, while it lasts

    def plan(self, tasks: TaskBatch, view: ClusterView, context: PlanContext) -> Plan:
        self.offered.append(tasks.task.tolist())
        self.contexts.append(context)
        fits = np.array([task not in self.too_large for task in tasks.task.tolist()], bool)
        free = self.script.pop(0) if self.script else np.flatnonzero(view.free[:, 0] > 0).tolist()
        rows = np.flatnonzero(fits)[: len(free)]
        machine = np.array(free[: len(rows)], np.int32)
        waiting = np.setdiff1d(np.arange(len(tasks)), rows)
        reason = np.where(fits[waiting], PendingReason.NO_ROOM, PendingReason.TOO_LARGE).astype(
            np.int8
        )
        return Plan(
            tasks.task[rows],
            machine,
            np.ascontiguousarray(tasks.request[rows]),
            tasks.gang[rows],
            none(),
            tasks.task[waiting],
            reason,
            len(rows),
            len(rows),
            retry_at_us=self.retry_at_us.pop(0) if self.retry_at_us else None,
        )

    def plan_and_claim(self, task: Int64, view: ClusterView, context: PlanContext) -> ClaimedPlan:
        tasks = self.table.take(task)
        return ClaimedPlan.claim(self.plan(tasks, view, context), tasks, view)

    def observe(self, changes: TaskChanges) -> None:
        self.seen.append(changes)

    def take_new_demand(self) -> Int64:
        return none()


class Bench:
    """One agent, one cell, no time but what a test says."""

    def __init__(
        self,
        machines: int = 4,
        policy: OptimisticOptions = POLICY,
        sync: str = "state_aligned",
        strategy: str = "optimistic",
        index: int = 0,
        agents: int = 2,
        partitions: int = 2,
        start_us: int = 0,
        capabilities: Iterable[Capability] = (),
    ) -> None:
        spec = CellSpec(
            ("slots",),
            np.ones((machines, 1), np.int64),
            np.arange(machines, dtype=np.int32),
            np.zeros(machines, np.int64),
            np.array([1000]),
        )
        partitioning = Partitioning.by_topology(spec, partitions)
        self.cell = Cell(spec, partitioning)
        self.table = make_table(100)
        self.scheduler = LowestFree(self.table)
        member = Member("agent", 0, agents, OPTIONS, frozenset(capabilities))
        shared = Environment(
            1,
            (member,),
            spec,
            partitioning,
            PreferenceCatalog.empty(),
            self.table,
            CELL_SIDE,
            SAMPLE_US,
        )
        context = SyncContext(10_000, partitions, index, agents, stream=0)
        self.agent = OptimisticAgent(
            AgentEnvironment(
                shared,
                index,
                f"agent-{index}",
                member,
                self.scheduler,  # type: ignore[arg-type]
                Modelled(0, TASK_NS, 0),
                None,
            ),
            policy,
            make_strategy(strategy, 5_000),
            make_sync_policy(sync, {}, context),
            context,
        )
        self.started: list[StartDecision] = []
        self.tell(start_us, events.Started(0))
        self.sync(start_us)

    def tell(self, now_us: int, event: Event) -> list[Effect]:
        """What the agent does, up to the end of the instant: a round that is due begins."""
        self.effects = self.agent.handle(now_us, event)
        rounds = [timer for timer in self.effects if timer == SetTimer(now_us, RoundDue())]
        for timer in rounds:
            self.effects.remove(timer)
            self.effects += self.agent.handle(now_us, timer.event)
        self.started += [effect for effect in self.effects if isinstance(effect, StartDecision)]
        return self.effects

    def submit(self, now_us: int, *tasks: int) -> None:
        self.tell(now_us, events.TasksSubmitted(np.array(tasks)))

    def sent(self, kind: type) -> list:
        return [
            effect.event
            for effect in self.effects
            if isinstance(effect, Send) and isinstance(effect.event, kind)
        ]

    def sync(self, now_us: int, epoch: int = 0) -> None:
        """Answer the sync requests in the last effects."""
        for request in self.sent(SyncRequest):
            deltas = tuple(
                self.cell.delta_since(int(p), int(v), now_us, request.with_seqnum)
                for p, v in zip(request.partition, request.version, strict=True)
            )
            self.tell(now_us, SyncReply(epoch, deltas))

    def decide(self, now_us: int) -> int:
        """Carry out the one StartDecision since the last; the decision time."""
        [start] = self.started
        self.started = []
        self.agent.decide(start.decision, now_us)
        taken_us = self.agent.decision_us(0)
        self.tell(now_us + taken_us, events.DecisionDone(start.decision, 0))
        return taken_us

    def commit(self, now_us: int) -> None:
        """Grant or reject what the agent asked for in its last effects."""
        [request] = self.sent(CommitRequest)
        self.tell(
            now_us, CommitReply(0, self.agent.index, self.cell.commit(request.transaction, now_us))
        )

    def rival_takes(self, *machines: int) -> np.ndarray:
        """The allocations, int64[n]."""
        n = len(machines)
        task = np.arange(50, 50 + n)
        taken = Transaction(
            7,
            1,
            task,
            np.array(machines, np.int32),
            np.ones((n, 1), np.int64),
            np.zeros(n, np.int64),
        )
        return self.cell.commit(taken, 0).allocation


def answer(bench: Bench, request: CommitRequest, now_us: int) -> list[Effect]:
    return bench.tell(
        now_us, CommitReply(0, bench.agent.index, bench.cell.commit(request.transaction, now_us))
    )
