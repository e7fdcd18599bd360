"""Delay scheduling: a job declines machines that its tasks do not prefer until it has waited for
some time (Zaharia et al., EuroSys 2010)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsync.protocols.spec import Environment
from shared_state.tasks import NO_GANG, Int32, Int64

# How near a machine is to a task: it is preferred; it is in the rack of one that is; any other.
NODE, RACK, ANY = 0, 1, 2


class DelayScheduling:
    """Which offered machines the jobs of one agent take.

    A job waits from when it is first passed over. It takes its preferred machines only; after
    `node_wait_us` also others of their racks; after `rack_wait_us` more any. When one of its tasks
    gets a preferred machine the wait begins anew. Tasks that prefer no machine take any.

    Args:
        shared: What every part of the protocol is given.
        node_wait_us, rack_wait_us: The waits.
    """

    def __init__(self, shared: Environment, node_wait_us: int, rack_wait_us: int) -> None:
        catalog, cell = shared.catalog, shared.cell
        self._waits_us = node_wait_us, node_wait_us + rack_wait_us
        self._job, self._gang = shared.table.job, shared.table.gang
        self._preference = shared.table.preference
        self._rack = cell.rack.astype(np.int64)
        self._machines, self._racks = cell.machines, int(cell.rack.max(initial=0)) + 1
        sets = np.arange(catalog.sets, dtype=np.int64)
        of_machine = np.repeat(sets, np.diff(catalog.machine_offsets))
        self._has_any = np.diff(catalog.machine_offsets) > 0
        self._near = np.unique(of_machine * self._machines + catalog.machine)
        own = of_machine * self._racks + self._rack[catalog.machine]
        listed = np.repeat(sets, np.diff(catalog.rack_offsets)) * self._racks + catalog.rack
        self._near_rack = np.unique(np.concatenate([own, listed]))
        jobs = int(self._job.max(initial=-1)) + 1
        self._since_us = np.full(jobs, -1, np.int64)  # -1: was not passed over

    def tries(self, now_us: int, task: Int64, machine: Int32) -> NDArray[np.bool_]:
        """Which tasks, bool[n], have a machine among those offered, int32[k], that is near enough
        for them and for their gang now."""
        return self._with_gangs(task, self._has_some(task, self._allowed(now_us, task), machine))

    def takes(self, now_us: int, task: Int64, machine: Int32) -> NDArray[np.bool_]:
        """Which tasks, bool[n], are planned on a machine, int32[n], that is near enough, and their
        gang, too."""
        near = self._level(task, machine) <= self._allowed(now_us, task)
        return self._with_gangs(task, near)

    def on_planned(self, now_us: int, passed_over: Int64, placed: Int64, machine: Int32) -> None:
        """A round is planned: tasks were passed over, int64[n], and others placed, int64[k] on
        machines int32[k]."""
        job = self._job[passed_over]
        self._since_us[job[self._since_us[job] < 0]] = now_us
        near = self._job[placed[self._level(placed, machine) == NODE]]
        self._since_us[near[self._since_us[near] >= 0]] = now_us

    def _with_gangs(self, task: Int64, near: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those tasks, bool[n], of whose gangs all that are among them are near."""
        gang = self._gang[task]
        gone = gang[~near]
        return near & ~np.isin(gang, gone[gone != NO_GANG])

    def _allowed(self, now_us: int, task: Int64) -> NDArray[np.int8]:
        """The farthest machines that tasks take now, int8[n]: NODE, RACK or ANY."""
        since_us = self._since_us[self._job[task]]
        waited_us = np.where(since_us < 0, 0, now_us - since_us)
        level = np.zeros(len(task), np.int8)
        for wait_us in self._waits_us:
            level += waited_us >= wait_us
        level[~self._has_any[self._preference[task]]] = ANY
        return level

    def _level(self, task: Int64, machine: Int32) -> NDArray[np.int8]:
        """How near each machine is to its task, int8[n]."""
        preference = self._preference[task].astype(np.int64)
        level = np.full(len(task), ANY, np.int8)
        level[_isin(preference * self._racks + self._rack[machine], self._near_rack)] = RACK
        level[_isin(preference * self._machines + machine, self._near)] = NODE
        return level

    def _has_some(
        self, task: Int64, allowed: NDArray[np.int8], machine: Int32
    ) -> NDArray[np.bool_]:
        """Whether some of the offered machines, int32[k], is near enough for each task, bool[n]."""
        found: NDArray[np.bool_] = allowed == ANY
        for near, keys, number in (
            (NODE, self._near, self._machines),
            (RACK, self._near_rack, self._racks),
        ):
            asks = np.flatnonzero(~found & (allowed >= near))
            if not len(asks):
                continue
            offered = np.zeros(number, np.bool_)
            offered[machine if near == NODE else self._rack[machine]] = True
            sets, place = np.unique(self._preference[task[asks]], return_inverse=True)
            first, last = (
                np.searchsorted(keys, (sets.astype(np.int64) + one) * number) for one in (0, 1)
            )
            some = [
                bool(offered[keys[a:b] % number].any())
                for a, b in zip(first.tolist(), last.tolist(), strict=True)
            ]
            found[asks] = np.array(some, np.bool_)[place]
        return found


def _isin(key: Int64, keys: Int64) -> NDArray[np.bool_]:
    """Whether each key is one of those that ascend."""
    if not len(keys):
        return np.zeros(len(key), np.bool_)
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    found: NDArray[np.bool_] = keys[place] == key
    return found
