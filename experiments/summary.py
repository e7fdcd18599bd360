"""summary.json: everything a run found out, small enough to read; and the run directory it lives
in.

A run directory holds

    config.toml            the resolved configuration: re-runs the experiment
    summary.json           see build_summary
    report.html            self-contained
    figures/               one PNG and one SVG per figure
    workload/              tasks, machines and what else the arms were given, as Parquet
                           (parsync.workload.tables)
    arms/<slug>/           <table>.parquet for every table of parsync.metrics.tables that got rows;
                           series.npz: time series and histograms the figures are drawn from
                           (parsync.metrics.summary.series); arm.json and ended.json, for a
                           replay, with the logs of a live run in log/ (parsync.runtime.arm_file,
                           event_logs)
    seeds/<seed>.json      the figures of every arm for one paired seed, phase by phase

Files ending in .partial were not finished.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bounds import is_bound, value_of
from experiments.quantities import QUANTITIES
from experiments.restarts import Restarts
from experiments.series_fields import check_series
from experiments.statistics import CONFIDENCE, mean_interval, paired_difference
from experiments.summary_fields import check_summary
from experiments.whole_files import whole_file
from experiments.workloads.inspection import digest
from parsync.metrics.regret import Regret
from parsync.runtime.json_files import unreadable
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

FORMAT = 1
SUMMARY = "summary.json"
SERIES_FILE = "series.npz"
BASELINE = "ParSync adaptive"
LONGEST_SLUG = 60

Figures = dict[str, Any]

# What numpy raises for a file that is no archive of plain arrays.
_UNREADABLE = (ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One arm under one seed of the paired runs. figures: parsync.metrics.summary.summarise.
    workload: the digest of the seed's workload."""

    seed: int
    digest: str
    figures: Figures
    workload: str = ""


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm as it ran under the run's own runtime and seed, and its paired seeds.

    mix: one mapping per scheduler group, e.g. name, kind, count, strategy. clock_notes: what its
    times include, e.g. tick_us, step_wait_share.
    series: parsync.metrics.summary.series. regret: parsync.metrics.regret, either part optional.
    decision_capacity: a mapping per group whose decision times are modelled
    (decision_capacity.Capacity). restarts: of a live run's actors, each with actor, at_us, away_us.
    """

    name: str
    mix: Sequence[Mapping[str, Any]]
    sync: str
    strategy: str
    decision_clock: str
    clock_notes: Mapping[str, Any]
    figures: Figures
    series: Mapping[str, NDArray[Any]]
    digest: str
    seeds: Sequence[SeedResult] = ()
    regret: Regret = field(default_factory=Regret)
    partial: bool = False
    decision_capacity: Sequence[Mapping[str, Any]] = ()
    restarts: Restarts = ()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What holds for all arms. partial: why the run did not get to its end, "" if it did."""

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
    summary: Figures
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


def build_summary(facts: RunFacts, workload: Workload, arms: Sequence[ArmResult]) -> Figures:
    """The summary: digest, seed, version, runtime, partial, workload, config, arms[] and paired.

    arms[]: name, slug, what the arm is, and all figures of metrics_summary.summarise (overall,
    phases, groups, agents, totals, rivals, staleness). paired: by arm and quantity the mean over
    seeds with its interval, and the difference to the baseline, which is the arm named BASELINE or
    else the first. The digest is that of the arms' digests in order.
    """
    described = [
        describe(arm, slug)
        for arm, slug in zip(arms, slugs([arm.name for arm in arms]), strict=True)
    ]
    return summary_of(facts, workload_facts(workload), described)


def summary_of(facts: RunFacts, workload: Figures, arms: Sequence[Figures]) -> Figures:
    """The summary, as build_summary has it, of arms that are described already. workload: as
    workload_facts."""
    of_run = hashlib.blake2b(digest_size=16)
    for arm in arms:
        for part in (arm["digest"], *(seed["digest"] for seed in arm["seeds"])):
            of_run.update(part.encode())
    summary = {
        "format": FORMAT,
        "digest": of_run.hexdigest(),
        "seed": facts.seed,
        "version": facts.version,
        "runtime": facts.runtime,
        "partial": bool(facts.partial) or any(arm["partial"] for arm in arms),
        "partial_reason": facts.partial,
        "settle_us": facts.settle_us,
        "workload": workload,
        "config": dict(facts.config),
        "arms": list(arms),
        "paired": paired(arms),
    }
    plain: Figures = json.loads(_to_json(summary))
    return plain


