"""The measurements of a whole run: those that actors handed over, and those that are computed from
the logs because an actor was restarted or lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.finished import DueEnds, Finished
from parsync.runtime.live.logs import epoch_logs
from parsync.runtime.live.plan import CELL, SOURCE, WORKER_POOL, HostPlan, RunPlan
from parsync.runtime.live.recovery import HostRecovery, cell_batches, source_batches, store
from parsync.runtime.live.restarts import Restart, restarts
from shared_state.errors import AgoraError

SOURCE_NOTE = (
    f"{SOURCE}: its submissions are counted up to the last one recorded by itself, a scheduler "
    "host or the cell"
)


@dataclass(frozen=True, slots=True)
class Completed:
    """The measurements of a run.

    Attributes:
        metrics: Of all actors.
        restarts: Of any actor.
        notes: What the figures lack because of restarts and losses, or were computed from.
        errors: Why they are incomplete: logs that cannot be read, Parquet that cannot be written.
        recovered: The actors whose measurements were computed from the logs.
    """

    metrics: RunMetrics
    restarts: tuple[Restart, ...]
    notes: tuple[str, ...]
    errors: tuple[str, ...] = ()
    recovered: tuple[str, ...] = ()


def complete(
    plan: RunPlan,
    assembly: Assembly,
    finished: Mapping[str, Finished | None],
    lost: Collection[str],
    ended_us: int,
    make_metrics: Callable[[], RunMetrics],
) -> Completed:
    """Complete the measurements that actors handed over.

    Args:
        plan: Of the run.
        assembly: Of the arm.
        finished: By actor: what it handed over; None if it could not. It writes no more.
        lost: The actors that were gone at the end of the run.
        ended_us: When that was.
        make_metrics: Creates empty accumulators.
    """
    directory = Path(plan.journal_dir)
    hosts = [
        host
        for host in plan.hosts
        if finished[host.name] is None or len(epoch_logs(directory, host.name)) > 1
    ]
    anew = {host.name for host in hosts}
    metrics = make_metrics()
    for name, one in finished.items():
        if one is not None and name not in anew:
            metrics.merge(one.metrics)
    cell, workers = finished[CELL], finished[WORKER_POOL]
    if not hosts and not lost and cell is not None and cell.recovered == 0:
        return Completed(metrics, (), ())
    records_dir = None if plan.records_dir is None else Path(plan.records_dir)
    due_ends: DueEnds | None = None if workers is None else workers.due_ends
    errors: list[str] = []
    try:
        recovery = HostRecovery(directory, assembly, hosts)
        parts = {host.name: recovery.batches(host) for host in hosts}
        if finished[SOURCE] is None:
            parts[SOURCE] = source_batches(directory, assembly)
        if cell is None:
            parts[CELL] = cell_batches(directory, assembly, due_ends, ended_us)
        for part, batches in parts.items():
            stored = store(batches, part, records_dir, make_metrics)
            metrics.merge(stored.metrics)
            anew.discard(part)
            errors += stored.errors
        notes = [_note(host, recovery, assembly.arm.sample_us) for host in hosts]
        if finished[SOURCE] is None:
            notes.append(SOURCE_NOTE)
        found = restarts(directory, lost)
        return Completed(metrics, found, tuple(notes), tuple(errors), tuple(sorted(parts)))
    except AgoraError as error:  # a log that cannot be read
        for name in sorted(anew):
            handed_over = finished[name]
            if handed_over is not None:
                metrics.merge(handed_over.metrics)
        return Completed(metrics, (), (), (*errors, str(error)))


def _note(host: HostPlan, recovery: HostRecovery, sample_us: int) -> str:
    transactions, claims = recovery.transactions[host.name], recovery.claims[host.name]
    return (
        f"{host.name}: {transactions:,} transactions ({claims:,} claims) that it left no record of "
        "are counted from the cell's log, at the cell's times; its decision time, syncs and queue "
        f"length of the last {sample_us / 1e6:g} s before it was lost, decisions that it had not "
        "sent, and its step waits before the restart are not known"
    )
