"""The processors that this process may use."""

from __future__ import annotations

import os


def processors() -> int:
    """How many processors this process may run on: all of the machine, or those that taskset, a
    batch system or a container left it."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