def workload_facts(workload: Workload) -> Figures:
    """What the arms had to do, for the report and to tell whether two runs can be compared.
    mean_duration_us: of the arriving tasks that end."""
    lasting = workload.duration_us[workload.arrival_rows]
    lasting = lasting[lasting >= 0]
    return {
        "name": workload.name,
        "digest": digest(workload),
        "machines": workload.cell.machines,
        "dimensions": list(workload.cell.dimensions),
        "capacity": workload.cell.capacity.sum(axis=0).tolist(),
        "tasks": len(workload.tasks),
        "arrivals": len(workload.arrival_rows),
        "initial_tasks": len(workload.initial.task),
        "preferred_permille": workload.preferred_permille,
        "end_us": workload.end_us,
        "mean_duration_us": round(float(lasting.mean())) if len(lasting) else None,
        "phases": [
            {"start_us": phase.start_us, "end_us": phase.end_us, "load_percent": phase.load_percent}
            for phase in workload.phases
        ],
        "facts": dict(workload.facts),
    }


def paired(arms: Sequence[Mapping[str, Any]], baseline_name: str = BASELINE) -> Figures:
    """Intervals and differences over the seeds that every arm ran; `seeds` is empty if there are
    none.

    Figures that leave out too much are taken by their lower bounds (bounds.py), and say so:
    at_least of an arm, at_least and at_most of a difference.
    arms: as in the summary, each with `seeds`, a list of {"seed", "overall"}. The baseline is the
    arm of that name, else the first.
    """
    common = (
        set.intersection(*({row["seed"] for row in arm["seeds"]} for arm in arms))
        if arms
        else set()
    )
    seeds = sorted(common)
    names = [arm["name"] for arm in arms]
    baseline = (
        arms[names.index(baseline_name) if baseline_name in names else 0]["slug"] if arms else None
    )
    values = {
        arm["slug"]: [
            row["overall"] for seed in seeds for row in arm["seeds"] if row["seed"] == seed
        ]
        for arm in arms
    }

    def column(slug: str, key: str) -> list[float | None]:
        return [value_of(overall, key) for overall in values[slug]]

    def bounded(slug: str, key: str) -> bool:
        return any(is_bound(overall, key) for overall in values[slug])

    def told(slug: str) -> list[str]:
        return [key for key in QUANTITIES if any(key in overall for overall in values[slug])]

    return {
        "seeds": seeds,
        "confidence": CONFIDENCE,
        "baseline": baseline,
        "arms": {
            slug: {
                key: {**mean_interval(column(slug, key)).to_json(), "at_least": bounded(slug, key)}
                for key in told(slug)
            }
            for slug in values
        },
        "differences": {
            slug: {
                key: paired_difference(
                    column(slug, key),
                    column(baseline, key),
                    at_least=bounded(slug, key),
                    at_most=bounded(baseline, key),
                ).to_json()
                for key in told(slug)
                if baseline is not None and key in told(baseline)
            }
            for slug in values
            if slug != baseline
        },
    }


def write_run(directory: Path, summary: Figures, arms: Sequence[ArmResult]) -> None:
    """Write summary.json, the arms' series and the seeds' figures into an existing run directory.

    Every file is whole or absent; series that are there are kept. Raises AgoraError naming what
    cannot be written.
    """
    for arm, described in zip(arms, summary["arms"], strict=True):
        write_series(directory / "arms" / described["slug"], arm.series)
    by_seed: dict[int, dict[str, SeedResult]] = {}
    for arm, described in zip(arms, summary["arms"], strict=True):
        for result in arm.seeds:
            by_seed.setdefault(result.seed, {})[described["slug"]] = result
    for seed, results in by_seed.items():
        write_seed(directory, seed, results)
    write_json(directory / SUMMARY, summary)


