"""ParSync with another retry rule: a task whose claim was rejected is decided again, before all
others, once the partition of its conflict has been refreshed.

ParSync decides it again at once (section 4.3), on a view that has just proved outdated.
"""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from parsync.core.effects import SetTimer
from parsync.core.event import Event, Priority
from parsync.metrics.tables import Waiting
from parsync.protocols.agent_view import AgentView
from parsync.protocols.optimistic.agent import make_queue
from parsync.protocols.optimistic.options import DelayAverage, OptimisticOptions, RoundRankings
from parsync.protocols.optimistic.sync import SyncContext, SyncSchedule, make_sync_policy
from parsync.protocols.pending_queue import WaitingPart
from parsync.protocols.scheduler_agent import SchedulerAgent
from parsync.protocols.spec import ProtocolCapability, ProtocolSpec
from schedulers.interface import Capability
from shared_state.errors import AgoraError

KIND = "retry_at_sync"


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    gap_s: float = Field(gt=0, le=1e6, description="the synchronisation gap G in seconds")
    tau_s: float = Field(0.8, ge=1e-6, le=1e6, description="the delay at which adaptive switches")

    @property
    def parsync(self) -> OptimisticOptions:
        same = {"sync": "diff_block", "strategy": "adaptive", "commit_mode": "incremental"}
        return OptimisticOptions(**same, gap_s=self.gap_s, tau_s=self.tau_s)


@dataclass(frozen=True, slots=True)
class SyncDue(Event):  # timer: the k-th periodic synchronisation
    kind: ClassVar[str] = KIND
    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.SYNC
    k: int


@dataclass(frozen=True, slots=True)
class RoundDue(Event):  # timer: everything of this instant has been handled
    kind: ClassVar[str] = KIND
    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.START


class ParSyncAgent(SchedulerAgent):
    """ParSync adaptive on DiffSyn, as the optimistic protocol has it."""

    def __init__(self, environment):
        shared, member = environment.shared, environment.member
        self.partitioning, partitions = shared.partitioning, shared.partitioning.count
        options, capabilities = member.options.parsync, member.capabilities
        place = environment.index - member.first_agent
        context = SyncContext(options.gap_us, partitions, place, member.count, stream=0)
        policy = make_sync_policy(options.sync, {}, context)
        self.sync = SyncSchedule(policy, partitions)
        self.rankings = RoundRankings(options.make_strategy(), None, shared.table.task_class)
        self.average = DelayAverage(options.average_permille)
        super().__init__(
            environment,
            AgentView(environment, first_turn=place * partitions // member.count),
            make_queue(options, capabilities, shared.table, shared.catalog),
            pipelines=Capability.WAITS_FOR_OUTCOME not in capabilities,
        )
        self.ranking = self.rankings.ranking

    def on_started(self, now_us):
        return [*super().on_started(now_us), *sync_timer(self.sync.start(now_us))]

    def on_event(self, now_us, event):
        match event:
            case SyncDue(k):
                load = self.view.used_permille
                known = now_us, k, self.average_us, self.queued, load
                partition, following = self.sync.on_due(*known)
                return self.view.request(partition) + sync_timer(following)
            case RoundDue():
                return self.open_round(now_us)
        return super().on_event(now_us, event)

    def start_round(self, now_us):
        return [SetTimer(now_us, RoundDue())]

    def compose(self, now_us, begins):
        if begins:
            self.rankings.begin_batch(self.average_us)
        ranking = self.rankings.ranking
        return ranking, self.tasks_by(now_us, self.sync.next_us, ranking)

    def on_outcome(self, now_us, round_, result, first_commits, delay_us):
        self.average.add(delay_us, first_commits, round_.batch_size)
        self.average_us = self.average.us


class Agent(ParSyncAgent):
    """The same with the other retry rule."""

    def __init__(self, environment):
        super().__init__(environment)
        self.rejected = {}  # by partition that is to be refreshed: rounds and their losers there

    def on_losers(self, now_us, round_, losers, machine):
        if len(losers):
            partition = self.partitioning.of(machine)
            for one in set(partition.tolist()):
                part = losers.take(partition == one)
                self.rejected.setdefault(one, []).append((round_, part))
        return []

    def on_synced(self, now_us, reply):
        for delta in reply.deltas:
            for round_, losers in self.rejected.pop(delta.partition, []):
                self.queue.on_committed(round_, losers)
        return super().on_synced(now_us, reply)

    def waiting(self, now_us):
        rejected = [losers for parts in self.rejected.values() for _, losers in parts]
        parts = [WaitingPart(losers.task, Waiting.REJECTED) for losers in rejected]
        return super().waiting(now_us) + parts


def sync_timer(due):
    return [] if due is None else [SetTimer(due[0], SyncDue(due[1]))]


def check(members, partitions):
    for member in members:
        if Capability.KEEPS_PENDING in member.capabilities:
            keeps = "its kind of scheduler keeps rejected tasks itself"
            raise AgoraError(f"group '{member.name}': {KIND}: {keeps}")


NEEDS = frozenset({ProtocolCapability.RUNS_SCHEDULERS, ProtocolCapability.SYNCHRONISES})
EVENTS = (SyncDue, RoundDue)
GAP = {"gap_us": lambda of: of.parsync.gap_us, "gap_options": lambda of, us: {"gap_s": us / 1e6}}
SPEC = ProtocolSpec(KIND, Options, Agent, events=EVENTS, capabilities=NEEDS, check=check, **GAP)
