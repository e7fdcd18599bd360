"""Which quota group each job of a generated workload belongs to.

A quota group is a project, or any other owner of jobs, that is entitled to a part of the cell
(ParSync section 2). How much, the arms of a run say; here is only whose the jobs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from parsync.strict_model import Name, Strict
from parsync.workload.workload import QuotaMembership
from shared_state.random import Stream
from shared_state.tasks import Int32, Int64

ENTIRE = 1000  # shares are kept in permille

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
