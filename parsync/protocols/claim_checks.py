"""The check of what a protocol claims, made where the claim is made: the line that is wrong is in
the traceback then."""

from __future__ import annotations

import numpy as np

from shared_state.tasks import Int32


def check_machines(machine: Int32, tasks: int, machines: int) -> None:
    """Raise ValueError unless `machine` names a machine of the cell for each task.

    Args:
        machine: int32[n].
        tasks: Their number, n.
        machines: That of the cell.
    """
    if machine.shape != (tasks,):
        raise ValueError(f"machine: expected {tasks}, one for each task, got {machine.shape}")
    wrong = np.flatnonzero((machine < 0) | (machine >= machines))
    if len(wrong):
        raise ValueError(
            f"machine[{wrong[0]}]: expected 0 to {machines - 1}, got {machine[wrong[0]]}"
        )
