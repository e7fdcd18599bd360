"""Groups of generated workloads: which machines a job prefers, and whose it is.

Preferred machines (ParSync section 6). A group is a set of `preferred_fraction` of the cell's
machines, one drawn from each of as many equal stretches of the cell, so that every group is spread
over all racks and partitions; groups overlap. Contention for them is tuned by the popularity of
groups (Zipf) and by their size. Set 0 of the catalog is "no preference", set g + 1 is group g.

Quota groups. A quota group is a project, or any other owner of jobs, that is entitled to a part of
the cell (ParSync section 2). How much, the arms of a run say; here is only whose the jobs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field

from experiments.workloads.draws import draw_below
from parsync.strict_model import Name, Strict
from parsync.workload.workload import QuotaMembership
from shared_state.random import Stream
from shared_state.tasks import ENTIRE, Int32, Int64, PreferenceCatalog


def spread_machines(stream: Stream, machines: int, chosen: int) -> Int32:
    """Draw one machine from each of `chosen` equal stretches of [0, machines): int32[chosen],
    ascending and distinct."""
    edges = np.arange(chosen + 1, dtype=np.int64) * machines // chosen
    return (edges[:-1] + draw_below(stream, np.diff(edges))).astype(np.int32)


def disjoint_groups(stream: Stream, machines: int, chosen: int, groups: int) -> list[Int32]:
    """Draw groups that share no machine, each with one machine from each of `chosen` equal
    stretches of [0, machines): int32[chosen] each, ascending.

    Raises:
        ValueError: A stretch has fewer machines than there are groups.
    """
    edges = np.arange(chosen + 1, dtype=np.int64) * machines // chosen
    if int(np.diff(edges).min()) < groups:
        raise ValueError(f"{groups} groups of {chosen} out of {machines} machines are not disjoint")
    drawn = np.array(
        [
            first + stream.permutation(end - first)[:groups]
            for first, end in pairwise(edges.tolist())
        ]
    )
    return [np.ascontiguousarray(drawn[:, group], np.int32) for group in range(groups)]


def mixed_group(stream: Stream, own: Int32, drawn: Int32, percent: int) -> Int32:
    """The group int32[chosen] that takes, in `percent` of its stretches at random, the machine of
    `drawn`, and else that of `own`, int32[chosen] each."""
    return np.where(stream.integers(len(own), 100) < percent, drawn, own)


def group_catalog(
    groups: list[Int32],
    rack: Int32,
    rack_cost: int | None,
    elsewhere_cost: int,
    unscheduled_cost: int,
) -> PreferenceCatalog:
    """The catalog of groups of preferred machines.

    Args:
        groups: the preferred machines of each group, ascending. They cost 0.
        rack: int32[M], the rack of each machine.
        rack_cost: of the other machines of racks that hold preferred ones; None: elsewhere_cost.
        elsewhere_cost: of all other machines.
        unscheduled_cost: of waiting, with preferences or without.
    """
    racks = [
        np.unique(rack[group]) if rack_cost is not None else np.zeros(0, np.int32)
        for group in groups
    ]
    machine, listed_rack = _joined(groups), _joined(racks)
    prefers = np.ones(len(groups) + 1, np.int64)
    prefers[0] = 0
    return PreferenceCatalog(
        machine_offsets=_offsets(groups),
        machine=machine,
        machine_cost=np.zeros(len(machine), np.int64),
        rack_offsets=_offsets(racks),
        rack=listed_rack,
        rack_cost=np.full(len(listed_rack), rack_cost or 0, np.int64),
        elsewhere_cost=prefers * elsewhere_cost,
        unscheduled_cost=np.full(len(groups) + 1, unscheduled_cost, np.int64),
    )


def _joined(sets: list[Int32]) -> Int32:
    return np.concatenate([np.zeros(0, np.int32), *sets])


def _offsets(sets: list[Int32]) -> Int64:
    return np.cumsum(np.array([0, 0, *map(len, sets)], np.int64))


Share = Annotated[float, Field(ge=0, le=1)]


class QuotaGroupJobs(Strict):
    """The jobs of one quota group."""

    name: Name
    share: Share | Annotated[tuple[Share, ...], Field(strict=False)] = Field(
        description="of all jobs; a list: of the jobs of each phase"
    )

    def permille(self, phase: int) -> int:
        """Its share of the jobs of a phase."""
        share = self.share[phase] if isinstance(self.share, tuple) else self.share
        return round(share * ENTIRE)


def check_quota_groups(groups: Sequence[QuotaGroupJobs], phases: int) -> None:
    """Raise ValueError if two groups have the same name, or if their shares do not fit the phases
    or do not sum to 1."""
    if not groups:
        return
    names = [group.name for group in groups]
    if len(set(names)) < len(names):
        raise ValueError("quota_groups: two groups have the same name")
    for group in groups:
        if isinstance(group.share, tuple) and len(group.share) != phases:
            raise ValueError(
                f"quota_groups: group '{group.name}': share: expected one number or {phases}, one "
                f"for each phase, got {len(group.share)}"
            )
    for phase in range(phases):
        total = sum(group.permille(phase) for group in groups)
        if total != ENTIRE:
            raise ValueError(
                f"quota_groups: the shares of phase {phase + 1} sum to {total / ENTIRE:g}, not to 1"
            )


def of_jobs(groups: Sequence[QuotaGroupJobs], phase: Int64, stream: Stream) -> Int32:
    """Draw the quota group of each job: int32[jobs].

    Args:
        groups: At least one.
        phase: int64[jobs], when each job arrives.
        stream: Of random numbers.
    """
    phases = int(phase.max(initial=0)) + 1
    upper = np.cumsum([[group.permille(k) for group in groups] for k in range(phases)], axis=1)
    drawn = stream.integers(len(phase), ENTIRE)
    chosen: Int32 = (drawn[:, None] >= upper[phase]).sum(axis=1).astype(np.int32)
    return chosen


def membership(
    groups: Sequence[QuotaGroupJobs], phase: Int64, job: Int64, stream: Stream
) -> QuotaMembership | None:
    """The quota groups of tasks; None if there are none.

    Args:
        groups: The groups.
        phase: int64[jobs], when each job arrives.
        job: int64[n], of each task.
        stream: Of random numbers.
    """
    if not groups:
        return None
    names = tuple(group.name for group in groups)
    return QuotaMembership(names, of_jobs(groups, phase, stream)[job])
