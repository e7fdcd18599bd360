"""The summary of a run, summary.json: everything it found out, small enough to read; and the run
directory that holds it.

A run directory holds

    config.toml            the resolved configuration: re-runs the experiment
    summary.json           the model RunSummary (experiments/summary_model.py)
    report.html            self-contained
    figures/               one PNG and one SVG per figure
    workload/              tasks, machines and what else the arms were given, as Parquet
                           (parsync.workload.tables)
    arms/<slug>/           <table>.parquet for every table of parsync.metrics.tables, or of one of
                           its protocols, that got rows;
                           series.npz: time series and histograms the figures are drawn from
                           (parsync.metrics.summary.series); arm.json and ended.json, for a
                           replay, with the logs of a live run in log/ (parsync.runtime.arm_file,
                           event_logs)
    seeds/<seed>.json      the figures of every arm for one paired seed, phase by phase

Files ending in .partial were not finished.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.decision_basis import Capacity, DecisionBasis
from experiments.fluid_bound_model import PhaseBound
from experiments.model_files import read_model, write_model, writing
from experiments.restarts import Restart
from experiments.series_fields import check_series
from experiments.statistics import CONFIDENCE, Interval, mean_interval, paired_difference
from experiments.summary_model import (
    ArmSummary,
    KeptSeed,
    Paired,
    Phase,
    Prediction,
    RunSummary,
    SeedFigures,
    SeedSummary,
    Sensitivity,
    Settings,
    WorkloadFacts,
)
from experiments.whole_files import whole_file
from experiments.workloads.inspection import digest
from parsync.metrics.quantity import Quantity
from parsync.metrics.regret import Regret
from parsync.metrics.summary import ArmFigures
from parsync.metrics.validity import Validity
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

SUMMARY = "summary.json"
SERIES_FILE = "series.npz"
BASELINE = "ParSync adaptive"
LONGEST_SLUG = 60

# What numpy raises for a file that is no archive of plain arrays.
_UNREADABLE = (ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm as it ran under the run's own runtime and seed, and its paired seeds.

    The attributes not listed here are as in ArmSummary.

    Attributes:
        quantities: What its figures are called.
        series: What parsync.metrics.summary.series returns.
        seeds: Its figures by seed.
    """

    name: str
    runtime: Literal["ray", "virtual"]
    mix: Sequence[Mapping[str, Any]]
    sync: str
    strategy: str
    decision_clock: str
    basis: DecisionBasis
    clock_notes: Mapping[str, Any]
    figures: ArmFigures
    quantities: Sequence[Quantity]
    series: Mapping[str, NDArray[Any]]
    digest: str
    seeds: Mapping[int, SeedFigures] = field(default_factory=dict)
    regret: Regret = field(default_factory=Regret)
    partial: bool = False
    decision_capacity: Sequence[Capacity] = ()
    restarts: Sequence[Restart] = ()
    validity: Validity | None = None
    prediction: Prediction | None = None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What holds for all arms.

    Attributes:
        partial: Why the run did not get to its end, "" if it did.
    """

    seed: int
    version: str
    runtime: str
    settle_us: int
    config: Mapping[str, Any]
    partial: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as read back: its summary, and the series of each arm by slug."""

    directory: Path
    summary: RunSummary
    series: dict[str, dict[str, NDArray[Any]]]


def slugs(names: Sequence[str]) -> list[str]:
    """File names for arms: lower case, digits and dashes, not too long; a number is appended where
    two would be alike."""
    taken: list[str] = []
    for name in names:
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower())[:LONGEST_SLUG].strip("-") or "arm"
        slug, number = stem, 2
        while slug in taken:
            slug, number = f"{stem}-{number}", number + 1
        taken.append(slug)
    return taken


def build_summary(
    facts: RunFacts,
    workload: Workload,
    arms: Sequence[ArmResult],
    sensitivity: Sequence[Sensitivity] = (),
) -> RunSummary:
    """The summary of a run of this workload."""
    return summary_of_results(facts, workload_facts(workload), arms, sensitivity)


def summary_of_results(
    facts: RunFacts,
    workload: WorkloadFacts,
    arms: Sequence[ArmResult],
    sensitivity: Sequence[Sensitivity] = (),
) -> RunSummary:
    """As build_summary, where the facts of the workload are known already."""
    described = [
        describe(arm, slug)
        for arm, slug in zip(arms, slugs([arm.name for arm in arms]), strict=True)
    ]
    quantities = [one for arm in arms for one in arm.quantities]
    return summary_of(facts, workload, described, quantities, sensitivity)


