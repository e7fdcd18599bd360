"""Files that are whole or absent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from experiments.interruption import stop_signals_held


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write it: it gets its name when it is finished, and goes if it cannot be. Stop
    signals wait meanwhile."""
    unfinished = path.with_name(path.name + ".partial")
    with stop_signals_held():
        try:
            yield unfinished
            unfinished.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
