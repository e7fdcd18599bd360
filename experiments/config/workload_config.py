"""The [workload] section of a configuration: a kind, and the options of that kind beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR
from typing import Any, ClassVar

import numpy as np
from pydantic import (
    BaseModel,
    SerializationInfo,
    ValidationError,
    model_serializer,
    model_validator,
)

from experiments.workloads import registry
from experiments.workloads.registry import ExpectedRates, Outline, WorkloadSpec
from parsync.metrics.quantity import Better, Quantity, Unit
from parsync.metrics.run_frame import PlacementValue
from parsync.strict_model import Strict
from parsync.workload.workload import Workload
from schedulers.entry_points import first_problem, near_match
from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int32, Int64

# Sections of configurations that were written before there was a registry of workloads.
FORMER_SECTIONS = ("synthetic", "google2011")

FileStamp = tuple[str, int, int]  # path, size in bytes, time of the last change in ns


class WorkloadConfig(Strict):
    """What the cell is and what arrives. Written and read as one flat table."""

    kind: str
    options: BaseModel

    @staticmethod
    def of(kind: str, options: BaseModel) -> WorkloadConfig:
        """A kind with options that are validated already."""
        return WorkloadConfig.model_validate({"kind": kind, "options": options})

    @model_validator(mode="before")
    @classmethod
    def _parsed(cls, given: Any) -> Any:
        """The options as the kind's model. ValidationErrors of that model keep their places."""
        if not isinstance(given, Mapping) or isinstance(given.get("options"), BaseModel):
            return given
        options = dict(given)
        kind = options.pop("kind", None)
        try:
            if not isinstance(kind, str):
                known = ", ".join(registry.kinds())
                wrong = "missing" if kind is None else f"got {kind!r}"
                raise AgoraError(f"kind: {wrong}; expected one of {known}")
            spec = registry.get(kind)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        try:
            return {"kind": kind, "options": spec.options.model_validate(options)}
        except ValidationError as error:
            first = first_problem(error)
            if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
                known = ", ".join(sorted(spec.options.model_fields)) or "none"
                name = str(first["loc"][0])
                near = near_match(name, spec.options.model_fields)
                raise ValueError(
                    f"kind {kind!r} has no option {name!r}{near}; its options: {known}"
                ) from error
            raise
        except Exception as error:  # of a validator that is somebody else's
            raise ValueError(f"kind {kind!r}: {type(error).__name__}: {error}") from error

    @model_serializer(mode="plain")
    def _flat(self, info: SerializationInfo) -> dict[str, Any]:
        mode = "json" if info.mode_is_json() else "python"
        return {"kind": self.kind, **self.options.model_dump(mode=mode)}

    @property
    def spec(self) -> WorkloadSpec:
        """The spec of the kind. Raises AgoraError if the kind is not installed any more."""
        return registry.get(self.kind)

    @cached_property
    def file_stamps(self) -> tuple[FileStamp, ...]:
        """The files that options name, and those in the folders that they name, as they are when
        this is first asked.

        Size and time of change stand for the contents: a trace may have many gigabytes.
        """
        paths = (getattr(self.options, name) for name in self.spec.path_options())
        return tuple(stamp for path in paths if path is not None for stamp in _stamps(Path(path)))

    def outline(self) -> Outline | None:
        """What is known before the workload is made; None if only reading it tells."""
        return self.spec.call(self.spec.outline, self.options)

    def with_machines(self, machines: int) -> WorkloadConfig | None:
        """The same workload on a cell of this many machines, whose arrivals offer the same load;
        None if this kind's cell has the size it has. Raises ValueError if the options do not
        allow that size."""
        change = self.spec.with_machines
        if change is None:
            return None
        try:
            changed = self.spec.call(change, self.options, machines)
        except AgoraError as error:
            raise ValueError(str(error)) from error
        options = {**self.options.model_dump(mode="json"), **changed}
        return WorkloadConfig.model_validate({"kind": self.kind, **options})

    def make(self, seed: int) -> Workload:
        """The workload, checked. AgoraError naming what cannot be read."""
        return self.spec.make(self.options, seed)

    def make_warm_up(self, seed: int) -> Workload | None:
        """What each arm runs before time 0 of the workload, checked; None if nothing. AgoraError as
        make."""
        return self.spec.make_warm_up(self.options, seed)

    def expected_rates(self) -> ExpectedRates | None:
        """What arrives on average, as the options say; None if only reading the workload tells."""
        return self.spec.call(self.spec.expected_rates, self.options)

    def seeds_vary(self) -> str:
        """What a seed draws of the workload, in sentences; "" if the kind does not say."""
        return self.spec.call(self.spec.seeds_vary, self.options)

    def values(self, workload: Workload) -> Sequence[PlacementValue]:
        """What placements are worth beyond their cost: the scores of their machines, if they have
        any, and what the kind adds."""
        scores = [SlotScore.of_cell(workload.cell)] if workload.cell.slot_score.any() else []
        return [*scores, *self.spec.call(self.spec.values, workload)]

    def quota_groups(self) -> tuple[str, ...] | None:
        """The quota groups of the jobs; None if only reading the workload tells. Raises ValueError
        if the outline cannot be made."""
        try:
            outline = self.outline()
        except AgoraError as error:
            raise ValueError(str(error)) from error
        return None if outline is None else outline.quota_groups

    def check_phases(self, settle_s: float, gaps_s: Mapping[str, float]) -> None:
        """Raise ValueError if a phase is too short to settle in, or shorter than the gap G of an
        arm (by its name). Workloads whose phases are known only when they are read are not
        checked."""
        try:
            outline = self.outline()
        except AgoraError as error:
            raise ValueError(str(error)) from error
        if outline is None:
            return
        phase_s = outline.phase_s
        for arm, gap_s in gaps_s.items():
            if phase_s < gap_s:
                raise ValueError(
                    f"phase_s: phases of {phase_s:g} s are shorter than the gap G of {gap_s:g} s "
                    f"of arm '{arm}'"
                )
        if settle_s >= phase_s:
            raise ValueError(f"settle_s: {settle_s:g} s leaves nothing of phases of {phase_s:g} s")


