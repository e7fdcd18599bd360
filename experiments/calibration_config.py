"""The section [virtual.calibration] of a configuration: the live runtime as live runs found it."""

from __future__ import annotations

import hashlib
from typing import Annotated, Self

from pydantic import Field, model_validator

from parsync.spec.strict_model import Strict
from parsync.runtime.calibration import (
    ENTRIES,
    LONGEST_US,
    MOST_HOSTS,
    Calibration,
    MeasuredTimes,
)

Times = Annotated[
    tuple[Annotated[int, Field(ge=0, le=LONGEST_US)], ...],
    Field(min_length=1, max_length=ENTRIES, strict=False),
]


class CalibrationConfig(Strict):
    """The live runtime as live runs found it; as parsync.runtime.calibration.Calibration.

    Times are tables of quantiles in us, ascending: one entry is as likely as another.
    """

    hosts: int = Field(ge=1, le=MOST_HOSTS)
    tick_us: int = Field(ge=1_000, le=LONGEST_US)
    step_us: Times
    other_step_us: Times
    push_us: Times
    lag_us: Times

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        for name in MeasuredTimes.__dataclass_fields__:
            table: tuple[int, ...] = getattr(self, name)
            if list(table) != sorted(table):
                raise ValueError(f"{name}: expected ascending times")
        return self

    @staticmethod
    def of(calibration: Calibration) -> CalibrationConfig:
        """The same as a configuration has it."""
        names = CalibrationConfig.model_fields
        return CalibrationConfig(**{name: getattr(calibration, name) for name in names})

    @property
    def digest(self) -> str:
        """What tells these times from any others."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=16).hexdigest()

    def made(self) -> Calibration:
        """The same as the runtime takes it."""
        return Calibration(**{name: getattr(self, name) for name in type(self).model_fields})
