"""Files that are whole or absent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write it: it gets its name when it is finished, and goes if it cannot be."""
    unfinished = path.with_name(path.name + ".partial")
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
