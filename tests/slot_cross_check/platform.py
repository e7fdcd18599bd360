"""The cell, the arrivals and the schedulers of a slot simulation, on the platform in virtual time.

Scores and arrivals are those of the slot simulator with the same seed. Slots are drawn from other
random streams, so the two runs of a seed are alike, but not equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.core.arrivals import Route, route_jobs
from parsync.model.slot_settings import SlotSettings, SlotWeighting
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import GroupConfig, ProtocolChoice, SeededArm
from parsync.spec.decision_times import ModelledTime
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from schedulers.interface import PartitionQuality
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver
from shared_state.random import Stream, exp, stream_key
from shared_state.tasks import NO_GANG, CellSpec, Int64, PreferenceCatalog, TaskBatch, TaskClass
from shared_state.transaction import CommitResult, Transaction

_MEAN_SCORE = 10.0
_HEAVIEST = (1 << 31) - 1  # as in native/slot_table.cpp
_SAMPLE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class PlatformClaims:
    """Every claim of a run, in the order of the commits.

    Attributes:
        at_us: When it was decided, int64[n].
        submitted_us: When its task arrived, int64[n].
        score: Of its slot, float64[n].
        accepted: bool[n].
    """

    at_us: Int64
    submitted_us: Int64
    score: NDArray[np.float64]
    accepted: NDArray[np.bool_]


class _Claims(CellObserver):
    """Keeps what was claimed."""

    def __init__(self) -> None:
        self.columns: list[list[NDArray[Any]]] = []

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        at_us = np.full(len(transaction), now_us, np.int64)
        columns = (at_us, transaction.task, transaction.machine, result.accepted)
        self.columns.append([np.array(column) for column in columns])


def claims_on_platform(settings: SlotSettings, heartbeat_us: int = 1) -> PlatformClaims:
    """Run the platform with these settings, which have one group and one phase, weights exp(score)
    and no service time.

    Args:
        heartbeat_us: How often the worker pool reports ended tasks.
    """
    assert settings.weighting is SlotWeighting.EXP_SCORE
    assert settings.service_s == settings.scan_cost == 0
    score = scores(settings)
    workload = _workload(settings, score)
    claims = _Claims()
    run_virtual(
        _arm(settings, heartbeat_us),
        workload,
        round(1e6 * settings.submission_s),
        lambda _: None,
        lambda _: None,
        round(1e6 * settings.latency_s),
        claims,
    )
    at_us, task, machine, accepted = map(np.concatenate, zip(*claims.columns, strict=True))
    return PlatformClaims(at_us, workload.tasks.submit_us[task], score[machine], accepted)


def scores(settings: SlotSettings) -> NDArray[np.float64]:
    """The scores of the cell's slots: in each partition those of the slot simulator."""
    stream = Stream(stream_key(settings.seed, "slot_simulator/scores"))
    drawn = stream.normal(settings.slots + settings.extra_slots)
    return _MEAN_SCORE + np.sqrt(settings.score_variance) * drawn


def arrivals(settings: SlotSettings) -> tuple[Int64, Int64]:
    """The batches of all schedulers in the order of their arrival (native/arrivals.hpp): when they
    arrive in microseconds, and at which scheduler, int64[b]."""
    (group,), (phase,) = settings.groups, settings.phases
    offset = [
        Stream(stream_key(settings.seed, "slot_simulator/arrivals", number)).uniform(1)[0]
        for number in range(group.schedulers)
    ]
    interval_s = group.batch_tasks * group.schedulers / phase.rate_per_s[0]
    rounds = np.arange(int(phase.duration_s / interval_s) + 1)
    at_s = (rounds[:, None] + offset).ravel() * interval_s
    order = np.argsort(at_s, kind="stable")
    order = order[at_s[order] < phase.duration_s]
    return (at_s[order] * 1e6).astype(np.int64), order % group.schedulers


