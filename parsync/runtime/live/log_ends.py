"""The logs of a live arm as they are on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from parsync.runtime.event_logs import LogEnd, log_end, write_end
from parsync.runtime.live.cell_log import CELL_LOG, frame_at_us
from parsync.runtime.live.handled_log import handled_at_us
from shared_state.errors import AgoraError


def log_ends(directory: Path) -> dict[str, LogEnd]:
    """What there is of every log, by file name. AgoraError naming one that is corrupt before its
    tail."""
    return {
        path.name: log_end(path, frame_at_us if path.name == CELL_LOG else handled_at_us)
        for path in sorted(directory.glob("*.journal"))
    }


def write_log_ends(directory: Path, stopped: str, recovered: Sequence[str] = ()) -> tuple[str, str]:
    """Write down what each log is at the arm's end, for a replay to compare with.

    Args:
        stopped: Why the arm did not get to its end, "" if it did.
        recovered: The actors whose measurements were computed from logs.

    Returns:
        The digest of the cell's log ("" if there is none), and why this could not be written, "" if
        it could.
    """
    digest = ""
    try:
        logs = log_ends(directory)
        digest = logs[CELL_LOG].digest if CELL_LOG in logs else ""
        write_end(directory, logs, stopped, recovered)
    except AgoraError as error:
        return digest, str(error)
    return digest, ""
