"""How many workers beyond what its user asked for a MapReduce job may have (Omega section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from shared_state.tasks import Int64

ENTIRE = 1000  # shares are kept in permille


class PolicyKind(StrEnum):
    """The policies by name."""

    REQUESTED = "requested"  # no worker beyond what was asked for: the baseline
    MAX_PARALLELISM = "max_parallelism"  # as many as the model finds useful
    GLOBAL_CAP = "global_cap"  # the same, but only while little of the cell is in use
    RELATIVE_JOB_SIZE = "relative_job_size"  # up to some times what was asked for


@dataclass(frozen=True, slots=True)
class WorkerPolicy:
    """A policy. What a job's user asked for, every job may have.

    Attributes:
        times_requested: The most workers of a job, as a multiple of what was asked for; None: no
            limit.
        target_permille: The share of the cell, in its most used resource, up to which extra workers
            may start.
    """

    times_requested: int | None
    target_permille: int = ENTIRE

    def workers(self, requested: Int64, useful: Int64) -> Int64:
        """How many workers each job should have if there is room: int64[j].

        Args:
            requested: int64[j], what was asked for.
            useful: int64[j], beyond which the model predicts no gain.
        """
        if self.times_requested is None:
            return useful
        return np.minimum(useful, self.times_requested * requested)

    def extra_started(self, request: Int64, used: Int64, capacity: Int64) -> int:
        """How many extra workers may start, from the first on.

        Args:
            request: int64[n, R], what each asks for.
            used: int64[R], what is in use on the cell, with what starts before them.
            capacity: int64[R], of the cell's machines that are up.
        """
        if self.target_permille == ENTIRE:
            return len(request)
        left = capacity * self.target_permille // ENTIRE - used
        within = ((np.cumsum(request, axis=0) <= left) | (request == 0)).all(axis=1)
        return int(np.count_nonzero(np.logical_and.accumulate(within)))


def _policy_kind(given: object) -> object:
    """A policy by its name."""
    names = [str(kind) for kind in PolicyKind]
    if given not in names:
        raise ValueError(f"expected one of {', '.join(names)}, got {given!r}")
    return PolicyKind(str(given))


class MapReduceOptions(BaseModel):
    """Options of the kind `mapreduce`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    policy: Annotated[PolicyKind, BeforeValidator(_policy_kind)] = Field(
        PolicyKind.MAX_PARALLELISM,
        description="which extra workers jobs get: requested (none), max_parallelism (as many as"
        " the model finds useful), global_cap (while at most target_utilization of the cell is in"
        " use) or relative_job_size (up to times_requested)",
    )
    target_utilization: float = Field(
        0.6,
        ge=0,
        le=1,
        description="global_cap: share of the cell in use, in its most used resource, above which"
        " no extra worker starts",
    )
    times_requested: int = Field(
        4,
        ge=1,
        le=1_000_000,
        description="relative_job_size: the most workers of a job, as a multiple of what its user"
        " asked for",
    )

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        for name, policy in (
            ("target_utilization", PolicyKind.GLOBAL_CAP),
            ("times_requested", PolicyKind.RELATIVE_JOB_SIZE),
        ):
            if name in self.model_fields_set and self.policy is not policy:
                raise ValueError(f"{name}: has no effect unless policy is '{policy}'")
        return self

    def worker_policy(self) -> WorkerPolicy:
        """The policy of these options."""
        match self.policy:
            case PolicyKind.REQUESTED:
                return WorkerPolicy(1)
            case PolicyKind.MAX_PARALLELISM:
                return WorkerPolicy(None)
            case PolicyKind.GLOBAL_CAP:
                return WorkerPolicy(None, round(self.target_utilization * ENTIRE))
            case PolicyKind.RELATIVE_JOB_SIZE:
                return WorkerPolicy(self.times_requested)
