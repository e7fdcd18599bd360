"""The work on one point, in a process of its own: a local one, or a Ray worker."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.campaign.points import Point
from experiments.running import seed_figures
from experiments.summary_model import SeedFigures
from experiments.sweeps.workload_cache import workload_cache
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class PointFailed:
    """Why a point has no figures, in one line."""

    reason: str


def figures_of(point: Point) -> SeedFigures | PointFailed:
    """The figures of a point, or why it did not get to its end."""
    try:
        workload = workload_cache().make(point.config, point.seed)
        return seed_figures(point.config, point.arm, point.seed, workload)
    except AgoraError as error:
        return PointFailed(str(error))
    except MemoryError:
        return PointFailed(f"{point}: not enough memory")
