"""Running the points of a frontier, as many as there is time for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from experiments.frontiers.build import build_frontier
from experiments.frontiers.files import (
    FRONTIER,
    POINTS_OF_RUN,
    write_frontier,
    write_points,
)
from experiments.frontiers.grid import Grid, make_grid
from experiments.frontiers.model import FrontierSummary
from experiments.config import RunConfig
from experiments.interruption import Interruption
from experiments.summary_model import SeedFigures
from experiments.sweeps.engine import run_points
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError


def run_grid(
    grid: Grid,
    interruption: Interruption,
    keep: Path,
    address: str | None,
    on_done: Callable[[int], None],
) -> tuple[dict[tuple[int, int], SeedFigures], str]:
    """Run every point of a grid.

    Args:
        grid: What to run.
        interruption: Of the command.
        keep: Where the figures of each run are kept, and taken from the next time.
        address: Of a Ray cluster; None: this machine.
        on_done: Called with the number of runs that are done after each.

    Returns:
        The figures by the spot's place and seed, and why not all are there: "" if they are.

    Raises:
        AgoraError: A point does not get to its end.
    """
    points = grid.points()
    # Points may be equal, so each is known by its object.
    place_of = {id(point): place for place, point in points}
    results: dict[tuple[int, int], SeedFigures] = {}
    try:
        with contextlib.closing(
            run_points([point for _, point in points], interruption, keep=keep, address=address)
        ) as runs:
            for point, figures in runs:
                results[place_of[id(point)], point.seed] = figures
                on_done(len(results))
    except KeyboardInterrupt:
        return results, f"interrupted after {len(results)} of {grid.runs} runs"
    return results, ""


def frontier_of_run(
    config: RunConfig,
    workload: Workload,
    directory: Path,
    keep: Path,
    interruption: Interruption,
    on_done: Callable[[int, int], None],
) -> FrontierSummary | None:
    """Run the small frontier of a run, on its workload as it is, and write it into its directory;
    None if its configuration has no architectures.

    Points that the paired seeds have run are not run again, if they share `keep`.

    Args:
        config: The run's.
        workload: Of its seed.
        directory: Of the run.
        keep: Where the figures of each point are kept.
        interruption: Of the command.
        on_done: Called with the number of runs that are done, and of all, after each.

    Raises:
        AgoraError: A point does not get to its end, or nothing can be written.
        KeyboardInterrupt: A stop signal was received; what is there is written.
    """
    if not config.frontier.architectures:
        return None
    none = {"load_percent": (), "gap_s": ()}
    grid = make_grid(
        config.model_copy(update={"frontier": config.frontier.model_copy(update=none)})
    )
    results, partial = run_grid(
        grid, interruption, keep, None, lambda done: on_done(done, grid.runs)
    )
    try:
        summary = build_frontier(grid, results, workload, partial)
    except AgoraError:
        interruption.check()
        raise
    write_points(directory, grid, results, POINTS_OF_RUN)
    write_frontier(directory / FRONTIER, summary)
    interruption.check()
    return summary
