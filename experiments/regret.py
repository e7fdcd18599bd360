"""Regret of an arm's run (parsync/metrics/regret.py): watched as it happens in virtual time, from the
cell's log of a live run; and its means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.config import RunConfig
from parsync.metrics.regret import RegretWatch
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell_events import replay_master
from parsync.workload.workload import Workload

Regret = Mapping[str, Sequence[Mapping[str, Any]]]


def settle_us(config: RunConfig) -> int:
    """What the figures leave out at the start of each phase; a trace has one, which begins with the
    tasks that wait as its window opens."""
    return round(config.settle_s * 1e6)


def regret_watch(config: RunConfig, workload: Workload, seed: int) -> RegretWatch:
    """For one run of one arm."""
    return RegretWatch(workload, settle_us(config), seed)


def regret_of_log(assembly: Assembly, log: Path, watch: RegretWatch, ended_us: int) -> Regret:
    """From the log of a live cell. Raises AgoraError if it cannot be read."""
    master = assembly.master()
    beside = assembly.cell_side(master.cell)
    for _ in replay_master(assembly.codec, log, watch.attach(master), beside):
        pass
    return watch.regret(ended_us)


def regret_means(regret: Regret) -> dict[str, float]:
    """Figures of a run, each only if there is something to average.

    decision_regret: of all sampled transactions together, per task claimed. system_regret,
    system_regret_moving: of the whole cell, mean over the instants, the running tasks staying where
    they are or free to move.
    """
    means: dict[str, float] = {}
    decisions, instants = regret.get("decision", ()), regret.get("system", ())
    if decisions:
        means["decision_regret"] = sum(row["regret"] for row in decisions) / sum(
            row["tasks"] for row in decisions
        )
    if instants:
        means["system_regret"] = sum(row["without_migration"] for row in instants) / len(instants)
        means["system_regret_moving"] = sum(row["with_migration"] for row in instants) / len(
            instants
        )
    return means
