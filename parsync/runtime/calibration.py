"""What a run in virtual time needs to know of the live runtime to predict a live run: how often its
processes step, and how long steps, pushes and wake-ups take.

The times are those that live runs measured, as tables of quantiles in integer microseconds. A draw
from a table is one of its entries, all equally likely. So a run in virtual time that draws from
them with its own seed is the same on any machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from parsync.strict_model import Strict
from shared_state.random import Stream, stream_key

ENTRIES = 256  # of a table
MOST_HOSTS = 64
LONGEST_US = 10_000_000
_DRAWN_AT_ONCE = 4096


Times = Annotated[
    tuple[Annotated[int, Field(ge=0, le=LONGEST_US)], ...],
    Field(min_length=1, max_length=ENTRIES, strict=False),
]


class Calibration(Strict):
    """The live runtime as live runs found it: the section [virtual.calibration] of a configuration.

    Times are tables of quantiles in us, ascending: one entry is as likely as another.

    Attributes:
        hosts: The number of scheduler processes.
        tick_us: Time between a process's regular steps.
        step_us: Round trips of the steps of scheduler hosts.
        other_step_us: Those of the worker pool and the workload source.
        push_us: How long submissions were under way from the workload source to a scheduler host.
        lag_us: How much longer scheduler hosts slept than they asked for.
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

    @property
    def digest(self) -> str:
        """What tells these times from any others."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """The times that a live run measured, each in us; the names are those of Calibration."""

    step_us: Sequence[int] = ()
    other_step_us: Sequence[int] = ()
    push_us: Sequence[int] = ()
    lag_us: Sequence[int] = ()

    @staticmethod
    def joined(parts: Iterable[MeasuredTimes]) -> MeasuredTimes:
        """Those of several actors, or of several runs."""
        every = list(parts)
        return MeasuredTimes(
            *(
                np.concatenate([np.asarray(getattr(one, name), np.int64) for one in every]).tolist()
                if every
                else ()
                for name in MeasuredTimes.__dataclass_fields__
            )
        )

    def calibration(self, hosts: int, tick_us: int) -> Calibration | None:
        """The tables of these times; None if one of them was never measured."""
        tables = {
            name: quantile_table(getattr(self, name)) for name in MeasuredTimes.__dataclass_fields__
        }
        every = all(tables.values())
        return Calibration(hosts=hosts, tick_us=tick_us, **tables) if every else None


NO_TIMES = MeasuredTimes()


def quantile_table(values: Sequence[int]) -> tuple[int, ...]:
    """ENTRIES quantiles of some values, at the middles of as many equal parts; fewer values stand
    for themselves, ascending."""
    ordered = np.sort(np.asarray(values, np.int64))
    if len(ordered) > ENTRIES:
        ordered = ordered[(2 * np.arange(ENTRIES) + 1) * len(ordered) // (2 * ENTRIES)]
    table: list[int] = ordered.tolist()
    return tuple(table)


class Draws:
    """A stream of draws from a table.

    Args:
        table: Of quantiles.
        seed: The root seed.
        name: Of the stream: two streams of different names are independent.
    """

    def __init__(self, table: Sequence[int], seed: int, name: str) -> None:
        self._table = np.asarray(table, np.int64)
        self._stream = Stream(stream_key(seed, f"calibration {name}"))
        self._drawn: list[int] = []

    def next(self) -> int:
        """The next draw."""
        if not self._drawn:
            picks = self._stream.integers(_DRAWN_AT_ONCE, len(self._table))
            self._drawn = self._table[picks].tolist()
        return self._drawn.pop()
