"""The figures of a run, computed again: those of its arms from what their replay measured, those
over its paired seeds from the files of the seeds.

Everything else in the files of a run is measured by the clock, or belongs to runs without a log. It
can only be compared with the digests that were written at the end of the run
(analysis/run_directory.py).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from experiments.analysis.cell_watch import CellWatch, Watched, observe_log, settle_us
from experiments.analysis.model_files import read_model
from experiments.analysis.run_directory import FIGURES_FILE, SERIES_FILE, kept_arm
from experiments.analysis.summary import describe, distinct, paired, summary_digest, workload_facts
from experiments.analysis.summary_model import ArmSummary, KeptSeed, RunSummary, SeedSummary
from experiments.campaign.preconditions import CONFIG_FILE
from experiments.campaign.running import ArmRun, make_metrics
from experiments.config.file_format import has_former_kinds
from experiments.config.run_config import load_config
from experiments.files import read_arrays
from experiments.studies.run.finishing import arm_result, slugs_of_arms
from experiments.studies.run.fluid_bound import phase_bounds
from parsync.runtime.arm_directory import SUMMARY, Arm
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.recomputed_tables import Difference, RecomputedTables, all_rows
from parsync.runtime.virtual.run import VirtualOutcome
from parsync.runtime.workload_files import WORKLOAD_DIR, read_workload
from parsync.spec.arm import ProtocolChoice
from parsync.spec.former_kinds import group_of_now
from parsync.strict_model import RenamedOption
from parsync.workload.workload import Workload
from shared_state.observed_cell import CellObserver

_TOLERANCE = 1e-9  # relative: sums of floats differ in their last digits with the processor
# What the clock measures, or other runs than the arm's own.
_NOT_OF_THE_REPLAY = ("clock_notes", "restarts", "prediction", "seeds")
_OF_VIRTUAL_TIME = ("ended_us", "drained", "waiting")  # of the clock notes


class RunFigures:
    """The figures that a run directory holds.

    Args:
        directory: Of the run.

    Raises:
        AgoraError: Its configuration or its summary cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.summary = read_model(directory / SUMMARY, RunSummary)
        self.config = load_config(directory / CONFIG_FILE)
        self._has_former_kinds = has_former_kinds(directory / CONFIG_FILE)
        self._arms = {
            slug: (config, arm)
            for config, slugs in zip(
                (self.config, self.config.of_live_runs()), slugs_of_arms(self.config), strict=True
            )
            for arm in config.arms
            if (slug := slugs.get(arm.name)) is not None
        }
        self._described = {
            run.slug: (f"{kind}[{place}]", run)
            for kind, runs in (("arms", self.summary.arms), ("live_runs", self.summary.live_runs))
            for place, run in enumerate(runs)
        }

    def observer(self, workload: Workload) -> CellWatch:
        """What observes the cell of an arm for the figures that no table holds."""
        return CellWatch(self.config, workload, self.config.seed)

    def of_arm(
        self,
        arm: Arm,
        made: RecomputedTables,
        outcome: VirtualOutcome | None,
        digest: str,
        observer: CellObserver | None,
    ) -> list[Difference] | None:
        """Compute an arm's figures from its replay, and compare them with summary.json,
        figures.json and series.npz. Returns a difference for each file that has one; None for an
        arm that was killed: its figures were made later, from what it left.

        Args:
            arm: The arm.
            made: What its replay measured.
            outcome: The end of its repetition in virtual time; None: it ran live.
            digest: Of its event log.
            observer: What observer() made, which saw the repetition.

        Raises:
            AgoraError: A file cannot be read.
        """
        if arm.slug not in self._described or arm.slug not in self._arms:
            return [Difference(self._directory / SUMMARY, f"arms: no arm {arm.slug!r}")]
        place, described = self._described[arm.slug]
        kept = kept_arm(arm.folder)
        if kept is None and not described.partial:  # an arm that is interrupted has none
            return None
        config, its = self._arms[arm.slug]
        workload = made.assembly.workload
        metrics = make_metrics(config, its, workload)
        for table, rows in all_rows(arm.folder, made):
            metrics.add(table, rows)
        metrics.flush()
        run = ArmRun(
            its,
            metrics,
            digest,
            described.clock_notes if outcome is None else _notes(outcome),
            "stopped early" if described.partial else "",
            0.0,
            self._watched(arm, made, outcome, observer, described),
            live=outcome is None,
        )
        result = arm_result(config, run, {})
        expected = _plain_arm(describe(result, arm.slug), outcome is not None)
        found = []
        summary, path = self._directory / SUMMARY, arm.folder / FIGURES_FILE
        holders = [(summary, described, place)]
        if kept is not None:
            holders.append((path, kept.arm, "arm"))
        for file, holds, where in holders:
            plain = _plain_arm(holds, outcome is not None)
            if self._has_former_kinds:
                plain["mix"] = [group_of_now(group) for group in plain["mix"]]
            found += _difference(file, expected, plain, where)
        if kept is not None and not found and kept.workload != self.summary.workload:
            found.append(Difference(path, "workload: expected that of summary.json"))
        names = {one.key: one for one in self.summary.quantities}
        for one in distinct(result.quantities):
            if names.get(one.key) != one:
                text = f"quantities: {one.key}: expected {one.model_dump(mode='json')}"
                found.append(Difference(summary, text))
                break
        return found + self._series(arm, result.series)

    def _watched(
        self,
        arm: Arm,
        made: RecomputedTables,
        outcome: VirtualOutcome | None,
        observer: CellObserver | None,
        described: ArmSummary,
    ) -> Watched:
        if outcome is not None:
            assert isinstance(observer, CellWatch)
            return observer.watched(outcome.ended_us)
        ended_us = described.clock_notes.get("ended_us")
        if described.partial or not isinstance(ended_us, int):
            return Watched()
        watch = self.observer(made.assembly.workload)
        observe_log(made.assembly, arm.directory / CELL_LOG, watch)
        return watch.watched(ended_us)

    def _series(self, arm: Arm, made: Mapping[str, NDArray[Any]]) -> list[Difference]:
        path = arm.folder / SERIES_FILE
        found = read_arrays(path) if path.exists() else {}
        for name in {**made, **found}:
            if name not in made or name not in found:
                what = "is missing" if name in made else "is not one of the series"
                return [Difference(path, f"{name} {what}" if found else "is missing")]
            text = _array_difference(made[name], found[name])
            if text:
                return [Difference(path, f"{name}{text}")]
        return []

    def of_run(self) -> list[Difference]:
        """Compute again what the summary says of the whole run, from its workload, its
        configuration and the files of its paired seeds. Returns a difference for each file that
        has one.

        Raises:
            AgoraError: A file cannot be read.
        """
        summary = self.summary
        seeds = [
            (path, read_model(path, KeptSeed))
            for path in sorted((self._directory / "seeds").glob("*.json"))
        ]
        arms = [
            arm.model_copy(update={"seeds": _seed_summaries(seeds, arm.slug)})
            for arm in summary.arms
        ]
        expected: dict[str, Any] = {
            "seed": self.config.seed,
            "runtime": self.config.compared_runtime,
            "config": self.config.model_dump(mode="json"),
            "settle_us": settle_us(self.config),
            "workload": self._workload_facts(),
            "arms": [{"seeds": arm.model_dump(mode="json")["seeds"]} for arm in arms],
            "digest": summary_digest(arms),
            "paired": paired(arms, summary.quantities).model_dump(mode="json"),
        }
        found = summary.model_dump(mode="json", include=set(expected))
        del found["workload"]["digest"]
        found["arms"] = [{"seeds": arm["seeds"]} for arm in found["arms"]]
        differences = _difference(self._directory / SUMMARY, expected, found, "")
        for path, kept in seeds:
            if kept.seed == self.config.seed and not differences:
                differences += self._own_seed(path, kept)
        return differences

    def _workload_facts(self) -> dict[str, Any]:
        """The facts of the workload without its digest, which depends on how its columns are held
        in memory."""
        workload = read_workload(self._directory / WORKLOAD_DIR)
        bounds = phase_bounds(self.config.workload, workload, settle_us(self.config))
        return workload_facts(workload, bounds).model_dump(mode="json", exclude={"digest"})

    def _own_seed(self, path: Path, kept: KeptSeed) -> list[Difference]:
        """Compare the file of the run's own seed with the arms that ran in virtual time."""
        parts = {"digest", "overall", "phases", "groups", "totals"}
        for arm in self.summary.arms:
            if arm.runtime == "virtual" and arm.slug in kept.arms:
                expected = arm.model_dump(mode="json", include=parts)
                found = kept.arms[arm.slug].model_dump(mode="json", include=parts)
                differences = _difference(path, expected, found, f"arms.{arm.slug}")
                if differences:
                    return differences
        return []


