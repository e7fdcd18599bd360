"""What a run will do and about how long that takes, said before it starts."""

from __future__ import annotations

from experiments.config import RunConfig
from experiments.frontiers.grid import make_grid
from experiments.frontiers.running import as_it_is
from experiments.processors import processors
from experiments.sensitivity import changed_points
from experiments.sweeps.expected_time import BUSY, START_S, expected_run_s
from experiments.sweeps.points import Point, paired_points
from experiments.sweeps.progress import time_text
from parsync.metrics.quantity import counted
from parsync.workload.workload import Workload

ACTORS_S = 5.0  # before and after a live arm
REPORT_S = 10.0


def run_announcement(config: RunConfig, workload: Workload) -> str:
    """The parts of a run, and about how long they take together on this machine."""
    arms, live = len(config.arms), sum(config.is_live(arm) for arm in config.arms)
    warm_up = config.workload.make_warm_up(config.seed)
    parts: list[str] = []
    later: list[Point] = []
    first = [] if live == arms else [Point(config, arm, config.seed) for arm in config.arms]
    if first:
        parts.append(f"{counted(arms, 'arm')} in virtual time")
    if live:
        parts.append(f"{live} live" if first else f"{counted(live, 'arm')} live")
    if config.seeds > 1:
        parts.append(f"{config.seeds} paired seeds")
        later += paired_points(config)
        if config.frontier.architectures:
            parts.append("frontiers")
            later += [point for _, point in make_grid(as_it_is(config)).points()]
        changed = [point for _, point in changed_points(config)]
        if changed:
            parts.append("other decision times")
            later += changed

    def processor_s(points: list[Point]) -> float:
        distinct = {point.key(): point for point in points}
        return sum(expected_run_s(one.arm, workload, warm_up) for one in distinct.values())

    side_by_side = processors() / BUSY if processors() > 1 else 1.0
    beside = side_by_side if live else 1  # without live arms, arms run one after the other
    expected_s = processor_s(first) / beside + processor_s(later) / side_by_side
    expected_s += live * (workload.end_us / 1e6 + ACTORS_S) + REPORT_S
    if later:
        expected_s += START_S
    return f"{', '.join(parts)}: about {time_text(expected_s)}."