def summary_of(
    facts: RunFacts,
    workload: WorkloadFacts,
    arms: Sequence[ArmSummary],
    quantities: Sequence[Quantity],
    sensitivity: Sequence[Sensitivity] = (),
) -> RunSummary:
    """The summary of arms that are described already."""
    of_run = hashlib.blake2b(digest_size=16)
    for arm in arms:
        for part in (arm.digest, *(seed.digest for seed in arm.seeds)):
            of_run.update(part.encode())
    known = distinct(quantities)
    return RunSummary(
        digest=of_run.hexdigest(),
        seed=facts.seed,
        version=facts.version,
        runtime=facts.runtime,
        partial=bool(facts.partial) or any(arm.partial for arm in arms),
        partial_reason=facts.partial,
        settle_us=facts.settle_us,
        workload=workload,
        config=_plain(facts.config),
        quantities=known,
        arms=list(arms),
        paired=paired(arms, known),
        sensitivity=list(sensitivity),
    )


def distinct(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Each quantity once, in order."""
    return list({quantity.key: quantity for quantity in reversed(quantities)}.values())[::-1]


def workload_facts(
    workload: Workload, bounds: Sequence[PhaseBound | None] | None = None
) -> WorkloadFacts:
    """What the arms had to do.

    Args:
        workload: What was run.
        bounds: The bound of each phase; None: not known.
    """
    bounds = [None] * len(workload.phases) if bounds is None else bounds
    duration_us = workload.duration_us[workload.arrival_rows]
    duration_us = duration_us[duration_us >= 0]
    return WorkloadFacts(
        name=workload.name,
        digest=digest(workload),
        machines=workload.cell.machines,
        dimensions=list(workload.cell.dimensions),
        capacity=workload.cell.capacity.sum(axis=0).tolist(),
        tasks=len(workload.tasks),
        arrivals=len(workload.arrival_rows),
        initial_tasks=len(workload.initial.task),
        preferred_permille=workload.preferred_permille,
        end_us=workload.end_us,
        mean_duration_us=round(float(duration_us.mean())) if len(duration_us) else None,
        phases=[
            Phase(
                start_us=phase.start_us,
                end_us=phase.end_us,
                load_percent=phase.load_percent,
                bound=bound,
            )
            for phase, bound in zip(workload.phases, bounds, strict=True)
        ],
        facts=_plain(workload.facts),
    )


def paired(
    arms: Sequence[ArmSummary], quantities: Sequence[Quantity], baseline_name: str = BASELINE
) -> Paired:
    """Intervals and differences over the seeds that every arm ran. The baseline is the arm of that
    name, else the first."""
    common = set.intersection(*({row.seed for row in arm.seeds} for arm in arms)) if arms else set()
    seeds = sorted(common)
    names = [arm.name for arm in arms]
    baseline = (
        arms[names.index(baseline_name) if baseline_name in names else 0].slug if arms else None
    )
    values = {
        arm.slug: [row.overall for seed in seeds for row in arm.seeds if row.seed == seed]
        for arm in arms
    }

    def column(slug: str, key: str) -> list[float | None]:
        return [overall.value(key) for overall in values[slug]]

    def bounded(slug: str, key: str) -> bool:
        return any(overall.is_bound(key) for overall in values[slug])

    def interval(slug: str, key: str) -> Interval:
        mean = mean_interval(column(slug, key))
        return mean.model_copy(update={"at_least": bounded(slug, key)})

    known = {
        slug: [
            quantity.key
            for quantity in quantities
            if rows
            and (quantity.unbounded or any(row.value(quantity.key) is not None for row in rows))
        ]
        for slug, rows in values.items()
    }
    return Paired(
        seeds=seeds,
        confidence=CONFIDENCE,
        baseline=baseline,
        arms={slug: {key: interval(slug, key) for key in known[slug]} for slug in values},
        differences={
            slug: {
                key: paired_difference(
                    column(slug, key),
                    column(baseline, key),
                    at_least=bounded(slug, key),
                    at_most=bounded(baseline, key),
                )
                for key in known[slug]
                if baseline is not None and key in known[baseline]
            }
            for slug in values
            if slug != baseline
        },
    )


def write_run(directory: Path, summary: RunSummary, arms: Sequence[ArmResult]) -> None:
    """Write summary.json, the arms' series and the seeds' figures into an existing run directory.

    Every file is whole or absent; series that are there are kept. Raises AgoraError naming what
    cannot be written.
    """
    for arm, described in zip(arms, summary.arms, strict=True):
        write_series(directory / "arms" / described.slug, arm.series)
    by_seed: dict[int, dict[str, SeedFigures]] = {}
    for arm, described in zip(arms, summary.arms, strict=True):
        for seed, figures in arm.seeds.items():
            by_seed.setdefault(seed, {})[described.slug] = figures
    for seed, results in by_seed.items():
        write_seed(directory, seed, results)
    write_model(directory / SUMMARY, summary)


def write_series(folder: Path, series: Mapping[str, NDArray[Any]]) -> None:
    """Write series.npz into an arm's folder, which is made if it is not there; whole or absent, and
    only once. Raises AgoraError if it cannot be written."""
    path = folder / SERIES_FILE
    if path.exists():
        return
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            arrays: dict[str, Any] = dict(series)
            np.savez_compressed(file, **arrays)


def write_seed(directory: Path, seed: int, arms: Mapping[str, SeedFigures]) -> None:
    """Write the figures of one paired seed, by the arms' slugs, into a run directory, in the place
    of what is there. Raises AgoraError if they cannot be written."""
    path = directory / "seeds" / f"{seed}.json"
    with writing(path):
        path.parent.mkdir(exist_ok=True)
    write_model(path, KeptSeed(seed=seed, arms=dict(arms)))


def read_summary(directory: Path) -> RunSummary:
    """The summary of a run directory. Raises AgoraError naming the directory if it is not one, or
    the version or field of a file that cannot be used."""
    path = directory / SUMMARY
    if not directory.is_dir():
        raise AgoraError(f"{directory}: no such directory")
    if not path.is_file():
        raise AgoraError(
            f"{directory}: it has no {SUMMARY}: not a run directory, or the run was killed "
            "(`agora report RUN` makes a report of what it left behind)"
        )
    return read_model(path, RunSummary)


def read_run(directory: Path) -> Run:
    """A run directory with its series. Raises AgoraError as read_summary does, or naming a series
    that is missing."""
    return read_series(directory, read_summary(directory))


def read_series(directory: Path, summary: RunSummary) -> Run:
    """The series of a run's arms beside its summary. Raises AgoraError naming one that is missing
    or cannot be read."""
    series: dict[str, dict[str, NDArray[Any]]] = {}
    for arm in summary.arms:
        path = directory / "arms" / arm.slug / SERIES_FILE
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except OSError as error:
            what = error.strerror or error
            raise AgoraError(f"{path}: cannot read the series: {what}") from error
        except _UNREADABLE as error:
            raise AgoraError(f"{path}: cannot read the series: {error}") from error
        check_series(path, arrays, len(arm.agents))
        series[arm.slug] = arrays
    return Run(directory, summary, series)


def describe(arm: ArmResult, slug: str) -> ArmSummary:
    """An arm as the summary has it."""
    figures = arm.figures
    overall = figures.overall.model_copy(update=arm.regret.means().model_dump())
    return ArmSummary(
        name=arm.name,
        runtime=arm.runtime,
        slug=slug,
        mix=[_plain(group) for group in arm.mix],
        sync=arm.sync,
        strategy=arm.strategy,
        decision_clock=arm.decision_clock,
        basis=arm.basis,
        decision_capacity=list(arm.decision_capacity),
        clock_notes=_plain(arm.clock_notes),
        partial=arm.partial,
        restarts=list(arm.restarts),
        validity=arm.validity,
        prediction=arm.prediction,
        digest=arm.digest,
        overall=overall,
        phases=figures.phases,
        groups=figures.groups,
        agents=figures.agents,
        totals=figures.totals,
        start=figures.start,
        rivals=figures.rivals,
        staleness=figures.staleness,
        regret=arm.regret,
        seeds=[
            SeedSummary(
                seed=seed,
                digest=result.digest,
                workload=result.workload,
                overall=result.overall,
            )
            for seed, result in sorted(arm.seeds.items())
        ],
    )


def _plain(settings: Mapping[str, Any]) -> Settings:
    """Settings in JSON's own types."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if isinstance(value, Path):
            return str(value)
        raise TypeError(f"{type(value).__name__} does not belong in a summary")

    found: Settings = json.loads(json.dumps(dict(settings), allow_nan=False, default=plain))
    return found
