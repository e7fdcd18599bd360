"""What a live run consists of: its options, which host holds which agents, and what its actors are
given, report and hand over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from parsync.metrics.live_line import Snapshot
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.assembly import Assembly
from parsync.runtime.calibration import NO_TIMES, MeasuredTimes
from parsync.runtime.faults import PLAN_LIMIT_S
from parsync.runtime.live.meters import StepWaitsByProtocol
from parsync.spec.arm import SeededArm
from schedulers.interface import Capability

# The coordinator's tick, unless schedulers wait for it.
COORDINATOR_TICK_US = 100_000

CELL = "cell"
WORKER_POOL = "workers"
SOURCE = "source"
COORDINATOR_NAME = "coordinator"


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How an arm runs on Ray.

    Attributes:
        journal_dir: Where the logs go; it must not hold those of another run, and every machine
            that may host the cell must see it.
        records_dir: Where the actors' Parquet parts go, None for none.
        workload_dir: Where the workload's tables are written already, at most three levels above
            journal_dir; None: they go into it, too.
        address: The address of a running cluster, None for an embedded one.
        hosts: The number of scheduler processes (flow schedulers have one more).
        tick_us: Time between a host's regular steps.
        spacing_us: Least time between its steps when it has something to send.
        hold: Whether the actors stay after the run and can be asked for their status.
        fsync: Whether the cell's log survives a crash of the machine.
        checkpoint_bytes: Least growth of that log between checkpoints.
        plan_limit_s: Time in seconds after which a scheduler's call counts as never returning.
    """

    journal_dir: Path
    records_dir: Path | None = None
    workload_dir: Path | None = None
    address: str | None = None
    hosts: int = 2
    tick_us: int = 25_000
    spacing_us: int = 2_000
    hold: bool = False
    fsync: bool = False
    checkpoint_bytes: int = 4 << 20
    object_store_mb: int = 150
    plan_limit_s: float = PLAN_LIMIT_S


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A scheduler host, its agents, and when in a tick it steps (phase_us)."""

    host: int
    name: str
    agents: tuple[int, ...]
    phase_us: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What every actor of a run is given.

    Attributes:
        arm: The arm's name.
        end_us: The end of the workload, when the drain begins.
        talk_us: How long schedulers and worker pool step on, without waiting for ticks, after a
            step with messages (HostLoop).
        workers_spacing_us: The least time between steps of the worker pool that do not wait.
        coordinator_tick_us: The time between steps of the coordinator.
    """

    namespace: str
    arm: str
    end_us: int
    hosts: tuple[HostPlan, ...]
    tick_us: int
    spacing_us: int
    talk_us: int
    workers_phase_us: int
    workers_spacing_us: int
    source_phase_us: int
    coordinator_tick_us: int
    journal_dir: str
    records_dir: str | None
    fsync: bool
    checkpoint_bytes: int

    @property
    def host_of(self) -> dict[int, int]:
        """The host of each agent."""
        return {agent: plan.host for plan in self.hosts for agent in plan.agents}


def plan_hosts(arm: SeededArm, hosts: int, tick_us: int) -> tuple[HostPlan, ...]:
    """Distribute agents over scheduler hosts.

    Agents go to `hosts` hosts in turn, or to as many as there are agents. Those whose schedulers
    have Capability.OWN_PROCESS share one more. The hosts' steps are staggered over the tick.

    Workload source, hosts and worker pool have equal shares of the tick and step after a third of
    them. Samples and syncs are due at round times, in all processes at once: a step at such a time
    would wait for them.
    """
    apart = np.array(
        [Capability.OWN_PROCESS in arm.group_of(agent).capabilities for agent in range(arm.agents)]
    )
    shared, own = np.flatnonzero(~apart).tolist(), np.flatnonzero(apart).tolist()
    count = min(hosts, len(shared))
    placements = [(f"schedulers-{place}", tuple(shared[place::count])) for place in range(count)]
    if own:
        placements.append(("flow", tuple(own)))
    return tuple(
        HostPlan(host, name, agents, _phase_us(host + 1, len(placements), tick_us))
        for host, (name, agents) in enumerate(placements)
    )


