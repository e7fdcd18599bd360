"""The work on one point, in a process of its own: a local one, or a Ray worker."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.config import RunConfig
from experiments.running import make_workload, seed_figures
from experiments.summary_model import SeedFigures
from experiments.sweeps.points import Point
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class PointFailed:
    """Why a point has no figures, in one line."""

    reason: str


class LastWorkload:
    """The workload that was made last, so that the arms of a seed share it."""

    def __init__(self) -> None:
        self._made_from: tuple[str, float, int] | None = None
        self._workload: Workload | None = None

    def make(self, config: RunConfig, seed: int) -> Workload:
        """The workload of this configuration and seed. Errors as make_workload."""
        made_from = (config.workload.model_dump_json(), config.settle_s, seed)
        if self._workload is None or made_from != self._made_from:
            self._workload = None  # there is never room for two
            self._workload = make_workload(config, seed)
            self._made_from = made_from
        return self._workload


# What a worker process keeps from one point to the next: its caller hands it points only.
_LAST_WORKLOAD = LastWorkload()


def figures_of(point: Point) -> SeedFigures | PointFailed:
    """The figures of a point, or why it did not get to its end."""
    try:
        workload = _LAST_WORKLOAD.make(point.config, point.seed)
        return seed_figures(point.config, point.arm, point.seed, workload)
    except AgoraError as error:
        return PointFailed(str(error))
    except MemoryError:
        return PointFailed(f"{point}: not enough memory")
