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

Where the least cost is a lower bound only (schedulers/optimum.py tells when), a regret is an upper
bound and its row says so.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.quantity import Better, Unit, quantity
from parsync.workload.workload import Workload
from schedulers.objective import UNPLACED, placement_cost
from schedulers.optimum import BestPlacement
from shared_state.cell import Cell, Released
from shared_state.observed_cell import CellObserver
from shared_state.random import Stream, stream_key
from shared_state.tasks import NO_GANG, Int32, Int64
from shared_state.transaction import CommitMode, CommitResult, Reason, Transaction

BATCHES_PER_PHASE = 20  # at least
BATCHES_PER_RUN = 100
INSTANTS_PER_RUN = 20
MACHINES_PER_RUN = (
    # machines looked at over all instants: larger cells have fewer of them, at least one per phase
    500_000
)
_DRAWS = 1 << 10
_NEVER_US = sys.maxsize


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


class _Moment(IntEnum):
    """What happens at a moment known beforehand; at equal times in this order."""

    CLOSE = 0
    OPEN = 1
    LOOK = 2


@dataclass(slots=True)
class _Sample:
    """A transaction, the room for it just before, int64[M, R], and the answer.

    Attributes:
        victims: The allocations that its evictions would end: (task, machine, allocation).
    """

    at_us: int
    transaction: Transaction
    room: Int64
    victims: tuple[Int64, Int32, Int64]
    result: CommitResult | None = None