def _workload(settings: SlotSettings, score: NDArray[np.float64]) -> Workload:
    """A job for each scheduler, with a number that is routed to it."""
    batch_tasks, machines = settings.groups[0].batch_tasks, len(score)
    arrival_us, scheduler = arrivals(settings)
    rows = np.arange(len(arrival_us) * batch_tasks, dtype=np.int64)
    none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    end_us = round(1e6 * settings.submission_s)
    cell = CellSpec(
        dimensions=("slots",),
        capacity=np.ones((machines, 1), np.int64),
        rack=np.arange(machines, dtype=np.int32),
        slot_score=np.maximum(1, (exp(score - score.max()) * _HEAVIEST).astype(np.int64)),
        overcommit_permille=np.full(1, 1000, np.int64),
    )
    tasks = TaskBatch(
        task=rows,
        job=np.repeat(_job_of_each(settings)[scheduler], batch_tasks),
        request=np.ones((len(rows), 1), np.int64),
        priority=np.zeros(len(rows), np.int32),
        submit_us=np.repeat(arrival_us, batch_tasks),
        preference=np.zeros(len(rows), np.int32),
        gang=np.full(len(rows), NO_GANG, np.int64),
        task_class=np.full(len(rows), TaskClass.BATCH, np.int8),
    )
    return Workload(
        name="slots",
        cell=cell,
        catalog=PreferenceCatalog.empty(),
        tasks=tasks,
        duration_us=np.full(len(rows), round(1e6 * settings.task_s), np.int64),
        preferred_permille=1000,
        arrival_us=arrival_us,
        arrival_offsets=np.arange(len(arrival_us) + 1, dtype=np.int64) * batch_tasks,
        arrival_rows=rows,
        initial=InitialPlacement(none64, none32),
        machine_events=MachineEvents(none64, none32, np.zeros(0, np.bool_)),
        phases=(Phase(0, end_us, 0),),
        end_us=end_us,
        facts={},
    )


def _job_of_each(settings: SlotSettings) -> Int64:
    """A job of each scheduler, int64[N]: the lowest number that is routed to it."""
    shares = _shares_permille(settings.schedulers)
    routes = [Route("", agent, 1, share, None) for agent, share in enumerate(shares)]
    job = np.arange(100 * settings.schedulers, dtype=np.int64)
    agent = route_jobs(routes, job, np.full(len(job), TaskClass.BATCH, np.int8), settings.seed)
    agents, first = np.unique(agent, return_index=True)
    assert len(agents) == settings.schedulers
    return job[first]


def _shares_permille(parts: int) -> list[int]:
    bounds = [1000 * part // parts for part in range(parts + 1)]
    return np.diff(bounds).tolist()


def _arm(settings: SlotSettings, heartbeat_us: int) -> SeededArm:
    """A group for each scheduler, so that jobs can be routed to it. All synchronise together."""
    (group,) = settings.groups
    ranks = group.strategy.ranks_by_quality
    options = OptimisticOptions(
        sync=settings.sync.value,
        sync_set="all",
        gap_s=settings.gap_s,
        strategy=group.strategy,
        quality=settings.quality if ranks else PartitionQuality.MEAN_WEIGHT,
        tau_s=group.tau_s,
        average_permille=group.average_permille,
        cut_at_sync=settings.cut_at_sync,
        freed_at_once=settings.freed_at_once,
        commit_pipelining=settings.commit_pipelining,
        losers=settings.losers,
        requeue_s=settings.requeue_s,
    )
    groups = tuple(
        GroupConfig(
            name=f"scheduler {number}",
            kind="weighted_sampling",
            count=1,
            protocol=ProtocolChoice(kind="optimistic", options=options),
            share=share / 1000,
            decision=ModelledTime(task_us=round(1e9 * group.decision_s) / 1000),
        )
        for number, share in enumerate(_shares_permille(group.schedulers))
    )
    return SeededArm(
        name="slots",
        groups=groups,
        partitions=settings.partitions,
        heartbeat_us=heartbeat_us,
        sample_us=_SAMPLE_US,
        seed=settings.seed,
        live=False,
    )
