"""What every metric of a run knows of it: its agents, its partitions, its jobs, and the windows in
which figures count.

A load phase counts from `settle_us` after its start to its end. Counts are kept by slot: one for
the window of each phase, one for what falls outside every window (warm-up, the first task length of
each phase, the drain), which only totals include, and one for what was submitted at time 0 outside
every window (the tasks that wait as a trace begins), for figures of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsync.metrics._native import slots_of
from parsync.metrics.quantity import Quantity
from parsync.workload.workload import Phase, TaskGangs
from shared_state.tasks import Int32, Int64

BUCKET_US = 250_000  # the width of the buckets of time series
NOT_IN_JOB = -1


@dataclass(frozen=True, slots=True)
class Group:
    """Agents of one kind in a mix."""

    name: str
    agents: tuple[int, ...]


class PlacementValue(Protocol):
    """What placements got of something, over what there was to get, e.g. input data that is on the
    machine."""

    @property
    def quantity(self) -> Quantity:
        """What the figure is called, and which direction is better."""
        ...

    def of(self, task: Int64, machine: Int32) -> tuple[Int64, Int64]:
        """What each task got on its machine and what there was to get, int64[n] each. The figure is
        the ratio of their sums."""
        ...


@dataclass(frozen=True, slots=True)
class TaskPreferences:
    """What each task of a run prefers, and when it is submitted: columns by task id.

    Attributes:
        preference: int32[tasks], a set of the PreferenceCatalog; 0 is none.
        submit_us: int64[tasks].
    """

    preference: Int32
    submit_us: Int64


@dataclass(eq=False)
class RunFrame:
    """A run's agents, partitions and windows; the same for all metrics of a run, and never changed
    by them.

    Attributes:
        phases: Ascending, not overlapping.
        agents: How many; their ids are 0..agents-1.
        partitions: Of the cell.
        settle_us: Left out at the start of each phase.
        bucket_us: Width of the buckets of time series.
        groups: One group of all agents, if none are given.
        job_of: int64[tasks], the job of each task id, NOT_IN_JOB for those running before the run
            began. Without it there are no job figures.
        run_us: int64[tasks], how long each runs on a machine that it does not prefer; negative if
            it never ends, so that its job never finishes. Without it all end, and there are no
            slowdowns.
        services: bool[tasks], tasks of service jobs (default: none).
        values: Further figures of first commits.
        preferences: Of each task id. Without it, or without job_of, there are no figures by
            preference set.
        gangs: Of the tasks; None if there are none.
        preempts: Whether schedulers of the run may end running tasks for others, or to place them
            better.
        flows: Whether schedulers of the run place tasks by a flow.
        brought: The names of the tables that the protocols of the run bring.
        priority: int32[tasks], where tasks may end for those of others that are of higher priority;
            None elsewhere.
        preferred_permille: The run time of a task on a preferred machine, in thousandths of that
            on others (alpha).
        jobs: The places of the jobs; None without job_of.
        service_jobs: bool[jobs], by their places; None where no job is a service.
        group_of: int64[agents], the number of each one's group.
        edges: Begin and end of the window of each phase, int64.
        outside: The slot of what is outside every window.
        start: The slot of time 0, if that is outside every window.
        slots: How many there are.

    Raises:
        ValueError: For a phase that settle_us leaves empty, overlapping phases, or an agent that is
            not in exactly one group.
    """

    phases: Sequence[Phase]
    agents: int
    _: KW_ONLY
    partitions: int
    settle_us: int = 0
    bucket_us: int = BUCKET_US
    groups: Sequence[Group] = ()
    job_of: Int64 | None = None
    run_us: Int64 | None = None
    services: NDArray[np.bool_] | None = None
    values: Sequence[PlacementValue] = ()
    preferences: TaskPreferences | None = None
    gangs: TaskGangs | None = None
    preempts: bool = False
    flows: bool = False
    brought: Set[str] = frozenset()
    priority: Int32 | None = None
    preferred_permille: int = 1000
    jobs: JobIndex | None = field(init=False)
    service_jobs: NDArray[np.bool_] | None = field(init=False)
    group_of: Int64 = field(init=False)
    edges: Int64 = field(init=False)
    outside: int = field(init=False)
    start: int = field(init=False)
    slots: int = field(init=False)

    def __post_init__(self) -> None:
        if self.agents < 1 or self.partitions < 1 or self.settle_us < 0 or self.bucket_us < 1:
            raise ValueError(
                "metrics: agents, partitions and bucket_us must be positive, settle_us not negative"
            )
        self.phases, self.values = tuple(self.phases), tuple(self.values)
        self.groups = tuple(self.groups) or (Group("all", tuple(range(self.agents))),)
        self.jobs = None if self.job_of is None else JobIndex(self.job_of)
        self.service_jobs = self._service_jobs()
        grouped = [agent for group in self.groups for agent in group.agents]
        if sorted(grouped) != list(range(self.agents)):
            raise ValueError("metrics: groups must hold every agent exactly once")
        self.group_of = np.zeros(self.agents, np.int64)
        for number, group in enumerate(self.groups):
            self.group_of[list(group.agents)] = number
        self.edges = self._window_edges()
        self.outside = len(self.phases)
        self.start = self.outside + 1
        self.slots = self.start + 1

    def same_run(self, other: RunFrame) -> bool:
        """Whether counts made within both frames may be added up."""
        return (self.phases, self.groups, self.partitions, self.slots) == (
            other.phases,
            other.groups,
            other.partitions,
            other.slots,
        )

    @property
    def fastest_us(self) -> Int64:
        """The run time of each task where it runs fastest, int64[tasks]: on a preferred machine, if
        it prefers any. Only with run_us."""
        assert self.run_us is not None
        if self.preferences is None:
            return self.run_us
        prefers = self.preferences.preference > 0
        return np.where(prefers, self.run_us * self.preferred_permille // 1000, self.run_us)

    def slot_of(self, at_us: Int64) -> Int64:
        """The slot of each time: the number of the phase whose window holds it, or `start` or
        `outside`."""
        return slots_of(self.edges, np.asarray(at_us, np.int64))

    def window_us(self, slots: Iterable[int]) -> int:
        """How long the windows of some phases are, together."""
        phases = [self.phases[slot] for slot in slots]
        return sum(phase.end_us - phase.start_us - self.settle_us for phase in phases)

    def _service_jobs(self) -> NDArray[np.bool_] | None:
        if self.jobs is None or self.job_of is None or self.services is None:
            return None
        found = self.jobs.having(self.services, self.job_of)
        return found if found.any() else None

    def _window_edges(self) -> Int64:
        edges: list[int] = []
        for phase in self.phases:
            length_us = phase.end_us - phase.start_us
            if self.settle_us >= length_us:
                raise ValueError(
                    f"phase at {phase.start_us / 1e6:g} s ({phase.load_percent} %): "
                    f"{length_us / 1e6:g} s long, all of it within the "
                    f"{self.settle_us / 1e6:g} s left out at the start of each phase"
                )
            if edges and phase.start_us < edges[-1]:
                raise ValueError(
                    f"phase at {phase.start_us / 1e6:g} s begins before the previous one ends"
                )
            edges += [phase.start_us + self.settle_us, phase.end_us]
        return np.array(edges, np.int64)


class JobIndex:
    """The places of a run's jobs, 0..jobs-1 in the order of their ids: what sums by job are kept
    by.

    Args:
        job_of: int64[tasks], the job of each task id; negative for tasks in no job.

    Attributes:
        ids: int64[jobs], ascending. A job of which all tasks ran before the run began has none.
    """

    def __init__(self, job_of: Int64) -> None:
        self.ids = np.unique(job_of[job_of >= 0])
        self._dense = len(self.ids) == 0 or int(self.ids[-1]) == len(self.ids) - 1

    def __len__(self) -> int:
        return len(self.ids)

    def having(self, chosen: NDArray[np.bool_], job_of: Int64) -> NDArray[np.bool_]:
        """Which jobs have a chosen task: bool[jobs], by their places.

        Args:
            chosen: bool[tasks].
            job_of: int64[tasks], as given to the index.
        """
        found = np.zeros(len(self), np.bool_)
        found[self.places(job_of[chosen & (job_of >= 0)])] = True
        return found

    def places(self, job: Int64) -> NDArray[np.intp]:
        """The place of each of these jobs, which the run has."""
        if self._dense:
            return job.astype(np.intp, copy=False)
        return np.searchsorted(self.ids, job)


DAY_US = 86_400_000_000
# Runs of less than two days are divided into so many parts, which stand for days.
PARTS = 10


class Days:
    """The days of a run, or its tenths if it is shorter than two days.

    Attributes:
        length_us: Of a day.
        count: How many there are; the last one may be shorter.
    """

    def __init__(self, run: RunFrame) -> None:
        self._run = run
        end_us = max(phase.end_us for phase in run.phases)
        self.length_us = DAY_US if end_us >= 2 * DAY_US else max(1, end_us // PARTS)
        self.count = -(-end_us // self.length_us)

    def of(self, at_us: Int64) -> Int64:
        """The day of each time; times after the last day count on the last day."""
        day: Int64 = np.clip(at_us // self.length_us, 0, self.count - 1)
        return day

    def is_whole(self, counted_us: NDArray[np.number]) -> NDArray[np.bool_]:
        """Whether enough of each day counts, float or int64[days]: at least half of it. Days of
        which the windows hold little say little."""
        whole: NDArray[np.bool_] = counted_us >= self.length_us / 2
        return whole

    def counted_us(self, slots: Iterable[int]) -> Int64:
        """How much of each day the windows of some phases hold: int64[days]."""
        counted = np.zeros(self.count, np.int64)
        begin_us = np.arange(self.count, dtype=np.int64) * self.length_us
        for slot in slots:
            phase = self._run.phases[slot]
            from_us = np.maximum(begin_us, phase.start_us + self._run.settle_us)
            to_us = np.minimum(begin_us + self.length_us, phase.end_us)
            counted += np.maximum(to_us - from_us, 0)
        return counted
