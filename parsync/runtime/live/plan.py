"""What a live run consists of: its options, and which host holds which agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.timing import COORDINATOR_TICK_US
from parsync.runtime.plan_limit import PLAN_LIMIT_S
from parsync.spec.arm import ArmSpec
from schedulers.capability import Capability

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
        coordinator_tick_us: The time between steps of the coordinator.
    """

    namespace: str
    arm: str
    end_us: int
    hosts: tuple[HostPlan, ...]
    tick_us: int
    spacing_us: int
    workers_phase_us: int
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


def plan_hosts(arm: ArmSpec, hosts: int, tick_us: int) -> tuple[HostPlan, ...]:
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


def _coordinator_tick_us(arm: ArmSpec, tick_us: int) -> int:
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
    its end."""
    hosts = plan_hosts(assembly.arm, options.hosts, options.tick_us)
    return RunPlan(
        namespace=namespace,
        arm=assembly.arm.name,
        end_us=assembly.workload.end_us,
        hosts=hosts,
        tick_us=options.tick_us,
        spacing_us=options.spacing_us,
        workers_phase_us=_phase_us(len(hosts) + 1, len(hosts), options.tick_us),
        source_phase_us=_phase_us(0, len(hosts), options.tick_us),
        coordinator_tick_us=_coordinator_tick_us(assembly.arm, options.tick_us),
        journal_dir=str(options.journal_dir.resolve()),
        records_dir=None if options.records_dir is None else str(options.records_dir.resolve()),
        fsync=options.fsync,
        checkpoint_bytes=options.checkpoint_bytes,
    )
