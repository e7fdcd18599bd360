"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1  # prctl(2)
_LOOK_S = 0.5


def end_with_parent(parent: int) -> None:
    """Kill this process when its parent ends, even by SIGKILL.

    On Linux the kernel does it, from the moment the parent's thread that started this process ends;
    elsewhere a thread looks for the parent twice a second. Call it as early as possible: a parent
    that has ended before ends this process here.

    Args:
        parent: The id of the process that started it.
    """
    if sys.platform == "linux" and _signal_at_death_of_parent():
        if os.getppid() != parent:
            os._exit(0)
        return
    threading.Thread(target=_watch, args=(parent,), name="parent", daemon=True).start()


def _signal_at_death_of_parent() -> bool:
    """Ask the kernel for a signal when the parent ends; False where it does not offer that."""
    return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(0)