def _phase_us(place: int, hosts: int, tick_us: int) -> int:
    """When in a tick a process steps: 0 is the workload source, the hosts follow, the worker pool
    is the last."""
    return (3 * place + 1) * tick_us // (3 * (hosts + 2))


def _coordinator_tick_us(arm: SeededArm, tick_us: int) -> int:
    """The hosts' tick where schedulers wait for the coordinator; a slow one elsewhere."""
    return COORDINATOR_TICK_US if arm.quotas is None else tick_us


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What actors are built from. It is shared once, because both parts hold the workload.

    Attributes:
        make_metrics: Creates an actor's accumulators.
    """

    assembly: Assembly
    make_metrics: Callable[[], RunMetrics]


def plan_run(namespace: str, assembly: Assembly, options: LiveOptions) -> RunPlan:
    """Submissions lie at the start of the tick, the hosts' steps after them, the worker pool's at
    its end.

    Where there are queues at the machines, schedulers and worker pool talk with each other
    (HostLoop), or each of the messages that lead to a start would wait for a tick.
    """
    talk = assembly.has_node_sides
    hosts = plan_hosts(assembly.arm, options.hosts, options.tick_us)
    return RunPlan(
        namespace=namespace,
        arm=assembly.arm.name,
        end_us=assembly.workload.end_us,
        hosts=hosts,
        tick_us=options.tick_us,
        spacing_us=options.spacing_us,
        talk_us=options.tick_us if talk else 0,
        workers_spacing_us=options.spacing_us if talk else options.tick_us,
        workers_phase_us=_phase_us(len(hosts) + 1, len(hosts), options.tick_us),
        source_phase_us=_phase_us(0, len(hosts), options.tick_us),
        coordinator_tick_us=_coordinator_tick_us(assembly.arm, options.tick_us),
        journal_dir=str(options.journal_dir.resolve()),
        records_dir=None if options.records_dir is None else str(options.records_dir.resolve()),
        fsync=options.fsync,
        checkpoint_bytes=options.checkpoint_bytes,
    )


def actor_title(name: str, arm: str) -> str:
    """Which actor it is, for people: one line, whatever the arm's name is, because it goes into the
    title of a process."""
    return f"{name} (arm {' '.join(arm.split())})"


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """What an actor reports to the coordinator a few times per second.

    Attributes:
        at_us: Run time.
        epoch: Of the actor.
        queued: Tasks that its agents have not placed; of the source: that no host has taken yet.
        settled: As far as the actor knows, it has nothing left to do.
        snapshot: Of its measurements; None if it has none for the live line.
        error: Why its loop ended early.
        host_epochs: The epochs of the hosts, as the source knows them.
        broken: Which of its schedulers broke its contract, and how.
    """

    at_us: int
    epoch: int
    queued: int
    settled: bool
    snapshot: Snapshot | None
    error: str | None = None
    host_epochs: Mapping[int, int] = field(default_factory=dict)
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class DueEnds:
    """The tasks that still run at the end of a run: allocation int64[n], and the time at which each
    would have ended, end_us int64[n]."""

    allocation: np.ndarray
    end_us: np.ndarray


@dataclass(frozen=True, slots=True)
class Finished:
    """What an actor hands over at the end of a run.

    Attributes:
        metrics: Of the actor's last epoch; of the cell: of all its epochs.
        round_trip_us: Of its steps, int64[steps].
        repeats: Attempts at steps that failed.
        recovered: The cell: steps before its last restart. The source: tasks submitted again.
        error: Why its loop ended early.
        due_ends: The worker pool's tasks that still run.
        replayed: The cell: those of `recovered` that no checkpoint held.
        notes: Lines for the user.
        waited: What the runtime added to the delays of its agents' tasks, in the last epoch; of a
            scheduler host.
        broken: Whether a scheduler that broke its contract ended the loop.
        times: What a calibration is made of.
    """

    metrics: RunMetrics
    round_trip_us: np.ndarray
    repeats: int
    recovered: int
    error: str | None
    due_ends: DueEnds | None = None
    replayed: int = 0
    notes: tuple[str, ...] = ()
    waited: StepWaitsByProtocol = field(default_factory=dict)
    broken: bool = False
    times: MeasuredTimes = NO_TIMES
