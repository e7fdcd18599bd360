"""A cell in equilibrium: which tasks run in it at a moment long after it began.

The chance that a random moment finds a task is in proportion to how long the task runs. So the run
times of the tasks that run are length-biased, and a uniform part of each is over (the waiting time
paradox: Feller, An Introduction to Probability Theory and Its Applications, vol. II). What they
have left is E[D^2] / (2 E[D]) on average, for run times D. How many run follows from Little's law:
arrivals per second times mean time in the cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN

import numpy as np
from numpy.typing import NDArray

from experiments.workloads.draws import draw_below, exponential
from shared_state.random import Stream
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog

NOT_RUNNING = -1
_CHUNKS = 16  # so many tasks at a time look for a place, on what those before have left
_TRIES = 32  # draws of a place, for a task whose draws others were quicker to take
_LONGEST_US = 1 << 50  # as sums of run times must stay within int64


def length_biased_durations(stream: Stream, n: int, mean_us: int, sigma: float) -> Int64:
    """Draw int64[n] run times of tasks that run at a moment, where those of arriving tasks are
    lognormal.

    Weighting a lognormal distribution with its variable gives one with the same sigma, and
    e^(sigma^2) times the mean.

    Args:
        stream: Of random numbers.
        n: How many.
        mean_us: The mean of arriving tasks.
        sigma: Of the logarithm; 0: all run times are the mean.
    """
    if sigma == 0:
        return np.full(n, mean_us, np.int64)
    mean = mean_us * exponential(sigma * sigma)
    biased_us = min(int(mean.to_integral_value(ROUND_HALF_EVEN)), _LONGEST_US)
    drawn: Int64 = np.clip(stream.lognormal(n, max(1, biased_us), sigma), 1, _LONGEST_US)
    return drawn


def remaining_times(stream: Stream, duration_us: Int64) -> Int64:
    """Draw what is left of each run time, uniformly from 1 to all of it: int64[n]."""
    return draw_below(stream, duration_us) + 1


def running_machines(
    cell: CellSpec,
    catalog: PreferenceCatalog,
    preference: Int32,
    request: Int64,
    preferred_permille: int,
    stream: Stream,
) -> Int32:
    """Draw which of n tasks run, and where: int32[n], NOT_RUNNING for the others.

    In random order, each task takes a random one of its preferred machines that have room, or else
    a random one of all. One on a preferred machine is there for preferred_permille/1000 of its run
    time only, so it stands for 1000/preferred_permille arrivals; drawing ends when n are accounted
    for. A task that finds no room does not run.

    Args:
        cell: The machines, all up and empty.
        catalog: Preferred machines.
        preference: int32[n], the preference set of each task.
        request: int64[n, R].
        preferred_permille: Run time on a preferred machine, relative.
        stream: Of random numbers.
    """
    n = len(preference)
    machine = np.full(n, NOT_RUNNING, np.int32)
    order = stream.permutation(n)
    free = cell.limit.copy()
    everywhere = np.array([0, cell.machines], np.int64), np.arange(cell.machines, dtype=np.int32)
    preferred = catalog.machine_offsets, catalog.machine
    scale = 1_000_000
    accounted = 0
    for rows in np.array_split(order, min(_CHUNKS, max(1, n))):
        weight = np.full(len(rows), scale, np.int64)
        for sets, (offsets, members), task_weight in (
            (preference[rows], preferred, scale * 1000 // preferred_permille),
            (np.zeros(len(rows), np.int32), everywhere, scale),
        ):
            left = np.flatnonzero(machine[rows] == NOT_RUNNING)
            placed = _place(free, offsets, members, sets[left], request[rows[left]], stream)
            machine[rows[left]] = placed
            weight[left[placed != NOT_RUNNING]] = task_weight
        reached = accounted + np.cumsum(weight)
        beyond = rows[reached > n * scale]
        if len(beyond):
            machine[beyond] = NOT_RUNNING
            machine[order[np.flatnonzero(order == rows[-1])[0] + 1 :]] = NOT_RUNNING
            break
        accounted = int(reached[-1]) if len(reached) else accounted
    return machine


def _place(
    free: Int64, offsets: Int64, members: Int32, sets: Int32, request: Int64, stream: Stream
) -> Int32:
    """Place tasks on random members of their sets with room, and take that room from `free`.

    Args:
        free: int64[M, R], changed.
        offsets, members: The machines of each set.
        sets: int32[n] of each task.
        request: int64[n, R].
        stream: Of random numbers.

    Returns: int32[n], NOT_RUNNING for tasks that found no place.
    """
    machine = np.full(len(sets), NOT_RUNNING, np.int32)
    for rows, wanted in _by_resources_wanted(request):
        machine[rows] = _place_alike(
            free, offsets, members, sets[rows], request[rows], wanted, stream
        )
    return machine


def _by_resources_wanted(request: Int64) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Tasks that want the same resources: (which of the tasks, bool[R]), one group after the
    other."""
    wanted = request > 0
    if wanted.all():
        yield np.arange(len(request)), np.ones(request.shape[1], np.bool_)
        return
    groups, group = np.unique(wanted, axis=0, return_inverse=True)
    for number, resources in enumerate(groups):
        yield np.flatnonzero(group.reshape(-1) == number), resources


def _place_alike(
    free: Int64,
    offsets: Int64,
    members: Int32,
    sets: Int32,
    request: Int64,
    wanted: NDArray[np.bool_],
    stream: Stream,
) -> Int32:
    """As _place, of tasks that want some of the same resources, bool[R], and none of the others."""
    machine = np.full(len(sets), NOT_RUNNING, np.int32)
    left = np.arange(len(sets))
    for _ in range(_TRIES):
        has_room = (free[members][:, wanted] > 0).all(axis=1)
        open_members = members[has_room]
        before = np.concatenate([[0], np.cumsum(has_room)])[offsets]
        count = np.diff(before)[sets[left]]
        left = left[count > 0]
        if not len(left):
            break
        chosen = open_members[
            before[sets[left]] + draw_below(stream, count[count > 0].astype(np.int64))
        ]
        fits = _that_fit(free, chosen, request[left])
        machine[left[fits]] = chosen[fits]
        np.subtract.at(free, chosen[fits], request[left[fits]])
        left = left[~fits]
    return machine


def _that_fit(free: Int64, machine: Int32, request: Int64) -> NDArray[np.bool_]:
    """bool[n]: whether each request fits its machine beside those before it that want the same."""
    order = np.argsort(machine, kind="stable")
    on, wanted = machine[order], request[order]
    total = np.cumsum(wanted, axis=0)
    first = np.searchsorted(on, on)  # of the same machine
    fits = np.empty(len(machine), np.bool_)
    beside_others = total - total[first] + wanted[first] <= free[on]
    fits[order] = (beside_others | (wanted == 0)).all(axis=1)
    return fits
