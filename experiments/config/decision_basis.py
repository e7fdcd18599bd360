"""What the delays of an arm rest on, and which arms may be compared by them.

A delay depends on how long decisions take, and an experiment chooses that. At equal capacity all
schedulers of an arm together are given the same number of decisions per second (ParSync section
4.3's A), so that delays show how they synchronise and where they place. At their own speed they
show how fast the code is. An arm with both, or one whose groups are given unequal capacities,
stands by itself. So does an arm with a scheduler whose placements have consequences that runs do
not model (Capability.UNMODELLED).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import Field

from experiments.workloads.registry import Outline
from parsync.metrics.quantity import Count, Figures, Number, counted, duration
from parsync.spec.arm import ArmConfig, GroupConfig, decision_clock
from parsync.spec.decision_times import ModelledTime
from schedulers.decision_clock import ClockClass
from schedulers.interface import Capability

LIVE = "live"  # messages took the times that they took
SAME_CAPACITY = 0.01  # relative: shares of the jobs are in permille, so capacities are not exact


class BasisKind(StrEnum):
    """The clock class of an arm."""

    EQUAL_CAPACITY = ClockClass.EQUAL_CAPACITY.value
    OWN_SPEED = ClockClass.OWN_SPEED.value
    MIXED = "mixed"  # both, or capacities that differ between groups
    UNMODELLED = "unmodelled"  # whatever the clocks: what a scheduler places by has no consequences


class DecisionBasis(Figures):
    """What the decision times of an arm stand for.

    Args:
        kind: Its clock class.
        decisions_per_s: At equal capacity: the tasks that all its schedulers can decide per second
            if a decision costs no more than its base cost; None in other classes.
        capacity: These over what arrives per second at 100 % load, ParSync's A; None in other
            classes, and where the workload does not tell.
        scan_cost: At equal capacity: what looking at all partitions adds, in parts of the base
            cost; None in other classes.
        arrivals_per_s: The tasks that arrive per second at 100 % load; None where the workload does
            not tell.
        cores: Schedulers, each of which decides on a core of its own.
        message_us: The time of a message in virtual time.
        measured_times: What the times of messages were measured on where they do not take
            message_us: LIVE, or the digest of a calibration; "" where they do.
    """

    kind: BasisKind = Field(strict=False)  # a plain string in JSON
    decisions_per_s: Number | None = None
    capacity: Number | None = None
    scan_cost: Number | None = None
    arrivals_per_s: Number | None = None
    cores: Count
    message_us: Count
    measured_times: str = ""

    @property
    def live(self) -> DecisionBasis:
        """The basis of the same arm's live run, whose times were measured in real time."""
        return self.model_copy(update={"measured_times": LIVE})


class Capacity(Figures):
    """The decision capacity of one group whose decision times are modelled.

    Attributes:
        low, high: Decisions per arrival at 100 % load, looking at every partition or at as few as
            may be; equal where the strategy settles it.
    """

    group: str
    low: Number
    high: Number


def decision_basis(
    arm: ArmConfig, outline: Outline | None, message_us: int, measured_times: str = ""
) -> DecisionBasis:
    """The basis of an arm in virtual time.

    Args:
        arm: The arm.
        outline: Of its workload; None: not known, and capacities are taken per job.
        message_us: The time of a message in virtual time.
        measured_times: As in DecisionBasis.
    """
    clocks = {decision_clock(group, arm.partitions, live=False).clock_class for group in arm.groups}
    basis = DecisionBasis(
        kind=BasisKind.MIXED,
        arrivals_per_s=None if outline is None else outline.tasks_per_s,
        cores=sum(group.count for group in arm.groups),
        message_us=message_us,
        measured_times=measured_times,
    )
    if any(Capability.UNMODELLED in group.capabilities for group in arm.groups):
        return basis.model_copy(update={"kind": BasisKind.UNMODELLED})
    if clocks == {ClockClass.OWN_SPEED}:
        return basis.model_copy(update={"kind": BasisKind.OWN_SPEED})
    groups = _modelled_groups(arm, outline)
    per_s = [group.tasks_per_s(scanned=0.0) for group in groups]
    alike = per_s and max(per_s) - min(per_s) <= SAME_CAPACITY * max(per_s)
    scan_costs = {
        group.decision.scan_cost for group in arm.groups if isinstance(group.decision, ModelledTime)
    }
    if len(clocks) > 1 or not alike or len(scan_costs) > 1:
        return basis
    decisions_per_s = sum(per_s) / len(per_s)
    return basis.model_copy(
        update={
            "kind": BasisKind.EQUAL_CAPACITY,
            "decisions_per_s": decisions_per_s,
            "capacity": None if outline is None else decisions_per_s / outline.tasks_per_s,
            "scan_cost": scan_costs.pop(),
        }
    )


