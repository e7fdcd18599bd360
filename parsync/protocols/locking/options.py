"""What a group may choose under the locking protocol."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

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
        description="a round has only as many tasks of a batch as can be decided in this time in"
        " seconds, so that locks are not held for longer; without effect where the decision time"
        " is not known beforehand (counted, measured), and for kinds that plan the whole queue;"
        " unset: a round has a whole batch",
    )
    retry_s: float = Field(
        0.1,
        ge=1e-6,
        le=LONGEST_S,
        description="after what time in seconds a scheduler looks again that found no room in as"
        " many partitions as there are",
    )
