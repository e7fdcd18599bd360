"""The base of every figure that a run writes: a pydantic model that takes what it declares and
nothing else."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LARGEST = 1e30  # of a figure: it can be added, drawn and shown
LARGEST_INTEGER = (1 << 63) - 1

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]


class Figures(BaseModel):
    """Named figures: whole numbers, floating-point numbers, or None where there is nothing to rest
    a figure on (never NaN)."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="null"
    )
