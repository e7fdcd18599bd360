"""What an actor hands over at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.calibration import NO_TIMES, MeasuredTimes
from parsync.runtime.live.step_wait import NO_WAIT, StepWait

Asked = ParamSpec("Asked")
AnActor = TypeVar("AnActor")


@dataclass(frozen=True, slots=True)
class DueEnds:
    """The tasks that still run at the end of a run: allocation int64[n], and the time at which each
    would have ended, end_us int64[n]."""

    allocation: np.ndarray
    end_us: np.ndarray


@dataclass(frozen=True, slots=True)
class Finished:
    """What an actor hands over at the end of a run.

    Attributes:
        metrics: Of the actor's last epoch; of the cell: of all its epochs.
        round_trip_us: Of its steps, int64[steps].
        repeats: Attempts at steps that failed.
        recovered: The cell: steps before its last restart. The source: tasks submitted again.
        error: Why its loop ended early.
        due_ends: The worker pool's tasks that still run.
        replayed: The cell: those of `recovered` that no checkpoint held.
        notes: Lines for the user.
        waited: What the runtime added to the delays of its agents' tasks, in the last epoch.
        broken: Whether a scheduler that broke its contract ended the loop.
        times: What a calibration is made of.
    """

    metrics: RunMetrics
    round_trip_us: np.ndarray
    repeats: int
    recovered: int
    error: str | None
    due_ends: DueEnds | None = None
    replayed: int = 0
    notes: tuple[str, ...] = ()
    waited: StepWait = NO_WAIT
    broken: bool = False
    times: MeasuredTimes = NO_TIMES


def once(
    finish: Callable[Concatenate[AnActor, Asked], Finished],
) -> Callable[Concatenate[AnActor, Asked], Finished]:
    """Make an actor's `finish` idempotent: a second call, after an answer that was lost, returns
    the same."""

    @wraps(finish)
    def finish_once(actor: Any, *args: Asked.args, **kwargs: Asked.kwargs) -> Finished:
        if "_handed_over" not in vars(actor):
            actor._handed_over = finish(actor, *args, **kwargs)
        handed_over: Finished = actor._handed_over
        return handed_over

    return cast("Callable[Concatenate[AnActor, Asked], Finished]", finish_once)
