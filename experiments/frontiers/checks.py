"""Checks before the points of a frontier run: what can be refused is refused before anything is
written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.cell_watch import settle_us
from experiments.config import RunConfig
from experiments.frontiers.build import elsewhere_cost
from experiments.frontiers.description import setting_text
from experiments.frontiers.grid import Grid, Spot
from experiments.preconditions import check_arms, check_memory
from experiments.running import make_workload
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError
from shared_state.tasks import NO_PREFERENCE


def check_grid(grid: Grid, workload: Workload) -> None:
    """Make the workload of each load once, and try every arm with it.

    Args:
        grid: What is to run.
        workload: Of the first seed, under the first condition.

    Raises:
        AgoraError: All placements on a workload are equally good; or a workload cannot be made,
            or an arm with some value of its knob cannot run on it.
    """
    for config, spots in _by_load(grid):
        is_first = config is grid.conditions[0].config
        its = workload if is_first else make_workload(config, grid.seeds[0])
        check_memory(config, its)
        if not has_quality(config, its):
            raise AgoraError(
                "frontier: no task of this workload prefers any machine, so placements have no "
                "quality to show beside the delay; remove [frontier], and compare settings with "
                "`agora sweep`"
            )
        for spot in spots:
            try:
                check_arms(config.model_copy(update={"arms": (spot.arm,)}), its)
            except AgoraError as error:
                knob = grid.architectures[spot.architecture].knob
                value = "" if knob is None else f"{knob} = {setting_text(knob, spot.value)}: "
                raise AgoraError(f"frontier: {value}{error}") from error


def _by_load(grid: Grid) -> Iterator[tuple[RunConfig, list[Spot]]]:
    """The configuration of each load, and the different arms that run under it."""
    for load_percent in dict.fromkeys(one.load_percent for one in grid.conditions):
        places = [n for n, one in enumerate(grid.conditions) if one.load_percent == load_percent]
        its = [spot for spot in grid.spots if spot.condition in places]
        distinct = {spot.arm.model_dump_json(): spot for spot in reversed(its)}
        yield grid.conditions[places[0]].config, list(distinct.values())[::-1]


def has_quality(config: RunConfig, workload: Workload) -> bool:
    """Whether placements of the counted tasks differ in quality: tasks prefer machines, or their
    cost elsewhere is known."""
    if config.frontier.dearest_cost or elsewhere_cost(workload):
        return True
    start_us = [phase.start_us + settle_us(config) for phase in workload.phases]
    end_us = [phase.end_us for phase in workload.phases]
    at_us = workload.tasks.submit_us[workload.arrival_rows]
    phase = np.searchsorted(start_us, at_us, side="right") - 1
    counts = (phase >= 0) & (at_us < np.array(end_us)[phase])
    prefers = workload.tasks.preference[workload.arrival_rows] != NO_PREFERENCE
    return bool((counts & prefers).any())
