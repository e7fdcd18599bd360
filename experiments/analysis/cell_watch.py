"""What the cell itself tells of an arm's run, whatever its protocol: regret and the causes of
conflicts. Observed as it happens in virtual time, taken from the cell's log for a live run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from experiments.config.run_config import RunConfig
from parsync.metrics.kinds.conflicts import ConflictCauses, ConflictCauseWatch
from parsync.metrics.kinds.regret import Regret, RegretWatch
from parsync.metrics.quantity import Number
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.replay import replay_master
from parsync.workload.workload import Workload
from shared_state.observed_cell import CellObserver, CellObservers, ObservedCell


def settle_us(config: RunConfig) -> int:
    """What the figures leave out at the start of each phase; a trace has one, which begins with the
    tasks that wait as its window opens."""
    return round(config.settle_s * 1e6)


@dataclass(frozen=True, slots=True)
class Watched:
    """What was observed; empty where nothing was."""

    regret: Regret = field(default_factory=Regret)
    causes: ConflictCauses = field(default_factory=ConflictCauses.of)

    def figures(self) -> dict[str, Number | None]:
        """The fields of ScopeFigures (parsync.metrics.summary.OBSERVED)."""
        return {**self.regret.means().model_dump(), **self.causes.model_dump()}


class CellWatch(CellObservers):
    """Observes one run of one arm."""

    def __init__(self, config: RunConfig, workload: Workload, seed: int) -> None:
        self._regret = RegretWatch(workload, settle_us(config), seed)
        self._causes = ConflictCauseWatch(workload, settle_us(config))
        super().__init__(self._regret, self._causes)

    def watched(self, ended_us: int) -> Watched:
        """What was observed of a run that ended at ended_us."""
        return Watched(self._regret.regret(ended_us), self._causes.causes())


def observe_log(assembly: Assembly, log: Path, observer: CellObserver) -> None:
    """Play the log of a live run's cell again, for an observer. Raises AgoraError if the log cannot
    be read."""
    master = assembly.master()
    master.cell = ObservedCell(master.cell, observer)
    cell_side = assembly.cell_side(master.cell)
    for _ in replay_master(assembly.codec, log, master, cell_side):
        pass
