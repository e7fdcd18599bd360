"""A run's configuration: one validated model, read from TOML and flags, written beside the results,
and enough to run it again."""

from __future__ import annotations

import codecs
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from experiments.arm_config import ArmConfig
from experiments.calibration_config import CalibrationConfig
from experiments.frontiers.description import FrontierConfig
from experiments.strict_model import LONGEST_S, Name, Strict
from experiments.workload_config import WorkloadConfig, refuse_former_sections
from parsync.protocols.tables import tables_of
from parsync.runtime.calibration import Calibration
from parsync.runtime.json_files import unreadable
from parsync.runtime.plan_limit import PLAN_LIMIT_S
from schedulers.entry_points import first_problem, wrong_value
from shared_state.errors import AgoraError

LARGEST_FILE = 1 << 24


class LiveConfig(Strict):
    """How arms run on Ray.

    Attributes:
        address: The address of a running cluster; unset: an embedded one.
        hosts: The number of scheduler processes.
        fsync: The cell waits for the disk at each step, so that its log survives the machine and
            not only the process.
    """

    address: str | None = None
    arms: tuple[Name, ...] | None = Field(
        None,
        strict=False,
        description="the arms that run on Ray; the others run in virtual time, before them."
        " Unset: all",
    )
    hosts: int = Field(2, ge=1, le=64)
    tick_ms: int = Field(25, ge=1, le=10_000)
    fsync: bool = False


class VirtualConfig(Strict):
    """How arms run in virtual time.

    Attributes:
        message_us: One-way time of every message between schedulers, cell, workers and workload
            source. Messages between the cell's master and a protocol's participant beside it take
            no time, as in live runs.
    """

    message_us: int = Field(500, ge=0, le=1_000_000)
    calibration: CalibrationConfig | None = Field(
        None,
        description="times that a live run measured: arms step and tick as the live runtime does,"
        " and message_us has no effect",
    )

    def calibrated(self) -> Calibration | None:
        """The calibration as the runtime takes it."""
        return None if self.calibration is None else self.calibration.made()

    @property
    def measured_times(self) -> str:
        """The digest of the calibration; "" without one."""
        return "" if self.calibration is None else self.calibration.digest


class RunConfig(Strict):
    """Everything a run depends on.

    Attributes:
        seeds: Paired seeds in virtual time for the confidence intervals (seed, seed + 1, ...).
    """

    name: Name = "parsync_vs_flow"
    runtime: Literal["virtual", "ray"] = "virtual"
    live: LiveConfig = LiveConfig()
    virtual: VirtualConfig = VirtualConfig()
    seed: int = Field(1, ge=0, lt=1 << 63)
    seeds: int = Field(10, ge=1, le=1000)
    sensitivity_seeds: int = Field(
        0,
        ge=0,
        le=1000,
        description="how many of the paired seeds also run with other choices about decision times,"
        " which shows how far the results depend on them",
    )
    drain_s: float = Field(10.0, ge=0, le=LONGEST_S)
    settle_s: float = Field(
        2.0,
        ge=0,
        le=LONGEST_S,
        description="left out at the start of each phase (of a trace: at its start)",
    )
    heartbeat_us: int = Field(1000, ge=1, le=LONGEST_S * 1e6)
    sample_s: float = Field(0.1, ge=0.001, le=60)
    plan_limit_s: float = Field(
        PLAN_LIMIT_S,
        ge=0.1,
        le=LONGEST_S,
        description="wall time in seconds after which a scheduler's call counts as never returning",
    )
    workload: WorkloadConfig
    arms: tuple[ArmConfig, ...] = Field(min_length=1, strict=False)
    frontier: FrontierConfig = FrontierConfig()

    @model_validator(mode="before")
    @classmethod
    def _current(cls, tree: Any) -> Any:
        refuse_former_sections(tree)
        return tree

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [arm.name for arm in self.arms]
        if len(set(names)) < len(names):
            raise ValueError("two arms have the same name")
        try:  # one name means one table in the whole run
            tables_of(kind for arm in self.arms for kind in arm.protocol_kinds)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        unknown = [name for name in self.live.arms or () if name not in names]
        if unknown:
            raise ValueError(f"live.arms: there is no arm {unknown[0]!r}; arms: {', '.join(names)}")
        self.frontier.check({arm.name: arm for arm in self.arms})
        quota_groups = self.workload.quota_groups()
        for arm in self.arms:
            if arm.quotas is not None and quota_groups is not None:
                try:
                    arm.quotas.spec().check_names(quota_groups)
                except AgoraError as error:
                    raise ValueError(f"arm '{arm.name}': {error}") from error
        self.workload.check_phases(self.settle_s, {arm.name: arm.gap_s for arm in self.arms})
        return self

    def is_live(self, arm: ArmConfig) -> bool:
        """Whether the arm runs on Ray."""
        chosen = self.live.arms
        return self.runtime == "ray" and (chosen is None or arm.name in chosen)


def first_error(error: ValidationError) -> str:
    """The first of pydantic's complaints (first_problem), as `field.path: what is wrong`."""
    problem = first_problem(error)
    place = ".".join(str(part) or '""' for part in problem["loc"])
    unknown = problem["type"] == "extra_forbidden"
    message = "unknown option" if unknown else wrong_value(problem)
    return f"{place}: {message}" if place else message


def load_config(path: Path) -> RunConfig:
    """The run a TOML file describes. Raises AgoraError naming the file and the line (syntax) or
    field (meaning)."""
    return validated(read_toml(path), str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file says. Raises AgoraError naming the file, and the line that is no TOML."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise AgoraError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise AgoraError(f"{path}: is {_no_text(data)}") from error
    if len(data) > LARGEST_FILE:
        raise AgoraError(f"{path}: larger than {LARGEST_FILE >> 20} MiB")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or beyond what Python reads
        raise AgoraError(f"{path}: {unreadable(error)}") from error


def _no_text(data: bytes) -> str:
    """What bytes are that are no UTF-8 text, as far as they tell."""
    if data.startswith(b"\x1f\x8b"):
        return "compressed with gzip; unpack it first"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16 text; save it as UTF-8"
    return "not UTF-8 text"


def validated(tree: dict[str, Any], source: str) -> RunConfig:
    """A RunConfig from plain values. Raises AgoraError naming `source` and the field."""
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise AgoraError(f"{source}: {first_error(error)}") from error
