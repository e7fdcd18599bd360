"""How long runs in virtual time will take, before any has run.

The constants are processor times, fitted to the main comparison's thirteen arms, as they are and
with --quick, and to a cell of 60 machines. On the machine where they were measured, an arm takes
between 0.8 and 1.6 times what is expected, and each of these comparisons between 1.0 and 1.1 times.
"""

from __future__ import annotations

from experiments.arm_config import ArmConfig
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.capability import Capability

TASK_S = 1.65e-6
TASK_OF_FLOW_S = 17.4e-6  # in an arm with a flow scheduler
PREFERENCE_SET_S = 80e-6  # of the workload, for the regret
VIRTUAL_SECOND_S = 0.02  # for heartbeats
SCHEDULER_SECOND_S = 0.0026  # of virtual time, for its rounds and syncs
START_S = 3.0  # of a process that imports everything


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
    return (
        tasks * (TASK_OF_FLOW_S if solves else TASK_S)
        + workload.catalog.sets * PREFERENCE_SET_S
        + virtual_s * (VIRTUAL_SECOND_S + schedulers * SCHEDULER_SECOND_S)
    )
