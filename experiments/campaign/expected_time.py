"""How long runs in virtual time will take, before any has run.

The constants are processor times, fitted to the main comparison's fifteen arms, as they are and
with --quick, and to four arms on ParSync's cell of 200,000 machines. On the machine where they were
measured, an arm takes between 0.7 and 1.4 times what is expected, a flow scheduler with prices up
to 1.7 times. While all processors are busy, runs take longer than alone, on that machine by a
quarter (BUSY).
"""

from __future__ import annotations

import numpy as np

from experiments.campaign.progress import processors, time_text
from experiments.config.run_config import SAMPLES_MAX
from parsync.protocols.offers.options import OffersSharedOptions
from parsync.protocols.optimistic.options import StrategyKind
from parsync.runtime.virtual.run import REST_US
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers import registry
from schedulers.interface import Capability
from shared_state.errors import AgoraError

TASK_S = 0.62e-6
TASK_OF_FLOW_S = 5.7e-6  # in an arm with a flow scheduler
PATIENT_TASK_S = 2.5e-6  # more, in an arm of one scheduler with patience
PATIENT_TASK_OF_FLOW_S = 4.2e-6  # with a flow scheduler
PREFERENCE_SET_S = 24e-6  # of the workload, for the regret
HEARTBEAT_S = 8.0e-6  # there is one in each millisecond of virtual time in which a task ends
MACHINE_S = 3.1e-6  # for the regret
JOB_OF_MANY_S = 63e-6  # more, in an arm of several schedulers, whose rounds end at their syncs
# of virtual time, for its syncs, if those of two partitions are at most FITTED_GAP_S apart
SCHEDULER_SECOND_S = 0.02e-3
FITTED_GAP_S = 0.025
# of a synchronisation of one of several schedulers, and of the rounds that it starts
PATIENT_SYNC_S = 0.12e-3  # more, with patience: tasks that wait are looked at again
PRICED_SYNC_S = 0.08e-3  # more, with slot prices
SYNCED_MACHINE_S = 4.4e-9
RANKED_MACHINE_S = 0.28e-9  # of the cell, where partitions are compared by quality
OFFERED_MACHINE_S = 0.22e-6  # per machine and job, where the whole cell is offered at a time
SAMPLE_AT_REST_S = 0.1e-3  # of a scheduler, with the synchronisation before it
PROMPT = 1.6  # times as many rounds, about
BUSY = 1.25  # times longer while other runs keep the other processors busy
START_S = 3.0  # of a process that imports everything
DAY_S = 86_400.0
PAGE_S = 4.0  # for the table, the plots and the page of a sweep or a frontier


def expected_run_s(arm: ArmConfig, workload: Workload, warm_up: Workload | None) -> float:
    """About how many seconds of a processor a run of an arm takes."""
    return ExpectedTimes(workload, warm_up).run_s(arm)


class ExpectedTimes:
    """About how long runs of arms on one workload take.

    Args:
        workload: Theirs.
        warm_up: What each arm runs before it; None if nothing.
    """

    def __init__(self, workload: Workload, warm_up: Workload | None) -> None:
        both = [one for one in (workload, warm_up) if one is not None]
        self._machines = workload.cell.machines
        self._sets = workload.catalog.sets
        self._tasks = sum(len(one.tasks) - len(one.initial.task) for one in both)
        self._jobs = sum(len(np.unique(one.tasks.job)) for one in both)
        self._resting_s = sum(map(resting_time_s, both))
        self._virtual_s = sum(one.end_us for one in both) / 1e6 - self._resting_s

    def run_s(self, arm: ArmConfig) -> float:
        """About how many seconds of a processor a run of an arm takes."""
        tasks, virtual_s, schedulers = self._tasks, self._virtual_s, _schedulers(arm)
        solves = any(
            Capability.MEASURED_WHEN_LIVE in registry.get(group.kind).capabilities
            for group in arm.groups
            if group.kind is not None
        )
        task_s = TASK_OF_FLOW_S if solves else TASK_S
        if _is_set(arm, "patience_s") and (solves or schedulers == 1):
            task_s += PATIENT_TASK_OF_FLOW_S if solves else PATIENT_TASK_S
        expected_s = (
            tasks * task_s
            + self._sets * PREFERENCE_SET_S
            + self._machines * MACHINE_S
            + min(virtual_s * 1000, tasks) * HEARTBEAT_S
            + virtual_s * schedulers * SCHEDULER_SECOND_S * _syncs_as_fitted(arm)
        )
        if _offers_whole_cell(arm):
            expected_s += self._jobs * self._machines * OFFERED_MACHINE_S
        if self._resting_s:
            expected_s += SAMPLES_MAX * schedulers * SAMPLE_AT_REST_S
        if schedulers > 1:
            expected_s += _of_rounds_s(arm, virtual_s, self._machines, self._jobs)
        return expected_s