def _seed_summaries(seeds: Sequence[tuple[Path, KeptSeed]], slug: str) -> list[SeedSummary]:
    """What the summary says of the seeds of an arm."""
    found = []
    for _, kept in sorted(seeds, key=lambda one: one[1].seed):
        figures = kept.arms.get(slug)
        if figures is not None:
            found.append(figures.in_summary(kept.seed))
    return found


def digest_only(directory: Path, summary: RunSummary) -> list[str]:
    """What a run directory holds that is not computed again."""
    seeds = len(summary.paired.seeds)
    parts = {
        "the runs of the paired seeds": seeds > 0,
        "runs with other decision times": bool(summary.sensitivity),
        "predictions of live runs": any(run.prediction for run in summary.ran_live),
        "the frontier": (directory / "frontier.json").exists(),
        "times of live runs": bool(summary.ran_live),
        "report and figures": True,
    }
    return [what for what, is_there in parts.items() if is_there]


def _notes(outcome: VirtualOutcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in _OF_VIRTUAL_TIME}


def _plain_arm(arm: ArmSummary, virtual: bool) -> dict[str, Any]:
    """What a replay can show of an arm."""
    plain = arm.model_dump(mode="json")
    notes = plain["clock_notes"] if virtual else {}
    for name in _NOT_OF_THE_REPLAY:
        del plain[name]
    return {**plain, "clock_notes": {name: notes.get(name) for name in _OF_VIRTUAL_TIME}}


