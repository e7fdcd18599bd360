"""The directory of a run: written, and read back.

A run directory holds

    config.toml            the resolved configuration: re-runs the experiment
    summary.json           the model RunSummary (experiments/analysis/summary_model.py)
    report.html            self-contained
    figures/               one PNG and one SVG per figure
    workload/              tasks, machines and what else the arms were given, as Parquet
                           (parsync.workload.tables)
    arms/<slug>/           of each arm, and of each separate live run:
                           <table>.parquet for every table of parsync.metrics.tables, or of one of
                           its protocols, that got rows;
                           series.npz: time series and histograms the figures are drawn from
                           (parsync.metrics.summary.series); arm.json and ended.json, for a
                           replay, with the logs of a live run in log/ (parsync.runtime:
                           arm_directory)
    seeds/<seed>.json      the figures of every arm for one paired seed, phase by phase

    manifest.json          the size and the SHA-256 digest of every file, written last

Files ending in .partial were not finished.

The manifest shows damage, and changes by hand. It does not prove that a run is honest: whoever
changes a file can write another manifest. What the events of a run can show is therefore computed
again (`agora replay`). The logs of live runs are not in it: ended.json has their digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from numpy.typing import NDArray

from experiments.analysis.model_files import read_model, write_model, writing
from experiments.analysis.summary import ArmResult, describe, distinct
from experiments.analysis.summary_model import (
    KeptArm,
    KeptSeed,
    RunSummary,
    SeedFigures,
    WorkloadFacts,
)
from experiments.files import check_series, read_arrays, whole_file, write_arrays
from parsync.runtime.json_files import field_of, read_json, to_json
from parsync.runtime.recomputed_tables import Difference
from shared_state.errors import AgoraError

SUMMARY = "summary.json"
SERIES_FILE = "series.npz"
FIGURES_FILE = "figures.json"  # of an arm


@dataclass(frozen=True, slots=True)
class Run:
    """A run as read back: its summary, and the series of each arm and live run by slug.

    Attributes:
        places: The place of each arm in the order of colours, by slug, where it is not that in the
            summary.
    """

    directory: Path
    summary: RunSummary
    series: dict[str, dict[str, NDArray[Any]]]
    places: Mapping[str, int] = field(default_factory=dict)

    def live(self) -> Run | None:
        """The same with its live runs as arms (ComparedArms.live), each in the colour of its arm;
        None if there are none."""
        summary = self.summary.live()
        if summary is None:
            return None
        names = [arm.name for arm in self.summary.arms]
        places = {
            arm.slug: names.index(arm.name) if arm.name in names else len(names) + number
            for number, arm in enumerate(summary.arms)
        }
        return replace(self, summary=summary, places=places)


def write_run(
    directory: Path,
    summary: RunSummary,
    arms: Sequence[ArmResult],
    live_runs: Sequence[ArmResult] = (),
) -> None:
    """Write summary.json, the arms' series and the seeds' figures into an existing run directory.

    Every file is whole or absent; series that are there are kept. Raises AgoraError naming what
    cannot be written.
    """
    runs = (*summary.arms, *summary.live_runs)
    for arm, described in zip((*arms, *live_runs), runs, strict=True):
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
        write_arrays(path, series)


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
        what = "not a directory" if directory.exists() else "no such directory"
        raise AgoraError(f"{directory}: {what}")
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
    """The series of a run's arms and live runs beside its summary. Raises AgoraError naming one
    that is missing or cannot be read."""
    series: dict[str, dict[str, NDArray[Any]]] = {}
    for arm in (*summary.arms, *summary.live_runs):
        path = directory / "arms" / arm.slug / SERIES_FILE
        arrays = read_arrays(path)
        check_series(path, arrays, len(arm.agents))
        series[arm.slug] = arrays
    return Run(directory, summary, series)


def keep_arm(
    directory: Path, arm: ArmResult, slug: str, workload: WorkloadFacts, version: str, stopped: str
) -> None:
    """Write an arm's figures and series into a run directory. Raises AgoraError if they cannot be
    written."""
    folder = directory / "arms" / slug
    write_series(folder, arm.series)
    kept = KeptArm(
        version=version,
        stopped=stopped,
        workload=workload,
        quantities=distinct(arm.quantities),
        arm=describe(arm, slug).model_copy(update={"seeds": []}),
    )
    write_model(folder / FIGURES_FILE, kept)


def kept_arm(folder: Path) -> KeptArm | None:
    """An arm that had ended when its run was killed; None if it had not. Raises AgoraError naming
    the file, and the field at fault, if it cannot be used."""
    path = folder / FIGURES_FILE
    return read_model(path, KeptArm) if path.exists() else None


MANIFEST = "manifest.json"
FORMAT = 1
_LOGS = {".journal", ".checkpoint", ".records"}
_CHUNK = 1 << 20


def write_manifest(directory: Path) -> None:
    """Write the manifest of a run directory, whole or not at all. Raises AgoraError naming a file
    that cannot be read or written."""
    _write(directory, {path: _described(directory / path) for path in _files(directory)})


def renew_manifest(directory: Path, paths: Iterable[Path]) -> None:
    """Describe files anew that were made again from a finished run, such as its report; without a
    manifest, do nothing. Raises AgoraError as write_manifest and changed_files."""
    known = read_manifest(directory)
    if known is None:
        return
    made = {path.relative_to(directory).as_posix(): _described(path) for path in paths}
    _write(directory, {**known, **made})


def read_manifest(directory: Path) -> dict[str, dict[str, Any]] | None:
    """What the manifest of a run says of its files, by path; None if there is none. Raises
    AgoraError naming the manifest, and the field that cannot be used."""
    path = directory / MANIFEST
    if not path.exists():
        return None
    files = field_of(path, read_json(path, FORMAT), "files", dict)
    for name, file in files.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not isinstance(file, dict):
            raise AgoraError(f"{path}: field files: {name!r}: expected a file of the run")
        field_of(path, file, "bytes", int)
        field_of(path, file, "sha256", str)
    return files


def changed_files(
    directory: Path, known: Mapping[str, Mapping[str, Any]], under: str = ""
) -> list[Difference]:
    """The files that are not as the manifest says, in its order.

    Args:
        directory: Of the run.
        known: Its manifest.
        under: The folder to look at; "": all.
    """
    found = []
    for name, expected in known.items():
        if under and not name.startswith(f"{under}/"):
            continue
        path = directory / name
        if not path.is_file():
            found.append(Difference(path, f"is missing: it is in {MANIFEST}"))
            continue
        got = _described(path)
        if got["bytes"] != expected["bytes"]:
            text = f"has {got['bytes']:,} bytes, not the {expected['bytes']:,} of {MANIFEST}"
            found.append(Difference(path, text))
        elif got != expected:
            found.append(Difference(path, f"its SHA-256 digest is not the one in {MANIFEST}"))
    return found


def _files(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix not in _LOGS and path.name != MANIFEST:
            yield path.relative_to(directory).as_posix()


def _described(path: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise AgoraError(f"{path}: cannot read it: {error.strerror}") from error
    return {"bytes": size, "sha256": digest.hexdigest()}


def _write(directory: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    path = directory / MANIFEST
    content = {"format": FORMAT, "files": dict(sorted(files.items()))}
    with writing(path), whole_file(path) as unfinished:
        unfinished.write_bytes(to_json(content))
