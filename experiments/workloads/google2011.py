"""The Google 2011 cluster trace as a workload: real machines, the tasks running as the window
opens, real arrivals, ends and removals.

Every part of task_events that is there is read. Run time 0 is trace time 600 s, where the trace
begins, or later (`window_start_s`). What the trace does not say, and what is done:
- Tasks running at 0 are the initial placement, with the run time that remains. Their machines may
  hold more than `slots` of them: then those of lowest priority (ties: highest job, index) start
  pending. So do tasks whose machine is empty, unknown or down. All are counted in facts.
- Run times: see trace_tasks. A task whose run time is unknown is a service (Firmament's
  simulator tells services that way, though its paper says by priority): it runs past the end and
  has no input data.
- Machines that appear later are rows that go down at 0. Racks: machines_per_rack machines by
  machine id, whenever they appear (the trace has no topology; the last rack may be smaller).
  Capacities are those first stated; a machine without any has none (resources "requests").
- Requests: parts per million of the largest machine, rounded to nearest, but to 1 ppm at least.
  Empty requests count as 1 ppm. A request of 0 is one of nothing; where a task requests nothing at
  all, it counts as 1 ppm of each. Running tasks hold what their SCHEDULE row states, others ask
  what their first SUBMIT states; later changes are ignored.
- Constraints ("different machines") are ignored and counted.
- Input data and costs: see input_data; one preference set per batch task, or per file (see
  InputFiles). Run times there are the trace's, before --speedup.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from experiments.workloads.building import one_unit_at_least
from experiments.workloads.google2011_tables import (
    TRACE_START_US,
    FileStamp,
    MachineEvent,
    MachineRows,
    TaskEvent,
    Trace,
    file_stamps,
    is_end,
    read_trace,
)
from experiments.workloads.input_data import (
    PREFERRED_INPUT_PERCENT,
    WAITING_COST_PER_S,
    InputFiles,
    InputLocality,
    InputReplicas,
    input_blocks,
    input_catalog,
)
from experiments.workloads.registry import WorkloadSpec
from experiments.workloads.resampling import ResampleOptions, resampled, seeds_of_trace
from parsync.strict_model import Strict
from parsync.workload.checks import larger_than_every_machine
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from shared_state.errors import AgoraError
from shared_state.random import Stream, stream_key
from shared_state.tasks import NO_GANG, CellSpec, Int32, Int64, TaskBatch, TaskClass

KIND = "google2011"
ATTRIBUTION = (
    "Trace: ClusterData 2011 by Google (J. Wilkes, “More Google cluster data”, 2011; C. Reiss, "
    "J. Wilkes, J. L. Hellerstein, “Google cluster-usage traces: format + schema”), licensed "
    "CC-BY 4.0. Times, machines and requests were transformed as stated above."
)
PPM = 1_000_000


class Google2011Options(Strict, ResampleOptions):
    """How to replay the trace."""

    directory: Path = Field(
        strict=False,
        description="folder with machine_events/ and task_events/; job_events/ and "
        "job_events_later.csv.gz, which tell when tasks end that run past the last part, may be "
        "left out",
    )
    window_start_s: float = Field(
        TRACE_START_US / 1e6,
        ge=TRACE_START_US / 1e6,
        le=1e7,
        description="where the run begins, in seconds of the trace; what runs or waits there does "
        "so at time 0",
    )
    speedup: int = Field(50, ge=1, le=1_000_000, description="divides all times and run times")
    resources: str = Field(
        "slots=13",
        pattern=r"^(slots=[1-9][0-9]{0,5}|requests)$",
        description="'slots=N': N slots per machine, one per task; 'requests': CPU and memory as "
        "requested",
    )
    overcommit: float | None = Field(
        None,
        gt=0,
        le=1000,
        description="with resources 'requests': claims fill a machine to this multiple of its "
        "capacity (unset: 2.0)",
    )
    duration_s: float | None = Field(
        None,
        gt=0,
        description="seconds of run time to replay (unset, or longer than the trace: all of it)",
    )
    machines_per_rack: int = Field(
        30, ge=1, description="machines of a rack, by machine id (Firmament's simulator: 30)"
    )
    batch_tasks: int = Field(
        100,
        ge=1,
        description="tasks of the largest batch: tasks of a job that are submitted together arrive "
        "in batches of at most this many",
    )
    batch_window_us: int = Field(
        1_000,
        ge=1,
        le=1_000_000,
        description="tasks of a job that are submitted within a window of this length arrive "
        "together, with the last of them",
    )
    preferred_permille: int = Field(
        1000,
        ge=1,
        le=1000,
        description="run time on a preferred machine, in permille of that elsewhere (1000: the "
        "trace's run times hold anywhere)",
    )
    input_files: InputFiles | None = Field(
        None,
        description="the files that batch tasks read; unset: each task has input data of its own, "
        "whose size follows from its run time",
    )
    preferred_input_percent: int = Field(
        PREFERRED_INPUT_PERCENT,
        ge=1,
        le=100,
        description="batch tasks prefer machines and racks that hold at least so much of their "
        "input data (Firmament, section 7: 10; its Fig. 15 compares 14 and 2)",
    )
    unscheduled_margin: int = Field(
        WAITING_COST_PER_S,
        description="how much more waiting costs than running away from the data, in thousandths "
        "of Quincy's unit",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.overcommit is not None and self.resources != "requests":
            raise ValueError("overcommit: only with resources 'requests'")
        return self

    @property
    def start_us(self) -> int:
        """The start of the window, in trace time."""
        return round(self.window_start_s * 1e6)

    @property
    def window_end_us(self) -> int | None:
        """The end of the window, in trace time; None: the end of the trace."""
        if self.duration_s is None:
            return None
        return self.start_us + max(1, round(self.duration_s * 1e6)) * self.speedup

    @property
    def slots(self) -> int | None:
        """Slots per machine; None with resources 'requests'."""
        return None if self.resources == "requests" else int(self.resources.removeprefix("slots="))


def load(options: Google2011Options, seed: int) -> Workload:
    """Read the trace. The seed decides where input data lie, which file each task reads, and what a
    resample draws, and no more. AgoraError names the file and line of what cannot be read."""
    return resampled(_as_it_is(options, seed), options, seed)


def _as_it_is(options: Google2011Options, seed: int) -> Workload:
    start_us = options.start_us
    stamps = file_stamps(options.directory)
    trace = _read(options.directory, stamps, start_us, options.window_end_us)
    tasks = trace.tasks
    if len(tasks.job) == 0:
        raise AgoraError(
            f"{options.directory}: no task in task_events runs or arrives inside the window"
        )
    last_us = max(trace.last_us, start_us)
    end_us = max(1, (last_us - start_us) // options.speedup + 1)
    if options.duration_s is not None:
        end_us = min(end_us, max(1, round(options.duration_s * 1e6)))
    machines = trace_machines(trace.machines, start_us, start_us + end_us * options.speedup)
    if not machines.up.any():
        raise AgoraError(
            f"{options.directory}: no machine in machine_events is up when the window opens"
        )
    cell = _cell(options, machines)
    timeline = _timeline(options, tasks, machines, end_us)

    rows = np.concatenate([timeline.initial, timeline.arriving])
    n = len(rows)
    known = tasks.run_us[rows] != UNKNOWN
    request, request_facts = _requests(options, tasks, rows)
    preference = np.zeros(n, np.int32)
    if options.input_files is None:
        preference[known] = np.arange(1, int(known.sum()) + 1, dtype=np.int32)
        blocks = input_blocks(tasks.run_us[rows[known]])
    else:
        stream = Stream(stream_key(seed, "google2011/input_files"))
        blocks, read = options.input_files.draw(int(known.sum()), stream)
        preference[known] = 1 + read
    catalog = input_catalog(
        blocks,
        cell.rack,
        options.unscheduled_margin,
        Stream(stream_key(seed, "google2011/input_data")),
        options.preferred_input_percent,
    )
    # Waiting has a price per second of the trace, which takes 1 / speedup seconds here.
    catalog = replace(
        catalog, wait_cost=WAITING_COST_PER_S, wait_quantum_us=max(1, 1_000_000 // options.speedup)
    )
    batch = TaskBatch(
        task=np.arange(n, dtype=np.int64),
        job=tasks.job[rows],
        request=request,
        priority=tasks.priority[rows].astype(np.int32),
        submit_us=np.concatenate([np.zeros(len(timeline.initial), np.int64), timeline.submit_us]),
        preference=preference,
        gang=np.broadcast_to(np.int64(NO_GANG), n),
        task_class=np.where(known, np.int8(TaskClass.BATCH), np.int8(TaskClass.SERVICE)),
    )
    run_us = np.maximum((tasks.run_us[rows] + options.speedup // 2) // options.speedup, 1)
    above_limit = _above_the_limit(cell, timeline.initial_machine, request[: len(timeline.initial)])
    return Workload(
        name=KIND,
        cell=cell,
        catalog=catalog,
        tasks=batch,
        duration_us=np.where(known, run_us, -1),
        preferred_permille=options.preferred_permille,
        arrival_us=timeline.submit_us[timeline.batch_offsets[:-1]],
        arrival_offsets=timeline.batch_offsets,
        arrival_rows=np.arange(len(timeline.initial), n, dtype=np.int64),
        initial=InitialPlacement(
            np.arange(len(timeline.initial), dtype=np.int64), timeline.initial_machine
        ),
        machine_events=_machine_events(options, machines),
        phases=(Phase(0, end_us, 0),),
        end_us=end_us,
        facts={
            **trace.facts,
            "window_start_s": options.window_start_s,
            "speedup": options.speedup,
            "resources": options.resources,
            **machines.facts,
            **tasks.facts,
            **timeline.facts,
            **request_facts,
            **{
                f"machines_above_{name}_limit_at_start": count
                for name, count in above_limit.items()
            },
            "tasks_larger_than_every_machine": int(
                np.count_nonzero(larger_than_every_machine(cell, request))
            ),
            "input_blocks_gb": int(blocks.sum()),
            "waiting_cost_per_s": WAITING_COST_PER_S,
        },
    )


@dataclass(frozen=True, slots=True)
class _TraceRead:
    """What is in the files.

    Args:
        last_us: trace time of the last event of a task.
        facts: which parts were read, for the report.
    """

    tasks: TraceTasks
    machines: MachineRows
    last_us: int
    facts: dict[str, int | float | str]


@lru_cache(maxsize=1)
def _read(
    directory: Path, stamps: tuple[FileStamp, ...], start_us: int, end_us: int | None
) -> _TraceRead:
    """The trace, which every seed of a run in this process shares: reading it takes most of the
    time. It is read again if one of its files has another stamp."""
    trace = read_trace(directory, start_us, end_us)
    return _TraceRead(trace_tasks(trace, start_us), trace.machines, trace.last_us, trace.facts)


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Which tasks run at time 0 and where, and how the others arrive.

    Args:
        initial, initial_machine: rows of the tasks that run at 0, and their machines.
        arriving: rows of the other tasks, in order of arrival.
        submit_us: when they arrive, in run time.
        batch_offsets: CSR offsets of the batches into `arriving`.
        facts: counts for the report.
    """

    initial: Int64
    initial_machine: Int32
    arriving: Int64
    submit_us: Int64
    batch_offsets: Int64
    facts: dict[str, int | float | str]


