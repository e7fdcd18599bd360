"""The quotas of an arm: which part of the cell each quota group may take."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from parsync.spec.strict_model import LONGEST_S, Name, Strict
from parsync.core.fair_shares import LARGEST_WEIGHT
from parsync.core.quotas import ENTIRE, QuotaGroup, QuotaSpec
from shared_state.errors import AgoraError


class QuotaGroupConfig(Strict):
    """A quota group. Its amounts are shares of the cell, in each resource."""

    name: Name = Field(description="as the workload calls it")
    minimum: float = Field(
        0, ge=0, le=1, description="what the group gets in any case if it wants that much"
    )
    maximum: float = Field(
        1, gt=0, le=1, description="what the group never exceeds, even in an empty cell"
    )
    weight: int = Field(
        1, ge=1, le=LARGEST_WEIGHT, description="by which the rest of the cell is divided"
    )


class QuotaConfig(Strict):
    """The quota groups that an arm's schedulers obey."""

    interval_s: float = Field(
        0.1,
        ge=0.001,
        le=60,
        description="how often the coordinator computes the shares anew",
    )
    reclaim_after_s: float | None = Field(
        None,
        ge=0,
        le=LONGEST_S,
        description="a scheduler that has held more than its grant for this long ends tasks until"
        " it no longer does; unset: no task is ended",
    )
    groups: tuple[QuotaGroupConfig, ...] = Field(min_length=1, max_length=1000, strict=False)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        try:
            self.spec().check()
        except AgoraError as error:
            raise ValueError(str(error).removeprefix("quotas: ")) from error
        return self

    def spec(self) -> QuotaSpec:
        """The quotas as the runtimes take them."""
        groups = tuple(
            QuotaGroup(
                group.name,
                round(group.minimum * ENTIRE),
                round(group.maximum * ENTIRE),
                group.weight,
            )
            for group in self.groups
        )
        after_us = None if self.reclaim_after_s is None else round(self.reclaim_after_s * 1e6)
        return QuotaSpec(groups, round(self.interval_s * 1e6), after_us)
