"""The options of `agora run`, as given on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class ScaleName(StrEnum):
    """The size of the cell: a tenth of ParSync's, or ParSync's."""

    DEMO = "demo"
    PAPER = "paper"


class RuntimeName(StrEnum):
    """The runtime: Ray actors in real time, or an event heap in virtual time."""

    RAY = "ray"
    VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that were given; None or False for those that were not.

    `agora run --help` says what each one means.
    """

    config: Path | None = None
    mix: str | None = None
    added: tuple[tuple[str, int | None], ...] = ()  # of --with: kind, how many if that is given
    scale: ScaleName | None = None
    trace: str | None = None
    speedup: int | None = None
    resources: str | None = None
    overcommit: float | None = None
    duration_s: float | None = None
    seed: int | None = None
    seeds: int | None = None
    quick: bool = False
    runtime: RuntimeName | None = None
    live: tuple[str, ...] = ()  # arms, or "all"
    address: str | None = None
    calibrate: Path | None = None
    hold: bool = False
    long: bool = False
    out: Path | None = None

    @property
    def of_trace(self) -> dict[str, object]:
        """The options that only a trace has, by name."""
        return {
            "speedup": self.speedup,
            "resources": self.resources,
            "overcommit": self.overcommit,
        }
