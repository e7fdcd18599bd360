"""What a run will do and about how long that takes, said before it starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.campaign.expected_time import BUSY, START_S, ExpectedTimes
from experiments.campaign.points import Point, paired_points
from experiments.campaign.progress import processors, time_text
from experiments.config.run_config import RunConfig
from experiments.studies.frontiers.execution import as_it_is
from experiments.studies.frontiers.grid import make_grid
from experiments.studies.run.sensitivity import changed_points
from parsync.metrics.quantity import counted
from parsync.runtime.assembly import Assembly
from parsync.workload.workload import Workload
from schedulers.unplaceable import REASONS, Unplaceable
from shared_state.tasks import NO_GANG

ACTORS_S = 5.0  # before and after a live arm
REPORT_S = 10.0


def run_announcement(config: RunConfig, workload: Workload) -> tuple[str, float]:
    """The parts of a run in words with the time that they take together on this machine, and that
    time in seconds."""
    arms, live = len(config.arms), sum(config.is_live(arm) for arm in config.arms)
    parts: list[str] = []
    first, later = virtual_runs(config)
    if first:
        parts.append(f"{counted(arms, 'arm')} in virtual time")
    if live:
        apart = f"{live} live{_live_cell(config, workload)}"
        parts.append(apart if first else f"{counted(live, 'arm')} live")
    if config.seeds > 1:
        parts.append(f"{config.seeds} paired seeds")
        if config.frontier.architectures:
            parts.append("frontiers")
        if changed_points(config):
            parts.append("other decision times")

    times = ExpectedTimes(workload, config.workload.make_warm_up(config.seed))

    def processor_s(points: Sequence[Point]) -> float:
        return sum(times.run_s(point.arm) for point in points)

    side_by_side = processors() / BUSY if processors() > 1 else 1.0
    beside = side_by_side if live else 1  # without live arms, arms run one after the other
    expected_s = processor_s(first) / beside + processor_s(later) / side_by_side
    expected_s += live * (workload.end_us / 1e6 + ACTORS_S) + REPORT_S
    if later:
        expected_s += START_S
    return f"{', '.join(parts)}: about {time_text(expected_s)}.", expected_s


def _live_cell(config: RunConfig, workload: Workload) -> str:
    """The cell of the separate live runs, if it is not that of the others."""
    machines = config.live_cell
    return "" if machines is None else f" on {machines:,} of {workload.cell.machines:,} machines"


def unplaceable_notes(config: RunConfig, workload: Workload) -> list[str]:
    """The units of the workload that can never be placed: one line for each reason, with the arms
    that it concerns if not all."""
    arms_of: dict[str, list[str]] = {}
    for arm in config.arms:
        assembly = Assembly.of(
            arm.seeded(config.seed, config.heartbeat_us, 1, live=False), workload
        )
        for said in _unplaceable(assembly):
            arms_of.setdefault(said, []).append(f"'{arm.name}'")
    return [
        f"{said}." if len(arms) == len(config.arms) else f"{said} (in arm {', '.join(arms)})."
        for said, arms in arms_of.items()
    ]


def _unplaceable(assembly: Assembly) -> list[str]:
    """The units that the agents of an arm can never place: one line for each reason."""
    units = {agent: assembly.unplaceable(agent) for agent in range(assembly.arm.agents)}
    if not any(found is not None for found in units.values()):
        return []
    workload = assembly.workload
    agent_of_batch, _ = assembly.owners()
    agent = np.full(len(workload.tasks), -1, np.int32)
    agent[workload.arrival_rows] = np.repeat(agent_of_batch, np.diff(workload.arrival_offsets))
    reason = np.full(len(agent), -1, np.int8)
    for number, found in units.items():
        if found is None:
            continue
        first_us = np.minimum(found.task_us, found.gang_us)
        never = (agent == number) & (first_us <= workload.tasks.submit_us)
        reason[never] = found.reason[never]
    lines = []
    for present in np.unique(reason[reason >= 0]).tolist():
        gang = workload.tasks.gang[reason == present]
        gangs, tasks = len(np.unique(gang[gang != NO_GANG])), len(gang)
        what = counted(tasks, "task")
        if (gang != NO_GANG).all():
            what += f" of {counted(gangs, 'gang')}"
        if present == Unplaceable.LARGER_THAN_EVERY_MACHINE:
            is_larger = f"{'is' if tasks == 1 else 'are'} {REASONS[present]}"
            lines.append(f"{what} {is_larger} and will not be placed")
        else:
            lines.append(f"{what} can never be placed: {REASONS[present]}")
    return lines


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