def decision_capacity(arm: ArmConfig, outline: Outline) -> list[Capacity]:
    """The capacity of each group whose decision times are modelled; that of the others depends on
    the cell."""
    partitions = min(arm.partitions, outline.machines)
    return [
        Capacity(
            group=group.name,
            low=group.tasks_per_s(scanned=1.0) / outline.tasks_per_s,
            high=group.tasks_per_s(scanned=_fewest_scanned(group.strategy, partitions) / partitions)
            / outline.tasks_per_s,
        )
        for group in _modelled_groups(arm, outline)
    ]


def comparable(one: DecisionBasis, other: DecisionBasis) -> bool:
    """Whether two arms may be ranked beside each other."""
    if one.kind is not other.kind or _message_times(one) != _message_times(other):
        return False
    if one.kind is BasisKind.OWN_SPEED:
        return one.cores == other.cores and _arrive_alike(one, other)
    if one.kind in (BasisKind.MIXED, BasisKind.UNMODELLED):
        return False
    assert one.decisions_per_s is not None and other.decisions_per_s is not None
    larger = max(one.decisions_per_s, other.decisions_per_s)
    return (
        abs(one.decisions_per_s - other.decisions_per_s) <= SAME_CAPACITY * larger
        and one.scan_cost == other.scan_cost
    )


def _arrive_alike(one: DecisionBasis, other: DecisionBasis) -> bool:
    """Whether as many tasks arrive: live runs may have cells of different sizes."""
    if one.arrivals_per_s is None or other.arrivals_per_s is None:
        return one.arrivals_per_s is other.arrivals_per_s
    larger = max(one.arrivals_per_s, other.arrivals_per_s)
    return abs(one.arrivals_per_s - other.arrivals_per_s) <= SAME_CAPACITY * larger


def basis_text(basis: DecisionBasis) -> str:
    """A basis in words."""
    if basis.kind is BasisKind.OWN_SPEED:
        return f"own speed, {counted(basis.cores, 'core')}"
    if basis.kind is BasisKind.MIXED:
        return "mixed clocks"
    if basis.kind is BasisKind.UNMODELLED:
        return "not ranked: its consequences are not modelled yet"
    assert basis.decisions_per_s is not None
    amount = (
        f"{basis.decisions_per_s:,.0f} tasks/s"
        if basis.capacity is None
        else f"A = {basis.capacity:.3g}"
    )
    scan = f", scan cost {basis.scan_cost:g}" if basis.scan_cost else ""
    return f"equal capacity, {amount}{scan}"


def basis_condition(basis: DecisionBasis) -> str:
    """A basis as the beginning of a sentence about the arms that have it."""
    return _CONDITIONS[basis.kind].format(basis_text(basis))


_CONDITIONS = {
    BasisKind.OWN_SPEED: "Where each scheduler runs at the speed of its own code ({})",
    BasisKind.EQUAL_CAPACITY: "Where all arms can decide equally many tasks per second ({})",
    BasisKind.MIXED: "Where schedulers have clocks of both classes",
    BasisKind.UNMODELLED: "Where what schedulers place by is not modelled yet",
}


def basis_title(basis: DecisionBasis) -> str:
    """A basis as the title of a table."""
    text = basis_text(basis)
    return text[0].upper() + text[1:]


def basis_titles(bases: Sequence[DecisionBasis]) -> list[str]:
    """The titles of several tables, with the times of messages and the rates of arrivals if they
    are not all the same."""
    titles = [basis_title(basis) for basis in bases]
    if len({_message_times(basis) for basis in bases}) > 1:
        texts = [_messages_text(basis) for basis in bases]
        titles = [f"{title}, {text}" for title, text in zip(titles, texts, strict=True)]
    if any(not _arrive_alike(basis, bases[0]) for basis in bases):
        titles = [
            title
            if basis.arrivals_per_s is None
            else f"{title}, {basis.arrivals_per_s:,.0f} tasks/s at 100 % load"
            for title, basis in zip(titles, bases, strict=True)
        ]
    return titles


def _messages_text(basis: DecisionBasis) -> str:
    if basis.measured_times == LIVE:
        return "live"
    if basis.measured_times:
        return "messages take calibrated times"
    return f"messages take {duration(basis.message_us)}"