def resting_time_s(workload: Workload) -> float:
    """How many seconds of virtual time cost next to nothing, because no task arrives or ends, and
    no machine changes, for longer than REST_US."""
    arriving = workload.arrival_rows
    submit_us = workload.tasks.submit_us[arriving]
    end_us = submit_us + np.maximum(workload.duration_us[arriving], 0)
    started_us = np.maximum(workload.duration_us[workload.initial.task], 0)
    edges_us = (submit_us, end_us, started_us, workload.machine_events.at_us)
    at_us = np.clip(np.concatenate([[0, workload.end_us], *edges_us]), 0, workload.end_us)
    gaps_us = np.diff(np.sort(at_us))
    return float(gaps_us[gaps_us > REST_US].sum()) / 1e6


def _of_rounds_s(arm: ArmConfig, virtual_s: float, machines: int, jobs: int) -> float:
    """What several schedulers cost more than one, whose views are synchronised in parts, and whose
    rounds end when they are."""
    strategies = arm.strategies
    syncs = virtual_s * _schedulers(arm) * arm.partitions / arm.gap_s if arm.gap_s else 0.0
    round_s = PATIENT_SYNC_S if _is_set(arm, "patience_s") else 0.0
    round_s += PRICED_SYNC_S if _is_set(arm, "prices") else 0.0
    machine_s = SYNCED_MACHINE_S / arm.partitions
    if any(kind in strategies for kind in StrategyKind if kind.ranks_by_quality):
        machine_s += RANKED_MACHINE_S
    rounds = PROMPT if StrategyKind.PROMPT in strategies else 1.0
    return rounds * (jobs * JOB_OF_MANY_S + syncs * round_s) + syncs * machines * machine_s


def _offers_whole_cell(arm: ArmConfig) -> bool:
    """Whether schedulers are offered all machines at a time, mostly for one job."""
    shared = arm.options_of("offers") if "offers" in arm.protocol_kinds else None
    return isinstance(shared, OffersSharedOptions) and shared.granularity == "cell"


def _schedulers(arm: ArmConfig) -> int:
    return sum(group.count for group in arm.groups)


def _syncs_as_fitted(arm: ArmConfig) -> float:
    """How often schedulers synchronise, in parts of how often those of the fitted arms do."""
    return min(1.0, FITTED_GAP_S * arm.partitions / arm.gap_s) if arm.gap_s else 1.0


def _is_set(arm: ArmConfig, option: str) -> bool:
    return any(group.options.get(option) for group in arm.groups)


def check_length(expected_s: float, long: bool) -> None:
    """Raise AgoraError if a command is expected to take more than a day and --long was not given.

    Args:
        expected_s: On this machine.
        long: Whether it was.
    """
    if expected_s > DAY_S and not long:
        raise AgoraError(
            f"this is expected to take about {time_text(expected_s)} on this machine; add --long "
            "to start it anyway"
        )


def on_this_machine_s(processor_s: float, runs: int) -> float:
    """About how many seconds runs and their page take on this machine.

    Args:
        processor_s: Of all runs.
        runs: How many they are.
    """
    beside = max(1, min(processors(), runs))
    return START_S + processor_s / beside * (BUSY if beside > 1 else 1.0) + PAGE_S