def _timeline(
    options: Google2011Options, tasks: TraceTasks, machines: TraceMachines, end_us: int
) -> _Timeline:
    before = tasks.submit_us < options.start_us
    at = np.minimum(np.searchsorted(machines.id, tasks.machine), len(machines.id) - 1)
    in_cell = (machines.id[at] == tasks.machine) & machines.up[at]
    no_machine = tasks.running & (tasks.machine == UNKNOWN)
    elsewhere = tasks.running & ~no_machine & ~in_cell
    placed = np.flatnonzero(tasks.running & in_cell)
    placed = placed[np.lexsort((placed, -tasks.priority[placed], at[placed]))]
    beyond = np.zeros(len(placed), np.bool_)
    if options.slots is not None:
        beyond = _rank_in_run(at[placed]) >= options.slots
    initial = np.sort(placed[~beyond])

    waits = before.copy()
    waits[initial] = False
    submit_us = np.where(before, 0, (tasks.submit_us - options.start_us) // options.speedup)
    arrives = np.flatnonzero(waits | (~before & (submit_us < end_us)))
    # One batch per job and time window, at the time of its last task. Tasks that wait at 0 come
    # first, in batches of their own.
    window = np.where(waits[arrives], -1, submit_us[arrives] // options.batch_window_us)
    by_group = np.lexsort((arrives, window, tasks.job[arrives]))
    arrives, window = arrives[by_group], window[by_group]
    group = np.cumsum(_run_starts(tasks.job[arrives], window)) - 1
    latest = np.zeros(int(group[-1]) + 1 if len(group) else 0, np.int64)
    np.maximum.at(latest, group, submit_us[arrives])
    by_time = np.argsort(latest[group], kind="stable")
    arrives, group = arrives[by_time], group[by_time]
    batch_starts = _rank_in_run(group) % options.batch_tasks == 0
    return _Timeline(
        initial=initial,
        initial_machine=at[initial].astype(np.int32),
        arriving=arrives,
        submit_us=latest[group],
        batch_offsets=np.append(np.flatnonzero(batch_starts), len(arrives)).astype(np.int64),
        facts={
            "tasks_running_in_trace_at_start": int(tasks.running.sum()),
            "tasks_pending_without_machine_at_start": int(no_machine.sum()),
            "tasks_pending_machine_not_in_cell_at_start": int(elsewhere.sum()),
            "tasks_pending_beyond_slots_at_start": int(beyond.sum()),
            "tasks_pending_at_start": int(waits.sum()),
            "tasks_arriving_later": len(arrives) - int(waits.sum()),
            "tasks_after_the_end_dropped": int(np.count_nonzero(~before & (submit_us >= end_us))),
        },
    )


def _run_starts(*columns: Int64) -> NDArray[np.bool_]:
    """Find where runs of rows that are equal in all columns begin: bool[n]."""
    starts = np.zeros(len(columns[0]), np.bool_)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def _rank_in_run(key: Int64) -> Int64:
    """The position of each row in its run of equal keys: int64[n]."""
    rows = np.arange(len(key), dtype=np.int64)
    rank: Int64 = rows - np.maximum.accumulate(np.where(_run_starts(key), rows, 0))
    return rank


def _cell(options: Google2011Options, machines: TraceMachines) -> CellSpec:
    count = len(machines.id)
    if options.slots is not None:
        dimensions: tuple[str, ...] = ("slots",)
        capacity = np.full((count, 1), options.slots, np.int64)
        permille = np.array([1000], np.int64)
    else:
        dimensions = ("cpu_ppm", "mem_ppm")
        capacity = np.stack([_ppm(machines.cpu), _ppm(machines.mem)], axis=1)
        factor = 2.0 if options.overcommit is None else options.overcommit
        permille = np.full(2, max(1, round(factor * 1000)), np.int64)
    rack = (np.arange(count, dtype=np.int64) // options.machines_per_rack).astype(np.int32)
    return CellSpec(dimensions, capacity, rack, np.zeros(count, np.int64), permille)


def _ppm(fraction: NDArray[np.float64]) -> Int64:
    return np.rint(fraction * PPM).astype(np.int64)


def _requests(
    options: Google2011Options, tasks: TraceTasks, rows: Int64
) -> tuple[Int64, dict[str, int | float | str]]:
    if options.slots is not None:
        return np.broadcast_to(np.int64(1), (len(rows), 1)), {}
    stated = np.stack([tasks.cpu[rows], tasks.mem[rows]], axis=1)
    # What is missing, or rounded to nothing, counts as one unit. A 0 is a request of nothing.
    request = np.where(stated == 0, 0, np.maximum(_ppm(np.nan_to_num(stated)), 1))
    request, nothing = one_unit_at_least(request)
    return request, {
        "tasks_without_request": int(np.isnan(stated).any(axis=1).sum()),
        "tasks_with_a_zero_request": int((stated == 0).any(axis=1).sum()),
        **nothing,
    }


def _machine_events(options: Google2011Options, machines: TraceMachines) -> MachineEvents:
    """The changes of the trace, and machines that appear later going down at 0. Two changes of a
    machine at one microsecond, after the division by speedup, are moved a microsecond apart."""
    absent = np.flatnonzero(~machines.up)
    at_us = (machines.changed_us - options.start_us) // options.speedup
    latest: dict[int, int] = dict.fromkeys(absent.tolist(), 0)
    for k, row in enumerate(machines.changed_row.tolist()):
        at_us[k] = latest[row] = max(int(at_us[k]), latest.get(row, -1) + 1)
    row = np.concatenate([absent, machines.changed_row])
    time = np.concatenate([np.zeros(len(absent), np.int64), at_us])
    up = np.concatenate([np.zeros(len(absent), np.bool_), machines.changed_up])
    order = np.argsort(time, kind="stable")
    return MachineEvents(time[order], row[order].astype(np.int32), up[order])


def _above_the_limit(cell: CellSpec, machine: Int32, request: Int64) -> dict[str, int]:
    """Count the machines loaded beyond their limit when the window opens, by dimension. They accept
    no claim that requests some of it until enough of their tasks have ended."""
    above = {}
    for dimension, name in enumerate(cell.dimensions):
        used = np.zeros(cell.machines, np.int64)
        np.add.at(used, machine, request[:, dimension])
        above[name] = int(np.count_nonzero(used > cell.limit[:, dimension]))
    return above


def _values(workload: Workload) -> list[InputLocality]:
    """How much of the tasks' input lies on their machines and in their racks."""
    places = InputReplicas(workload.catalog, workload.cell.rack)
    return [InputLocality(places, workload.tasks.preference, in_rack) for in_rack in (False, True)]


@dataclass(frozen=True, slots=True)
class TraceMachines:
    """The machines that are up at some time in the window, ascending by id.

    Args:
        id: int64[M], as in the trace.
        up: bool[M], when the window opens.
        cpu, mem: float64[M], fractions of the largest machine, as first stated; 0 if never.
        changed_us, changed_row, changed_up: changes inside the window in order, in trace time.
        facts: what was ignored, for the report.
    """

    id: Int64
    up: NDArray[np.bool_]
    cpu: NDArray[np.float64]
    mem: NDArray[np.float64]
    changed_us: Int64
    changed_row: Int64
    changed_up: NDArray[np.bool_]
    facts: dict[str, int | float | str]


def trace_machines(rows: MachineRows, start_us: int, end_us: int) -> TraceMachines:
    """Reduce the machine events before the end of the window [start_us, end_us), in trace time, to
    machines: which there are, which are up when the window opens, and when they are added and
    removed.

    An ADD of a machine that is up and a REMOVE of one that is down change nothing. UPDATE rows are
    ignored, as in Firmament's simulator, except that they may state a capacity that ADD left empty.
    """
    ids, of = np.unique(rows.machine, return_inverse=True)
    cpu, mem = _first_stated(of, rows.cpu, len(ids)), _first_stated(of, rows.mem, len(ids))

    inside = np.flatnonzero((rows.time_us < end_us) & (rows.event != MachineEvent.UPDATE))
    by_machine = inside[np.argsort(of[inside], kind="stable")]
    adds = rows.event[by_machine] == MachineEvent.ADD
    was_up = np.zeros(len(by_machine), np.bool_)
    was_up[1:] = adds[:-1] & (of[by_machine[1:]] == of[by_machine[:-1]])
    effective = np.sort(by_machine[adds != was_up])  # file order is time order
    becomes_up = rows.event[effective] == MachineEvent.ADD

    before = rows.time_us[effective] < start_us
    up = np.zeros(len(ids), np.bool_)
    up[of[effective[before]]] = becomes_up[before]  # the last of a machine's changes stands
    changes = effective[~before]
    used = up.copy()
    used[of[changes]] = True
    row = np.cumsum(used) - 1
    facts: dict[str, int | float | str] = {
        "machine_updates_ignored": int(
            np.count_nonzero((rows.time_us < end_us) & (rows.event == MachineEvent.UPDATE))
        ),
        "machine_events_without_effect": len(inside) - len(effective),
        "machines_up_at_start": int(up.sum()),
        "machines_added_later": int(np.count_nonzero(used & ~up)),
        "machine_additions": int(np.count_nonzero(becomes_up[~before])),
        "machine_removals": int(np.count_nonzero(~becomes_up[~before])),
        "machines_without_capacity": int(np.count_nonzero(used & (np.isnan(cpu) | np.isnan(mem)))),
    }
    return TraceMachines(
        id=ids[used],
        up=up[used],
        cpu=np.nan_to_num(cpu[used]),
        mem=np.nan_to_num(mem[used]),
        changed_us=rows.time_us[changes],
        changed_row=row[of[changes]],
        changed_up=becomes_up[~before],
        facts=facts,
    )


def _first_stated(of: Int64, values: NDArray[np.float64], machines: int) -> NDArray[np.float64]:
    stated = np.flatnonzero(~np.isnan(values))[::-1]
    first = np.full(machines, np.nan)
    first[of[stated]] = values[stated]  # the last assignment, that of the earliest row, stands
    return first


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
    """Reduce the trace's task events to tasks of the window that opens at start_us, in trace time:
    when each was first submitted, where it ran when the window opened, and how long it runs.

    The rules are those of the trace replay in Firmament's simulator: only the first SUBMIT of a
    task counts; its run time is the sum of all its attempts; later EVICT, FAIL and KILL,
    resubmissions and UPDATE rows are otherwise ignored. A task that was over before the window and
    comes back counts from there on. An attempt that has not ended by the end of the last part ends
    with its job, which is an upper bound, or runs past the end if the trace does not have the end
    of the job.
    """
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


def _seeds_vary(options: Google2011Options) -> str:
    drawn = "where input data lie"
    if options.input_files is not None:
        drawn += " and which file each task reads"
    if options.resample is not None:
        return f"{seeds_of_trace(options)} Each seed also draws {drawn}."
    return (
        f"A seed draws only {drawn}. Arrivals, run times and machines are those of the trace under "
        "every seed, so intervals say nothing about other hours or weeks."
    )


SPEC = WorkloadSpec(
    KIND,
    Google2011Options,
    load,
    attribution=ATTRIBUTION,
    values=_values,
    with_duration=lambda options, duration_s: {"duration_s": duration_s},
    seeds_vary=_seeds_vary,
)
