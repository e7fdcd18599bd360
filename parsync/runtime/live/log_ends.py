"""The logs of a live arm as they are on disk."""

from __future__ import annotations

from pathlib import Path

from parsync.runtime.event_logs import LogEnd, log_end
from parsync.runtime.live.cell import CELL_LOG, frame_at_us
from parsync.runtime.live.handled_log import handled_at_us


def log_ends(directory: Path) -> dict[str, LogEnd]:
    """What there is of every log, by file name. AgoraError naming one that is corrupt before its
    tail."""
    return {
        path.name: log_end(path, frame_at_us if path.name == CELL_LOG else handled_at_us)
        for path in sorted(directory.glob("*.journal"))
    }
