"""What a group may choose under the locking protocol."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from parsync.core.head_of_line import DEFAULT_S, HEAD_OF_LINE, HeadOfLineSeconds

LONGEST_S = 1e6


class LockingOptions(BaseModel):
    """The options of a group, as they stand in a configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    locked_partitions: int | None = Field(
        None,
        ge=1,
        description="how many partitions a scheduler locks, and looks at, in a decision round;"
        " unset: all, so that schedulers decide one after the other",
    )
    hold_s: float | None = Field(
        None,
        ge=1e-6,
        le=LONGEST_S,
        description="about how many seconds a round may take to decide, so that locks are not held"
        " for longer: a batch that takes longer is divided; without effect where the decision time"
        " is not known beforehand (counted, measured), and for kinds that plan the whole queue;"
        " unset: a round has a whole batch",
    )
    head_of_line_s: HeadOfLineSeconds = Field(
        DEFAULT_S,
        description=HEAD_OF_LINE + "; no effect for kinds that plan the whole queue",
    )
    retry_s: float = Field(
        0.1,
        ge=1e-6,
        le=LONGEST_S,
        description="how many seconds a scheduler pauses once it has placed nothing in as many"
        " partitions as there are",
    )
