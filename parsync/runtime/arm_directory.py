"""What a run leaves on disk: where its arms lie, what each was made of, and how it ended.

A run directory holds arms/<arm>/ and, once it has ended, summary.json; a live arm's logs lie in
arms/<arm>/log. Beside an arm's logs are

- arm.json, what it was made of, and the workload's tables there or in a directory above, where the
  arms of a run share them. Together they are all that a replay needs. Schedulers and protocols are
  named by their registered kinds; no code is read from a run directory.
- ended.json: how many events each of its event logs holds, from when to when, and its digest. A log
  that is cut short at a frame's end looks whole by itself; only this tells that events are missing.
  An arm that was killed has no such file. In virtual time no log is kept: the one entry,
  VIRTUAL_LOG, is the digest of all events handled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from parsync.runtime.assembly import Assembly
from parsync.runtime.calibration import Calibration
from parsync.runtime.json_files import (
    digest_of,
    field_of,
    read_bytes,
    read_json,
    unreadable,
    write_json,
)
from parsync.runtime.workload_files import (
    WORKLOAD_DIR,
    WORKLOAD_FILE,
    read_workload,
    workload_digest,
    write_workload,
)
from parsync.spec.arm import SeededArm
from parsync.spec.former_kinds import group_of_now
from parsync.strict_model import Strict, first_error
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.journal import EventDigest, read_journal

ARMS = "arms"
ARM_FILE = "arm.json"
OLD_FILE = "assembly.pickle"  # what older versions wrote, which is never read
LOG = "log"
SUMMARY = "summary.json"
LEVELS = 3  # from run/arms/<arm>/log to run


@dataclass(frozen=True, slots=True)
class ArmDigests:
    """What the summary of a run says of its arms, for a replay.

    Attributes:
        digests: Of each arm that ended in some way, by the name of its folder.
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
    summary = read_digests(directory)
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


def read_digests(run: Path) -> ArmDigests | None:
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
    return ArmDigests(digests, (reason or "ended early") if partial else "")


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
    summary = None if run is None else read_digests(run)
    digest = None if summary is None else summary.digests.get(own.name)
    return Arm(str(directory), where, folder, run, digest)


FORMAT = 4  # of arm.json
FORMER = (2, 3)  # which are read as well


class InVirtualTime(Strict):
    """How long a run in virtual time goes on past its workload's end, and how long each message is
    under way; or, instead of that, the live runtime's times."""

    drain_us: int = Field(ge=0)
    message_us: int = Field(ge=0)
    calibration: Calibration | None = None


class ArmFile(Strict):
    """What arm.json holds.

    Attributes:
        arm: The arm, its options that depend on the workload filled in.
        workload: The digest of its workload's files.
        virtual: None for a live run.
    """

    format: Literal[4] = 4
    arm: SeededArm
    workload: str
    virtual: InVirtualTime | None = None


def write_assembly(
    directory: Path,
    arm: SeededArm,
    workload: Workload,
    workload_dir: Path | None = None,
    virtual: InVirtualTime | None = None,
) -> None:
    """Write an arm's assembly into an existing directory.

    Args:
        workload_dir: Where the workload is written already, at most three levels above; None: it is
            written into the directory, too.
        virtual: The settings of a run in virtual time.

    Raises:
        AgoraError: Names the file that cannot be written.
    """
    if workload_dir is None:
        digest = write_workload(directory / WORKLOAD_DIR, workload, [arm.partitions])
    else:
        digest = workload_digest(workload_dir)
    write_arm(directory, ArmFile(arm=arm.for_workload(workload), workload=digest, virtual=virtual))


def write_arm(directory: Path, content: ArmFile) -> str:
    """Into an existing directory; the digest of the file. AgoraError if it cannot be written."""
    return write_json(directory / ARM_FILE, content.model_dump(mode="json"))


def read_arm(directory: Path) -> ArmFile:
    """The arm of a directory. AgoraError naming the file and field at fault, or the older version's
    file that stands in its place."""
    path = directory / ARM_FILE
    if not path.exists() and (directory / OLD_FILE).exists():
        raise AgoraError(
            f"{directory / OLD_FILE}: this run was made by an older version of Agora; replaying it"
            " needs the version that made it (summary.json names it)"
        )
    content = read_json(path, FORMAT, *FORMER)
    if content["format"] in FORMER:
        try:
            content = _of_format_3(content) if content["format"] == 2 else content
            content = _of_former_kinds(content)
        except (AttributeError, KeyError, TypeError, ZeroDivisionError) as error:
            raise AgoraError(f"{path}: damaged: {type(error).__name__}: {error}") from error
    try:
        return ArmFile.model_validate(content)
    except ValidationError as error:
        raise AgoraError(f"{path}: {first_error(error, ArmFile)}") from error


