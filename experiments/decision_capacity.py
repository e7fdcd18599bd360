"""How much a group of schedulers can decide, over what it is asked to at 100 % load: the A of
ParSync's section 4.3, as it is for the configured costs.

ParSync's A = 2 is twice the needed capacity for a scheduler whose decisions cost the same whatever
it looks at. One that looks at every partition decides less, and its arm is compared at that A.
"""

from __future__ import annotations

from experiments.arm_config import ArmConfig, GroupConfig, ModelledTime
from experiments.workloads.registry import Outline
from parsync.metrics.figures import Figures, Number


class Capacity(Figures):
    """The decision capacity of one group.

    Attributes:
        low, high: Decisions per arrival at 100 % load, looking at every partition or at as few as
            may be; equal where the strategy settles it.
    """

    group: str
    low: Number
    high: Number


def decision_capacity(arm: ArmConfig, outline: Outline) -> list[Capacity]:
    """The capacity of each group whose decision times are modelled; that of the others depends on
    the cell."""
    partitions = min(arm.partitions, outline.machines)
    capacities = []
    for group, permille in zip(arm.groups, arm.shares_permille(), strict=True):
        needed_per_s = outline.tasks_per_s * _part_of_jobs(group, outline) * permille / 1000
        if not isinstance(group.decision, ModelledTime) or not needed_per_s:
            continue
        fewest = _fewest_scanned(group.protocol.get("strategy", ""), partitions)
        low, high = (
            group.count
            / (_task_us(group.decision, scanned, outline.batch_tasks) / 1e6 * needed_per_s)
            for scanned in (1.0, fewest / partitions)
        )
        capacities.append(Capacity(group=group.name, low=low, high=high))
    return capacities


def _fewest_scanned(strategy: str, partitions: int) -> int:
    """The fewest partitions that a decision on one task scans; the most are all of them.
    Latency-first turns to the next partition where the freshest has no room."""
    return 1 if strategy in ("latency_first", "adaptive") else partitions


def _task_us(decision: ModelledTime, scanned: float, batch_tasks: float) -> float:
    """scanned: the part of the partitions that is looked at."""
    return decision.job_us / batch_tasks + decision.task_us * (1 + decision.scan_cost * scanned)


def _part_of_jobs(group: GroupConfig, outline: Outline) -> float:
    services = outline.service_share
    return {None: 1.0, "service": services, "batch": 1 - services}[group.task_class]
