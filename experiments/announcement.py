"""What a run will do and about how long that takes, said before it starts."""

from __future__ import annotations

from collections.abc import Sequence

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
    first, later = virtual_runs(config)
    if first:
        parts.append(f"{counted(arms, 'arm')} in virtual time")
    if live:
        parts.append(f"{live} live" if first else f"{counted(live, 'arm')} live")
    if config.seeds > 1:
        parts.append(f"{config.seeds} paired seeds")
        if config.frontier.architectures:
            parts.append("frontiers")
        if changed_points(config):
            parts.append("other decision times")

    def processor_s(points: Sequence[Point]) -> float:
        return sum(expected_run_s(point.arm, workload, warm_up) for point in points)

    side_by_side = processors() / BUSY if processors() > 1 else 1.0
    beside = side_by_side if live else 1  # without live arms, arms run one after the other
    expected_s = processor_s(first) / beside + processor_s(later) / side_by_side
    expected_s += live * (workload.end_us / 1e6 + ACTORS_S) + REPORT_S
    if later:
        expected_s += START_S
    return f"{', '.join(parts)}: about {time_text(expected_s)}."


def virtual_runs(config: RunConfig) -> tuple[Sequence[Point], Sequence[Point]]:
    """What a run does in virtual time, before its live arms and after them.

    Each point runs once: the paired seeds begin with what ran first, and the frontiers have points
    of the paired seeds. The predictions of the live arms stand there as these arms; what they are
    calibrated on is not known yet.
    """
    live = [arm for arm in config.arms if config.is_live(arm)]
    first = [Point(config, arm, config.seed) for arm in config.arms]
    if config.compared_runtime == "ray":
        first = []
    later: list[Point] = []
    if config.seeds > 1:
        later += paired_points(config)
        if config.frontier.architectures:
            later += [point for _, point in make_grid(as_it_is(config)).points()]
        later += [point for _, point in changed_points(config)]
    done = {point.key() for point in first}
    distinct = {point.key(): point for point in later if point.key() not in done}
    predicted = live if config.virtual.calibration is None else []
    return first, [*distinct.values(), *(Point(config, arm, config.seed) for arm in predicted)]
