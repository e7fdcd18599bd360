"""Garbage collection in the processes of a run."""

from __future__ import annotations

import atexit
import gc


def leave_out_of_collections() -> None:
    """Leave every object that exists now out of future garbage collections.

    Called once a process is built. A full collection looks at all objects, most of which belong to
    imported modules and stay as long as the process: it would hold up the loop for tens of
    milliseconds.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # at its end a process frees them all
