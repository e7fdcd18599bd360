"""Regret of an arm's run (parsync/metrics/regret.py): observed as it happens in virtual
time, computed from the cell's log for a live run."""

from __future__ import annotations

from pathlib import Path

from experiments.config import RunConfig
from parsync.core.codec import Codec
from parsync.core.master import MasterCore
from parsync.metrics.regret import Regret, RegretWatch
from parsync.runtime.live.cell_events import cell_events
from parsync.workload.workload import Workload
from shared_state.observed_cell import ObservedCell

_EVENTS_PER_FLUSH = 1 << 12


def settle_us(config: RunConfig) -> int:
    """What the figures leave out at the start of each phase; a trace has one, which begins with the
    tasks that wait as its window opens."""
    return round(config.settle_s * 1e6)


def regret_watch(config: RunConfig, workload: Workload, seed: int) -> RegretWatch:
    """For one run of one arm."""
    return RegretWatch(workload, settle_us(config), seed)


def regret_of_log(
    codec: Codec, log: Path, watch: RegretWatch, master: MasterCore, ended_us: int
) -> Regret:
    """From the log of a live cell, and a master as it was at the start of that run. Raises
    AgoraError if the log cannot be read."""
    master.cell = ObservedCell(master.cell, watch)
    for number, (at_us, event) in enumerate(cell_events(codec, log)):
        master.handle(at_us, event)
        if number % _EVENTS_PER_FLUSH == 0:
            master.finish(at_us)  # measurements: those of the run itself count
    return watch.regret(ended_us)
