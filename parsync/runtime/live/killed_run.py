"""The measurements of a live arm whose processes were all killed, computed from its logs. No actor
handed anything over, and a Parquet file that was not closed cannot be read.

The cell's log is complete up to its last step. Each actor's own logs reach up to its last flush, at
most a tick before. recovery.py explains what is on record and what is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parsync.core.addresses import WORKERS
from parsync.core.event import Event
from parsync.core.events import TasksCancelled, TasksStarted
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.assembly import Assembly
from parsync.runtime.event_logs import log_end
from parsync.runtime.live.cell_events import replay_master
from parsync.runtime.live.cell_log import CELL_LOG, frame_at_us
from parsync.runtime.live.completion import complete
from parsync.runtime.live.finished import DueEnds, Finished
from parsync.runtime.live.plan import CELL, SOURCE, WORKER_POOL, LiveOptions, plan_run
from parsync.runtime.live.restarts import Restart
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class KilledRun:
    """What is known of a killed run.

    Attributes:
        metrics: Of all actors.
        ended_us: Run time of the cell's last step.
        digest: Of the cell's log.
        restarts: Of actors before that.
        notes: What the figures lack, or were computed from.
    """

    metrics: RunMetrics
    ended_us: int
    digest: str
    restarts: tuple[Restart, ...]
    notes: tuple[str, ...]


def measure_killed(
    assembly: Assembly, options: LiveOptions, make_metrics: Callable[[], RunMetrics]
) -> KilledRun:
    """Compute the measurements of a killed run.

    Args:
        assembly: Of the arm.
        options: As run_live had them; without records_dir no Parquet is written.
        make_metrics: Creates empty accumulators.

    Raises:
        AgoraError: A log is missing or cannot be read; the message names it.
    """
    log = options.journal_dir / CELL_LOG
    end = log_end(log, frame_at_us)
    worker_pool = Finished(
        make_metrics(), np.zeros(0, np.int64), 0, 0, None, _due_ends(log, assembly)
    )
    plan = plan_run("", assembly, options)
    finished: dict[str, Finished | None] = {host.name: None for host in plan.hosts}
    finished |= {SOURCE: None, CELL: None, WORKER_POOL: worker_pool}
    completed = complete(plan, assembly, finished, (), end.last_us, make_metrics)
    if completed.errors:
        raise AgoraError(completed.errors[0])
    return KilledRun(
        completed.metrics, end.last_us, end.digest, completed.restarts, completed.notes
    )


def _due_ends(log: Path, assembly: Assembly) -> DueEnds:
    """When each task that the cell started is due to end.

    The worker pool knows the durations, but its own log may lack the last messages to it. So a new
    pool handles what a replayed master sends. Tasks whose end was reported are among these, too;
    MasterCore.record_due_ends leaves them out.
    """
    workers, master = assembly.workers(), assembly.master()

    def on_outgoing(at_us: int, to: int, event: Event) -> None:
        if to == WORKERS and isinstance(event, TasksStarted | TasksCancelled):
            workers.execute(event)

    cell_side = assembly.cell_side(master.cell)
    for _ in replay_master(assembly.codec, log, master, cell_side, on_outgoing=on_outgoing):
        pass
    end_us, allocation, _ = workers.due_ends()
    return DueEnds(allocation, end_us)
