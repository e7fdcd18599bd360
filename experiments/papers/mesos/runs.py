"""Arms whose schedulers are offered room by Mesos' allocator, and runs of them in virtual time, in
which what became of tasks, attempts and offers is kept.

Messages of a run take no time unless a caller says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parsync.metrics.record import Record
from parsync.runtime.virtual.run import VirtualOutcome, run_virtual
from parsync.spec.arm import ArmConfig, GroupConfig, ProtocolChoice
from parsync.spec.decision_times import ModelledTime
from parsync.workload.workload import Workload
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver
from shared_state.tasks import Int64

SEED = 1
US_PER_S = 1_000_000
_KEPT = ("offers", "offer_waits", "job_attempts", "unplaceable")


def offers_group(
    count: int = 1,
    name: str = "offers",
    kind: str = "random",
    decision: Any = None,
    takes: Any = None,
    share: float | None = None,
    kind_options: dict[str, Any] | None = None,
    **options: Any,
) -> GroupConfig:
    """`count` schedulers that are offered room, with these options of the protocol."""
    return GroupConfig(
        name=name,
        kind=kind,
        count=count,
        options=kind_options or {},
        protocol=ProtocolChoice.model_validate({"kind": "offers", **options}),
        decision=decision or ModelledTime(task_us=50),
        task_class=takes,
        share=share,
    )


def offers_arm(*groups: GroupConfig, partitions: int = 2, **shared: Any) -> ArmConfig:
    """An arm of these groups, with these options of the protocol as a whole."""
    return ArmConfig.model_validate(
        {"name": "arm", "partitions": partitions, "groups": groups, "protocols": {"offers": shared}}
    )


@dataclass
class Ran:
    """What came of a run.

    Attributes:
        commit_us, start_us, machine: Of each task, int64[n], at its last start; -1: never.
        tables: All rows of the tables of offers, of attempts and of tasks that were given up, by
            table and column.
        rejections: Claims that the cell rejected.
    """

    outcome: VirtualOutcome
    workload: Workload
    commit_us: Int64
    start_us: Int64
    machine: Int64
    tables: dict[str, dict[str, Int64]]
    rejections: int

    def column(self, name: str, table: str = "offers") -> Int64:
        """A column of a table; empty if the table has no rows."""
        return self.tables.get(table, {}).get(name, np.zeros(0, np.int64))

    def sum(self, column: str, table: str = "offers") -> int:
        """The sum of a column of a table."""
        return int(self.column(column, table).sum())


def run(
    arm: ArmConfig,
    workload: Workload,
    message_us: int = 0,
    heartbeat_us: int = 1000,
    sample_us: int = US_PER_S,
    drain_us: int = 1_000 * US_PER_S,
    seed: int = SEED,
    **given: Any,
) -> Ran:
    """Run an arm until all tasks are placed, or for `drain_us` after the workload's end.

    Args:
        message_us: How long the run's own messages take.
        heartbeat_us: Ends of tasks are told at multiples of it.
        sample_us: The sample interval.
        seed: Of the arm's draws.
        given: Further arguments of run_virtual.
    """
    n = len(workload.tasks)
    commit_us, start_us, machine = (np.full(n, -1, np.int64) for _ in range(3))
    rows: dict[str, dict[str, list[Any]]] = {}
    rejections = 0

    def take(record: Record) -> None:
        nonlocal rejections
        columns = record.columns
        if record.table == "tasks":
            for into, name in ((commit_us, "commit_us"), (start_us, "start_us")):
                into[columns["task"]] = columns[name]
            machine[columns["task"]] = columns["machine"]
        elif record.table in _KEPT:
            for name, values in columns.items():
                rows.setdefault(record.table, {}).setdefault(name, []).append(np.array(values))
        elif record.table == "rejections":
            rejections += len(columns["task"])

    spec = arm.seeded(seed, heartbeat_us, sample_us, live=False)
    outcome = run_virtual(spec, workload, drain_us, take, lambda _: None, message_us, **given)
    tables = {
        table: {name: np.concatenate(parts) for name, parts in columns.items()}
        for table, columns in rows.items()
    }
    return Ran(outcome, workload, commit_us, start_us, machine, tables, rejections)


class HeldRoom(CellObserver):
    """How much of the cell's first resource is held for offers, over time."""

    def __init__(self) -> None:
        self._cell: Cell | None = None
        self._since_us = 0
        self._total = 0  # of held room times its time, before _since_us

    def on_attach(self, cell: Cell) -> None:
        self._cell = cell

    def before_change(self, cell: Cell, now_us: int) -> None:
        if now_us > self._since_us:
            self._total += self._held() * (now_us - self._since_us)
            self._since_us = now_us

    def now(self) -> float:
        """The share of the cell that is held."""
        assert self._cell is not None, "the run has begun"
        return self._held() / self._room()

    def share(self, until_us: int) -> float:
        """The mean share of the cell that was held up to a time after the last change."""
        assert self._cell is not None, "the run has begun"
        self.before_change(self._cell, until_us)
        return self._total / (self._room() * until_us)

    def _room(self) -> int:
        assert self._cell is not None, "the run has begun"
        return int(self._cell.spec.limit[:, 0].sum())

    def _held(self) -> int:
        assert self._cell is not None, "the run has begun"
        return int(self._cell.held[:, 0].sum())
