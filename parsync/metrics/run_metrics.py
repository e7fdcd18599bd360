"""One definition of every figure: accumulators over Record batches, for the live line, the summary
and the report.

Counting windows. A load phase counts from `settle_us` after its start to its end; what falls
outside every window (warm-up, the first task length of each phase, the drain) goes to an extra slot
that only `totals` includes; what was submitted at time 0 outside every window (the tasks that wait
as a trace begins) to another, for figures of its own. Submissions, delays and quality belong to the
window of the task's *submission*, so that a task that waits into the next phase is charged to the
phase that made it wait; transactions, claims, conflicts and throughput to the window in which the
answer came. See metrics_summary.py for the figures made of these counts.

Cost. Batches are held back and added up together (record_buffer.py): about 1 us per batch and less
than 1 us per task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import histogram
from parsync.metrics.jobs import NOT_IN_JOB, JobMetrics
from parsync.metrics.live import LiveLine, SchedulerLine, Snapshot
from parsync.metrics.record_buffer import Columns, RecordBuffer, Table
from schedulers.interface import ChangeKind
from shared_state.tasks import Int64
from shared_state.transaction import CONFLICTS, Reason

__all__ = ["NOT_IN_JOB", "Group", "Outcome", "PhaseLike", "RunMetrics", "SchedulerLine", "Snapshot"]

_HELD_ROWS = 1 << 14
_HELD_BATCHES = 1 << 10

BY_SUBMISSION = (
    "submitted",
    "submitted_prefers",
    "committed",
    "delay_us",
    "attempts",
    "cost",
    "preferred",
)
PER_TRANSACTION = (
    "decision_us",
    "claims",
    "accepted",
    "stale",
    "full",
    "machine_down",
    "evicted",
    "gang",
    "duplicate",
)
BY_ANSWER = (
    "first_commits",
    "transactions",
    "conflicted_transactions",
    *PER_TRANSACTION,
    "age_us",
    "aged_claims",
)
BY_END = ("ended_finished", "ended_evicted", "ended_lost", "unplaceable", "abandoned")
AT_THE_END = ("still_running",)  # in no window
COUNTERS = BY_SUBMISSION + BY_ANSWER + BY_END + AT_THE_END
SERIES = (
    "submitted",
    "committed",
    "delay_us",
    "submitted_prefers",
    "preferred",
    "first_commits",
    "claims",
    "conflicts",
)
_ENDED = {
    ChangeKind.FINISHED: "ended_finished",
    ChangeKind.EVICTED: "ended_evicted",
    ChangeKind.LOST: "ended_lost",
}


class PhaseLike(Protocol):
    """A stretch of offered load (parsync.workload.workload.Phase)."""

    @property
    def start_us(self) -> int: ...
    @property
    def end_us(self) -> int: ...
    @property
    def load_percent(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Group:
    """Agents of one kind in a mix."""

    name: str
    agents: tuple[int, ...]


class PlacementValue(Protocol):
    """Another figure of placements, by its name: what they got of something over what there was to
    get, e.g. the input that lies near."""

    @property
    def name(self) -> str: ...

    def of(self, task: Int64, machine: NDArray[np.int32]) -> tuple[Int64, Int64]:
        """Of each task on its machine: (what it got, what there was), int64[n] each. Figures are
        their sums' ratios."""
        ...


class Outcome:
    """First axis of the counts by age of state."""

    ACCEPTED = 0
    CONFLICT = 1
    OTHER = 2
    COUNT = 3


class Series:
    """Counts of named quantities by agent and time bucket; grows with time."""

    def __init__(self, names: Sequence[str], agents: int, bucket_us: int) -> None:
        self.names = tuple(names)
        self.bucket_us = bucket_us
        self.counts = np.zeros((len(names), agents, 64), np.int64)

    def add(
        self, name: str, agent: NDArray[Any], at_us: Int64, weight: Int64 | None = None
    ) -> None:
        if not len(agent):
            return
        bucket = np.maximum(at_us, 0) // self.bucket_us
        self._reach(int(bucket.max()) + 1)
        np.add.at(
            self.counts[self.names.index(name)], (agent, bucket), 1 if weight is None else weight
        )

    def merge(self, other: Series) -> None:
        self._reach(other.counts.shape[2])
        self.counts[:, :, : other.counts.shape[2]] += other.counts

    def _reach(self, buckets: int) -> None:
        missing = buckets - self.counts.shape[2]
        if missing > 0:
            grown = max(missing, self.counts.shape[2])
            self.counts = np.concatenate(
                [self.counts, np.zeros((*self.counts.shape[:2], grown), np.int64)], axis=2
            )