def _stamps(path: Path) -> Iterator[FileStamp]:
    """Of a file, or of all files in a folder. What cannot be looked at has none."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        with contextlib.suppress(OSError):
            stat = file.stat()
            if not S_ISDIR(stat.st_mode):
                yield str(file), stat.st_size, stat.st_mtime_ns


def refuse_former_sections(tree: Any) -> None:
    """Raise ValueError naming what replaces a section of an older configuration."""
    for section in FORMER_SECTIONS:
        if isinstance(tree, Mapping) and tree.get(section) is not None:
            raise ValueError(f'[{section}]: now [workload] with kind = "{section}"')


_LARGEST_SCORE = 1 << 38  # sums over a run's tasks stay within int64

SLOT_SCORE = Quantity(
    key="slot_score_mean",
    label="Mean slot score",
    unit=Unit.PLAIN,
    description="Mean score of the slots used, divided by the mean score of all slots; 1 is what "
    "random placement gives.",
    better=Better.HIGHER,
    headline=True,
    per_scheduler=True,
)


@dataclass(frozen=True, slots=True)
class SlotScore:
    """Score of the machines that were chosen over that of the cell's slots on average: 1 is what
    chance would choose."""

    score: Int64
    mean: int

    quantity: ClassVar[Quantity] = SLOT_SCORE

    @staticmethod
    def of_cell(cell: CellSpec) -> SlotScore:
        slots = cell.capacity[:, 0]
        score = np.minimum(cell.slot_score, _LARGEST_SCORE)
        return SlotScore(score, sum((slots * score).tolist()) // max(1, int(slots.sum())))

    def of(self, task: Int64, machine: Int32) -> tuple[Int64, Int64]:
        return self.score[machine], np.full(len(task), self.mean, np.int64)
