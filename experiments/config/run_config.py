"""A run's configuration: one validated model, read from TOML and flags, written beside the results,
and enough to run it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from experiments.config.file_format import FORMAT, read_configuration
from experiments.config.frontier_config import FrontierConfig
from experiments.config.workload_config import WorkloadConfig, refuse_former_sections
from parsync.protocols.registry import tables_of
from parsync.runtime.calibration import Calibration
from parsync.runtime.faults import PLAN_LIMIT_S
from parsync.spec.arm import ArmConfig
from parsync.strict_model import LONGEST_S, NO_EFFECT, Name, Strict, first_error
from parsync.workload.workload import Workload
from schedulers.interface import Capability
from shared_state.errors import AgoraError

MOST_SEEDS = 1000
SAMPLE_US = 100_000
SAMPLES_MAX = 1 << 14


class LiveConfig(Strict):
    """How arms run on Ray."""

    address: str | None = Field(
        None,
        description="the address of a running Ray cluster, HOST:PORT or auto; unset: start Ray on"
        " this computer",
    )
    arms: tuple[Name, ...] | None = Field(
        None,
        strict=False,
        description="the arms that run on Ray, after all arms have run in virtual time. Unset: all",
    )
    machines: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="machines of the cell in these live runs; fewer tasks arrive in proportion, and"
        " modelled decision times grow in proportion. Unset: the workload's cell",
    )
    fit: bool = Field(
        False,
        description="choose `machines` before the run, by measuring how large a cell this computer"
        " can serve; `agora run` without a file does that",
    )
    hosts: int = Field(
        2, ge=1, le=64, description="scheduler processes; flow schedulers share one more"
    )
    tick_ms: int = Field(
        25, ge=1, le=10_000, description="milliseconds between the regular steps of a process"
    )
    fsync: bool = Field(
        False,
        description="the cell waits for the disk at each step, so that its log survives a crash of"
        " the machine, and not only one of the process",
    )


class VirtualConfig(Strict):
    """How arms run in virtual time.

    Attributes:
        message_us: One-way time of every message between schedulers, cell, workers and workload
            source. Messages between the cell's master and a protocol's participant beside it take
            no time, as in live runs.
    """

    message_us: int = Field(500, ge=0, le=1_000_000)
    calibration: Calibration | None = Field(
        None,
        description="times that a live run measured: arms step and tick as the live runtime does,"
        " and message_us has no effect",
    )

    @property
    def measured_times(self) -> str:
        """The digest of the calibration; "" without one."""
        return "" if self.calibration is None else self.calibration.digest


class RunConfig(Strict):
    """Everything a run depends on.

    A run of one arm in virtual time is described by what is not marked NO_EFFECT, the arm and a
    seed.

    Attributes:
        format: The number of the format, which files without one have to be brought to
            (file_format.py).
        seeds: Paired seeds in virtual time for the confidence intervals (seed, seed + 1, ...).
    """

    format: Annotated[Literal[2], NO_EFFECT] = FORMAT
    name: Annotated[Name, NO_EFFECT] = "parsync_vs_flow"
    runtime: Annotated[Literal["virtual", "ray"], NO_EFFECT] = "virtual"
    live: Annotated[LiveConfig, NO_EFFECT] = LiveConfig()
    virtual: VirtualConfig = VirtualConfig()
    # those that follow it fit int64, too
    seed: Annotated[int, NO_EFFECT] = Field(1, ge=0, lt=(1 << 63) - MOST_SEEDS)
    seeds: Annotated[int, NO_EFFECT] = Field(10, ge=1, le=MOST_SEEDS)
    sensitivity_seeds: Annotated[int, NO_EFFECT] = Field(
        0,
        ge=0,
        le=MOST_SEEDS,
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
    sample_s: float | None = Field(
        None,
        ge=0.001,
        le=86_400,
        description="seconds between two samples of queues, views and the cell; unset: 0.1, or more"
        " where a run would have over 16,384 samples",
    )
    plan_limit_s: Annotated[float, NO_EFFECT] = Field(
        PLAN_LIMIT_S,
        ge=0.1,
        le=LONGEST_S,
        description="wall time in seconds after which a scheduler's call counts as never returning",
    )
    workload: WorkloadConfig
    arms: Annotated[tuple[ArmConfig, ...], NO_EFFECT] = Field(min_length=1, strict=False)
    frontier: Annotated[FrontierConfig, NO_EFFECT] = FrontierConfig()

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
                    arm.quotas.check_names(quota_groups)
                except AgoraError as error:
                    raise ValueError(f"arm '{arm.name}': {error}") from error
        self._check_timing()
        self._check_live_size()
        self.workload.check_phases(self.settle_s, {arm.name: arm.gap_s for arm in self.arms})
        return self

    def _check_timing(self) -> None:
        """Raise ValueError if a scheduler that depends on timing is to run in virtual time."""
        for arm in self.arms:
            for group in arm.groups:
                if Capability.DEPENDS_ON_TIMING in group.capabilities and not (
                    self.is_live(arm) and self.compared_runtime == "ray"
                ):
                    raise ValueError(
                        f"arm '{arm.name}', group '{group.name}': scheduler kind {group.kind!r}, "
                        "option 'deterministic': a race in virtual time has to be deterministic"
                    )

    def _check_live_size(self) -> None:
        """Raise ValueError if [live] machines cannot be what the live runs have."""
        machines = self.live.machines
        if machines is None:
            return
        if self.live.fit:
            raise ValueError("live.fit: has no effect with live.machines, which sets the size")
        if self.compared_runtime == "ray" and self.runtime == "ray":
            raise ValueError(
                "live.machines: all arms run live and there are no paired seeds, so there is no"
                " run in virtual time beside them; set the size in [workload]"
            )
        try:
            outline, smaller = self.workload.outline(), self.workload.with_machines(machines)
        except ValueError as error:
            raise ValueError(f"live.machines: {error}") from error
        if outline is None or smaller is None:
            raise ValueError(
                f"live.machines: a workload of kind {self.workload.kind!r} has a cell of its own"
            )

    @property
    def live_cell(self) -> int | None:
        """The machines of the cell of the separate live runs; None if it is the cell that
        the arms are compared on."""
        if self.live.machines is None:
            return None
        outline = self.workload.outline()
        same = outline is None or outline.machines == self.live.machines
        return None if same else self.live.machines

    def of_live_runs(self) -> RunConfig:
        """The configuration of the separate live runs: [live] machines are those of the cell,
        arrivals offer the same load to it, and the schedulers of an arm can decide on the same
        share of them as before. Its live.machines is None where the cell is the same."""
        machines = self.live_cell
        if machines is None:
            return self.model_copy(update={"live": self.live.model_copy(update={"machines": None})})
        workload = self.workload.with_machines(machines)
        whole, part = self.workload.outline(), None if workload is None else workload.outline()
        assert workload is not None and whole is not None and part is not None, "it was checked"
        factor = whole.tasks_per_s / part.tasks_per_s
        arms = tuple(arm.slowed(factor) for arm in self.arms)
        return self.model_copy(update={"workload": workload, "arms": arms})

    def for_workload(self, workload: Workload) -> RunConfig:
        """The configuration with the options that depend on the workload filled in.
        AgoraError if the code of a user's protocol fails."""
        arms = tuple(arm.for_workload(workload) for arm in self.arms)
        sample_s = self.sample_us(workload) / 1e6
        return self.model_copy(update={"arms": arms, "sample_s": sample_s})

    def sample_us(self, workload: Workload) -> int:
        """The time between two samples: sample_s; if it is unset, the least multiple of SAMPLE_US
        of which the workload has no more than SAMPLES_MAX."""
        if self.sample_s is not None:
            return round(self.sample_s * 1e6)
        return SAMPLE_US * max(1, -(-workload.end_us // (SAMPLE_US * SAMPLES_MAX)))

    def is_live(self, arm: ArmConfig) -> bool:
        """Whether the arm runs on Ray."""
        chosen = self.live.arms
        return self.runtime == "ray" and (chosen is None or arm.name in chosen)

    @property
    def compared_runtime(self) -> Literal["virtual", "ray"]:
        """The runtime of the runs that arms are compared by: virtual time, unless all arms run live
        and there are no paired seeds, which run in virtual time. Other live runs are separate."""
        all_live = all(self.is_live(arm) for arm in self.arms)
        return "ray" if all_live and self.seeds == 1 else "virtual"

    def has_separate_live_run(self, arm: ArmConfig) -> bool:
        """Whether the arm runs live besides the run that it is compared by."""
        return self.is_live(arm) and self.compared_runtime == "virtual"


def load_config(path: Path) -> RunConfig:
    """The run a TOML file describes. Raises AgoraError naming the file and the line (syntax) or
    field (meaning)."""
    return validated(read_configuration(path), str(path))


def validated(tree: dict[str, Any], source: str) -> RunConfig:
    """A RunConfig from plain values. Raises AgoraError naming `source` and the field."""
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise AgoraError(f"{source}: {first_error(error, RunConfig)}") from error