def _message_times(basis: DecisionBasis) -> str | int:
    return basis.measured_times or basis.message_us


def basis_explained(basis: DecisionBasis) -> str:
    """What a basis means, in a sentence or two."""
    if basis.kind is not BasisKind.EQUAL_CAPACITY:
        return _EXPLAINED[basis.kind]
    amount = (
        "All schedulers of an arm together can decide this many tasks."
        if basis.capacity is None
        else "All schedulers of an arm together have time to decide "
        f"A = {basis.capacity:.3g} times the tasks that arrive at 100 % load; a lone scheduler is "
        "as fast as several together."
    )
    if not basis.scan_cost:
        return amount
    return (
        f"{amount} Looking at all partitions makes a decision {100 * basis.scan_cost:g} % longer."
    )


_EXPLAINED = {
    BasisKind.OWN_SPEED: "A decision takes as long as its work takes, on a core for each scheduler:"
    " delays show the speed of the code too.",
    BasisKind.MIXED: "Schedulers of one arm have clocks of both classes, or unequal capacities:"
    " the arm is not ranked.",
    BasisKind.UNMODELLED: "What the schedulers place by, such as interference between tasks or the"
    " power of machines, has no consequences in a run yet: the arm is not ranked.",
}


Arm = TypeVar("Arm")


def by_basis(arms: Sequence[tuple[Arm, DecisionBasis]]) -> list[list[Arm]]:
    """The arms in sets of which any two may be ranked beside each other, in their order."""
    sets: list[tuple[DecisionBasis, list[Arm]]] = []
    for arm, basis in arms:
        for first, members in sets:
            if comparable(first, basis):
                members.append(arm)
                break
        else:
            sets.append((basis, [arm]))
    return [members for _, members in sets]


@dataclass(frozen=True, slots=True)
class _ModelledGroup:
    """A group whose decision times are modelled.

    Attributes:
        task_us: What a task takes without a scan, its part of the round's time included.
        scan_us: What looking at every partition adds.
        jobs: Its share of all jobs.
    """

    name: str
    strategy: str
    count: int
    task_us: float
    scan_us: float
    jobs: float

    def tasks_per_s(self, scanned: float) -> float:
        """The tasks per second, of all groups, with which its share of the jobs keeps it busy.

        Args:
            scanned: The part of the partitions that it looks at.
        """
        return self.count / ((self.task_us + self.scan_us * scanned) / 1e6) / self.jobs


def _modelled_groups(arm: ArmConfig, outline: Outline | None) -> list[_ModelledGroup]:
    """The groups with modelled decision times that get jobs."""
    found = []
    for group, permille in zip(arm.groups, arm.shares_permille(), strict=True):
        jobs = _part_of_jobs(group, outline) * permille / 1000
        if not isinstance(group.decision, ModelledTime) or not jobs:
            continue
        time = group.decision
        job_us, task_us = _mean_times(time, group.task_class, outline)
        round_us = 0.0 if outline is None else job_us / outline.batch_tasks
        found.append(
            _ModelledGroup(
                name=group.name,
                strategy=group.protocol.described.get("strategy", ""),
                count=group.count,
                task_us=task_us + round_us,
                scan_us=task_us * time.scan_cost,
                jobs=jobs,
            )
        )
    return found


def _mean_times(
    time: ModelledTime, task_class: str | None, outline: Outline | None
) -> tuple[float, float]:
    """What a round and a task take a group on average over its jobs, in us."""
    if time.service is None:
        return time.job_us, time.task_us
    share = 0.0 if outline is None else outline.service_share
    if task_class is not None:
        share = float(task_class == "service")
    return (
        (1 - share) * time.job_us + share * time.service.job_us,
        (1 - share) * time.task_us + share * time.service.task_us,
    )


def _fewest_scanned(strategy: str, partitions: int) -> int:
    """The fewest partitions that a decision on one task scans; the most are all of them.
    Latency-first and freshest-preferred turn to the next partition where the freshest has no
    place."""
    few = strategy in ("latency_first", "adaptive", "freshest_preferred")
    return 1 if few else partitions


def _part_of_jobs(group: GroupConfig, outline: Outline | None) -> float:
    """The part of the jobs that is of the group's class."""
    if group.task_class is None or outline is None:
        return 1.0
    match group.task_class:
        case "service":
            return outline.service_share
        case "mapreduce":
            return outline.mapreduce_share
    return 1 - outline.service_share - outline.mapreduce_share
