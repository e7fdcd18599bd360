"""Running the points of a frontier, as many as there is time for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from experiments.campaign.loop import run_tasks
from experiments.campaign.points import Point
from experiments.campaign.pool import pool_at
from experiments.campaign.store import Store
from experiments.config import RunConfig
from experiments.frontiers.build import build_frontier
from experiments.frontiers.files import FRONTIER, POINTS_OF_RUN, write_frontier, write_points
from experiments.frontiers.grid import Grid, make_grid
from experiments.frontiers.model import FrontierSummary
from experiments.interruption import Interruption
from experiments.summary_model import SeedFigures
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

Results = dict[tuple[int, int], SeedFigures]  # by the spot's place in the grid and the seed


def run_grid(
    grid: Grid,
    interruption: Interruption,
    on_done: Callable[[int], None],
    *,
    known: Mapping[str, SeedFigures] | None = None,
    store: Store[SeedFigures] | None = None,
    address: str | None = None,
) -> tuple[Results, str]:
    """Run every point of a grid.

    Args:
        grid: What to run.
        interruption: Of the command.
        on_done: Called with the number of runs that are done, whenever there is one more.
        known: Figures of points that have run already, by key.
        store: Where the figures of each run are kept, and taken from the next time.
        address: Of a Ray cluster; None: this machine.

    Returns:
        The figures, and why not all are there: "" if they are.

    Raises:
        AgoraError: A point does not get to its end.
    """
    results: Results = {}
    left: list[tuple[int, Point]] = []
    for place, point in grid.points():
        if known is not None and (figures := known.get(point.key())) is not None:
            results[place, point.seed] = figures
        else:
            left.append((place, point))
    runs = run_tasks([point for _, point in left], interruption, store=store, pool=pool_at(address))
    try:
        with contextlib.closing(runs):
            for index, measured in runs:
                place, point = left[index]
                results[place, point.seed] = measured.figures
                on_done(len(results))
    except KeyboardInterrupt:
        return results, f"interrupted after {len(results)} of {grid.runs} runs"
    return results, ""


def frontier_of_run(
    config: RunConfig,
    workload: Workload,
    directory: Path,
    seeds: Mapping[int, Mapping[str, SeedFigures]],
    interruption: Interruption,
    on_done: Callable[[int, int], None],
) -> FrontierSummary | None:
    """Run the small frontier of a run, on its workload as it is, and write it into its directory.

    It has at most as many seeds as the arms. Points that are arms of the run, under seeds that
    these have run, are not run again.

    Args:
        config: The run's.
        workload: Of its seed.
        directory: Of the run.
        seeds: The figures of its arms, by seed and name.
        interruption: Of the command.
        on_done: Called with the number of runs that are done, and of all, after each.

    Returns:
        The frontier; None if the configuration has no architectures.

    Raises:
        AgoraError: A point does not get to its end, or nothing can be written.
        KeyboardInterrupt: A stop signal was received. The seeds that are whole are written.
    """
    if not config.frontier.architectures:
        return None
    grid = make_grid(as_it_is(config))
    known = {
        Point(config, arm, seed).key(): figures[arm.name]
        for seed, figures in seeds.items()
        for arm in config.arms
        if arm.name in figures
    }
    results, partial = run_grid(
        grid, interruption, lambda done: on_done(done, grid.runs), known=known
    )
    try:
        summary = build_frontier(grid, results, workload, partial)
    except AgoraError:
        interruption.check()
        raise
    write_points(directory / POINTS_OF_RUN, grid, results)
    write_frontier(directory / FRONTIER, summary)
    interruption.check()
    return summary


def as_it_is(config: RunConfig) -> RunConfig:
    """The configuration with a frontier on the workload as it is, at the arms' own gaps, with at
    most as many seeds as its arms have."""
    seeds = min(config.frontier.seeds, config.seeds)
    small = config.frontier.model_copy(update={"load_percent": (), "gap_s": (), "seeds": seeds})
    return config.model_copy(update={"frontier": small})
