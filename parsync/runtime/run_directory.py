"""The layout of a run directory: where its arms lie, and what its summary says of them.

A run directory holds arms/<arm>/ and, once it has ended, summary.json; a live arm's logs lie in
arms/<arm>/log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from parsync.runtime.json_files import field_of, read_bytes, unreadable
from shared_state.errors import AgoraError

ARMS = "arms"
ARM_FILE = "arm.json"
OLD_FILE = "assembly.pickle"  # what older versions wrote, which is never read
LOG = "log"
SUMMARY = "summary.json"
LEVELS = 3  # from run/arms/<arm>/log to run


@dataclass(frozen=True, slots=True)
class Summary:
    """What the summary of a run says of its arms.

    Attributes:
        digests: The digest of each arm that ended in some way, by the name of its folder.
        partial: Why the run did not get to its end, "" if it did.
    """

    digests: Mapping[str, str] = field(default_factory=dict)
    partial: str = ""


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm to replay.

    Attributes:
        label: Its directory, as it was named.
        directory: The directory with its arm.json.
        folder: The directory with its tables: the same, or of a live arm the one above.
        run: The run that it is part of; None if it is part of none.
        digest: The digest of its events, as the summary of its run has it; None if the summary does
            not name it, or there is none.
    """

    label: str
    directory: Path
    folder: Path
    run: Path | None
    digest: str | None

    @property
    def slug(self) -> str:
        """The name of its folder."""
        return self.folder.resolve().name


@dataclass(frozen=True, slots=True)
class Found:
    """What there is to replay in a directory, and what a run directory lacks, a sentence each."""

    arms: tuple[Arm, ...]
    gaps: tuple[str, ...] = ()


def find_arms(directory: Path) -> Found:
    """The arms of a run directory, or the one of an arm directory or of its logs. AgoraError if it
    is none of these."""
    if not directory.is_dir():
        what = "not a directory" if directory.exists() else "no such directory"
        raise AgoraError(f"{directory}: {what}")
    if _is_arm(directory):
        return Found((_arm(directory),))
    folder = directory / ARMS
    if not folder.is_dir():
        raise AgoraError(f"{directory}: neither a run nor an arm (no {ARMS}, no {ARM_FILE})")
    summary = read_summary(directory)
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    gaps = []
    if summary is None:
        gaps.append(f"no {SUMMARY}: the run was killed before its end, or still runs")
    else:
        gaps += [f"{ARMS}/{name} is missing" for name in summary.digests if name not in names]
        gaps += [f"{SUMMARY} does not name {ARMS}/{n}" for n in names if n not in summary.digests]
        if summary.partial:
            gaps.append(f"the run ended early: {summary.partial}")
    whole = [name for name in names if _is_arm(folder / name)]
    gaps += [f"{ARMS}/{name} has no {ARM_FILE}" for name in names if name not in whole]
    return Found(tuple(_arm(folder / name, directory) for name in whole), tuple(gaps))


def run_of(directory: Path) -> Path:
    """The run that a directory is, or is part of; the directory itself if it is part of none."""
    here = directory.resolve()
    above = (here, *list(here.parents)[:LEVELS])
    return next((folder for folder in above if (folder / ARMS).is_dir()), here)


def read_summary(run: Path) -> Summary | None:
    """What the summary of a run says, None if it has none. AgoraError naming file and field."""
    path = run / SUMMARY
    if not path.exists():
        return None
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise AgoraError(f"{path}: not readable as JSON: {unreadable(error)}") from error
    if not isinstance(content, dict):
        raise AgoraError(f"{path}: expected an object")
    digests: dict[str, str] = {}
    for runs in ("arms", "live_runs"):
        for arm in field_of(path, content, runs, list):
            if not isinstance(arm, dict):
                raise AgoraError(f"{path}: field {runs}: expected a list of objects")
            digests[field_of(path, arm, "slug", str)] = field_of(path, arm, "digest", str)
    partial = field_of(path, content, "partial", bool)
    reason = field_of(path, content, "partial_reason", str)
    return Summary(digests, (reason or "ended early") if partial else "")


def _is_arm(directory: Path) -> bool:
    return any(
        (folder / name).is_file()
        for folder in (directory, directory / LOG)
        for name in (ARM_FILE, OLD_FILE)
    )


def _arm(directory: Path, run: Path | None = None) -> Arm:
    has_arm_file = any((directory / name).is_file() for name in (ARM_FILE, OLD_FILE))
    where = directory if has_arm_file else directory / LOG
    folder = where.parent if where.resolve().name == LOG else where
    own = folder.resolve()
    if run is None and own.parent.name == ARMS:
        run = own.parents[1]
    summary = None if run is None else read_summary(run)
    digest = None if summary is None else summary.digests.get(own.name)
    return Arm(str(directory), where, folder, run, digest)
