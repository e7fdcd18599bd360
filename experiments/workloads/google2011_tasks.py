"""Tasks from task events: when each was first submitted, where it ran when the window opened, and
how long it runs.

The rules are those of the trace replay in Firmament's simulator: only the first SUBMIT of a task
counts; its run time is the sum of all its attempts; later EVICT, FAIL and KILL, resubmissions and
UPDATE rows are otherwise ignored. A task that was over before the window and comes back counts from
there on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.workloads.google2011_tables import TaskEvent, Trace, is_end
from shared_state.tasks import Int64

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class TraceTasks:
    """The tasks of the trace, one row each, ascending by (job, index).

    Args:
        submit_us: the first SUBMIT, in trace time. Before the window's start the task waits or runs
            when the window opens.
        running: whether it runs when the window opens.
        machine: where it runs then, by the trace's machine id; UNKNOWN if the trace does not say.
        run_us: the sum of its attempts after the window opens. UNKNOWN if it never runs, or runs
            past the last part in a job whose end is not in the trace.
        cpu, mem: the request, NaN if empty. For a running task it is that of its last SCHEDULE (in
            the trace 36,000 tasks were submitted with another one, or none), else that of the first
            SUBMIT.
        facts: what was ignored or estimated, for the report.
    """

    job: Int64
    index: Int64
    priority: Int64
    submit_us: Int64
    running: NDArray[np.bool_]
    machine: Int64
    run_us: Int64
    cpu: NDArray[np.float64]
    mem: NDArray[np.float64]
    facts: dict[str, int | float | str]


def trace_tasks(trace: Trace, start_us: int) -> TraceTasks:
    """Reduce the trace's task events to tasks of the window that opens at start_us, in trace time.
    An attempt that has not ended by the end of the last part ends with its job, which is an upper
    bound, or runs past the end if the trace does not have the end of the job."""
    rows = trace.tasks
    # Columns by task, in time order within a task.
    order = np.lexsort((np.arange(len(rows.job)), rows.index, rows.job))
    job, index, event, time_us = (
        rows.job[order],
        rows.index[order],
        rows.event[order],
        rows.time_us[order],
    )
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (job[1:] != job[:-1]) | (index[1:] != index[:-1])
    task = np.cumsum(begins) - 1
    tasks = int(task[-1]) + 1 if len(task) else 0

    submission = (event == TaskEvent.SUBMIT) | (
        event == TaskEvent.SCHEDULE
    )  # a SCHEDULE stands in for a missing SUBMIT
    first = _first_row_of(task, submission, tasks)
    first_submit = _first_row_of(task, event == TaskEvent.SUBMIT, tasks)
    resubmitted = int(np.count_nonzero(event == TaskEvent.SUBMIT)) - int(
        np.count_nonzero(first_submit >= 0)
    )

    attempts = _state_changes(task, event)
    starts = event[attempts] == TaskEvent.SCHEDULE
    begun, ended = attempts[starts], attempts[~starts]
    # Each attempt's end is the next kept row; an attempt without one is its task's last.
    closed = np.zeros(len(attempts), np.bool_)
    closed[:-1] = starts[:-1] & ~starts[1:]
    clipped = np.maximum(time_us, start_us)
    run_us = np.zeros(tasks, np.int64)
    np.add.at(run_us, task[ended], clipped[ended])
    np.subtract.at(run_us, task[attempts[closed]], clipped[attempts[closed]])
    open_row = attempts[starts & ~closed]
    open_task = task[open_row]
    job_end = _job_end(trace, job[open_row])
    bounded = job_end > clipped[open_row]
    run_us[open_task] += np.where(bounded, job_end - clipped[open_row], 0)
    unknown = np.zeros(tasks, np.bool_)
    unknown[open_task[~bounded]] = True
    unknown[np.bincount(task[begun], minlength=tasks) == 0] = True
    never_ran = int(np.count_nonzero(np.bincount(task[begun], minlength=tasks) == 0))
    run_us[unknown] = UNKNOWN

    running, at_open = _running_as_window_opens(task, event, time_us < start_us, attempts, tasks)
    machine = np.full(tasks, UNKNOWN, np.int64)
    machine[running] = rows.machine[order[at_open[running]]]
    keep = np.flatnonzero(first >= 0)
    chosen = order[first[keep]]
    in_force = order[np.where(running, at_open, first)[keep]]
    facts: dict[str, int | float | str] = {
        "trace_rows_after_the_end_dropped": trace.dropped_rows,
        "tasks_without_submit": int(np.count_nonzero((first >= 0) & (first_submit < 0))),
        "tasks_never_submitted_dropped": int(np.count_nonzero(first < 0)),
        "tasks_over_before_the_window_dropped": trace.over_before,
        "resubmissions_ignored": resubmitted,
        "task_updates_ignored": int(np.count_nonzero(event >= TaskEvent.UPDATE_PENDING)),
        "runs_ended": int(closed.sum()),
        "runs_open_at_end": len(open_row),
        "runs_open_ended_with_their_job": int(np.count_nonzero(bounded)),
        "tasks_never_run": never_ran,
        "tasks_on_different_machines_ignored": int(
            np.count_nonzero(rows.different_machines[chosen] == 1)
        ),
    }
    return TraceTasks(
        job=rows.job[chosen],
        index=rows.index[chosen],
        priority=rows.priority[chosen],
        submit_us=rows.time_us[chosen],
        running=running[keep],
        machine=machine[keep],
        run_us=run_us[keep],
        cpu=rows.cpu[in_force],
        mem=rows.mem[in_force],
        facts=facts,
    )


def _first_row_of(task: Int64, wanted: NDArray[np.bool_], tasks: int) -> Int64:
    """The first row of each task among `wanted`: int64[tasks], -1 if there is none."""
    first = np.full(tasks, -1, np.int64)
    rows = np.flatnonzero(wanted)[::-1]
    first[task[rows]] = rows  # the last assignment, that of the earliest row, stands
    return first


def _state_changes(task: Int64, event: Int64) -> Int64:
    """The rows of SCHEDULE and end events that change whether a task runs: the first of repeated
    SCHEDULEs, the first of repeated ends, and no end before a SCHEDULE, which is that of a task
    killed while it waits."""
    rows = np.flatnonzero((event == TaskEvent.SCHEDULE) | is_end(event))
    schedules = event[rows] == TaskEvent.SCHEDULE
    same_task = np.zeros(len(rows), np.bool_)
    same_task[1:] = task[rows[1:]] == task[rows[:-1]]
    before = np.zeros(len(rows), np.bool_)  # did the previous row leave the task running?
    before[1:] = same_task[1:] & schedules[:-1]
    changed: Int64 = rows[schedules != before]
    return changed


def _running_as_window_opens(
    task: Int64, event: Int64, before_start: NDArray[np.bool_], attempts: Int64, tasks: int
) -> tuple[NDArray[np.bool_], Int64]:
    """The tasks that run when the window opens, bool[tasks], and the row of the last change before
    the window, int64[tasks], -1 if there is none."""
    last = np.full(tasks, -1, np.int64)
    before = attempts[before_start[attempts]]
    last[task[before]] = before
    running = np.zeros(tasks, np.bool_)
    known = last >= 0
    running[known] = event[last[known]] == TaskEvent.SCHEDULE
    return running, last


def _job_end(trace: Trace, job: Int64) -> Int64:
    """The end of each job: int64[n], -1 where the trace does not say."""
    if len(trace.ended_job) == 0:
        return np.full(len(job), -1, np.int64)
    at = np.minimum(np.searchsorted(trace.ended_job, job), len(trace.ended_job) - 1)
    return np.where(trace.ended_job[at] == job, trace.job_end_us[at], -1)
