"""Regret of an arm's run (parsync/metrics/regret.py): observed as it happens in virtual
time, computed from the cell's log for a live run."""

from __future__ import annotations

from pathlib import Path

from experiments.config import RunConfig
from parsync.metrics.regret import Regret, RegretWatch
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell_events import replay_master
from parsync.workload.workload import Workload
from shared_state.observed_cell import ObservedCell


def settle_us(config: RunConfig) -> int:
    """What the figures leave out at the start of each phase; a trace has one, which begins with the
    tasks that wait as its window opens."""
    return round(config.settle_s * 1e6)


def regret_watch(config: RunConfig, workload: Workload, seed: int) -> RegretWatch:
    """The watch that observes one run of one arm."""
    return RegretWatch(workload, settle_us(config), seed)


def regret_of_log(assembly: Assembly, log: Path, watch: RegretWatch, ended_us: int) -> Regret:
    """The regret of a live run, computed from its cell's log. Raises AgoraError if the log cannot
    be read."""
    master = assembly.master()
    master.cell = ObservedCell(master.cell, watch)
    cell_side = assembly.cell_side(master.cell)
    for _ in replay_master(assembly.codec, log, master, cell_side):
        pass
    return watch.regret(ended_us)
