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
from typing import Any

import numpy as np

from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.events import (
    CommitReply,
    CommitRequest,
    MachinesChanged,
    Started,
    TasksEnded,
    TasksStarted,
)
from parsync.core.master import MasterCore
from parsync.metrics.record import Record
from parsync.workload.workload import Workload
from schedulers.interface import ChangeKind
from schedulers.objective import UNPLACED, placement_cost
from schedulers.optimum import BestPlacement
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
_PLACING = (
    CommitRequest,
    MachinesChanged,
    Started,
)  # after other events no task has a place that had none, or has lost its own

Row = dict[str, Any]


class _Turn(IntEnum):
    """What happens at a moment known beforehand; at equal times in this order."""

    CLOSE = 0
    OPEN = 1
    LOOK = 2


@dataclass(slots=True)
class _Sample:
    """A transaction, the room for it just before, int64[M, R], and the answer. victims: who its
    evictions would end: (task, machine, allocation)."""

    at_us: int
    transaction: Transaction
    room: Int64
    victims: tuple[Int64, Int32, Int64]
    result: CommitResult | None = None


class RegretWatch:
    """Stands before the master it is attached to, hands it every event, and looks at the cell's
    state on the way: nothing of the run changes.

    Under the virtual runtime it watches the run itself; of a live run it is fed the cell's log.
    Samples of a phase are taken after its first settle_us: of its transactions each is as likely as
    another to be among the batches_per_phase that are settled (reservoir sampling), and the
    instants_per_phase instants, one at a random place in each equal stretch of the phase, are the
    same for every arm of a seed; random, or they would beat with the synchronisation gap.
    """

    def __init__(self, workload: Workload, settle_us: int, seed: int) -> None:
        self._master: MasterCore
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
        turns: list[tuple[int, _Turn, int]] = []
        for number, phase in enumerate(workload.phases):
            start_us = phase.start_us + settle_us
            turns += [(start_us, _Turn.OPEN, number), (phase.end_us, _Turn.CLOSE, number)]
            turns += [
                (at_us, _Turn.LOOK, number)
                for at_us in self._instants(number, start_us, phase.end_us)
            ]
        self._turns = sorted(turns, reverse=True)
        self._next_us = self._turns[-1][0] if self._turns else _NEVER_US
        self._open = False
        self._samples: list[_Sample] = []
        self._seen = 0  # transactions of this phase
        self._stream = Stream(0)
        # for the transactions to come: which sample each would replace, last first
        self._places: list[int] = []
        self._decision: list[Row] = []
        self._system: list[Row] = []

    def attach(self, master: MasterCore) -> RegretWatch:
        """Watch this master from its first event on; the participant to use in its place."""
        self._master = master
        return self

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        """As the master does."""
        while now_us >= self._next_us:
            self._turn()
        if type(event) not in _PLACING:
            return self._master.handle(now_us, event)
        sample = (
            self._sampled(now_us, event.transaction)
            if self._open and type(event) is CommitRequest
            else None
        )
        effects = self._master.handle(now_us, event)
        for effect in effects:
            if type(effect) is not Send:
                continue
            told = effect.event
            if type(told) is TasksStarted:
                self._placed[told.task] = True
            elif type(told) is TasksEnded and told.change != ChangeKind.FINISHED:
                self._placed[told.task] = False
            elif sample is not None and type(told) is CommitReply:
                sample.result = told.result
        return effects

    def finish(self, now_us: int) -> list[Record]:
        """As the master does."""
        return self._master.finish(now_us)

    def regret(self, ended_us: int) -> dict[str, list[Row]]:
        """What a run that ended at ended_us regrets, by time. Rows of

        decision: at_us, agent, sequence, tasks, losers (of the tasks), regret, exact;
        system: at_us, running, waiting (tasks), cost, without_migration, with_migration, exact.
        """
        while ended_us >= self._next_us:
            self._turn()
        self._close()
        return {"decision": list(self._decision), "system": list(self._system)}

    # --- moments ---------------------------------------------------------------------------------

    def _instants(self, phase: int, start_us: int, end_us: int) -> list[int]:
        count = self.instants_per_phase
        stretch_us = (end_us - start_us) // count
        within_us = Stream(stream_key(self._seed, "regret/instants", phase)).integers(
            count, max(1, stretch_us)
        )
        return [start_us + k * stretch_us + int(late_us) for k, late_us in enumerate(within_us)]

    def _turn(self) -> None:
        at_us, turn, phase = self._turns.pop()
        self._next_us = self._turns[-1][0] if self._turns else _NEVER_US
        if turn is _Turn.LOOK:
            self._look(at_us)
            return
        self._close()
        if turn is _Turn.OPEN:
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

    # --- decisions -------------------------------------------------------------------------------

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
        """int64[M, R]: what claims may still take; below 0 on machines above their limit."""
        room: Int64 = self._limit - self._master.cell.used
        room[~self._master.cell.up] = 0
        return room

    def _victims(self, transaction: Transaction) -> tuple[Int64, Int32, Int64]:
        if transaction.evict is None:
            none = np.zeros(0, np.int64)
            return none, none.astype(np.int32), none
        live = self._master.cell.allocations(transaction.scheduler)
        named = np.isin(live.allocation, transaction.evict)
        return live.task[named], live.machine[named], live.allocation[named]

    def _decided(self, sample: _Sample, result: CommitResult) -> list[Row]:
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
            {
                "at_us": sample.at_us,
                "agent": claims.scheduler,
                "sequence": claims.sequence,
                "tasks": len(task),
                "losers": int(np.count_nonzero(machine == UNPLACED)),
                "regret": self._cost(preference, machine) - optimum.cost,
                "exact": optimum.exact and not whole,
            }
        ]

    # --- the whole cell --------------------------------------------------------------------------

    def _look(self, at_us: int) -> None:
        tasks, cell = self._workload.tasks, self._master.cell
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
            {
                "at_us": at_us,
                "running": len(running),
                "waiting": len(waiting),
                "cost": cost,
                "without_migration": cost - fixed - staying.cost,
                "with_migration": cost - moving.cost,
                "exact": staying.exact and moving.exact and not self._gangs,
            }
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
