"""Where the rounds to draw come from: a kept run, which is repeated, or a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.campaign.running import is_flow, make_workload
from experiments.config.run_config import load_config
from experiments.config.warm_up import warmed_up
from experiments.flow_graphs.page import About
from experiments.flow_graphs.recorder import MOST_ARCS, MOST_NODES, Recording, Wanted, Watch
from parsync.runtime.arm_directory import Arm, find_arms, read_arm
from parsync.runtime.virtual.repeat import repeat
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, SeededArm
from shared_state.errors import AgoraError

# How far a run is: the virtual time so far, and that of its end.
OnProgress = Callable[[int, int], None]


class _Enough(BaseException):
    """All that was wanted is recorded. Not an Exception, so that nobody takes it for a fault."""


def rounds_of_run(
    directory: Path, arm: str | None, scheduler: str, wanted: Wanted, on_progress: OnProgress
) -> tuple[Recording, About]:
    """Repeat an arm of a kept run, and record a flow scheduler of it.

    Args:
        directory: A run directory, or that of an arm.
        arm: The arm, by its name or that of its folder; None: the first with a flow scheduler.
        scheduler: The scheduler, by its name; "": the arm's first flow scheduler.
        wanted: Which rounds.
        on_progress: Called once in a while.

    Raises:
        AgoraError: There is no such arm or scheduler, the arm ran live or cannot be repeated, its
            events differ from those of the run, or nothing can be drawn.
    """
    arms = [(one, read_arm(one.directory)) for one in find_arms(directory).arms]
    named = [(its.arm.name, one.slug) for one, its in arms]
    place = _place_of(arm, named, [_has_flow(its.arm) for _, its in arms], str(directory))
    chosen, its = arms[place]
    if its.virtual is None:
        raise AgoraError(
            f"{chosen.label}: ran live; run it with --runtime virtual, and draw that run"
        )
    watch = Watch(wanted, _checked_scheduler(scheduler, its.arm, chosen.label))
    found = repeat(
        chosen.directory, _until_too_large(watch, on_progress), chosen.digest, watch=watch
    )
    _refuse_empty(watch, wanted, chosen.label)
    if found.divergence is not None:
        raise AgoraError(f"{chosen.label}: {found.divergence}")
    if found.log is None:
        raise AgoraError(f"{chosen.label}: has not ended: it cannot be repeated")
    note = f"The run was repeated: {found.log.events:,} events, the same digest as then."
    return watch.recording, _about(f"{_run_name(chosen)}, arm {its.arm.name}", watch, wanted, note)


def rounds_of_file(
    path: Path, arm: str | None, scheduler: str, wanted: Wanted, on_progress: OnProgress
) -> tuple[Recording, About]:
    """Run an arm of a configuration in virtual time until the wanted rounds are recorded.

    Args and errors as rounds_of_run.
    """
    config = load_config(path)
    named = [(one.name, one.name) for one in config.arms]
    place = _place_of(arm, named, [_has_flow(one) for one in config.arms], str(path))
    chosen = config.arms[place]
    workload = make_workload(config, config.seed)
    spec = chosen.seeded(config.seed, config.heartbeat_us, config.sample_us(workload), live=False)
    watch = Watch(wanted, _checked_scheduler(scheduler, spec, f"{path}: arm '{chosen.name}'"))
    show = _until_too_large(watch, on_progress)

    def progress(now_us: int) -> None:
        show(min(now_us, workload.end_us), workload.end_us)
        if watch.recording.seen >= wanted.end:
            raise _Enough

    try:
        begins = warmed_up(config, chosen, workload, config.seed, lambda _: None)
        run_virtual(
            spec,
            begins,
            round(config.drain_s * 1e6),
            lambda _: None,
            progress,
            config.virtual.message_us,
            plan_limit_s=config.plan_limit_s,
            calibration=config.virtual.calibration,
            watch=watch,
        )
    except _Enough:
        pass
    _refuse_empty(watch, wanted, f"{path}: arm '{chosen.name}'")
    what = f"{path.name}, arm {chosen.name}, seed {config.seed}"
    return watch.recording, _about(what, watch, wanted)


def _until_too_large(watch: Watch, on_progress: OnProgress) -> OnProgress:
    def progress(now_us: int, end_us: int) -> None:
        if watch.recording.too_large is not None:
            raise _too_large(watch.recording)
        on_progress(now_us, end_us)

    return progress


def _too_large(recording: Recording) -> AgoraError:
    assert recording.too_large is not None
    number, nodes, arcs = recording.too_large
    return AgoraError(
        f"round {number}: {nodes:,} nodes and {arcs:,} arcs are too many to look at (at most "
        f"{MOST_NODES:,} and {MOST_ARCS:,}); draw what is around a task with --task ID, "
        "or a smaller cell"
    )


def _refuse_empty(watch: Watch, wanted: Wanted, where: str) -> None:
    """Raise AgoraError if nothing is to be drawn."""
    recording = watch.recording
    if recording.too_large is not None:
        raise _too_large(recording)
    if recording.rounds:
        return
    if wanted.tasks:
        ids = ", ".join(str(task) for task in sorted(wanted.tasks))
        raise AgoraError(
            f"{where}: none of the rounds that were looked at has task {ids} in the graph of "
            f"{watch.scheduler}: it was placed by another scheduler, or in no round of --rounds"
        )
    raise AgoraError(
        f"--rounds: expected rounds below {recording.seen:,}, as {watch.scheduler} had no more"
    )


def _has_flow(arm: ArmConfig | SeededArm) -> bool:
    return any(is_flow(group.kind) for group in arm.groups)


def _place_of(
    wanted: str | None, named: Sequence[tuple[str, str]], has_flow: Sequence[bool], where: str
) -> int:
    """Which of some arms, given their names, is wanted. Raises AgoraError if none is."""
    suiting = ", ".join(
        f"'{name}'" for (name, _), flow in zip(named, has_flow, strict=True) if flow
    )
    if not suiting:
        raise AgoraError(f"{where}: no arm has a flow scheduler: there is no graph to draw")
    if wanted is None:
        return has_flow.index(True)
    for place, names in enumerate(named):
        if wanted in names:
            if not has_flow[place]:
                raise AgoraError(
                    f"--arm {wanted}: has no flow scheduler: expected one of {suiting}"
                )
            return place
    raise AgoraError(f"--arm {wanted}: expected one of {suiting}")


def _checked_scheduler(wanted: str, arm: SeededArm, where: str) -> str:
    """The name of a flow scheduler. Raises AgoraError if the arm has none of this name."""
    names = [
        arm.agent_name(agent) for agent in range(arm.agents) if is_flow(arm.group_of(agent).kind)
    ]
    if wanted and wanted not in names:
        raise AgoraError(f"--scheduler {wanted}: {where} has {', '.join(names)}")
    return wanted


def _run_name(arm: Arm) -> str:
    return arm.label if arm.run is None else f"run {arm.run.resolve().name}"


def _about(what: str, watch: Watch, wanted: Wanted, *notes: str) -> About:
    return About(what, watch.scheduler, notes, tuple(sorted(wanted.tasks)))
