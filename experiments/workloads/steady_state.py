"""The warm-up of generated workloads: what an arm runs in virtual time before time 0.

It begins in a cell in equilibrium (equilibrium.py), drawn without regard to any scheduler, and goes
on for five mean run times at the first phase's load. After it the cell is as the arm's
own schedulers fill it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.workloads.equilibrium import (
    NOT_RUNNING,
    length_biased_durations,
    remaining_times,
    running_machines,
)
from experiments.workloads.quota_groups import membership
from experiments.workloads.synthetic import (
    PRODUCTION_PRIORITY,
    SERVICE_PRIORITY,
    arriving_tasks,
    draw_jobs,
    make_catalog,
    make_cell,
    production_jobs,
)
from experiments.workloads.synthetic_options import SyntheticOptions
from parsync.workload.start import joined_quotas, joined_tasks
from parsync.workload.workload import InitialPlacement, QuotaMembership, Workload
from shared_state.random import Stream, stream_key
from shared_state.tasks import (
    NO_GANG,
    CellSpec,
    Int32,
    Int64,
    PreferenceCatalog,
    TaskBatch,
    TaskClass,
)


def warm_up(options: SyntheticOptions, seed: int) -> Workload | None:
    """The warm-up before the workload of these options and this seed, on its cell.

    Tasks that run as it begins come last in its table. They are grouped into jobs as their arrivals
    would have been, of which service_permille are services; no service arrives in the warm-up, so
    that the run begins at the first phase's load. None for a cold start, for a first phase without
    load, and where arrivals are so rare that none falls into the warm-up.
    """
    length_s, load = options.warm_up_s, options.load_percent[0]
    if not length_s:
        return None
    cell = make_cell(options, seed)
    catalog = make_catalog(options, cell, seed)
    short = options.model_copy(
        update={
            "load_percent": (load,),
            "phase_s": length_s,
            "service_permille": 0,
            "preference_drift_s": 0,  # the popularity at time 0
        }
    )
    own_seed = stream_key(seed, "warm_up")
    try:
        arriving = arriving_tasks(short, cell, catalog, own_seed, "warm-up")
    except ValueError:  # of Poisson arrivals that all come later
        return None
    running, remaining_us, machine, quotas = _running(options, cell, catalog, seed)
    n, k = len(arriving.tasks), len(running)
    running = replace(
        running,
        task=running.task + n,
        job=running.job + (int(arriving.tasks.job[-1]) + 1),
    )
    return replace(
        arriving,
        tasks=joined_tasks(arriving.tasks, running),
        duration_us=np.concatenate([arriving.duration_us, remaining_us]),
        initial=InitialPlacement(np.arange(n, n + k, dtype=np.int64), machine),
        quotas=joined_quotas(arriving.quotas, None if quotas is None else quotas.group),
    )


def _running(
    options: SyntheticOptions, cell: CellSpec, catalog: PreferenceCatalog, seed: int
) -> tuple[TaskBatch, Int64, Int32, QuotaMembership | None]:
    """The k tasks that run in equilibrium at the first phase's load: their table (ids and jobs from
    0), what remains of their run times int64[k], their machines int32[k], and their quota
    groups."""
    resources = options.resources()
    n = round(resources.tasks_at_once()[1] * options.load_percent[0] / 100)
    mean_us = round(options.mean_duration_s * 1e6)

    def stream(what: str) -> Stream:
        return Stream(stream_key(seed, f"equilibrium/{what}"))

    duration_us = length_biased_durations(stream("duration"), n, mean_us, options.duration_sigma)
    remaining_us = remaining_times(stream("remaining"), duration_us)
    # Tasks of one age came together. Batches of which nothing is left are not drawn.
    batches_us = mean_us * options.batch_tasks // max(1, n) + 1  # between batches
    batch = np.unique((duration_us - remaining_us) // batches_us, return_inverse=True)[1]
    own_seed = stream_key(seed, "equilibrium")
    job_of_batch, preference, service, _ = draw_jobs(
        options, int(batch.max(initial=0)) + 1, catalog.sets - 1, own_seed
    )
    job = job_of_batch[batch]
    request = resources.requests(n, own_seed)
    machine = running_machines(
        cell, catalog, preference[job], request, options.preferred_permille, stream("machine")
    )
    runs = np.flatnonzero(machine != NOT_RUNNING)
    # ids in the order of jobs, as those of arriving tasks
    rows = runs[np.argsort(job[runs], kind="stable")]
    k, is_service = len(rows), service[job[rows]]
    remaining_us = remaining_us[rows]
    remaining_us[is_service] = -1
    priority = np.where(is_service, np.int32(SERVICE_PRIORITY), np.int32(0))
    is_production = production_jobs(options, len(preference), stream("production"))[job[rows]]
    tasks = TaskBatch(
        task=np.arange(k, dtype=np.int64),
        job=job[rows],
        request=request[rows],
        priority=np.where(is_production, np.int32(PRODUCTION_PRIORITY), priority),
        submit_us=np.zeros(k, np.int64),
        preference=preference[job[rows]],
        gang=np.full(k, NO_GANG, np.int64),
        task_class=np.where(is_service, np.int8(TaskClass.SERVICE), np.int8(TaskClass.BATCH)),
    )
    at_start = np.zeros(len(preference), np.int64)  # the phase of each job
    quotas = membership(options.quota_groups, at_start, tasks.job, stream("quota_group"))
    return tasks, remaining_us, machine[rows], quotas