def _difference(path: Path, expected: Any, found: Any, place: str) -> list[Difference]:
    """The first difference of two plain values, and how many others there are; [] if none."""
    every = _differences(expected, with_names_of_now(found), place)
    first = next(every, None)
    if first is None:
        return []
    others = sum(1 for _ in islice(every, 1000))
    more = f" (and {others:,} other {'field' if others == 1 else 'fields'})" if others else ""
    return [Difference(path, f"{first}{more}")]


def with_names_of_now(found: Any) -> Any:
    """Plain values of a file; where an earlier version wrote the options of a protocol, with their
    names of now, as a configuration is read."""
    if _is_list(found):
        return [with_names_of_now(one) for one in found]
    if not isinstance(found, Mapping):
        return found
    return {
        name: _protocol_of_now(value) if name == "protocol" else with_names_of_now(value)
        for name, value in found.items()
    }


def _protocol_of_now(options: Any) -> Any:
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RenamedOption)
            now = ProtocolChoice.model_validate(options)
    except ValidationError:
        return options
    is_renamed = any(issubclass(warning.category, RenamedOption) for warning in caught)
    return now.model_dump(mode="json") if is_renamed else options


def _differences(expected: Any, found: Any, place: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for name in {**expected, **found}:
            where = f"{place}.{name}" if place else name
            if name not in expected:
                yield f"{where}: not computed again by this installation"
            elif name not in found:
                yield f"{where} is missing"
            else:
                yield from _differences(expected[name], found[name], where)
    elif _is_list(expected) and _is_list(found):
        if len(expected) != len(found):
            yield f"{place}: expected {len(expected):,} entries, got {len(found):,}"
        for number, (right, got) in enumerate(zip(expected, found, strict=False)):
            yield from _differences(right, got, f"{place}[{number}]")
    elif not _is_equal(expected, found):
        yield f"{place}: expected {_shown(expected)}, got {_shown(found)}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_equal(expected: Any, found: Any) -> bool:
    if isinstance(expected, float) or isinstance(found, float):
        numbers = isinstance(expected, int | float) and isinstance(found, int | float)
        return numbers and math.isclose(expected, found, rel_tol=_TOLERANCE)
    return bool(expected == found)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) or _is_list(value):
        return "an object" if isinstance(value, Mapping) else "a list"
    return "null" if value is None else repr(value)


def _array_difference(expected: NDArray[Any], found: NDArray[Any]) -> str:
    if expected.shape != found.shape:
        return f": expected the shape {list(expected.shape)}, got {list(found.shape)}"
    if found.dtype.kind not in "iufb":
        return f": expected numbers, got {found.dtype}"
    floats = expected.dtype.kind == "f"
    equal = (
        np.isclose(found, expected, _TOLERANCE, 0.0, equal_nan=True)
        if floats
        else found == expected
    )
    if equal.all():
        return ""
    at = np.unravel_index(int(np.argmin(equal)), equal.shape)
    return f"{[int(i) for i in at]}: expected {expected[at]}, got {found[at]}"
