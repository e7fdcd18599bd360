"""The tables of measurements a run writes: every Record effect is a batch of rows of one of these.

Columns are named with their unit last; all times are integer microseconds of the run's clock.
Accumulators (metrics.py) read the same batches that are streamed to Parquet, so that the live line,
the summary and the report rest on one definition.
"""

from __future__ import annotations

NOT_KNOWN = -1  # in columns that say so

TABLES: dict[str, dict[str, str]] = {
    # One row per batch of arrivals, from whoever routes them to agents: open loop, so a batch
    # counts even if its agent is gone. All tasks of a batch are of one job. prefers: how many of
    # them have a preference set. Without it nothing can be called censored.
    "submissions": {
        "agent": "int32",
        "job": "int64",
        "submit_us": "int64",
        "tasks": "int64",
        "prefers": "int64",
    },
    # One row per committed task, from the agent when the reply arrives; of a killed live agent that
    # left no record of it from the cell's log, with the cell's time. first: 1 for the task's
    # first commit (0 after an eviction or a lost machine). prefers: it has a preference set;
    # preferred: it got one of its preferred machines. attempts: claims made so far.
    "tasks": {
        "task": "int64",
        "job": "int64",
        "agent": "int32",
        "machine": "int32",
        "submit_us": "int64",
        "commit_us": "int64",
        "attempts": "int32",
        "first": "int8",
        "prefers": "int8",
        "preferred": "int8",
        "cost": "int64",
        "age_us": "int64",
    },
    # One row per transaction. start_us: when its decision round began; commit_us: the agent's time
    # of the reply (from the cell's log: the cell's). decision_us: decision time. start_us,
    # decision_us, ranking: NOT_KNOWN where only the cell's log tells of it.
    "commits": {
        "agent": "int32",
        "sequence": "int64",
        "start_us": "int64",
        "commit_us": "int64",
        "decision_us": "int64",
        "ranking": "int8",
        "claims": "int32",
        "accepted": "int32",
        "stale": "int32",
        "full": "int32",
        "machine_down": "int32",
        "evicted": "int32",
        "gang": "int32",
        "duplicate": "int32",
    },
    # One row per rejected claim. reason: shared_state.transaction.Reason; rival: the other agent
    # that last claimed the machine; -1: nobody else did (STALE, FULL: the agent itself filled it),
    # or not known (other reasons).
    "rejections": {
        "task": "int64",
        "agent": "int32",
        "machine": "int32",
        "reason": "int8",
        "rival": "int32",
        "age_us": "int64",
        "at_us": "int64",
    },
    # One row per partition synchronised. age_us: its staleness just before; rows: machine rows the
    # delta carried.
    "syncs": {
        "agent": "int32",
        "partition": "int32",
        "at_us": "int64",
        "age_us": "int64",
        "rows": "int32",
    },
    # One row per ended allocation, from the master. change: schedulers.interface.ChangeKind
    # (FINISHED, EVICTED, LOST). due: 1 for tasks still running when the run ends: they are due to
    # finish then, later than the run's end.
    "ends": {
        "task": "int64",
        "machine": "int32",
        "agent": "int32",
        "end_us": "int64",
        "change": "int8",
        "due": "int8",
    },
    # The cell every sample interval: running allocations, machines up, used and capacity of the
    # first (dominant) dimension, permille of each.
    "cell": {
        "at_us": "int64",
        "running": "int64",
        "machines_up": "int64",
        "used_permille": "int64",
    },
    # Every agent every sample interval. queued: tasks submitted and not yet committed; ema_us: the
    # delay average adaptive switches on; busy_us, wasted_us: decision time so far, and that of it
    # spent on rounds with a conflict (Omega's busyness).
    "agents": {
        "at_us": "int64",
        "agent": "int32",
        "queued": "int64",
        "ema_us": "int64",
        "latency_first": "int8",
        "busy_us": "int64",
        "wasted_us": "int64",
        "staleness_us": "int64",
    },
    # Tasks that can never run here (larger than every machine) or were given up (Omega's
    # abandonment limits): told once, never tried again.
    "unplaceable": {"task": "int64", "agent": "int32", "at_us": "int64", "abandoned": "int8"},
    # One row per round of a flow scheduler (from Plan.stats).
    "rounds": {
        "at_us": "int64",
        "agent": "int32",
        "tasks": "int64",
        "graph_us": "int64",
        "solve_us": "int64",
        "extract_us": "int64",
        "arcs_scanned": "int64",
        "nodes": "int64",
        "arcs": "int64",
    },
}
