"""What an actor hands over at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.live.step_wait import NO_WAIT, StepWait

Asked = ParamSpec("Asked")
AnActor = TypeVar("AnActor")


@dataclass(frozen=True, slots=True)
class DueEnds:
    """What still runs at the end, with the time it would have ended: allocation, end_us
    int64[n]."""

    allocation: np.ndarray
    end_us: np.ndarray


@dataclass(frozen=True, slots=True)
class Finished:
    """metrics, waited: of the actor's last epoch (of the cell: of all its epochs). round_trip_us:
    int64[steps]. repeats: steps that had to be repeated. recovered: what it took over from an
    earlier epoch (the cell: steps, replayed of them from its log; the source: tasks submitted
    again). error: why its loop ended early; broken: whether that was a scheduler that broke its
    contract. notes: what else is worth telling."""

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


def once(
    finish: Callable[Concatenate[AnActor, Asked], Finished],
) -> Callable[Concatenate[AnActor, Asked], Finished]:
    """An actor's `finish`, done once: asked again, because the answer was lost on its way, the
    actor hands over the same."""

    @wraps(finish)
    def finish_once(actor: Any, *args: Asked.args, **kwargs: Asked.kwargs) -> Finished:
        if "_handed_over" not in vars(actor):
            actor._handed_over = finish(actor, *args, **kwargs)
        handed_over: Finished = actor._handed_over
        return handed_over

    return cast("Callable[Concatenate[AnActor, Asked], Finished]", finish_once)
