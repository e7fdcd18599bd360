"""The tables of measurements a run writes: every Record effect is a batch of rows of one of these,
or of a table that its protocol declares (ProtocolSpec.tables).

Columns are named with their unit last; all times are integer microseconds of the run's clock.
Metrics (registry.py) read the same batches that are streamed to Parquet, so that the live line,
the summary and the report rest on one definition. What a column means, its unit and its codes stand
here once; every Parquet file carries them as schema metadata (parsync/runtime/records.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from enum import IntEnum

import numpy as np

from parsync.schema import Column, TableSchema, flag, names_of
from schedulers.interface import ChangeKind, PartitionRanking
from schedulers.unplaceable import REASONS
from shared_state.transaction import CONFLICTS, NO_RIVAL, Reason

NOT_KNOWN = -1  # in columns that say so
NOBODY = -1
NOT_LOOKED_AT = -2
_FROM_THE_LOG = {
    NOT_KNOWN: "not known: its scheduler was killed, and the row is from the cell's log"
}

# The actors of a live run that are no scheduler hosts, by the addresses of their participants.
ACTORS = {-1: "cell", -2: "workers", -4: "source"}

_TASK = Column("int64", "id", "the task; a row of the workload's table of tasks")
_JOB = Column("int64", "id", "the job of the task")
_AGENT = Column("int32", "id", "the scheduler, counted over the groups of the arm in their order")
_MACHINE = Column("int32", "id", "the machine; a row of the workload's table of machines")
_SUBMIT_US = Column("int64", "us", "when it was submitted")
_AT_US = Column("int64", "us", "when")
_QUOTA_GROUP = Column(
    "int32", "id", "the quota group, in the order of the arm's (of the workload's without quotas)"
)
_RESOURCE = Column("int32", "id", "the resource dimension, in the order of the cell's")


def _claims(what: str) -> Column:
    return Column("int32", "claims", what)


class Waiting(IntEnum):
    """Why a task still waits with its scheduler when the run ends."""

    NO_ROOM = 0
    BEHIND = 1
    NOT_TRIED = 2
    QUOTA = 3
    JOB_NOT_ADMITTED = 4
    PAUSED = 5
    REJECTED = 6
    PRICED_OUT = 7
    WAITS_FOR_PREFERRED = 8
    SLOTS_TOO_DEAR = 9
    HELD_BACK = 10
    NOT_ROUTED = 11


WAITING: Mapping[int, str] = {
    Waiting.NO_ROOM: "its last round found no room in the view",
    Waiting.BEHIND: "it is behind a unit that found no room and holds the queue",
    Waiting.NOT_TRIED: "its scheduler has not tried it since it was submitted or lost its place",
    Waiting.QUOTA: "its quota group, or what its scheduler may hold (hold_max), has no room for it",
    Waiting.JOB_NOT_ADMITTED: "its job is not admitted yet (jobs_max)",
    Waiting.PAUSED: "it pauses before it rejoins the queue (losers = requeue)",
    Waiting.REJECTED: "its last claim was rejected, and it is to be decided again",
    Waiting.PRICED_OUT: "waiting was cheaper than any place when it was offered",
    Waiting.WAITS_FOR_PREFERRED: "it waited for a preferred machine when it was offered",
    Waiting.SLOTS_TOO_DEAR: "every place was too dear, with its slot's price, when it was offered",
    Waiting.HELD_BACK: "its job had enough tasks running or had to finish an earlier part first, or"
    " the task backed off after a failed attempt",
    Waiting.NOT_ROUTED: "the solver stopped early (max_operations), before it had a place for it",
}

Tables = Mapping[str, TableSchema]

SCHEMAS: Tables = {
    "submissions": TableSchema(
        # Open loop: a batch counts even if its agent is gone. Without it nothing can be called
        # censored.
        "One row per batch of arrivals, from the workload source. All tasks of a "
        "batch are of one job.",
        {
            "agent": _AGENT,
            "job": Column("int64", "id", "the job of the batch"),
            "submit_us": _SUBMIT_US,
            "tasks": Column("int64", "tasks", "tasks of the batch"),
            "prefers": Column("int64", "tasks", "those of them that prefer certain machines"),
        },
    ),
    "tasks": TableSchema(
        "One row per committed task, from its scheduler when the reply arrives. A task that was "
        "evicted or lost its machine is committed again. If a killed live scheduler left no "
        "record, the row is from the cell's log.",
        {
            "task": _TASK,
            "job": _JOB,
            "agent": _AGENT,
            "machine": _MACHINE,
            "submit_us": _SUBMIT_US,
            "commit_us": Column(
                "int64",
                "us",
                "when its scheduler learned of the commit (from the cell's log: when it was made)",
            ),
            "start_us": Column("int64", "us", "when the cell committed it: it runs from then on"),
            "attempts": Column("int32", "claims", "claims made for it so far, this one included"),
            "first": flag("whether this is the task's first commit"),
            "prefers": flag("whether the task prefers certain machines"),
            "preferred": flag("whether this machine is one of those it prefers"),
            "cost": Column("int64", "cost", "what the workload says this placement costs"),
            "age_us": Column(
                "int64", "us", "age of the state the claim was planned on, at its commit"
            ),
        },
    ),
    "commits": TableSchema(
        "One row per transaction, with the outcomes of its claims.",
        {
            "agent": _AGENT,
            "sequence": Column(
                "int64",
                "id",
                "number of the transaction, per scheduler from 1; from 2^40 on where the claims "
                "were made for it at the machines or beside the master",
            ),
            "start_us": Column("int64", "us", "when its decision round began", _FROM_THE_LOG),
            "commit_us": Column(
                "int64",
                "us",
                "when its scheduler learned of the outcome (from the cell's log: when it was made)",
            ),
            "decision_us": Column("int64", "us", "decision time of the round", _FROM_THE_LOG),
            "ranking": Column(
                "int8",
                "code",
                "how partitions were ranked",
                {**names_of(PartitionRanking), **_FROM_THE_LOG},
            ),
            "claims": _claims("claims of the transaction"),
            "accepted": _claims("accepted"),
            "stale": _claims("rejected: the machine had changed since the state planned on"),
            "full": _claims("rejected: the request no longer fitted beside the running tasks"),
            "machine_down": _claims("rejected: the machine was down"),
            "evicted": _claims("rejected: a victim to evict was gone or another scheduler's"),
            "gang": _claims("rejected: fitted, but another claim of the gang did not"),
            "duplicate": _claims("rejected: the task was placed already, or had run"),
            "held": Column(
                "int32",
                "claims",
                "rejected: the request fitted beside the running tasks, but not beside the room "
                "held for offers; earlier versions counted these as full",
                added=True,
            ),
        },
    ),
    "job_attempts": TableSchema(
        "One row per job and decision round that was about tasks of the job: a scheduling attempt, "
        "in Omega's words.",
        {
            "agent": _AGENT,
            "job": _JOB,
            "start_us": Column("int64", "us", "when the decision round began", _FROM_THE_LOG),
            "decision_us": Column(
                "int64",
                "us",
                "its decision time; of a round about several jobs, a part in proportion to tasks",
                _FROM_THE_LOG,
            ),
            "tasks": Column("int64", "tasks", "tasks of the job that were decided on"),
            "claims": Column("int64", "claims", "claims for them"),
            "placed": Column(
                "int64",
                "tasks",
                "those of them committed for the first time",
                {NOT_KNOWN: "machines place them later, from their queues"},
            ),
            "conflicts": Column(
                "int64", "claims", "claims rejected as stale, full, evicted or held"
            ),
        },
    ),
    "rejections": TableSchema(
        "One row per rejected claim.",
        {
            "task": _TASK,
            "agent": _AGENT,
            "sequence": Column("int64", "id", "number of its transaction; see the table commits"),
            "machine": _MACHINE,
            "reason": Column("int8", "code", "why it was rejected", names_of(Reason)),
            "rival": Column(
                "int32",
                "id",
                "the other scheduler that last claimed the machine (reasons stale and full), "
                "or for which room was last held there (reason held)",
                {NO_RIVAL: "nobody else (stale, full, held), or not known (other reasons)"},
            ),
            "age_us": Column(
                "int64", "us", "age of the state the claim was planned on, at its rejection"
            ),
            "rejected_us": Column("int64", "us", "when the cell rejected it"),
            "at_us": Column(
                "int64",
                "us",
                "when its scheduler learned of it (from the cell's log: when it was rejected)",
            ),
        },
    ),
    "syncs": TableSchema(
        "One row per partition synchronised.",
        {
            "agent": _AGENT,
            "partition": Column("int32", "id", "the partition"),
            "at_us": _AT_US,
            "age_us": Column("int64", "us", "its staleness just before"),
            "rows": Column("int32", "machines", "machines that had changed since the last sync"),
        },
    ),
    "ends": TableSchema(
        "One row per ended allocation, from the cell. Tasks still running when the run ends have "
        "one, too, marked `due`.",
        {
            "task": _TASK,
            "machine": _MACHINE,
            "agent": _AGENT,
            "end_us": Column("int64", "us", "when it ended, or is due to"),
            "change": Column("int8", "code", "how it ended", names_of(ChangeKind)),
            "due": flag("whether it still ran at the run's end and is due to finish then"),
        },
    ),
    "cell": TableSchema(
        "The cell once per sample interval.",
        {
            "at_us": _AT_US,
            "running": Column("int64", "tasks", "running tasks"),
            "machines_up": Column("int64", "machines", "machines that are up"),
            "used_permille": Column(
                "int64",
                "permille",
                "use of the first resource dimension, in thousandths of its total capacity",
            ),
        },
    ),
    "quota_use": TableSchema(
        "Every quota group and resource once per sample interval, where jobs belong to quota "
        "groups.",
        {
            "at_us": _AT_US,
            "quota_group": _QUOTA_GROUP,
            "resource": _RESOURCE,
            "held": Column("int64", "amount", "what the running tasks of the group hold"),
        },
    ),
    "quota_shares": TableSchema(
        "Every quota group and resource, each time the coordinator has computed the shares; in "
        "arms with quotas.",
        {
            "at_us": _AT_US,
            "quota_group": _QUOTA_GROUP,
            "resource": _RESOURCE,
            "wanted": Column("int64", "amount", "what its tasks hold or wait for"),
            "share": Column("int64", "amount", "its fair share of what is wanted"),
            "limit": Column(
                "int64", "amount", "up to where it may go, with its part of what nobody wants"
            ),
        },
    ),
    "agents": TableSchema(
        "Every scheduler once per sample interval.",
        {
            "at_us": _AT_US,
            "agent": _AGENT,
            "queued": Column("int64", "tasks", "submitted to it and not yet committed"),
            "ema_us": Column("int64", "us", "the delay average that adaptive switches on"),
            "latency_first": flag("whether it ranks partitions latency-first now"),
            "busy_us": Column("int64", "us", "decision time so far (Omega's busyness)"),
            "wasted_us": Column("int64", "us", "that of it spent on rounds with a conflict"),
            "staleness_us": Column("int64", "us", "mean age of the partitions in its view"),
        },
    ),
    "unplaceable": TableSchema(
        "Tasks that can never be placed or were given up. Each is listed once and not tried again.",
        {
            "task": _TASK,
            "agent": _AGENT,
            "at_us": _AT_US,
            "abandoned": Column("int8", "code", "why", dict(REASONS)),
        },
    ),
    "waiting": TableSchema(
        "One row per task that still waits with its scheduler when the run ends, and why. Claims "
        "whose outcome is not known are left out.",
        {
            "task": _TASK,
            "agent": _AGENT,
            "why": Column("int8", "code", "why it waits", WAITING),
            "ahead": Column(
                "int64", "id", "the task that it is behind", {NOBODY: "it is behind none"}
            ),
            "resource": Column(
                "int32",
                "id",
                "the resource dimension that is short in the view at the end",
                {NOBODY: "some machines have room for it", NOT_LOOKED_AT: "not looked at"},
            ),
            "machines": Column(
                "int64",
                "machines",
                "machines that have room for it, or lack this resource only; 0 if all lack more",
            ),
            "unseen": Column(
                "int64",
                "machines",
                "machines that would hold it when empty, but that its scheduler may not use",
            ),
        },
    ),
    "holds": TableSchema(
        "One row per stretch in which a task or gang without room held the queue of its scheduler "
        "while others waited behind it (head_of_line_s).",
        {
            "task": Column("int64", "id", "the task, or the first task of the gang that held it"),
            "agent": _AGENT,
            "from_us": Column("int64", "us", "when it was first seen to hold the queue"),
            "until_us": Column("int64", "us", "when it no longer did, or the run ended"),
            "behind": Column("int64", "tasks", "tasks that waited behind it, at most"),
        },
    ),
    "rounds": TableSchema(
        "One row per round of a flow scheduler. Its times are measured by the clock.",
        {
            "at_us": _AT_US,
            "agent": _AGENT,
            "tasks": Column("int64", "tasks", "tasks in the graph"),
            "graph_us": Column("int64", "us", "time to bring the graph up to date"),
            "solve_us": Column("int64", "us", "time to solve it"),
            "extract_us": Column("int64", "us", "time to derive placements from the flow"),
            "arcs_scanned": Column("int64", "arcs", "arcs scanned while solving"),
            "nodes": Column("int64", "nodes", "nodes of the graph"),
            "arcs": Column("int64", "arcs", "arcs of the graph"),
            "oversubscribed": Column(
                "int64",
                "tasks",
                "tasks that the flow sent to a machine where they do not fit beside the others",
                added=True,
            ),
            "repaired": Column(
                "int64", "tasks", "waiting tasks that were then placed one at a time", added=True
            ),
            "held_back": Column(
                "int64", "tasks", "tasks with a place, but not for all of their gang", added=True
            ),
            "unrouted": Column(
                "int64", "tasks", "tasks not reached when the solver's budget ended", added=True
            ),
        },
        measured=True,
    ),
    "actors": TableSchema(
        "Every actor of a live run once per second, by the clock. From these rows follows whether "
        "the run was disturbed.",
        {
            "at_us": Column("int64", "us", "when the second began"),
            "actor": Column("int32", "id", "the actor: a scheduler host by its number", ACTORS),
            "length_us": Column("int64", "us", "how long it was: a second and up to a tick"),
            "cpu_us": Column("int64", "us", "processor time of the actor's process"),
            "ticks": Column("int32", "ticks", "ticks in which it stepped to the cell"),
            "late_ticks": Column("int32", "ticks", "those of them that began over 2 ms late"),
            "decisions": Column("int32", "decisions", "decisions delivered"),
            "decision_us": Column("int64", "us", "their decision times added up"),
            "late_p95_us": Column(
                "int64",
                "us",
                "how late ticks began and decisions were delivered, 95th percentile; what falls "
                "due while a plan is computed, or a step is under way, counts from the end of that",
            ),
            "lag_p95_us": Column(
                "int64", "us", "how much longer its loop slept than it asked for, 95th percentile"
            ),
            "steps": Column("int32", "steps", "steps to the cell; of the cell: steps handled"),
            "step_mean_us": Column(
                "int64", "us", "mean round trip of a step; of the cell: mean time to handle one"
            ),
            "step_p95_us": Column("int64", "us", "the same, 95th percentile"),
            "unhandled": Column(
                "int64",
                "messages",
                "the least number of messages that waited for it at any look within the second "
                "(of the cell: for the steps that fetch them)",
            ),
            "measured_wall_us": Column(
                "int64", "us", "time in which plans were computed whose decision time is measured"
            ),
            "measured_cpu_us": Column(
                "int64", "us", "processor time that the computing thread had meanwhile"
            ),
        },
        measured=True,
    ),
}

# The columns of `commits` that count conflicts.
CONFLICT_COLUMNS = tuple(Reason(reason).name.lower() for reason in CONFLICTS)
# The dtypes alone, for hot paths.
TABLES: dict[str, dict[str, str]] = {table: schema.dtypes for table, schema in SCHEMAS.items()}

_NAME = re.compile(r"[a-z][a-z0-9_]*")  # of a table: it is the name of a file


def measured_tables(tables: Tables) -> Set[str]:
    """The tables with values that are measured by the clock."""
    return frozenset(name for name, schema in tables.items() if schema.measured)


def wrong_tables(tables: object) -> str:
    """What is wrong with tables that somebody declares beside SCHEMAS, "" if nothing."""
    if not isinstance(tables, Mapping):
        return f"expected table schemas by name, got {tables!r}"
    for name, schema in tables.items():
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            return f"expected names of lower-case letters, digits and _, got {name!r}"
        if name in SCHEMAS:
            return f"{name!r} is a table of every run already"
        if not isinstance(schema, TableSchema):
            return f"{name}: expected a TableSchema, got {schema!r}"
        if not schema.columns:
            return f"{name}: expected at least one column"
        for place, column in schema.columns.items():
            wrong = _wrong_column(column)
            if wrong:
                return f"{name}: column {place!r}: {wrong}"
    return ""


def _wrong_column(column: object) -> str:
    if not isinstance(column, Column):
        return f"expected a Column, got {column!r}"
    try:
        usable = np.dtype(column.dtype).kind in "iuf"
    except TypeError:
        usable = False
    return "" if usable else f"expected a dtype of integers or floats, got {column.dtype!r}"
