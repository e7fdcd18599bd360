"""How much memory this process may still use, to refuse problems that cannot fit early."""

from __future__ import annotations

import contextlib
from pathlib import Path

_CONTAINER = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """The memory that the machine and its container still allow this process; None if unknown."""
    limits: list[int] = []
    with contextlib.suppress(OSError, KeyError):
        limits.append(_numbers(Path("/proc/meminfo"))["MemAvailable:"] * 1024)
    with contextlib.suppress(OSError, KeyError, ValueError):  # "max" is no number: no limit
        most, used = (
            int((_CONTAINER / name).read_text("ascii")) for name in ("memory.max", "memory.current")
        )
        # cached files make room
        limits.append(most - used + _numbers(_CONTAINER / "memory.stat")["file"])
    return max(0, min(limits)) if limits else None


def need_memory(what: str, needed_bytes: int) -> None:
    """Raise MemoryError with a readable message if clearly less memory is available.

    Args:
        what: the subject of the message.
        needed_bytes: an estimate.
    """
    available = available_bytes()
    if available is not None and needed_bytes > available:
        raise MemoryError(
            f"{what} needs about {_gib(needed_bytes)}, {_gib(available)} are available"
        )


def _gib(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB"


def _numbers(path: Path) -> dict[str, int]:
    """The values of lines `name number ...`."""
    lines = (line.split() for line in path.read_text("ascii").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}
