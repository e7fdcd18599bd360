"""The run of one arm on Ray."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from experiments.analysis.cell_watch import CellWatch, Watched, observe_log
from experiments.analysis.summary_model import Restart
from experiments.campaign.running import ArmRun, make_metrics, workload_folder
from experiments.config.run_config import RunConfig
from experiments.config.warm_up import warmed_up
from experiments.interruption import Interruption
from parsync.metrics.kinds.delay import DelayMetric
from parsync.metrics.live_line import Snapshot
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.meters import NO_WAIT, StepWait
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.ray_glue.actors import RunActors
from parsync.runtime.live.ray_glue.cluster import connect, disconnect
from parsync.runtime.live.run import LiveOutcome, run_live
from parsync.runtime.records import merge_parts
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

OBJECT_STORE_MB = 150


def prepare(config: RunConfig, hold: bool) -> None:
    """Start Ray, or connect to it.

    Raises:
        AgoraError: The address does not answer, or its Ray has another version.
    """
    connect(config.live.address, OBJECT_STORE_MB, hold)


def leave() -> None:
    """Stop the Ray that prepare() started, or disconnect from the cluster."""
    disconnect()


def run_arm_live(
    config: RunConfig,
    arm: ArmConfig,
    workload: Workload,
    seed: int,
    directory: Path,
    on_snapshot: Callable[[Snapshot], None],
    interruption: Interruption,
    held: list[RunActors] | None,
) -> ArmRun:
    """Run one arm in real time.

    Args:
        config: The run's; of a separate live run, RunConfig.of_live_runs().
        directory: Receives its measurements, and its logs in directory/log for `agora replay`.
        held: Receives the actors of the last arm, which live as long as the list; None to end them.
    """
    try:
        begins = warmed_up(config, arm, workload, seed, lambda _: interruption.check())
    except ContractBroken as error:
        empty = make_metrics(config, arm, workload)
        return ArmRun(arm, empty, "", {}, str(error), 0.0, Watched(), broken=True, live=True)
    is_of_run = begins is workload and config.live.machines is None
    options = LiveOptions(
        journal_dir=directory / "log",
        records_dir=directory,
        workload_dir=workload_folder(directory) if is_of_run else None,
        address=config.live.address,
        hosts=config.live.hosts,
        tick_us=config.live.tick_ms * 1000,
        # those of earlier arms would compete with the next for the processors
        hold=held is not None and arm is [one for one in config.arms if config.is_live(one)][-1],
        fsync=config.live.fsync,
        object_store_mb=OBJECT_STORE_MB,
        plan_limit_s=config.plan_limit_s,
    )

    def show(status: RunStatus) -> None:
        interruption.check()
        if status.snapshot is not None:
            on_snapshot(status.snapshot)

    begun_s = time.monotonic()
    spec = arm.seeded(seed, config.heartbeat_us, config.sample_us(workload), live=True)
    # A copy each of the same empty accumulators: with make_metrics itself, every actor would import
    # this package to start.
    metrics_maker = partial(copy.deepcopy, make_metrics(config, arm, begins))
    outcome = run_live(spec, begins, options, round(config.drain_s * 1e6), metrics_maker, show)
    if outcome.held is not None and held is not None:
        held.append(outcome.held)
    stopped = _brief(outcome.notes) if outcome.partial else ""
    log = directory / "log" / CELL_LOG
    watched = Watched()
    try:
        merge_parts(directory, outcome.metrics.tables)
        if not stopped:
            assembly = Assembly.of(spec, begins)
            watch = CellWatch(config, begins, seed)
            observe_log(assembly, log, watch)
            watched = watch.watched(outcome.ended_us)
    except AgoraError as error:  # the figures are kept
        stopped = stopped or str(error)
    trips = outcome.round_trip_us
    outcome.metrics.flush()
    notes = {
        **_step_waits(outcome),
        "ended_us": outcome.ended_us,
        "drained": outcome.drained,
        "waiting": outcome.waiting,
        "tick_us": outcome.tick_us,
        "step_round_trip_p50_us": int(np.median(trips)) if len(trips) else 0,
        "step_round_trip_p99_us": int(np.quantile(trips, 0.99)) if len(trips) else 0,
        "steps_repeated": outcome.repeats,
        "notes": list(outcome.notes),
    }
    wall_s = time.monotonic() - begun_s
    return ArmRun(
        arm,
        outcome.metrics,
        outcome.digest,
        notes,
        stopped,
        wall_s,
        watched,
        outcome.interrupted,
        outcome.broken,
        [Restart(**asdict(restart)) for restart in outcome.restarts],
        times=outcome.times,
        live=True,
    )


def _step_waits(outcome: LiveOutcome) -> dict[str, float | None]:
    """Return what the runtime adds to the delay.

    step_wait_mean_us is the mean time per task that its submission and its claims waited for a tick
    or a step. step_wait_share is that time divided by the mean delay of all tasks; tasks that were
    never committed count until the end of the measurements. An arm of several protocols also has
    the mean for the tasks of each.
    """
    metrics, mean_us = outcome.metrics, sum(outcome.waited.values(), NO_WAIT).mean_us
    censored, waiting_us = metrics.get(DelayMetric).waiting(
        range(metrics.run.agents), range(metrics.run.slots), metrics.last_us
    )
    delay_us = int(metrics.count["delay_us"].sum()) + int(censored @ waiting_us)
    tasks = int(metrics.count["committed"].sum()) + int(censored.sum())
    if mean_us is None or not delay_us:
        return {"step_wait_mean_us": mean_us, "step_wait_share": None}
    return {
        "step_wait_mean_us": round(mean_us, 1),
        "step_wait_share": round(min(1.0, mean_us * tasks / delay_us), 4),
        **_waits_by_protocol(outcome.waited),
    }


def _waits_by_protocol(waited: Mapping[str, StepWait]) -> dict[str, float]:
    """The mean step wait of the tasks of each protocol, if there are several."""
    means = {protocol: of_protocol.mean_us for protocol, of_protocol in waited.items()}
    return {
        f"step_wait_{protocol}_us": round(mean_us, 1)
        for protocol, mean_us in means.items()
        if len(waited) > 1 and mean_us is not None
    }


def _brief(notes: Sequence[str]) -> str:
    """Return the first note, which is mostly the cause; all are in the arm's notes."""
    more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
    return notes[0] + more if notes else "stopped early"
