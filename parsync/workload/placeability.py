"""Which units of a workload can never be placed by a scheduler, and from when on.

A unit is a task, or a gang where schedulers place gangs together or not at all. It is placed on
machines that are up at the same time, that the scheduler may use and that the unit's constraints
allow, and it must not exceed what the scheduler or its quota group may hold. Machines are taken as
empty, and machine events as the workload announces them.

A task by itself is decided exactly. So is a gang of equal tasks: n of them fit if the machines hold
n together. For a gang of unlike tasks there are necessary conditions (what its tasks ask for in
all; how many tasks of at least some size fit), and for a small one a search for a place. Where
these leave it open, the gang counts as one that can be placed, and waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsync.workload.workload import Workload
from schedulers.unplaceable import NEVER_US, Unplaceable, UnplaceableUnits
from shared_state.tasks import NO_GANG, NOWHERE_ELSE, Int32, Int64

# The most tasks of a gang of unlike tasks for which a place is searched, on how many machines that
# differ, and the most steps that all these searches of a run may take together (about a second).
SEARCHED_TASKS = 12
SEARCHED_MACHINES = 100
SEARCH_STEPS = 200_000
_ANYWHERE = 0  # the number of a task that has no constraint, among constraints


@dataclass(frozen=True, slots=True)
class Reach:
    """What one scheduler may use.

    Attributes:
        partition: int32[M], the partition of each machine.
        only: The partitions that it may use; None: all.
        at_once: How many partitions one decision may use; None: all.
        holds: int64[R], what its tasks may hold together; None: anything.
        quota_of: int32[n], the quota group of each task.
        quota_max: int64[G, R], what the tasks of each quota group may hold together; None: there
            are no quotas.
        places_gangs: Whether it places gangs together or not at all.
    """

    partition: Int32
    only: tuple[int, ...] | None = None
    at_once: int | None = None
    holds: Int64 | None = None
    quota_of: Int32 | None = None
    quota_max: Int64 | None = None
    places_gangs: bool = True


def unplaceable_units(workload: Workload, reach: Reach) -> UnplaceableUnits | None:
    """The units of a workload that a scheduler can never place, whichever of them it is given; None
    if it can place all."""
    if not len(workload.tasks):
        return None
    units = _Units(workload, reach)
    units.find_tasks()
    if reach.places_gangs:
        units.find_gangs()
    units.find_ceilings()
    return units.found()


class _Machines:
    """The machines that a scheduler may use, over time.

    Attributes:
        limit: int64[M, R].
        usable: bool[M], those that it may use when they are up.
        last_us: int64[M], until when each is up last; 0: it never is, NEVER_US: it stays up.
    """

    def __init__(self, workload: Workload, reach: Reach) -> None:
        events = workload.machine_events
        self.limit = workload.cell.limit
        machines = len(self.limit)
        self.usable = np.ones(machines, np.bool_)
        if reach.only is not None:
            self.usable = np.isin(reach.partition, np.array(reach.only))
        self._partition, self._at_once = reach.partition, reach.at_once
        # changes of a machine that is as the event says already are none
        order = np.lexsort((np.arange(len(events.at_us)), events.machine))
        machine, up = events.machine[order], events.up[order]
        before = np.ones(len(order), np.bool_)
        same = machine[1:] == machine[:-1]
        before[1:][same] = up[:-1][same]
        changes = np.sort(order[up != before])
        self._at_us, self._machine = events.at_us[changes], events.machine[changes]
        self._up = events.up[changes]
        self.last_us = np.full(machines, NEVER_US)
        last = np.full(machines, -1, np.int64)
        last[self._machine] = np.arange(len(changes))  # (later ones overwrite)
        gone = np.flatnonzero(last >= 0)
        gone = gone[~self._up[last[gone]]]
        self.last_us[gone] = self._at_us[last[gone]]

    def holds_until(self, amount: Int64, wanted: int) -> int:
        """Until when the machines that are up at once have at least `wanted` together last: 0 if
        they never do, NEVER_US if they do in the end.

        Args:
            amount: int64[M], what each has.
        """
        amount = np.where(self.usable, amount, 0)
        if self.together(np.where(self.last_us == NEVER_US, amount, 0)) >= wanted:
            return int(NEVER_US)
        if self.together(np.where(self.last_us > 0, amount, 0)) < wanted:
            return 0  # not even if all that are ever up were up at once
        up_now = np.where(self.last_us == NEVER_US, amount, 0)
        # backwards from the end: before each change, as after it but for its machine
        end = len(self._at_us)
        while end:
            at_us = self._at_us[end - 1]
            while end and self._at_us[end - 1] == at_us:
                end -= 1
                machine = self._machine[end]
                up_now[machine] = 0 if self._up[end] else amount[machine]
            if at_us > 0 and self.together(up_now) >= wanted:
                return int(at_us)
        return 0

    @property
    def has_all_at_once(self) -> bool:
        """Whether one decision may use all of them."""
        return self._at_once is None

    def together(self, amount: Int64) -> int:
        """The most of an amount, int64[M], that the machines of one decision have."""
        if self._at_once is None:
            return int(amount.sum())
        by_partition = np.zeros(int(self._partition.max()) + 1, np.int64)
        np.add.at(by_partition, self._partition, amount)
        return int(np.sort(by_partition)[-self._at_once :].sum())


class _Units:
    """The search for units that can never be placed."""

    def __init__(self, workload: Workload, reach: Reach) -> None:
        self._workload, self._reach = workload, reach
        self._tasks = workload.tasks
        self._machines = _Machines(workload, reach)
        n = len(self._tasks)
        self._task_us, self._gang_us = np.full(n, NEVER_US), np.full(n, NEVER_US)
        self._reason = np.zeros(n, np.int8)
        self._gang_size = np.zeros(n, np.int64)
        catalog = workload.catalog
        # of each task: a set that is a constraint, or _ANYWHERE
        if catalog.has_constraints:
            constrains = catalog.elsewhere_cost == NOWHERE_ELSE
            self._constraint = np.where(
                constrains[self._tasks.preference], self._tasks.preference, _ANYWHERE
            ).astype(np.int32)
        else:
            self._constraint = np.broadcast_to(np.int32(_ANYWHERE), n)
        self._steps = SEARCH_STEPS

    def found(self) -> UnplaceableUnits | None:
        """What was found."""
        if (self._task_us == NEVER_US).all() and (self._gang_us == NEVER_US).all():
            return None
        return UnplaceableUnits(
            self._task_us, self._gang_us, self._reason, self._tasks.gang, self._gang_size
        )

    def find_tasks(self) -> None:
        """Find the tasks that no machine holds, each by itself."""
        machines = self._machines
        large = self._stays_for(self._tasks.request.max(axis=0))
        order = np.argsort(self._constraint, kind="stable")
        starts = np.flatnonzero(np.diff(self._constraint[order], prepend=-1))
        for rows in np.split(order, starts[1:]):
            constraint = int(self._constraint[rows[0]])
            if self._count(large, constraint):
                continue
            allowed = self._allowed(constraint)
            last_us = np.where(machines.usable & allowed, machines.last_us, 0)
            request = self._tasks.request[rows]
            distinct, place = np.unique(request, axis=0, return_inverse=True)
            place = place.ravel()
            until_us = _fits_until(distinct, machines.limit, last_us)
            lost = until_us < NEVER_US
            if not lost.any():
                continue
            reason = np.full(len(distinct), Unplaceable.NO_MACHINE, np.int8)
            every = np.full(len(allowed), NEVER_US)
            in_set = _fits_until(distinct[lost], machines.limit, np.where(allowed, every, 0))
            in_cell = _fits_until(distinct[lost], machines.limit, every)
            reason[lost] = np.select(
                [in_cell == 0, in_set == 0],
                [Unplaceable.LARGER_THAN_EVERY_MACHINE, Unplaceable.CONSTRAINED],
                Unplaceable.NO_MACHINE,
            )
            self._task_us[rows] = until_us[place]
            self._reason[rows] = reason[place]

    def find_gangs(self) -> None:
        """Find the gangs that the machines do not hold together."""
        gang = self._tasks.gang
        members = np.flatnonzero(gang != NO_GANG)
        if not len(members):
            return
        members = members[np.argsort(gang[members], kind="stable")]
        starts = np.flatnonzero(np.diff(gang[members], prepend=NO_GANG))
        sizes = np.diff(starts, append=len(members))
        self._gang_size[members] = np.repeat(sizes, sizes)
        # one task that is never placed is enough
        worst_us = np.minimum.reduceat(self._task_us[members], starts)
        for place in np.flatnonzero(worst_us == 0).tolist():
            rows = members[starts[place] : starts[place] + sizes[place]]
            first = rows[self._task_us[rows].argmin()]
            self._task_us[rows], self._reason[rows] = 0, self._reason[first]
        largest = np.maximum.reduceat(self._tasks.request[members], starts, axis=0)
        free = np.maximum.reduceat(self._constraint[members], starts) == _ANYWHERE
        open_ = worst_us > 0
        open_[open_ & free] = ~self._surely_fit(largest[open_ & free], sizes[open_ & free])
        if self._machines.has_all_at_once:
            large = self._stays_for(largest.max(axis=0))
            least = np.minimum.reduceat(self._constraint[members], starts)
            most = np.maximum.reduceat(self._constraint[members], starts)
            for place in np.flatnonzero(open_ & (least == most)).tolist():
                open_[place] = self._count(large, int(most[place])) < sizes[place]
        known: dict[bytes, int] = {}
        for place in np.flatnonzero(open_).tolist():
            rows = members[starts[place] : starts[place] + sizes[place]]
            kinds = np.column_stack([self._constraint[rows], self._tasks.request[rows]])
            kinds = kinds[np.lexsort(kinds.T[::-1])]
            until_us = known.get(kinds.tobytes())
            if until_us is None:
                until_us = known[kinds.tobytes()] = self._gang_fits_until(kinds)
            if until_us < NEVER_US:
                self._gang_us[rows] = until_us
                self._reason[rows[self._task_us[rows] == NEVER_US]] = Unplaceable.GANG_TOO_LARGE

    def find_ceilings(self) -> None:
        """Find the units that ask for more than their scheduler or quota group may ever hold."""
        reach, tasks = self._reach, self._tasks
        ceilings: list[tuple[Int64, Unplaceable]] = []
        if reach.holds is not None:
            ceilings.append((reach.holds[None], Unplaceable.ABOVE_LIMIT))
        if reach.quota_max is not None and reach.quota_of is not None:
            ceilings.append((reach.quota_max[reach.quota_of], Unplaceable.ABOVE_QUOTA))
        if not ceilings:
            return
        wanted = tasks.request
        members = np.flatnonzero(tasks.gang != NO_GANG)
        if reach.places_gangs and len(members):
            _, place = np.unique(tasks.gang[members], return_inverse=True)
            total = np.zeros((int(place.max()) + 1, wanted.shape[1]), np.int64)
            np.add.at(total, place, wanted[members])
            wanted = wanted.copy()
            wanted[members] = total[place]
        for most, reason in ceilings:
            above = ((wanted > most) & (wanted > 0)).any(axis=1)
            above &= (self._task_us > 0) & (self._gang_us > 0)
            alone = above & ((tasks.request > most) & (tasks.request > 0)).any(axis=1)
            if reach.places_gangs:
                self._gang_us[above & (tasks.gang != NO_GANG)] = 0
                torn = tasks.gang[alone]
                alone |= np.isin(tasks.gang, torn[torn != NO_GANG])
            self._task_us[alone] = 0
            self._reason[above] = reason

    def _stays_for(self, request: Int64) -> NDArray[np.bool_]:
        """The machines that may be used, stay up, and hold a request when empty, bool[M]."""
        machines = self._machines
        stays = machines.usable & (machines.last_us == NEVER_US)
        large: NDArray[np.bool_] = stays & (machines.limit >= request).all(axis=1)
        return large

    def _count(self, machines: NDArray[np.bool_], constraint: int) -> int:
        """How many of these machines, bool[M], a constraint allows; those that it lists by their
        racks are not counted if it lists others by themselves."""
        if constraint == _ANYWHERE:
            return int(np.count_nonzero(machines))
        catalog = self._workload.catalog
        first, end = catalog.machine_offsets[constraint : constraint + 2]
        if first == end:
            return int(np.count_nonzero(machines & self._allowed(constraint)))
        return int(np.count_nonzero(machines[catalog.machine[first:end]]))

    def _allowed(self, constraint: int) -> NDArray[np.bool_]:
        """The machines that a constraint allows, bool[M]."""
        cell, catalog = self._workload.cell, self._workload.catalog
        if constraint == _ANYWHERE:
            return np.ones(cell.machines, np.bool_)
        allowed = np.zeros(cell.machines, np.bool_)
        first, end = catalog.machine_offsets[constraint : constraint + 2]
        allowed[catalog.machine[first:end]] = True
        first, end = catalog.rack_offsets[constraint : constraint + 2]
        return allowed | np.isin(cell.rack, catalog.rack[first:end])

    def _surely_fit(self, largest: Int64, sizes: Int64) -> NDArray[np.bool_]:
        """Of gangs without constraints: whether machines that stay up hold all tasks even if each
        were as large as the gang's largest, bool[g].

        Args:
            largest: int64[g, R], the most that a task of each gang asks for.
            sizes: int64[g].
        """
        machines = self._machines
        stays = machines.usable & (machines.last_us == NEVER_US)
        fit = np.zeros(len(sizes), np.bool_)
        if not len(sizes):
            return fit
        distinct, place = np.unique(largest, axis=0, return_inverse=True)
        place = place.ravel()
        most = np.zeros(len(distinct), np.int64)
        np.maximum.at(most, place, sizes)
        if machines.has_all_at_once:
            kinds, count = np.unique(machines.limit[stays], axis=0, return_counts=True)
            for number, request in enumerate(distinct):
                each = _how_many(kinds, request, int(most[number]))
                fit[place == number] = int((each * count).sum()) >= sizes[place == number]
            return fit
        for number, request in enumerate(distinct):
            each = np.where(stays, _how_many(machines.limit, request, int(most[number])), 0)
            fit[place == number] = machines.together(each) >= sizes[place == number]
        return fit

    def _gang_fits_until(self, kinds: Int64) -> int:
        """Until when a gang may be placed last, as _Machines.holds_until.

        Args:
            kinds: int64[k, 1 + R], the constraint and the request of each of its tasks, in order.
        """
        machines, request, constraint = self._machines, kinds[:, 1:], kinds[:, 0]
        until_us = int(NEVER_US)
        distinct = np.unique(kinds, axis=0)
        for kind in distinct:
            # as many tasks as large as this one have to fit, on machines that its constraint allows
            as_large = (request >= kind[1:]).all(axis=1)
            if kind[0] != _ANYWHERE:
                as_large &= constraint == kind[0]
            each = _how_many(machines.limit, kind[1:], len(kinds))
            each = np.where(self._allowed(int(kind[0])), each, 0)
            until_us = min(until_us, machines.holds_until(each, int(np.count_nonzero(as_large))))
        if len(distinct) == 1 or not until_us:
            return until_us
        smallest = request.min(axis=0)
        each = _how_many(machines.limit, smallest, len(kinds))
        until_us = min(until_us, machines.holds_until(each, len(kinds)))
        holds_one = each > 0
        for dimension, total in enumerate(request.sum(axis=0).tolist()):
            has = np.where(holds_one, machines.limit[:, dimension], 0)
            until_us = min(until_us, machines.holds_until(has, total))
        if until_us and len(kinds) <= SEARCHED_TASKS and not self._finds_place(kinds):
            return 0
        return until_us

    def _finds_place(self, kinds: Int64) -> bool:
        """Whether a gang has a place on all machines that are ever up; True if the search for it
        would take too long."""
        machines = self._machines
        usable = np.flatnonzero(machines.usable & (machines.last_us > 0))
        allowed = {one: self._allowed(one)[usable] for one in np.unique(kinds[:, 0]).tolist()}
        # a machine matters by its room and by which constraints allow it; as many of a kind as
        # there are tasks are enough
        look = np.column_stack([*allowed.values(), machines.limit[usable]]).astype(np.int64)
        distinct, count = np.unique(look, axis=0, return_counts=True)
        room = np.repeat(distinct, np.minimum(count, len(kinds)), axis=0)
        if len(room) > SEARCHED_MACHINES:
            return True
        order = np.argsort(-kinds[:, 1:].sum(axis=1), kind="stable")  # the largest first
        column = {one: number for number, one in enumerate(allowed)}
        tasks = [(column[int(kind[0])], tuple(kind[1:].tolist())) for kind in kinds[order]]
        left = [tuple(row) for row in room.tolist()]
        return self._search(tasks, left, len(column))

    def _search(
        self,
        tasks: list[tuple[int, tuple[int, ...]]],
        left: list[tuple[int, ...]],
        constraints: int,
    ) -> bool:
        """Whether the tasks have places in what the machines have left: each row says which of the
        constraints allow the machine, and its room."""
        if not tasks:
            return True
        (column, request), *others = tasks
        tried: set[tuple[int, ...]] = set()
        for place, row in enumerate(left):
            if not row[column] or row in tried:
                continue
            tried.add(row)
            after = tuple(a - b for a, b in zip(row[constraints:], request, strict=True))
            if min(after) < 0:
                continue
            self._steps -= 1
            if self._steps < 0:
                return True
            changed = [*left[:place], (*row[:constraints], *after), *left[place + 1 :]]
            if self._search(others, changed, constraints):
                return True
        return False


def _fits_until(request: Int64, limit: Int64, last_us: Int64) -> Int64:
    """Until when some machine holds each request when empty, int64[u].

    Args:
        request: int64[u, R].
        limit: int64[M, R].
        last_us: int64[M], until when each machine may be used.
    """
    until_us = np.zeros(len(request), np.int64)
    used = last_us > 0
    kinds = np.unique(np.column_stack([last_us[used], limit[used]]), axis=0)
    undecided = np.arange(len(request))
    for kind in kinds[np.lexsort((-kinds[:, 1:].sum(axis=1), -kinds[:, 0]))]:
        fits = (request[undecided] <= kind[1:]).all(axis=1)
        until_us[undecided[fits]] = kind[0]
        undecided = undecided[~fits]
        if not len(undecided):
            break
    return until_us


def _how_many(limit: Int64, request: Int64, most: int) -> Int64:
    """How many tasks of one request each machine holds when empty, but no more than `most`:
    int64[M]. What is asked for at 0 limits nothing."""
    asked = request > 0
    if not asked.any():
        return np.full(len(limit), most, np.int64)
    each: Int64 = (limit[:, asked] // request[asked]).min(axis=1)
    return np.minimum(each, most)
