"""Whether the live run of an arm was disturbed, and what its actors needed."""

from __future__ import annotations

from experiments.config import RunConfig
from experiments.running import ArmRun
from parsync.metrics.validity import Validity, validity
from parsync.runtime.live.plan import plan_hosts


def live_validity(config: RunConfig, run: ArmRun) -> Validity:
    """Apply the rule of parsync.metrics.validity to what the actors of a live run measured."""
    spec = run.arm.spec(0, heartbeat_us=1, sample_us=1, live=True)
    hosts = plan_hosts(spec, config.live.hosts, config.live.tick_ms * 1000)
    return validity(run.metrics.samples("actors"), {host.host: host.name for host in hosts})
