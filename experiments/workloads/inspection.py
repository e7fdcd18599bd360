"""Statistics of a workload (`describe`), the load that it offers, and a digest by which equal ones
are known (`digest`)."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
from numpy.typing import NDArray

from parsync.workload.workload import Workload
from shared_state.tasks import Int64, TaskClass

PERCENTILES = (10, 50, 90, 99)


def describe(workload: Workload) -> dict[str, object]:
    """The statistics of a workload as plain values: counts, percentiles of run times and job sizes
    (nearest rank below), and the offered load of each phase.

    The offered load of a phase is the sum of run time x request of the tasks submitted in it,
    divided by capacity x the length of the phase: per dimension, in per cent. Tasks without an end
    count until the end of the workload. Initial tasks are not offered load.
    """
    tasks = workload.tasks
    arrived = workload.arrival_rows
    ends = workload.duration_us >= 0
    job_tasks = np.unique(tasks.job, return_counts=True)[1]
    return {
        "name": workload.name,
        "machines": workload.cell.machines,
        "racks": len(np.unique(workload.cell.rack)),
        "capacity": dict(
            zip(workload.cell.dimensions, workload.cell.capacity.sum(axis=0).tolist(), strict=True)
        ),
        "tasks": len(tasks),
        "jobs": len(job_tasks),
        "batches": len(workload.arrival_us),
        "tasks_running_at_start": len(workload.initial.task),
        "tasks_arriving": len(arrived),
        "tasks_service": int(np.count_nonzero(tasks.task_class == TaskClass.SERVICE)),
        "tasks_without_end": int(np.count_nonzero(~ends)),
        "tasks_with_preference": int(np.count_nonzero(tasks.preference)),
        "preference_sets": workload.catalog.sets - 1,
        "preferred_permille": workload.preferred_permille,
        "machine_events": len(workload.machine_events.at_us),
        "duration_s": _percentiles(workload.duration_us[ends] / 1e6),
        "tasks_per_job": _percentiles(job_tasks),
        "end_s": workload.end_us / 1e6,
        **_quota_groups(workload),
        "phases": _phases(workload),
        **workload.facts,
    }


def _quota_groups(workload: Workload) -> dict[str, object]:
    """The number of tasks of each quota group, if there are some."""
    quotas = workload.quotas
    if quotas is None:
        return {}
    tasks = np.bincount(quotas.group, minlength=len(quotas.names)).tolist()
    return {"tasks_by_quota_group": dict(zip(quotas.names, tasks, strict=True))}


def _percentiles(values: NDArray[np.float64] | Int64) -> dict[str, float]:
    if len(values) == 0:
        return {}
    at = np.percentile(values, PERCENTILES, method="lower")
    named = {f"p{percent}": float(value) for percent, value in zip(PERCENTILES, at, strict=True)}
    return {"mean": float(values.mean()), **named, "max": float(values.max())}


def _phases(workload: Workload) -> list[dict[str, object]]:
    edges = np.searchsorted(
        workload.arrival_us,
        [phase.start_us for phase in workload.phases] + [workload.phases[-1].end_us],
    )
    described: list[dict[str, object]] = []
    for phase, first, last in zip(workload.phases, edges[:-1], edges[1:], strict=True):
        rows = workload.arrival_rows[
            workload.arrival_offsets[first] : workload.arrival_offsets[last]
        ]
        batch = workload.tasks.take(rows)
        duration = workload.duration_us[rows]
        held = np.where(duration >= 0, duration, workload.end_us - batch.submit_us).astype(
            np.float64
        )
        room = workload.cell.capacity.sum(axis=0) * float(phase.end_us - phase.start_us)
        offered = np.divide(100.0 * (held @ batch.request), room, where=room > 0, out=0.0 * room)
        described.append(
            {
                "start_s": phase.start_us / 1e6,
                "end_s": phase.end_us / 1e6,
                "load_percent": phase.load_percent,
                "tasks": len(rows),
                "tasks_per_s": len(rows) / ((phase.end_us - phase.start_us) / 1e6),
                "offered_percent": dict(
                    zip(workload.cell.dimensions, offered.round(3).tolist(), strict=True)
                ),
            }
        )
    return described


def offered_permille(workload: Workload) -> int:
    """The load that arriving tasks offer, in permille of the cell: the sum of run time x request
    inside the run, away from preferred machines, divided by capacity x length, in the dimension
    where it is highest. The same on any machine."""
    rows = workload.arrival_rows
    left_us = workload.end_us - workload.tasks.submit_us[rows]
    duration_us = workload.duration_us[rows]
    held_us = np.where(duration_us < 0, left_us, np.minimum(duration_us, left_us))
    highest = 0
    for dimension, capacity in enumerate(workload.cell.capacity.sum(axis=0).tolist()):
        held = held_us.astype(np.float64) * workload.tasks.request[rows, dimension]
        # np.cumsum adds in order on any machine; np.sum does not
        total = float(np.cumsum(held)[-1]) if len(held) else 0.0
        if capacity:
            highest = max(highest, round(1000 * total / (capacity * float(workload.end_us))))
    return highest


def digest(workload: Workload) -> str:
    """The digest of every column: cell, costs, tasks with their true durations, arrivals, machine
    events, phases, quota groups, MapReduce jobs. It is the same on any machine; name and
    facts do not count."""
    state = hashlib.blake2b(digest_size=16)
    for part in (
        workload.cell,
        workload.catalog,
        workload.tasks,
        workload.initial,
        workload.machine_events,
        workload,
    ):
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if isinstance(value, np.ndarray):
                # A broadcast column is one row and a length.
                whole = value[:1] if len(value) and value.strides[0] == 0 else value
                state.update(f"{field.name} {value.dtype.str} {value.shape} ".encode())
                state.update(np.ascontiguousarray(whole).data)
    catalog = workload.catalog
    prices = (workload.preferred_permille, catalog.wait_cost, catalog.wait_quantum_us)
    state.update(repr((workload.cell.dimensions, workload.end_us, *prices)).encode())
    state.update(repr([dataclasses.astuple(phase) for phase in workload.phases]).encode())
    if workload.quotas is not None:
        state.update(repr(workload.quotas.names).encode())
        state.update(np.ascontiguousarray(workload.quotas.group).data)
    if workload.mapreduce is not None:
        for field in dataclasses.fields(workload.mapreduce):
            state.update(np.ascontiguousarray(getattr(workload.mapreduce, field.name)).data)
    return state.hexdigest()