class RunMetrics:
    """Accumulates the Record batches of one arm of a run.

    phases: ascending, not overlapping. agents: ids 0..agents-1. partitions: of the cell. settle_us:
    left out at the start of each phase.
    bucket_us: width of the time series' buckets. groups: default one group of all agents. job_of:
    int64[tasks], the job of each task id, NOT_IN_JOB for those running before the run began;
    without it there are no job metrics. endless: bool[tasks], tasks that never end, whose jobs
    therefore never finish (default: none). values: further figures of first commits. Parts recorded
    by several actors with equal arguments are combined with merge(). Raises ValueError for a phase
    that settle_us leaves empty, overlapping phases, or an agent in two groups.
    """

    def __init__(
        self,
        phases: Sequence[PhaseLike],
        agents: int,
        *,
        partitions: int,
        settle_us: int = 0,
        bucket_us: int = 250_000,
        groups: Sequence[Group] | None = None,
        job_of: Int64 | None = None,
        endless: NDArray[np.bool_] | None = None,
        values: Sequence[PlacementValue] = (),
    ) -> None:
        if agents < 1 or partitions < 1 or settle_us < 0 or bucket_us < 1:
            raise ValueError(
                "metrics: agents, partitions and bucket_us must be positive, settle_us not negative"
            )
        self.phases = tuple((phase.start_us, phase.end_us, phase.load_percent) for phase in phases)
        self.groups = tuple(groups) if groups else (Group("all", tuple(range(agents))),)
        self.agents, self.partitions, self.settle_us = agents, partitions, settle_us
        grouped = [agent for group in self.groups for agent in group.agents]
        if sorted(grouped) != list(range(agents)):
            raise ValueError("metrics: groups must hold every agent exactly once")
        self._edges = self._window_edges()
        self._outside = len(self.phases)  # slot of what is outside every window
        self.start = self._outside + 1  # slot of time 0, if that is outside every window
        self.slots = self.start + 1
        self._group_of = np.zeros(agents, np.int64)
        for number, group in enumerate(self.groups):
            self._group_of[list(group.agents)] = number

        self.count = {name: np.zeros((agents, self.slots), np.int64) for name in COUNTERS}
        self._values = tuple(values)
        self.value = {value.name: np.zeros((2, agents, self.slots), np.int64) for value in values}
        self.delays = np.zeros((agents, self.slots, histogram.BUCKETS), np.int64)
        self.ages = np.zeros((len(self.groups), Outcome.COUNT, histogram.BUCKETS), np.int64)
        self.rivals = np.zeros(
            (agents, agents + 1), np.int64
        )  # conflicts of row with column (itself: nobody else claimed the machine); the last column: rival unknown
        self.sync_count, self.sync_rows, self.sync_age_max_us = np.zeros(
            (3, agents, partitions), np.int64
        )
        self.sync_age_us = np.zeros((agents, partitions), np.int64)
        # us^2 overflows int64 within minutes
        self.sync_age_squared = np.zeros((agents, partitions), np.float64)
        self.series = Series(SERIES, agents, bucket_us)
        # by agent and slot
        self._waiting = Series(("tasks", "since_us"), agents * self.slots, bucket_us)
        self.jobs = JobMetrics(job_of, agents, self.slots, endless) if job_of is not None else None
        self.last_commit_us = 0
        self.last_us = 0  # how far the run was watched: what had not happened by then took longer
        self._samples: dict[str, list[Table]] = {"cell": [], "agents": [], "rounds": []}
        self._live = LiveLine(agents)
        self._held = RecordBuffer(_HELD_ROWS, _HELD_BATCHES)
        self._take = {
            "submissions": self._submissions,
            "tasks": self._tasks,
            "commits": self._commits,
            "rejections": self._rejections,
            "syncs": self._syncs,
            "ends": self._ends,
            "cell": self._cell,
            "agents": self._agent_samples,
            "unplaceable": self._unplaceable,
            "rounds": self._rounds,
        }

    def __getstate__(self) -> dict[str, Any]:
        """What another process is told: sums to merge, without the tables that values rest on."""
        self.flush()
        return {**self.__dict__, "_values": ()}

    def add(self, table: str, columns: Columns) -> None:
        """One Record batch: equal-length columns of a table of TABLES. The arrays are kept for a
        while and must not change."""
        rows = self._held.add(table, columns)
        if rows is not None:
            self._take[table](rows)

    def flush(self) -> None:
        """Add up what is held back. Reading a field of this object is preceded by it."""
        for table, rows in self._held.drain():
            self._take[table](rows)

    def snapshot(self, at_us: int, agents: Iterable[int] | None = None) -> Snapshot:
        """The live line of `agents` (default all) since the last call."""
        self.flush()
        return self._live.take(at_us, range(self.agents) if agents is None else agents)

    def merge(self, other: RunMetrics) -> None:
        """Add what another accumulator, made with equal arguments, recorded."""
        if (self.phases, self.groups, self.partitions, self.slots) != (
            other.phases,
            other.groups,
            other.partitions,
            other.slots,
        ):
            raise ValueError("metrics: only parts of the same run can be merged")
        self.flush()
        other.flush()
        for name, counts in self.count.items():
            counts += other.count[name]
        for name, sums in self.value.items():
            sums += other.value[name]
        for name in (
            "delays",
            "ages",
            "rivals",
            "sync_count",
            "sync_rows",
            "sync_age_us",
            "sync_age_squared",
        ):
            mine: NDArray[Any] = getattr(self, name)
            mine += getattr(other, name)
        np.maximum(self.sync_age_max_us, other.sync_age_max_us, out=self.sync_age_max_us)
        self.series.merge(other.series)
        self._waiting.merge(other._waiting)
        if self.jobs is not None and other.jobs is not None:
            self.jobs.merge(other.jobs)
        self.last_commit_us = max(self.last_commit_us, other.last_commit_us)
        self.last_us = max(self.last_us, other.last_us)
        for name, tables in self._samples.items():
            tables.extend(other._samples[name])

    def samples(self, table: str) -> Table:
        """All rows of "cell", "agents" or "rounds", by time, then agent."""
        self.flush()
        tables = self._samples[table]
        if not tables:
            return {}
        joined = {name: np.concatenate([part[name] for part in tables]) for name in tables[0]}
        agent = joined.get("agent", np.zeros(len(joined["at_us"]), np.int32))
        order = np.lexsort((agent, joined["at_us"]))
        return {name: column[order] for name, column in joined.items()}

    def slot_of(self, at_us: Int64) -> NDArray[np.intp]:
        """The phase whose window holds each time, or a number from that of the phases on where none
        does."""
        place = np.searchsorted(self._edges, at_us, side="right")
        return np.where(place & 1, place >> 1, np.where(at_us <= 0, self.start, self._outside))

    def window_us(self, slots: Iterable[int]) -> int:
        """How long the windows of some phases are, together."""
        return sum(self.phases[slot][1] - self.phases[slot][0] - self.settle_us for slot in slots)

    def waiting(self, agents: Iterable[int], slots: Iterable[int]) -> tuple[Int64, Int64]:
        """Tasks of these agents and slots (of submission) that were submitted and never committed,
        gathered by bucket of their submission: how many, and how long those waited, on average,
        until the run was last seen. int64[k] each."""
        counts = self._waiting.counts.reshape(2, self.agents, self.slots, -1)
        tasks, since_us = counts[:, list(agents)][:, :, list(slots)].sum(axis=(1, 2))
        left = tasks > 0
        waited_us: Int64 = self.last_us - since_us[left] // tasks[left]
        return tasks[left], np.maximum(waited_us, 0)

    def _window_edges(self) -> Int64:
        edges: list[int] = []
        for start_us, end_us, load_percent in self.phases:
            if start_us + self.settle_us >= end_us:
                raise ValueError(
                    f"phase at {start_us / 1e6:g} s ({load_percent} %): {(end_us - start_us) / 1e6:g} s long, all of it "
                    f"within the {self.settle_us / 1e6:g} s left out at the start of each phase"
                )
            if edges and start_us < edges[-1]:
                raise ValueError(
                    f"phase at {start_us / 1e6:g} s begins before the previous one ends"
                )
            edges += [start_us + self.settle_us, end_us]
        return np.array(edges, np.int64)

    def _count(
        self, name: str, agent: NDArray[Any], slot: NDArray[np.intp], weight: Int64 | int = 1
    ) -> None:
        np.add.at(self.count[name].reshape(-1), agent * np.int64(self.slots) + slot, weight)

    def _wait(
        self, agent: NDArray[Any], slot: NDArray[np.intp], submit_us: Int64, tasks: Int64
    ) -> None:
        """More of these tasks wait (fewer, if negative)."""
        place = agent * np.int64(self.slots) + slot
        self._waiting.add("tasks", place, submit_us, tasks)
        self._waiting.add("since_us", place, submit_us, tasks * submit_us)

    def _submissions(self, rows: Table) -> None:
        slot = self.slot_of(rows["submit_us"])
        self._see(rows["submit_us"])
        self._wait(rows["agent"], slot, rows["submit_us"], rows["tasks"])
        for name, column in (("submitted", "tasks"), ("submitted_prefers", "prefers")):
            self._count(name, rows["agent"], slot, rows[column])
            self.series.add(name, rows["agent"], rows["submit_us"], rows[column])
        if self.jobs is not None:
            self.jobs.add_submissions(rows, slot)

    def _tasks(self, rows: Table) -> None:
        agent, commit_us = rows["agent"], rows["commit_us"]
        self.last_commit_us = max(self.last_commit_us, int(commit_us.max()))
        self._see(commit_us)
        slot = self.slot_of(rows["submit_us"])
        answer = self.slot_of(commit_us)
        if self.jobs is not None:
            self.jobs.add_tasks(rows, slot)
        self._aged(agent, answer, rows["age_us"], Outcome.ACCEPTED)

        first = rows["first"] == 1
        if not first.all():
            agent, commit_us, slot, answer = (
                agent[first],
                commit_us[first],
                slot[first],
                answer[first],
            )
        delay_us = commit_us - rows["submit_us"][first]
        bucket = histogram.bucket_of(delay_us)
        self._live.add_tasks(rows, first, bucket)
        np.add.at(
            self.delays.reshape(-1),
            (agent * np.int64(self.slots) + slot) * np.int64(histogram.BUCKETS) + bucket,
            1,
        )
        # Those of the start, committed late, are no part of what the arrivals after it get.
        self._count("first_commits", agent, np.where(slot == self.start, self._outside, answer))
        self.series.add("first_commits", agent, commit_us)
        submit_us = rows["submit_us"][first]
        for name, weight in (
            ("committed", 1),
            ("attempts", rows["attempts"][first]),
            ("cost", rows["cost"][first]),
        ):
            self._count(name, agent, slot, weight)
        for value in self._values:
            for sums, part in zip(
                self.value[value.name],
                value.of(rows["task"][first], rows["machine"][first]),
                strict=True,
            ):
                np.add.at(sums, (agent, slot), part)
        self._count("delay_us", agent, slot, delay_us)
        self._wait(agent, slot, submit_us, np.full(len(agent), -1, np.int64))
        self.series.add("committed", agent, submit_us)
        self.series.add("delay_us", agent, submit_us, delay_us)
        hit = rows["preferred"][first] == 1
        self._count("preferred", agent[hit], slot[hit])
        self.series.add("preferred", agent[hit], submit_us[hit])

    def _commits(self, rows: Table) -> None:
        self._live.add_commits(rows)
        agent = rows["agent"]
        slot = self.slot_of(rows["commit_us"])
        conflicts = rows["stale"].astype(np.int64) + rows["full"] + rows["evicted"]
        sent = rows["claims"] > 0
        self._count("transactions", agent[sent], slot[sent])
        self._count("conflicted_transactions", agent[conflicts > 0], slot[conflicts > 0])
        for name in PER_TRANSACTION:
            # what is NOT_KNOWN adds nothing
            self._count(name, agent, slot, np.maximum(rows[name], 0))
        self.series.add("claims", agent, rows["commit_us"], rows["claims"])
        self.series.add("conflicts", agent, rows["commit_us"], conflicts)
        self._see(rows["commit_us"])

    def _rejections(self, rows: Table) -> None:
        slot = self.slot_of(rows["at_us"])
        conflict = np.isin(rows["reason"], CONFLICTS)
        for outcome, mask in ((Outcome.CONFLICT, conflict), (Outcome.OTHER, ~conflict)):
            self._aged(rows["agent"][mask], slot[mask], rows["age_us"][mask], outcome)
        counted = conflict & (slot < self._outside)
        rival = rows["rival"][counted]
        agent = rows["agent"][counted]
        # nobody else claimed the machine
        itself = (rival < 0) & (rows["reason"][counted] != Reason.EVICTED)
        rival = np.where(
            itself, agent, np.where((rival < 0) | (rival >= self.agents), self.agents, rival)
        )
        np.add.at(self.rivals, (agent, rival), 1)

    def _aged(
        self, agent: NDArray[Any], slot: NDArray[np.intp], age_us: Int64, outcome: int
    ) -> None:
        self._count("aged_claims", agent, slot)
        self._count("age_us", agent, slot, age_us)
        counted = slot < self._outside
        place = self._group_of[agent[counted]] * Outcome.COUNT + outcome
        np.add.at(
            self.ages.reshape(-1),
            place * np.int64(histogram.BUCKETS) + histogram.bucket_of(age_us[counted]),
            1,
        )

    def _syncs(self, rows: Table) -> None:
        counted = self.slot_of(rows["at_us"]) < self._outside
        cell = (rows["agent"][counted], rows["partition"][counted])
        age_us = rows["age_us"][counted]
        np.add.at(self.sync_count, cell, 1)
        np.add.at(self.sync_rows, cell, rows["rows"][counted])
        np.add.at(self.sync_age_us, cell, age_us)
        np.add.at(self.sync_age_squared, cell, age_us.astype(np.float64) ** 2)
        np.maximum.at(self.sync_age_max_us, cell, age_us)

    def _ends(self, rows: Table) -> None:
        slot = self.slot_of(rows["end_us"])
        known = rows["agent"] >= 0  # -1: running before any agent existed
        due = rows["due"] == 1
        for change, name in _ENDED.items():
            of_kind = known & ~due & (rows["change"] == change)
            self._count(name, rows["agent"][of_kind], slot[of_kind])
        self._count("still_running", rows["agent"][known & due], slot[known & due])
        if not due.all():
            self._see(rows["end_us"][~due])
        if self.jobs is not None:
            self.jobs.add_ends(rows)

    def _cell(self, rows: Table) -> None:
        self._live.add_cell(rows)
        self._keep("cell", rows)

    def _agent_samples(self, rows: Table) -> None:
        self._live.add_agents(rows)
        self._keep("agents", rows)

    def _unplaceable(self, rows: Table) -> None:
        slot = self.slot_of(rows["at_us"])
        given_up = rows["abandoned"] == 1
        for name, mask in (("abandoned", given_up), ("unplaceable", ~given_up)):
            self._count(name, rows["agent"][mask], slot[mask])

    def _rounds(self, rows: Table) -> None:
        self._keep("rounds", rows)

    def _keep(self, table: str, rows: Table) -> None:
        self._samples[table].append(rows)
        self._see(rows["at_us"])

    def _see(self, at_us: Int64) -> None:
        self.last_us = max(self.last_us, int(at_us.max()))
