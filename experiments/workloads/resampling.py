"""Resamples of a trace: a seeded bootstrap of its jobs, or of blocks of time.

A trace is one draw of what might have arrived. A resample draws again, with replacement, from what
did arrive, so that seeds have different workloads:

- "jobs": times of arrival stay; the job that arrives at each of them is drawn from all jobs. Jobs
  that arrive together are drawn independently.
- "blocks": the window is cut into blocks of equal length; each is replaced by a block that is drawn
  from all of them, with the jobs that begin in it. What happens within a block stays.

Machine events stay, and so do tasks that run or wait as a trace begins, with all of their jobs. A
job is drawn whole, with its gangs and the pauses between its batches; batches that would arrive
after the end are left out. Copies of a job are jobs of their own with the same preferred machines
and costs. Everything that runs under one seed shares its resample.

A resample says nothing about hours or weeks outside this window of the trace. (Efron, Annals of
Statistics 1979, for independent units; Carlstein, Annals of Statistics 1986, for blocks.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

import numpy as np
from pydantic import BaseModel, Field, model_validator

from experiments.workloads.inspection import offered_permille
from parsync.workload.checks import larger_than_every_machine
from parsync.workload.workload import QuotaMembership, Workload
from shared_state.errors import AgoraError
from shared_state.random import Stream, stream_key
from shared_state.tasks import NO_GANG, Int64

LEAST_UNITS = 10  # that a resample draws from
RESAMPLE = "resample"  # the fact of a resampled workload that says what was drawn
OFFERED_BY_TRACE = "offered_percent_of_trace"  # the fact that says which load the trace offers


class ResampleOptions(BaseModel):
    """Options for readers of traces to inherit. Their `load` calls resampled."""

    resample: Literal["jobs", "blocks"] | None = Field(
        None,
        description="what each seed resamples from the trace, with replacement: its jobs, or "
        "blocks of time; unset: every seed has the trace as it is",
    )
    block_s: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="with resample 'blocks': approximate length of a block, in seconds of the run; "
        "the window is cut into equal blocks, at least 10",
    )

    @model_validator(mode="after")
    def _block_length(self) -> Self:
        if self.block_s is not None and self.resample != "blocks":
            raise ValueError("block_s: only with resample 'blocks'")
        if self.block_s is None and self.resample == "blocks":
            raise ValueError("block_s: expected with resample 'blocks', in seconds")
        return self


def seeds_of_trace(options: ResampleOptions) -> str:
    """What a seed changes of a trace for which it draws nothing but a resample: the seeds_vary of a
    WorkloadSpec."""
    if options.resample is None:
        return (
            "The trace is the same under every seed. A seed varies only the random choices of "
            "schedulers, syncs and messages, so intervals say nothing about other hours or weeks."
        )
    drawn = (
        "the jobs that arrive"
        if options.resample == "jobs"
        else f"blocks of about {options.block_s:g} s of the arrivals"
    )
    return (
        f"Each seed resamples {drawn}, with replacement, from this window of the trace. "
        "Intervals are about this window only, not about other hours or weeks."
    )


def resampled(workload: Workload, options: ResampleOptions, seed: int) -> Workload:
    """The workload with other arrivals, as the options say; the same one if they say nothing.

    Raises:
        AgoraError: There are fewer than ten jobs or blocks to draw from, or MapReduce jobs, whose
            tables a resample does not keep.
    """
    if options.resample is None:
        return workload
    if workload.mapreduce is not None:
        raise AgoraError(f"resample: {workload.name} has MapReduce jobs, which cannot be resampled")
    tasks, rows, offsets = workload.tasks, workload.arrival_rows, workload.arrival_offsets
    batch_job = tasks.job[rows[offsets[:-1]]]
    starting = tasks.job[workload.initial.task]
    if len(starting):
        starting = np.concatenate([starting, batch_job[workload.arrival_us == 0]])
    stays = np.isin(batch_job, starting)
    drawn_from = np.flatnonzero(~stays)
    # Jobs by their first batch, in order of arrival.
    first, job_of = np.unique(batch_job[drawn_from], return_index=True, return_inverse=True)[1:]
    by_arrival = np.argsort(first, kind="stable")
    place = np.empty(len(first), np.int64)
    place[by_arrival] = np.arange(len(first))
    job_of = place[job_of]
    begin_us = workload.arrival_us[drawn_from[first[by_arrival]]]
    stream = Stream(stream_key(seed, "resample"))
    if options.resample == "jobs":
        _check_enough(len(begin_us), "jobs that arrive after the start")
        source = stream.integers(len(begin_us), len(begin_us))
        shift_us = begin_us - begin_us[source]
        units: dict[str, int | float | str] = {"resample_jobs": len(begin_us)}
    else:
        assert options.block_s is not None
        blocks = max(1, round(workload.end_us / (options.block_s * 1e6)))
        _check_enough(blocks, f"blocks of {options.block_s:g} s")
        edge_us = np.arange(blocks, dtype=np.int64) * workload.end_us // blocks
        source, shift_us = _draw_blocks(begin_us, edge_us, stream)
        units = {"resample_blocks": blocks, "resample_block_s": workload.end_us / blocks / 1e6}

    by_job = np.argsort(job_of, kind="stable")
    picked, copy = _ranges(np.bincount(job_of, minlength=len(begin_us)), source)
    batch = np.concatenate([np.flatnonzero(stays), drawn_from[by_job[picked]]])
    copy = np.concatenate([np.full(len(batch) - len(copy), -1, np.int64), copy])
    shift = np.where(copy < 0, 0, np.append(shift_us, 0)[copy])
    arrival_us = workload.arrival_us[batch] + shift
    inside = arrival_us < workload.end_us
    late = int(np.diff(offsets)[batch[~inside]].sum())
    batch, copy, shift, arrival_us = (column[inside] for column in (batch, copy, shift, arrival_us))
    order = np.argsort(arrival_us, kind="stable")
    batch, copy, shift, arrival_us = (column[order] for column in (batch, copy, shift, arrival_us))
    if not len(batch):
        raise AgoraError(f"resample: no task of {workload.name} arrives")

    at, of_batch = _ranges(np.diff(offsets), batch)
    initial = len(workload.initial.task)
    old = np.concatenate([workload.initial.task, rows[at]])
    copy_of = np.concatenate([np.full(initial, -1, np.int64), copy[of_batch]])
    moved = np.concatenate([np.zeros(initial, np.int64), shift[of_batch]])
    n = len(old)
    made = replace(
        tasks.take(old),
        task=np.arange(n, dtype=np.int64),
        job=_renewed(copy_of, tasks.job[old]),
        submit_us=tasks.submit_us[old] + moved,
        gang=_renewed_gangs(copy_of, tasks.gang[old]),
    )
    quotas = workload.quotas
    result = replace(
        workload,
        tasks=made,
        duration_us=workload.duration_us[old],
        arrival_us=arrival_us,
        arrival_offsets=np.append(0, np.cumsum(np.diff(offsets)[batch])).astype(np.int64),
        arrival_rows=np.arange(initial, n, dtype=np.int64),
        initial=replace(workload.initial, task=np.arange(initial, dtype=np.int64)),
        quotas=None if quotas is None else QuotaMembership(quotas.names, quotas.group[old]),
    )
    return replace(
        result,
        facts={
            **workload.facts,
            RESAMPLE: options.resample,
            **units,
            "resample_tasks_after_the_end_dropped": late,
            OFFERED_BY_TRACE: offered_permille(workload) / 10,
            "offered_percent_of_resample": offered_permille(result) / 10,
            "tasks_larger_than_every_machine": int(
                np.count_nonzero(larger_than_every_machine(workload.cell, made.request))
            ),
        },
    )


def _check_enough(units: int, what: str) -> None:
    if units < LEAST_UNITS:
        raise AgoraError(f"resample: expected at least {LEAST_UNITS} {what}, got {units}")


def _draw_blocks(begin_us: Int64, edge_us: Int64, stream: Stream) -> tuple[Int64, Int64]:
    """The jobs of the blocks that are drawn, int64[k], and how far each moves.

    Args:
        begin_us: int64[j], ascending; of the jobs.
        edge_us: int64[b], where the blocks begin, ascending from 0.
    """
    drawn = stream.integers(len(edge_us), len(edge_us))
    block = np.searchsorted(edge_us, begin_us, side="right") - 1
    source, at = _ranges(np.bincount(block, minlength=len(edge_us)), drawn)
    return source, (edge_us - edge_us[drawn])[at]


def _ranges(lengths: Int64, chosen: Int64) -> tuple[Int64, Int64]:
    """The members of the chosen ranges, one range after the other, and the place in `chosen` that
    each belongs to: int64[n] twice.

    Args:
        lengths: Of consecutive ranges from 0 on.
        chosen: Positions in `lengths`, which may repeat.
    """
    starts = np.cumsum(lengths) - lengths
    count = lengths[chosen]
    place = np.repeat(np.arange(len(chosen), dtype=np.int64), count)
    begin = np.cumsum(count) - count
    return starts[chosen][place] + np.arange(len(place)) - begin[place], place


def _renewed(copy: Int64, number: Int64) -> Int64:
    """Dense numbers: equal where both copy and number are, int64[n]."""
    if not len(number):
        return number
    order = np.lexsort((number, copy))
    starts = np.ones(len(order), np.bool_)
    starts[1:] = np.diff(copy[order]).astype(np.bool_) | np.diff(number[order]).astype(np.bool_)
    renewed = np.empty(len(order), np.int64)
    renewed[order] = np.cumsum(starts) - 1
    return renewed


def _renewed_gangs(copy: Int64, gang: Int64) -> Int64:
    renewed = np.full(len(gang), NO_GANG, np.int64)
    member = gang != NO_GANG
    renewed[member] = _renewed(copy[member], gang[member])
    return renewed
