"""What an arm's event logs were when it ended: how many events each holds, from when to when, and
its digest, in a file beside them that is written whole or not at all.

A log that is cut short at a frame's end looks whole by itself; only this tells that events are
missing. An arm that was killed has no such file. In virtual time no log is kept: the one entry,
VIRTUAL_LOG, is the digest of all events handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parsync.runtime.json_files import digest_of, field_of, read_bytes, read_json, write_json
from parsync.runtime.run_directory import ARM_FILE
from shared_state.errors import AgoraError
from shared_state.journal import EventDigest, read_journal

ENDED_FILE = "ended.json"
VIRTUAL_LOG = "events"
FORMAT = 1


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
        "format": FORMAT,
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
    content = read_json(path, FORMAT)
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
