"""What happens behind a unit for which there was no room.

A unit is a task, or a gang. At first the units behind it that fit go ahead. Once it has lacked room
for head_of_line_s it holds the queue: nothing behind it is tried until it is placed. So small tasks
do not wait long for a large one, and the large one does not starve.

The time counts from the round that first found no room for the unit. It goes on while the unit's
claims are rejected, and starts again if the agent is restarted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from operator import le
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer

from parsync.core.queued_tasks import NO_TASKS, QueuedTasks, split_batch
from shared_state.tasks import NO_GANG, NOWHERE_ELSE, Int64, PreferenceCatalog, TaskBatch

LONGEST_S = 1e6
DEFAULT_S = 10.0
_NEVER = "inf"  # in configurations and in the files of a run, which have no infinite numbers


def _read(value: Any) -> Any:
    return math.inf if value == _NEVER else value


def _in_range(value: float) -> float:
    if value > LONGEST_S and value != math.inf:
        raise ValueError(f"expected 0 to {LONGEST_S:g}, or inf")
    return value


def _written(value: float) -> float | str:
    return _NEVER if value == math.inf else value


HeadOfLineSeconds = Annotated[
    float,
    Field(ge=0, allow_inf_nan=True),
    BeforeValidator(_read),
    PlainSerializer(_written),
]
HEAD_OF_LINE = (
    "how long, in seconds, tasks behind a task or gang without room may go ahead if they fit; then"
    " that one holds the queue until it is placed; 0: strict order; inf: it never holds the queue"
)


def head_of_line_us(seconds: float) -> int | None:
    """The option in microseconds; None: a unit never holds the queue."""
    return None if seconds == math.inf else round(seconds * 1e6)


class UnitSizes:
    """How large the units of a run are, to know which cannot fit where others did not.

    Args:
        table: Every task (row = id).
        catalog: The preference sets, among them constraints.
    """

    def __init__(self, table: TaskBatch, catalog: PreferenceCatalog) -> None:
        self._request, self._gang = table.request, table.gang
        self._preference = table.preference
        self._constrains = catalog.elsewhere_cost == NOWHERE_ELSE

    @property
    def are_alike(self) -> bool:
        """Whether every unit is a task without a constraint that asks for the same: where one finds
        no room, no other does."""
        request = self._request
        return bool(
            (self._gang == NO_GANG).all()
            and not self._constrains.any()
            and (not len(request) or (request == request[0]).all())
        )

    def constraint(self, task: Int64) -> Int64:
        """The constraint of each task, int64[n]: a preference set, 0 for none."""
        preference = self._preference[task].astype(np.int64)
        return np.where(self._constrains[preference], preference, 0)

    def largest(self, task: Int64) -> list[_Size]:
        """For each unit among these tasks, what surely does not fit where it did not: as many tasks
        with its constraint, each as large as its largest in every resource."""
        gang, constraint = self._gang[task], self.constraint(task)
        alone = gang == NO_GANG
        rows = np.column_stack([constraint[alone], self._request[task[alone]]])
        sizes = [_Size(1, row[0], tuple(row[1:])) for row in np.unique(rows, axis=0).tolist()]
        for one in np.unique(gang[~alone]).tolist():
            members = gang == one
            sets = np.unique(constraint[members])
            if len(sets) == 1:
                most = self._request[task[members]].max(axis=0).tolist()
                sizes.append(_Size(int(np.count_nonzero(members)), int(sets[0]), tuple(most)))
        return sizes

    def smallest(self, task: Int64) -> _Size:
        """A size that each unit among these tasks has at least. Its constraint is that of all
        tasks, or -1 if they differ."""
        gang, constraint = self._gang[task], self.constraint(task)
        count = 1
        if (gang != NO_GANG).all():
            count = int(np.unique(gang, return_counts=True)[1].min())
        alike = (constraint == constraint[0]).all()
        least = self._request[task].min(axis=0).tolist()
        return _Size(count, int(constraint[0]) if alike else -1, tuple(least))


@dataclass(frozen=True, slots=True)
class _Size:
    """`tasks` tasks with a constraint (0: none) that ask for `request` each, by dimension."""

    tasks: int
    constraint: int
    request: tuple[int, ...]

    def is_within(self, other: _Size) -> bool:
        """Whether `other` finds no room where this one found none."""
        return (
            self.tasks <= other.tasks
            and self.constraint in (0, other.constraint)
            and all(map(le, self.request, other.request))
        )


@dataclass(slots=True)
class _Waiting:
    """Tasks that lack room since a time.

    Attributes:
        since_us: Since when.
        size: A size that each unit among them has at least.
        view: The number of the last view known to have no room for them; -1: there is none.
    """

    tasks: QueuedTasks
    since_us: int
    size: _Size
    view: int


class PassedOver:
    """The units of one agent for which there was no room, in the order in which they lacked it.

    They are tried again when the view has changed: each in turn, and then one batch of those behind
    them, before the next turn begins. So neither starves the other where the view changes faster
    than the agent decides. A unit that is at least as large as one that found no room in the same
    view is left out.

    Args:
        sizes: Of all units.
        head_of_line_us: How long the first lets those behind it go ahead; None: for ever.
        gang: The gang of each task id, int64[tasks]; None if no task has one.
        may_offer: Which of these tasks may be decided on, bool[n]: others wait for something else.
    """

    def __init__(
        self,
        sizes: UnitSizes,
        head_of_line_us: int | None,
        gang: Int64 | None,
        may_offer: Callable[[Int64], NDArray[np.bool_]] | None = None,
    ) -> None:
        self._sizes = sizes
        self._head_of_line_us = head_of_line_us
        self._gang = gang
        self._may_offer = may_offer
        self._waiting: list[_Waiting] = []
        self._view = 0
        self._without_room: list[_Size] = []  # in this view
        self._next = 0  # whose turn it is
        self._turn_is_old = False  # the view has changed since the turn began
        self._passed_on = True  # those behind have had theirs since
        self._released_us: dict[int, int] = {}  # since when they lack room, by their first task
        self._offered = (-1, -1)  # of those in the round: their place, and since when they wait

    def __len__(self) -> int:
        """How many entries wait."""
        return len(self._waiting)

    @property
    def has_to_offer(self) -> bool:
        """Whether some of them may be decided on."""
        return any(self._may_be_offered(one.tasks.task) for one in self._waiting)

    def holds(self, now_us: int) -> bool:
        """Whether the first holds the queue: those behind it are not tried."""
        return self._first_has_waited(now_us) and self._may_be_offered(self._waiting[0].tasks.task)

    def holder(self, now_us: int) -> Int64:
        """The tasks that hold the queue, int64[n]; none if it is not held."""
        return self._waiting[0].tasks.task if self.holds(now_us) else NO_TASKS.task

    def all_tasks(self) -> Int64:
        """The tasks that lack room, int64[n]."""
        return QueuedTasks.join([one.tasks for one in self._waiting]).task

    def release(self, now_us: int) -> QueuedTasks | None:
        """Take out the first if it has waited long enough to hold the queue, but may not be decided
        on: it is to hold up those that wait for the same. None if that is not so."""
        if not self._first_has_waited(now_us) or self.holds(now_us):
            return None
        first = self._waiting.pop(0)
        self._next = max(0, self._next - 1)
        self._released_us[int(first.tasks.task[0])] = first.since_us
        return first.tasks

    def on_view_changed(self) -> None:
        """What found no room before may find some now."""
        if self._next_due(self._next) is None:  # the turn was over: none of the others fitted
            self._next = len(self._waiting)
        self._view += 1
        self._without_room.clear()
        self._turn_is_old = True

    def due(self, now_us: int, others: bool) -> int | None:
        """The place of those to try next in the view as it stands; None if there are none, or if
        it is the turn of those behind.

        Args:
            others: Whether there are any behind.
        """
        if self.holds(now_us):
            return 0 if self._waiting[0].view != self._view else None
        found = self._next_due(self._next)
        if found is None and self._turn_is_old and (self._passed_on or not others):
            found = self._next_due(0)
        return found

    def take(self, place: int, limit: int | None) -> QueuedTasks:
        """Take at most `limit` of the tasks at a place for a round; the rest stays there."""
        one = self._waiting.pop(place)
        if place < self._next:  # a new turn, or the first that holds the queue
            self._next, self._turn_is_old, self._passed_on = place, False, False
        offered, rest = one.tasks, one.tasks.take(slice(0, 0))
        if self._may_offer is not None:
            may = self._may_offer(offered.task)
            offered, rest = offered.take(may), offered.take(~may)
        offered, later = split_batch(offered, limit, self._gang)
        rest = QueuedTasks.join([later, rest])
        if len(rest):
            self._insert(place, rest, one.since_us, one.view)
        self._offered = (place, one.since_us)
        self._next = place
        return offered

    def current(self, place: int) -> QueuedTasks:
        """The tasks at a place."""
        return self._waiting[place].tasks

    def pass_on(self) -> None:
        """A batch of those behind is tried."""
        self._passed_on = True
        self._next = len(self._waiting)
        self._offered = (-1, -1)

    def try_again(self, since_us: int) -> None:
        """Tasks whose claims were rejected are tried; -1: they have found room whenever they were
        tried before."""
        self._offered = (-1, since_us)

    def on_no_room(self, now_us: int, left: QueuedTasks) -> None:
        """The round that was taken last left these tasks without room."""
        place, since_us = self._offered
        if since_us < 0:
            since_us = self._released_us.pop(int(left.task[0]), now_us)
        for size in self._sizes.largest(left.task):
            if not any(known.is_within(size) for known in self._without_room):
                self._without_room.append(size)
        if place < 0:
            times = [one.since_us for one in self._waiting]
            place = bisect_right(times, since_us)
        self._insert(place, left, since_us, self._view)
        if place <= self._next:
            self._next += 1

    @property
    def since_us(self) -> int:
        """Since when those in the round that was taken last lack room; -1: they have not yet."""
        return self._offered[1]

    def _insert(self, place: int, tasks: QueuedTasks, since_us: int, view: int) -> None:
        size = self._sizes.smallest(tasks.task)
        self._waiting.insert(place, _Waiting(tasks, since_us, size, view))

    def _next_due(self, start: int) -> int | None:
        """The first place from `start` on with tasks to try in this view."""
        for place in range(start, len(self._waiting)):
            one = self._waiting[place]
            if one.view == self._view:
                continue
            if any(size.is_within(one.size) for size in self._without_room):
                one.view = self._view
                continue
            if self._may_be_offered(one.tasks.task):
                return place
        return None

    def _first_has_waited(self, now_us: int) -> bool:
        if not self._waiting or self._head_of_line_us is None:
            return False
        return now_us - self._waiting[0].since_us >= self._head_of_line_us

    def _may_be_offered(self, task: Int64) -> bool:
        return self._may_offer is None or bool(self._may_offer(task).any())
