"""Regret: what placements cost beyond the least that was possible, on the workload's own costs,
whatever a scheduler thought it was minimising.

Decision regret of a transaction: the cost of what it got (a claim that was rejected costs its
task's unscheduled price) minus the least cost at which the same tasks could have been placed on the
true state just before its commit, everything else as it was. Tasks that its scheduler left waiting
are not part of it. Victims of an eviction are: the room they hold is theirs to give away.

System regret at an instant: the cost of all running tasks plus the unscheduled price of all waiting
ones (given-up ones, too) minus the least possible, once with the running tasks staying where they
are and once with all free to move, at no price for moving. A machine that holds more than its limit
may keep it.

Where the least cost is a lower bound only (schedulers/objective.py tells when), a regret is an
upper bound and its row says so.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from parsync.metrics import _native
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.workload.workload import Workload
from schedulers.objective import BestPlacement
from shared_state.observed_cell import NativeObserver
from shared_state.random import WORD
from shared_state.tasks import NO_GANG

BATCHES_PER_PHASE = 20  # at least
BATCHES_PER_RUN = 100
INSTANTS_PER_RUN = 20
MACHINES_PER_RUN = (
    # machines looked at over all instants: larger cells have fewer of them, at least one per phase
    500_000
)

_Row = TypeVar("_Row", bound=Figures)


class DecisionRegret(Figures):
    """The regret of a sampled transaction.

    Attributes:
        tasks: Its tasks, placed or not, victims included.
        losers: Those of them without a place.
        exact: The regret is no upper bound.
    """

    at_us: Count
    agent: int
    sequence: int
    tasks: Annotated[int, Field(ge=1)]
    losers: Count
    regret: Number
    exact: bool


class SystemRegret(Figures):
    """The regret of the whole cell at an instant.

    Attributes:
        running, waiting: Numbers of tasks.
        cost: The cost of all of them.
        exact: Neither regret is an upper bound.
    """

    at_us: Count
    running: Count
    waiting: Count
    cost: Number
    without_migration: Number
    with_migration: Number
    exact: bool


class Regret(Figures):
    """The regret of a run, by time. Both lists are empty where it was not computed."""

    decision: list[DecisionRegret] = Field(default_factory=list)
    system: list[SystemRegret] = Field(default_factory=list)

    def means(self) -> RegretMeans:
        """The figures of a run, each only if there is something to average."""
        decisions, instants = self.decision, self.system
        tasks, count = sum(row.tasks for row in decisions), len(instants)
        return RegretMeans(
            decision_regret=sum(row.regret for row in decisions) / tasks if tasks else None,
            system_regret=sum(row.without_migration for row in instants) / count if count else None,
            system_regret_moving=sum(row.with_migration for row in instants) / count
            if count
            else None,
        )


class RegretMeans(Figures):
    """Regret in three numbers.

    Attributes:
        decision_regret: The regret of all sampled transactions together, per task claimed.
        system_regret, system_regret_moving: The regret of the whole cell, mean over the instants,
            the running tasks staying where they are or free to move.
    """

    decision_regret: Number | None = quantity(
        "Decision regret per claim",
        Unit.PLAIN,
        Better.LOWER,
        "Cost above the best placement of the same transaction's tasks on the true state just "
        "before its commit.",
    )
    system_regret: Number | None = quantity(
        "System regret, without migration",
        Unit.PLAIN,
        Better.LOWER,
        "Cost of all running and waiting tasks above the least possible if running ones stay; "
        "mean over sampled instants.",
    )
    system_regret_moving: Number | None = quantity(
        "System regret, with migration",
        Unit.PLAIN,
        Better.LOWER,
        "The same if running tasks may move, at no price.",
    )


class RegretWatch(NativeObserver):
    """Observes a cell and samples what its regret rests on: nothing of the run changes.

    Under the virtual runtime it observes the run's own cell, of a live run a cell to which the
    run's log is played again. Samples of a phase are taken after its first settle_us. Each of its
    transactions is as likely as another to be among the batches_per_phase sampled ones (reservoir
    sampling). The instants_per_phase instants, one at a random place in each equal stretch of the
    phase, are the same for every arm of a seed; they are random because regular ones would beat
    with the synchronisation gap.
    """

    native: _native.RegretWatch

    def __init__(self, workload: Workload, settle_us: int, seed: int) -> None:
        phases = max(1, len(workload.phases))
        self.batches_per_phase = max(BATCHES_PER_PHASE, BATCHES_PER_RUN // phases)
        self.instants_per_phase = max(
            1, min(INSTANTS_PER_RUN, MACHINES_PER_RUN // workload.cell.machines) // phases
        )
        watch = _native.RegretWatch(
            BestPlacement(workload.cell, workload.catalog).native,
            np.ascontiguousarray(workload.tasks.preference, np.int32),
            workload.tasks.request,
            workload.arrival_us,
            workload.arrival_offsets,
            workload.arrival_rows,
            workload.initial.task,
            bool((workload.tasks.gang != NO_GANG).any()),
            [(phase.start_us + settle_us, phase.end_us) for phase in workload.phases],
            self.batches_per_phase,
            self.instants_per_phase,
            seed & WORD,
        )
        super().__init__(watch)

    def regret(self, ended_us: int) -> Regret:
        """The regret of a run that ended at ended_us."""
        self.native.end(ended_us)
        return Regret(
            decision=[_row(DecisionRegret, row) for row in self.native.decisions()],
            system=[_row(SystemRegret, row) for row in self.native.systems()],
        )


def _row(kind: type[_Row], values: tuple[int, ...]) -> _Row:
    return kind(**dict(zip(kind.model_fields, values, strict=True)))