def _of_former_kinds(content: Mapping[str, Any]) -> dict[str, Any]:
    """What format 3 says, as this version has it: some kinds of schedulers had other names."""
    arm = content["arm"]
    arm = {**arm, "groups": [group_of_now(group) for group in arm["groups"]]}
    return {**content, "format": FORMAT, "arm": arm}


def _of_format_3(content: Mapping[str, Any]) -> dict[str, Any]:
    """What format 2 says, as format 3 has it: there shares, times and limits stood in the units of
    the runtimes, beside the decision clocks."""
    arm = dict(content["arm"])
    arm["live"] = content["virtual"] is None
    arm["groups"] = [_group_of_former(group, arm["partitions"]) for group in arm["groups"]]
    arm["protocols"] = arm.pop("shared_options", {})
    if "evictions" in arm:
        arm["evictions"] = arm["evictions"].lower()
    if (quotas := arm.get("quotas")) is not None:
        after_us = quotas.get("reclaim_after_us")
        arm["quotas"] = {
            "interval_s": quotas["interval_us"] / 1e6,
            "reclaim_after_s": None if after_us is None else after_us / 1e6,
            "groups": [
                {
                    "name": group["name"],
                    "minimum": group["minimum_permille"] / 1000,
                    "maximum": group["maximum_permille"] / 1000,
                    "weight": group["weight"],
                }
                for group in quotas["groups"]
            ],
        }
    return {**content, "format": 3, "arm": arm}


def _group_of_former(group: Mapping[str, Any], partitions: int) -> dict[str, Any]:
    now = dict(group)
    now["share"] = now.pop("share_permille") / 1000
    if now["task_class"] is not None:
        now["task_class"] = now["task_class"].lower()
    clock = dict(now.pop("clock"))
    match clock.pop("clock"):
        case "modelled":
            now["decision"] = {"clock": "modelled", **_times_of_former(clock, partitions)}
        case "modelled_by_class":
            both = _times_of_former(clock["batch"], partitions)
            slow = _times_of_former(clock["service"], partitions)
            service = {name: slow[name] for name in ("job_us", "task_us")}
            now["decision"] = {"clock": "modelled", **both, "service": service}
        case "counted" | "measured" as kind:
            now["decision"] = {"clock": kind, **clock}
        case _:  # the kind's own
            now["decision"] = None
    return now


def _times_of_former(clock: Mapping[str, Any], partitions: int) -> dict[str, Any]:
    task_ns, partition_ns = clock["task_ns"], clock["partition_ns"]
    return {
        "job_us": clock["job_us"],
        "task_us": task_ns / 1000,
        "scan_cost": partition_ns * partitions / task_ns,
        "charges_kept": clock["charges_kept"],
        "price_machine_ns": clock["price_machine_ns"],
    }


def read_assembly(directory: Path) -> tuple[Assembly, InVirtualTime | None]:
    """The arm and its workload; what a run in virtual time needs besides, None of a live one.
    AgoraError naming the file that is missing, damaged, or does not hold what it should."""
    arm = read_arm(directory)
    workload = read_workload(_find_workload(directory, arm.workload))
    try:
        assembly = Assembly.of(arm.arm, workload)
        assembly.owners()
        assembly.check_quotas()
        assembly.check_mapreduce()
    except AgoraError as error:
        raise AgoraError(f"{directory / ARM_FILE}: {error}") from error
    return assembly, arm.virtual


def read_workload_of(directory: Path) -> Workload:
    """The workload of an arm, whose schedulers need not be installed. AgoraError naming the file
    that is missing, damaged, or does not hold what it should."""
    path = directory / ARM_FILE
    digest = field_of(path, read_json(path, FORMAT, *FORMER), "workload", str)
    return read_workload(_find_workload(directory, digest))


def _find_workload(directory: Path, digest: str) -> Path:
    """The folder with the workload of that digest, the nearest first."""
    found = [folder for folder in _candidates(directory) if (folder / WORKLOAD_FILE).is_file()]
    for folder in found:
        if workload_digest(folder) == digest:
            return folder
    if found:
        raise AgoraError(
            f"{found[0] / WORKLOAD_FILE}: its digest is not that of {directory / ARM_FILE}:"
            " damaged, changed, or another run's"
        )
    raise AgoraError(
        f"{directory}: no folder {WORKLOAD_DIR} with {WORKLOAD_FILE} here or above: an arm copied"
        " without its run?"
    )


