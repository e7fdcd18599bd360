"""How much the tasks that a scheduler was offered want each machine
(native/offered_demand.hpp)."""

from __future__ import annotations

from schedulers import _native
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import native_columns
from schedulers.prices.interface import DemandCounts
from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64

SAMPLES = 4096  # tasks offered last whose median is the typical request
KEEP_ALL: int = _native.KEEP_ALL


class OfferedDemand:
    """Counts each task once, and forgets exponentially.

    A task of a set that lists s machines adds 1/s to the demand for each of them. All figures but
    recent_requests and recent_sets are as of the last advance().

    Args:
        environment: Of the scheduler.
        forget_us: After this time a task counts 1/e; None: nothing is forgotten.
        samples: How many of the last tasks recent_requests and recent_sets show.
        pools: Whether machines are taken to be wanted alike as far as their demands may differ by
            chance.

    Raises:
        AgoraError: A preference set is malformed, or its costs differ by more than 2^32.
    """

    def __init__(
        self,
        environment: SchedulerEnvironment,
        forget_us: int | None,
        samples: int = SAMPLES,
        pools: bool = False,
    ) -> None:
        columns = native_columns(environment.catalog, environment.cell)
        dimensions = environment.cell.capacity.shape[1]
        try:
            self._counts = _native.OfferedDemand(columns, dimensions, samples)
        except ValueError as error:
            raise AgoraError(str(error)) from error
        self._forget_us = forget_us
        self._pools = pools

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        """Count the tasks not seen before.

        Args:
            task: int64[n], ids, 0 to 2^30.
            preference: int32[n].
            request: int64[n, R].

        Raises:
            ValueError: There is no such task or set. Nothing was counted.
        """
        self._counts.offered(task, preference, request)

    def advance(self, elapsed_us: int) -> int:
        """Forget for that long, then add what was offered since the last call.

        Returns: How many entries of the catalog were read.
        """
        keep = KEEP_ALL if self._forget_us is None else kept(elapsed_us, self._forget_us)
        entries: int = self._counts.advance(keep)
        if self._pools:
            self._counts.pool()
        return entries

    def share(self) -> None:
        """Remember the tasks that are counted from now on, for take_new()."""
        self._counts.share()

    def take_new(self) -> Int64:
        """The tasks counted since the last call, int64[n], without those of learn()."""
        task: Int64 = self._counts.take_new()
        return task

    def learn(self, counts: DemandCounts) -> None:
        """Count tasks that others were offered.

        Raises:
            ValueError: There is no such set, or a count is out of range. Nothing was counted.
        """
        self._counts.learn(*counts)

    def spread(self, over_us: int) -> None:
        """Take everything counted so far as offered evenly over this time up to now."""
        self._counts.advance(KEEP_ALL)
        if self._forget_us is not None:
            self._counts.advance(kept_on_average(over_us, self._forget_us))

    @property
    def tasks(self) -> int:
        """How many tasks were offered, without forgetting, those since advance() too."""
        tasks: int = self._counts.tasks
        return tasks

    @property
    def recent_requests(self) -> Int64:
        """The requests of the last tasks offered, in no order: int64[k, R]."""
        request: Int64 = self._counts.recent_requests
        return request

    @property
    def recent_sets(self) -> Int32:
        """The sets of the last tasks counted, those of others with them, in no order: int32[k]."""
        preference: Int32 = self._counts.recent_sets
        return preference

    @property
    def sets_listing(self) -> Int32:
        """How many of the sets offered list each machine, without forgetting: int32[M]."""
        members: Int32 = self._counts.members
        return members

    @property
    def mean_gain(self) -> int:
        """What elsewhere costs more than a listed machine: the mean over all tasks that list some,
        and over their machines."""
        gain: int = self._counts.mean_gain()
        return gain

    def gain(self) -> Int64:
        """The same for each machine, over the tasks that list it: int64[M]; 0 where none does."""
        gain: Int64 = self._counts.gain()
        return gain

    def load(self, busy: int) -> Int64:
        """Each machine's demand in Erlang, in units of 2^-32: int64[M].

        By Little's law the tasks that are offered keep as many slots busy as their rate times their
        mean run time. So a machine's demand in Erlang is its share of the tasks offered, times the
        busy slots, and nobody needs to know run times.

        Args:
            busy: Busy slots of the whole cell.
        """
        load: Int64 = self._counts.load(busy)
        return load


def kept(elapsed_us: int, forget_us: int) -> int:
    """exp(-elapsed / forget) in units of 1 / KEEP_ALL, by integers alone."""
    if elapsed_us > 30 * forget_us:
        return 0
    one = 1 << 96
    term = total = one  # the series of exp(elapsed / forget), all terms of which are positive
    for n in range(1, 400):
        term = term * elapsed_us // (n * forget_us)
        if term == 0:
            break
        total += term
    return KEEP_ALL * one // total


def kept_on_average(over_us: int, forget_us: int) -> int:
    """The mean of exp(-age / forget) over ages from 0 to over_us, in units of 1 / KEEP_ALL."""
    if over_us <= 0:
        return KEEP_ALL
    return min(KEEP_ALL, forget_us * (KEEP_ALL - kept(over_us, forget_us)) // over_us)
