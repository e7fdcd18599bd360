"""The warm-up of an arm: what it runs in virtual time before time 0, so that its run begins in a
cell that its own schedulers have filled.

The state that is handed over is that of the cell: what runs, where, how long it still takes, and
what waits. Schedulers begin anew, as on any cell that they find running. A live run begins from the
same state as one in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.config.run_config import RunConfig
from parsync.metrics.record import Record
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig, SeededArm
from parsync.workload.workload import WAITS, StartState, Workload, starting_from
from schedulers.interface import ChangeKind, ContractBroken
from schedulers.objective import placement_cost
from shared_state.tasks import Int64

_STOPS = 100  # at which a stop signal is heard


class BrokenInWarmUp(ContractBroken):
    """A contract was broken in an arm's warm-up.

    Args:
        error: As it was raised.
    """

    def __init__(self, error: ContractBroken) -> None:
        super().__init__(error.scheduler, error.kind, error.round, error.rule)
        self.args = (error,)  # what it is unpickled from
        self.error = error

    def __str__(self) -> str:
        return f"in the warm-up before time 0: {self.error}"


def warmed_up(
    config: RunConfig,
    arm: ArmConfig,
    workload: Workload,
    seed: int,
    on_progress: Callable[[int], None],
) -> Workload:
    """The workload of an arm, with what its warm-up left at time 0; `workload` itself if its kind
    has no warm-up.

    Args:
        config: The run's.
        arm: The arm.
        workload: The run's, of this seed.
        seed: Of the workload and the arm.
        on_progress: Called with the virtual time once in a while; what it raises ends the warm-up.

    Raises:
        BrokenInWarmUp: A scheduler, or a user's protocol, breaks its contract.
        AgoraError: The warm-up cannot be made or run.
    """
    before = config.workload.make_warm_up(seed)
    if before is None:
        return workload
    stops = next(count for count in range(_STOPS, 0, -1) if before.end_us % count == 0)
    spec = arm.seeded(seed, config.heartbeat_us, before.end_us // stops, live=False)
    message_us, plan_limit_s = config.virtual.message_us, config.plan_limit_s
    try:
        state = state_after(spec, before, on_progress, message_us, plan_limit_s)
    except ContractBroken as error:
        raise BrokenInWarmUp(error) from error
    return starting_from(workload, state)


def state_after(
    arm: SeededArm,
    workload: Workload,
    on_progress: Callable[[int], None],
    message_us: int,
    plan_limit_s: float,
) -> StartState:
    """Run an arm in virtual time up to the end of a workload; what runs or waits then.

    The arguments are those of run_virtual. The end must be a multiple of arm.sample_us.
    """
    cell = _CellRecords(workload)
    run_virtual(
        arm,
        workload,
        0,
        cell.take,
        on_progress,
        message_us,
        plan_limit_s=plan_limit_s,
    )
    return cell.state()


class _CellRecords:
    """What the records of a run tell of the tasks that are not over at its end."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        n = len(workload.tasks)
        self._over = np.zeros(n, np.bool_)
        self._machine = np.full(n, WAITS, np.int32)
        self._machine[workload.initial.task] = workload.initial.machine
        self._since_us = np.zeros(n, np.int64)  # of the last commit
        self._lost_us = np.full(n, -1, np.int64)  # the last time its machine was lost
        self._due_us = np.full(n, -1, np.int64)

    def take(self, record: Record) -> None:
        """Take a record of the run."""
        columns = record.columns
        if record.table == "tasks":
            self._committed(columns["task"], columns["machine"], columns["commit_us"])
        elif record.table == "ends":
            task, end_us, due = columns["task"], columns["end_us"], columns["due"] != 0
            finished = (columns["change"] == int(ChangeKind.FINISHED)) & ~due
            lost = ~finished & ~due
            self._over[task[finished]] = True
            np.maximum.at(self._lost_us, task[lost], end_us[lost])
            self._machine[task[due]] = columns["machine"][due]
            self._due_us[task[due]] = end_us[due]
        elif record.table == "unplaceable":
            self._over[columns["task"]] = True

    def _committed(self, task: Int64, machine: Int64, commit_us: Int64) -> None:
        later = commit_us >= self._since_us[task]
        self._since_us[task[later]] = commit_us[later]
        endless = later & (self._workload.duration_us[task] < 0)
        self._machine[task[endless]] = machine[endless]

    def state(self) -> StartState:
        """The tasks that are not over."""
        workload = self._workload
        endless = workload.duration_us < 0
        runs = np.where(endless, self._lost_us <= self._since_us, self._due_us >= 0)
        runs &= ~self._over & (self._machine != WAITS)
        rows = np.flatnonzero(~self._over)
        machine = np.where(runs, self._machine, np.int32(WAITS))[rows]
        duration_us = np.where(runs & ~endless, self._remaining_us(), workload.duration_us)[rows]
        quotas = workload.quotas
        group = None if quotas is None else quotas.group[rows]
        return StartState(workload.tasks.take(rows), machine, duration_us, group)

    def _remaining_us(self) -> Int64:
        """int64[n] of tasks that run: what remains, counted as away from preferred machines."""
        workload = self._workload
        on = np.maximum(self._machine, 0)
        preference = np.ascontiguousarray(workload.tasks.preference)
        _, preferred = placement_cost(workload.catalog, workload.cell.rack, preference, on)
        left_us = np.maximum(self._due_us - workload.end_us, 1)
        # rounded up, so that the worker pool, which rounds down, comes to left_us
        whole_us = -(-left_us * 1000 // workload.preferred_permille)
        remaining: Int64 = np.where(preferred, whole_us, left_us)
        return remaining