def _candidates(directory: Path) -> Iterator[Path]:
    here = directory.resolve()
    for folder in (here, *list(here.parents)[:LEVELS]):
        yield folder / WORKLOAD_DIR


ENDED_FILE = "ended.json"
VIRTUAL_LOG = "events"
_END_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a whole log.

    Attributes:
        events: The number of its frames.
        digest: Its shared_state.journal.EventDigest, in hex.
        first_us, last_us: The run time of its first and last event; 0 if it has none.
    """

    events: int
    digest: str
    first_us: int
    last_us: int


def log_end(path: Path, time_of: Callable[[bytes], int | None]) -> LogEnd:
    """The end of a log as it is on disk; a torn tail does not count.

    Args:
        time_of: Returns the run time of a frame, None if it has none.

    Raises:
        AgoraError: Names the file if it cannot be read, or is corrupt before its tail.
    """
    digest = EventDigest()
    events, first_us, payload = 0, None, b""
    for payload in read_journal(path):
        events += 1
        digest.update(payload)
        if first_us is None:
            first_us = time_of(payload)
    last_us = time_of(payload) if events else None
    return LogEnd(events, digest.hexdigest(), first_us or 0, last_us or 0)


@dataclass(frozen=True, slots=True)
class ArmEnd:
    """How an arm ended.

    Attributes:
        logs: Every log by file name.
        stopped: Why it did not get to its end, "" if it did.
        arm: The digest of its arm.json.
        recovered: The live actors whose measurements were computed from logs, because their
            processes were killed.
    """

    logs: Mapping[str, LogEnd]
    stopped: str
    arm: str
    recovered: tuple[str, ...] = ()


def write_end(
    directory: Path, logs: Mapping[str, LogEnd], stopped: str, recovered: Sequence[str] = ()
) -> None:
    """Beside the arm's arm.json, whole or absent. AgoraError naming the file."""
    content: dict[str, Any] = {
        "format": _END_FORMAT,
        "stopped": stopped,
        "arm": digest_of(read_bytes(directory / ARM_FILE)),
        "logs": {name: asdict(log) for name, log in sorted(logs.items())},
    }
    if recovered:
        content["recovered"] = list(recovered)
    write_json(directory / ENDED_FILE, content)


def read_end(directory: Path) -> ArmEnd | None:
    """How the arm of a directory ended; None if it did not: it was killed, or still runs.
    AgoraError naming the file and field at fault."""
    path = directory / ENDED_FILE
    if not path.exists():
        return None
    content = read_json(path, _END_FORMAT)
    logs: dict[str, LogEnd] = {}
    for name, log in field_of(path, content, "logs", dict).items():
        if not isinstance(log, dict):
            raise AgoraError(f"{path}: field logs.{name}: expected an object")
        logs[name] = LogEnd(
            field_of(path, log, "events", int),
            field_of(path, log, "digest", str),
            field_of(path, log, "first_us", int),
            field_of(path, log, "last_us", int),
        )
    recovered = content.get("recovered", [])
    if type(recovered) is not list or not all(type(name) is str for name in recovered):
        raise AgoraError(f"{path}: field recovered: expected a list of texts")
    return ArmEnd(
        logs,
        field_of(path, content, "stopped", str),
        field_of(path, content, "arm", str),
        tuple(recovered),
    )


def seconds(at_us: int) -> str:
    """A run time for people: "1.204513 s"."""
    return f"{at_us / 1e6:.6f} s"


def shortfall(name: str, found: LogEnd | None, expected: LogEnd) -> str | None:
    """What is missing from a log or differs in it, in one sentence; None if it is as it was when
    the arm ended.

    Args:
        found: The end of the log as it is; None if there is no such file.
    """
    n = expected.events
    if found is None:
        span = f"{seconds(expected.first_us)} to {seconds(expected.last_us)}"
        return f"{name} is missing: {n:,} events, from {span} of run time"
    if found == expected:
        return None
    if found.events < n:
        lost = f"{n - found.events:,} of its {n:,} events are missing"
        if found.last_us >= expected.last_us:
            return f"{name}: {lost}, somewhere before {seconds(expected.last_us)} of run time"
        begin = seconds(found.last_us) if found.events else seconds(expected.first_us)
        return f"{name}: {lost}, from {begin} of run time on"
    if found.events > n:
        return f"{name}: {found.events - n:,} events more than the {n:,} it held when the arm ended"
    return f"{name}: differs from what it was when the arm ended (its digest is different)"