def write_series(folder: Path, series: Mapping[str, NDArray[Any]]) -> None:
    """Write series.npz into an arm's folder, which is made if it is not there; whole or absent, and
    only once. Raises AgoraError if it cannot be written."""
    path = folder / SERIES_FILE
    if path.exists():
        return
    with _explained(path):
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, **_arrays(series))


def write_seed(directory: Path, seed: int, results: Mapping[str, SeedResult]) -> None:
    """Write the figures of one paired seed, by the arms' slugs, into a run directory, in the place
    of what is there. Raises AgoraError if they cannot be written."""
    path = directory / "seeds" / f"{seed}.json"
    arms = {
        slug: {
            "digest": result.digest,
            "workload": result.workload,
            **{name: result.figures[name] for name in ("overall", "phases", "groups", "totals")},
        }
        for slug, result in results.items()
    }
    with _explained(path):
        path.parent.mkdir(exist_ok=True)
    write_json(path, {"seed": seed, "arms": arms})


def read_summary(directory: Path) -> Figures:
    """The summary of a run directory. Raises AgoraError naming the directory if it is not one, or
    one this version cannot read."""
    path = directory / SUMMARY
    if not directory.is_dir():
        raise AgoraError(f"{directory}: no such directory")
    if not path.is_file():
        raise AgoraError(
            f"{directory}: it has no {SUMMARY}: not a run directory, or the run was killed "
            "(`python -m experiments.report` makes a report of what it left behind)"
        )
    try:
        summary: Figures = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise AgoraError(f"{path}: cannot read it: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, beyond what Python reads
        raise AgoraError(f"{path}: not readable as JSON: {unreadable(error)}") from error
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise AgoraError(f"{path}: field format: expected {FORMAT}, as written by this version")
    check_summary(path, summary)
    return summary


def read_run(directory: Path) -> Run:
    """A run directory with its series. Raises AgoraError as read_summary does, or naming a series
    that is missing."""
    summary = read_summary(directory)
    series: dict[str, dict[str, NDArray[Any]]] = {}
    for arm in summary["arms"]:
        path = directory / "arms" / arm["slug"] / SERIES_FILE
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except OSError as error:
            what = error.strerror or error
            raise AgoraError(f"{path}: cannot read the series: {what}") from error
        except _UNREADABLE as error:
            raise AgoraError(f"{path}: cannot read the series: {error}") from error
        check_series(path, arrays, len(arm["agents"]))
        series[arm["slug"]] = arrays
    return Run(directory, summary, series)


def _arrays(series: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    return {name: np.asarray(values) for name, values in series.items()}


def describe(arm: ArmResult, slug: str) -> Figures:
    """An arm as the summary has it."""
    figures = dict(arm.figures)
    figures["overall"] = {
        **figures["overall"],
        **arm.regret.means().model_dump(exclude_none=True),
    }
    return {
        "name": arm.name,
        "slug": slug,
        "mix": [dict(group) for group in arm.mix],
        "sync": arm.sync,
        "strategy": arm.strategy,
        "decision_clock": arm.decision_clock,
        "decision_capacity": [dict(capacity) for capacity in arm.decision_capacity],
        "clock_notes": dict(arm.clock_notes),
        "partial": arm.partial,
        "restarts": [dict(restart) for restart in arm.restarts],
        "digest": arm.digest,
        **figures,
        "regret": arm.regret.model_dump(),
        "seeds": [
            {
                "seed": result.seed,
                "digest": result.digest,
                "workload": result.workload,
                "overall": result.figures["overall"],
            }
            for result in arm.seeds
        ],
    }


def write_json(path: Path, content: Figures) -> None:
    """Whole, or as it was. Raises AgoraError if it cannot be written."""
    with _explained(path), whole_file(path) as unfinished:
        unfinished.write_text(_to_json(content) + "\n", "utf-8")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename or path
        raise AgoraError(f"{place}: cannot write the results: {error.strerror}") from error


def _to_json(content: Figures) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if isinstance(value, Path):
            return str(value)
        raise TypeError(f"{type(value).__name__} does not belong in a summary")

    return json.dumps(content, indent=1, allow_nan=False, default=plain, ensure_ascii=False)