class RegretWatch(CellObserver):
    """Observes a cell and samples what its regret rests on: nothing of the run changes.

    Under the virtual runtime it observes the run's own cell, of a live run a cell to which the
    run's log is played again. Samples of a phase are taken after its first settle_us. Each of its
    transactions is as likely as another to be among the batches_per_phase sampled ones (reservoir
    sampling). The instants_per_phase instants, one at a random place in each equal stretch of the
    phase, are the same for every arm of a seed; they are random because regular ones would beat
    with the synchronisation gap.
    """

    def __init__(self, workload: Workload, settle_us: int, seed: int) -> None:
        self._cell: Cell
        self._workload = workload
        self._best = BestPlacement(workload.cell, workload.catalog)
        self._limit = workload.cell.limit
        self._gangs = bool((workload.tasks.gang != NO_GANG).any())
        self._placed = np.zeros(len(workload.tasks), np.bool_)  # runs, or has run
        self._seed = seed
        phases = max(1, len(workload.phases))
        self.batches_per_phase = max(BATCHES_PER_PHASE, BATCHES_PER_RUN // phases)
        self.instants_per_phase = max(
            1, min(INSTANTS_PER_RUN, MACHINES_PER_RUN // workload.cell.machines) // phases
        )
        moments: list[tuple[int, _Moment, int]] = []
        for number, phase in enumerate(workload.phases):
            start_us = phase.start_us + settle_us
            moments += [(start_us, _Moment.OPEN, number), (phase.end_us, _Moment.CLOSE, number)]
            moments += [
                (at_us, _Moment.LOOK, number)
                for at_us in self._instants(number, start_us, phase.end_us)
            ]
        self._moments = sorted(moments, reverse=True)
        self._next_us = self._moments[-1][0] if self._moments else _NEVER_US
        self._open = False
        self._samples: list[_Sample] = []
        self._seen = 0  # transactions of this phase
        self._stream = Stream(0)
        # for the transactions to come: which sample each would replace, last first
        self._places: list[int] = []
        self._pending: _Sample | None = None  # the transaction that is being decided
        self._decision: list[DecisionRegret] = []
        self._system: list[SystemRegret] = []

    def on_attach(self, cell: Cell) -> None:
        self._cell = cell

    def before_change(self, cell: Cell, now_us: int) -> None:
        while now_us >= self._next_us:
            self._begin_moment()

    def before_commit(self, cell: Cell, transaction: Transaction, now_us: int) -> None:
        self._pending = self._sampled(now_us, transaction) if self._open else None

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        if self._pending is not None:
            self._pending.result = result
        if len(result.evicted):
            self._placed[cell.describe(result.evicted).task] = False
        self._placed[transaction.task[result.accepted]] = True

    def on_load(
        self,
        cell: Cell,
        task: Int64,
        machine: Int32,
        request: Int64,
        owner: Int32,
        allocation: Int64,
    ) -> None:
        self._placed[task] = True

    def on_machines(
        self, cell: Cell, machine: Int32, up: NDArray[np.bool_], lost: Released, now_us: int
    ) -> None:
        self._placed[lost.task] = False

    def regret(self, ended_us: int) -> Regret:
        """The regret of a run that ended at ended_us."""
        while ended_us >= self._next_us:
            self._begin_moment()
        self._close()
        return Regret(decision=list(self._decision), system=list(self._system))

    def _instants(self, phase: int, start_us: int, end_us: int) -> list[int]:
        count = self.instants_per_phase
        stretch_us = (end_us - start_us) // count
        within_us = Stream(stream_key(self._seed, "regret/instants", phase)).integers(
            count, max(1, stretch_us)
        )
        return [start_us + k * stretch_us + int(late_us) for k, late_us in enumerate(within_us)]

    def _begin_moment(self) -> None:
        at_us, moment, phase = self._moments.pop()
        self._next_us = self._moments[-1][0] if self._moments else _NEVER_US
        if moment is _Moment.LOOK:
            self._look(at_us)
            return
        self._close()
        if moment is _Moment.OPEN:
            self._open = True
            self._seen = 0
            self._stream = Stream(stream_key(self._seed, "regret/batches", phase))
            self._places = []

    def _close(self) -> None:
        """Settle the phase's samples."""
        self._open = False
        for sample in sorted(self._samples, key=lambda sample: sample.at_us):
            if sample.result is not None:
                self._decision += self._decided(sample, sample.result)
        self._samples = []

    def _sampled(self, now_us: int, transaction: Transaction) -> _Sample | None:
        """A place in the reservoir, if this transaction gets one."""
        if not self._places:
            spread = np.arange(self._seen + 1, self._seen + 1 + _DRAWS)
            self._places = (self._stream.integers(_DRAWS, 1 << 62) % spread)[::-1].tolist()
        place = self._places.pop()
        seen, self._seen = self._seen, self._seen + 1
        if min(seen, place) >= self.batches_per_phase:
            return None
        sample = _Sample(now_us, transaction, self._room(), self._victims(transaction))
        if seen < self.batches_per_phase:
            self._samples.append(sample)
        else:
            self._samples[place] = sample
        return sample

    def _room(self) -> Int64:
        """What claims may still take, int64[M, R]; below 0 on machines above their limit."""
        room: Int64 = self._limit - self._cell.used
        room[~self._cell.up] = 0
        return room

    def _victims(self, transaction: Transaction) -> tuple[Int64, Int32, Int64]:
        if transaction.evict is None:
            none = np.zeros(0, np.int64)
            return none, none.astype(np.int32), none
        live = self._cell.allocations(transaction.scheduler)
        named = np.isin(live.allocation, transaction.evict)
        return live.task[named], live.machine[named], live.allocation[named]

    def _decided(self, sample: _Sample, result: CommitResult) -> list[DecisionRegret]:
        """The row of a sample; none if no task of it was there to be placed."""
        claims = sample.transaction
        counts = result.reason != Reason.DUPLICATE
        task = claims.task[counts]
        machine = np.where(result.accepted[counts], claims.machine[counts], np.int32(UNPLACED))
        request = claims.request[counts]
        victim, home, allocation = sample.victims
        room = sample.room
        if len(victim):
            np.add.at(room, home, self._workload.tasks.request[victim])
            stays = ~np.isin(allocation, result.evicted)
            home = np.where(stays, home, np.int32(UNPLACED))
            # claims that would have moved a victim and did not
            for row in np.flatnonzero(machine == UNPLACED):
                machine[row] = max(home[victim == task[row]], default=UNPLACED)
            others = ~np.isin(victim, task)
            task = np.concatenate([task, victim[others]])
            machine = np.concatenate([machine, home[others]])
            request = np.concatenate([request, self._workload.tasks.request[victim[others]]])
        if not len(task):
            return []
        preference = self._workload.tasks.preference[task]
        optimum = self._best.cost(room, preference, request)
        whole = claims.commit_mode is CommitMode.ALL_OR_NOTHING
        return [
            DecisionRegret(
                at_us=sample.at_us,
                agent=claims.scheduler,
                sequence=claims.sequence,
                tasks=len(task),
                losers=int(np.count_nonzero(machine == UNPLACED)),
                regret=self._cost(preference, machine) - optimum.cost,
                exact=bool(optimum.exact) and not whole,
            )
        ]

    def _look(self, at_us: int) -> None:
        tasks, cell = self._workload.tasks, self._cell
        running = cell.allocations()
        waiting = self._waiting(at_us)
        idle = np.full(len(waiting), UNPLACED, np.int32)
        runs, waits = tasks.preference[running.task], tasks.preference[waiting]
        fixed = self._cost(runs, running.machine)
        cost = fixed + self._cost(waits, idle)
        staying = self._best.cost(self._room(), waits, tasks.request[waiting])
        holds = np.maximum(self._limit, cell.used)
        holds[~cell.up] = 0
        moving = self._best.cost(
            holds,
            np.concatenate([runs, waits]),
            np.concatenate([running.request, tasks.request[waiting]]),
        )
        self._system.append(
            SystemRegret(
                at_us=at_us,
                running=len(running),
                waiting=len(waiting),
                cost=cost,
                without_migration=cost - fixed - staying.cost,
                with_migration=cost - moving.cost,
                exact=bool(staying.exact and moving.exact) and not self._gangs,
            )
        )

    def _waiting(self, at_us: int) -> Int64:
        """Tasks submitted by now that neither run nor have run; those that lost their place wait
        again."""
        workload = self._workload
        batches = int(np.searchsorted(workload.arrival_us, at_us, side="right"))
        submitted = workload.arrival_rows[: workload.arrival_offsets[batches]]
        known = np.concatenate([workload.initial.task, submitted])
        waiting: Int64 = known[~self._placed[known]]
        return waiting

    def _cost(self, preference: Int32, machine: Int32) -> int:
        workload = self._workload
        cost, _ = placement_cost(workload.catalog, workload.cell.rack, preference, machine)
        return int(cost.sum())
