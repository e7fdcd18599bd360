"""How long runs in virtual time will take, before any has run.

The constants are processor times, fitted to the main comparison's thirteen arms, as they are and
with --quick, to a cell of 60 machines, to the points of `agora frontier --quick`, and to ParSync's
cell of 200,000 machines and a tenth of it. On the machine where they were measured, an arm of the
main comparison takes between 0.6 and 1.0 times what is expected, other points up to 1.8 times (most
of all quality-first on ParSync's cell). While all processors are busy, runs take longer than alone,
on that machine by a quarter (BUSY).
"""

from __future__ import annotations

import numpy as np

from experiments.arm_config import ArmConfig
from experiments.processors import processors
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.capability import Capability

TASK_S = 1.65e-6
TASK_OF_FLOW_S = 17.4e-6  # in an arm with a flow scheduler
PATIENT_TASK_S = 5e-6  # more, in an arm of one scheduler with patience
PATIENT_TASK_OF_MANY_S = 14e-6  # with several schedulers, or a flow scheduler
PREFERENCE_SET_S = 80e-6  # of the workload, for the regret
HEARTBEAT_S = 15.5e-6  # there is one in each millisecond of virtual time in which a task ends
MACHINE_S = 20e-6  # for the regret
JOB_OF_MANY_S = 350e-6  # more, in an arm of several schedulers, whose rounds end at their syncs
# of virtual time, for its syncs, if those of two partitions are at most FITTED_GAP_S apart
SCHEDULER_SECOND_S = 0.002
FITTED_GAP_S = 0.025
BUSY = 1.25  # times longer while other runs keep the other processors busy
START_S = 3.0  # of a process that imports everything
PAGE_S = 4.0  # for the table, the plots and the page of a sweep or a frontier


def expected_run_s(arm: ArmConfig, workload: Workload, warm_up: Workload | None) -> float:
    """About how many seconds of a processor a run of an arm takes."""
    both = [one for one in (workload, warm_up) if one is not None]
    tasks = sum(len(one.tasks) - len(one.initial.task) for one in both)
    virtual_s = sum(one.end_us for one in both) / 1e6
    solves = any(
        Capability.MEASURED_WHEN_LIVE in registry.get(group.kind).capabilities
        for group in arm.groups
        if group.kind is not None
    )
    schedulers = sum(group.count for group in arm.groups)
    seldom = min(1.0, FITTED_GAP_S * arm.partitions / arm.gap_s) if arm.gap_s else 1.0
    jobs = sum(len(np.unique(one.tasks.job)) for one in both) if schedulers > 1 else 0
    task_s = TASK_OF_FLOW_S if solves else TASK_S
    if any(group.options.get("patience_s") for group in arm.groups):
        task_s += PATIENT_TASK_OF_MANY_S if solves or schedulers > 1 else PATIENT_TASK_S
    return (
        tasks * task_s
        + jobs * JOB_OF_MANY_S
        + workload.catalog.sets * PREFERENCE_SET_S
        + workload.cell.machines * MACHINE_S
        + min(virtual_s * 1000, tasks) * HEARTBEAT_S
        + virtual_s * schedulers * SCHEDULER_SECOND_S * seldom
    )


def on_this_machine_s(processor_s: float, runs: int) -> float:
    """About how many seconds runs and their page take on this machine.

    Args:
        processor_s: Of all runs.
        runs: How many they are.
    """
    beside = min(processors(), runs)
    return START_S + processor_s / beside * (BUSY if beside > 1 else 1.0) + PAGE_S
