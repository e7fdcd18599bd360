"""Files that are written atomically: complete or absent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from experiments.interruption import stop_signals_held


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, renamed to `path` at the end of the block, or removed if that fails.

    Stop signals are delayed until then.
    """
    unfinished = path.with_name(path.name + ".partial")
    with stop_signals_held():
        try:
            yield unfinished
            unfinished.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
