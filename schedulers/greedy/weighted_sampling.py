"""Each row that fits with probability proportional to its slot score: exact weighted sampling
without replacement (ParSync section 4.3)."""

from __future__ import annotations

from pydantic import field_validator

from schedulers.greedy.kinds import greedy_spec
from schedulers.greedy.scheduler import GreedyOptions, PlacementKind
from schedulers.prices import registry


class WeightedSamplingOptions(GreedyOptions):
    """Options as of the other kinds, but without prices: the slot score alone decides."""

    @field_validator("prices", mode="before")
    @classmethod
    def _knows_none(cls, kind: object) -> object:
        if kind != registry.NONE:
            raise ValueError(
                f"expected {registry.NONE!r}, got {kind!r}: weighted_sampling draws by slot score"
            )
        return kind


SPEC = greedy_spec(
    "weighted_sampling", PlacementKind.WEIGHTED_SAMPLING, options=WeightedSamplingOptions
)
