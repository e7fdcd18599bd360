"""The measurements of killed actors, computed again from the logs of their run.

A scheduler host writes its measurements to a log at each tick. What its agents gathered after the
last flush is lost with the process: up to a sample interval and a tick. But the claims went to the
cell, whose log holds every step that it handled. So a master is replayed over that log, and each
transaction without a record gets one. Its commit time is the cell's; the agent would have recorded
the time at which the reply arrived. The attempts of a task are counted in the cell's log, over all
epochs of its host. A task that several epochs gave up counts once.

Some measurements cannot be recovered, because they never reached the cell: rounds that were being
decided; and, of the last sample interval of each epoch, decision time, syncs and queue length.

The submissions of a lost workload source follow from the workload and from how far the source had
come. The measurements of a lost cell are made by its replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parsync.core.addresses import is_own
from parsync.core.effects import Send
from parsync.core.events import (
    ArrivalsDue,
    CommitReply,
    CommitRequest,
    TasksSubmitted,
)
from parsync.metrics.agent_log import AgentLog
from parsync.metrics.record import Record
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell import CellRuntime, hosts_of, replay_frame
from parsync.runtime.live.cell_events import replay_master
from parsync.runtime.live.cell_log import CELL_LOG, Frame, read_cell_log
from parsync.runtime.live.finished import DueEnds
from parsync.runtime.live.handled_log import handled_logs, read_handled
from parsync.runtime.live.logs import Batch, epoch_logs, read_records
from parsync.runtime.live.plan import SOURCE, HostPlan
from parsync.runtime.live.steps import Step
from parsync.runtime.records import RecordSink, remove_parts
from shared_state.errors import AgoraError
from shared_state.transaction import CommitResult, Transaction

OF_OTHERS = -2  # no host's epoch


@dataclass(frozen=True, slots=True)
class Answer:
    """The cell's answer to a transaction.

    Attributes:
        claimant: The address that got the answer: the agent, unless another participant made the
            claims for it.
        epoch: Of the host that sent the transaction.
        at_us: The cell's time.
    """

    claimant: int
    epoch: int
    at_us: int
    transaction: Transaction
    result: CommitResult


def answers(log: Path, assembly: Assembly) -> Iterator[Answer]:
    """Every transaction that a live cell handled, in order, with the answer of a replayed master.

    Raises:
        AgoraError: As read_cell_log.
    """
    master = assembly.master()
    for handled in replay_master(assembly.codec, log, master, assembly.cell_side(master.cell)):
        event = handled.event
        if type(event) is CommitRequest:
            (result,) = (
                effect.event.result
                for effect in handled.effects
                if isinstance(effect, Send) and type(effect.event) is CommitReply
            )
            yield Answer(event.reply_to, handled.epoch, handled.at_us, event.transaction, result)


class HostRecovery:
    """The measurements of scheduler hosts over all their epochs.

    Args:
        directory: Of the run's logs.
        assembly: Of the arm.
        hosts: Those to recover.

    Attributes:
        transactions: By host: how many its agents left no record of.
        claims: By host: of those transactions.
    """

    def __init__(self, directory: Path, assembly: Assembly, hosts: Iterable[HostPlan]) -> None:
        self._assembly = assembly
        self._hosts = tuple(hosts)
        self._logs = {host.name: epoch_logs(directory, host.name) for host in self._hosts}
        tasks = len(assembly.workload.tasks)
        self._committed = np.zeros(tasks, np.bool_)
        self._committed[assembly.workload.initial.task] = True
        self._attempts = np.zeros(tasks, np.int32)  # of the first commit
        self._placed_us = np.full(tasks, -1, np.int64)  # at the last commit
        self._missing: dict[str, list[Record]] = {host.name: [] for host in self._hosts}
        self.transactions = {host.name: 0 for host in self._hosts}
        self.claims = {host.name: 0 for host in self._hosts}
        if self._hosts:
            self._follow(directory / CELL_LOG)

    def batches(self, host: HostPlan) -> Iterator[Batch]:
        """The measurements of the host's agents, table by table."""
        given_up = np.zeros(len(self._committed), np.bool_)
        for _, path in self._logs[host.name]:
            for table, columns in read_records(path):
                if table == "tasks":
                    first = columns["first"] == 1
                    attempts = np.where(first, self._attempts[columns["task"]], columns["attempts"])
                    yield table, {**columns, "attempts": attempts.astype(np.int32)}
                elif table == "unplaceable":
                    # each epoch gives up once more what is not placed, and may place it after all
                    task = columns["task"]
                    final = ~given_up[task] & (self._placed_us[task] <= columns["at_us"])
                    given_up[task[final]] = True
                    if final.any():
                        yield table, {name: column[final] for name, column in columns.items()}
                else:
                    yield table, columns
        for record in self._missing[host.name]:
            yield record.table, record.columns

    def _recorded(self) -> set[tuple[int, int, int]]:
        """(epoch, agent, sequence number) of the transactions that are on record.

        An agent counts its own transactions anew in each epoch. The numbers of those that others
        make for it are never used twice (sequence_of). They have the epoch OF_OTHERS here, because
        the outcome may come to another epoch of the agent than the one that delegated the tasks.
        """
        recorded: set[tuple[int, int, int]] = set()
        for logs in self._logs.values():
            for epoch, path in logs:
                for table, columns in read_records(path):
                    if table == "commits":
                        rows = zip(
                            columns["agent"].tolist(), columns["sequence"].tolist(), strict=True
                        )
                        for agent, sequence in rows:
                            own = is_own(sequence)
                            recorded.add((epoch if own else OF_OTHERS, agent, sequence))
        return recorded

    def _follow(self, log: Path) -> None:
        recorded = self._recorded()
        workload = self._assembly.workload
        name_of = {agent: host.name for host in self._hosts for agent in host.agents}
        logs = {
            agent: AgentLog(agent, workload.cell, workload.tasks, workload.catalog)
            for agent in name_of
        }
        attempts = np.zeros(len(workload.tasks), np.int32)  # since the task lost its place
        for answer in answers(log, self._assembly):
            transaction, result = answer.transaction, answer.result
            agent, task = transaction.scheduler, transaction.task
            if agent not in name_of:
                continue
            attempts[task] += 1
            first_time = (~self._committed[task]).astype(np.int8)
            claims_made = attempts[task]
            accepted = result.accepted
            first = task[accepted & ~self._committed[task]]
            self._attempts[first] = attempts[first]
            self._committed[first] = True
            self._placed_us[task[accepted]] = answer.at_us
            attempts[task[accepted]] = 0
            epoch = answer.epoch if answer.claimant == agent else OF_OTHERS
            if (epoch, agent, transaction.sequence) not in recorded:
                logs[agent].commit(
                    answer.at_us,
                    task,
                    transaction.machine,
                    transaction.synced_us,
                    claims_made,
                    first_time,
                    result,
                )
                self.transactions[name_of[agent]] += 1
                self.claims[name_of[agent]] += len(task)
        for agent, name in name_of.items():
            self._missing[name] += logs[agent].flush()


def source_batches(directory: Path, assembly: Assembly) -> Iterator[Batch]:
    """The submissions of a workload source that was lost.

    They reach up to the last batch that the source's own log or a scheduler host's holds, or that
    the cell saw claims of.
    """
    workload = assembly.workload
    batch_of = np.full(len(workload.tasks), -1, np.int64)
    batch_of[workload.arrival_rows] = np.repeat(
        np.arange(len(workload.arrival_us)), np.diff(workload.arrival_offsets)
    )
    until_us, batch = -1, -1
    for _, path in handled_logs(directory, SOURCE):
        for _, at_us, event in read_handled(assembly.codec, path):
            if isinstance(event, ArrivalsDue):
                until_us = max(until_us, at_us)
    frames = read_cell_log(directory / CELL_LOG)
    for _, name, _ in next(frames)[2]:
        for _, path in handled_logs(directory, name):
            for _, _, event in read_handled(assembly.codec, path):
                if isinstance(event, TasksSubmitted) and len(event.task):
                    batch = max(batch, int(batch_of[event.task].max()))
    for frame in frames:
        messages = Step.of(assembly.codec, frame[2]).messages if frame[0] == Frame.STEP else ()
        for _, event in messages:
            if isinstance(event, CommitRequest) and len(event.transaction):
                batch = max(batch, int(batch_of[event.transaction.task].max()))
    if batch >= 0:
        until_us = max(until_us, int(workload.arrival_us[batch]))
    arrivals = assembly.arrivals()
    effects = arrivals.handle(until_us, ArrivalsDue(0))
    recorded = [effect for effect in effects if isinstance(effect, Record)]
    for record in recorded + arrivals.finish(until_us):
        yield record.table, record.columns


def cell_batches(
    directory: Path, assembly: Assembly, due_ends: DueEnds | None, ended_us: int
) -> Iterator[Batch]:
    """The measurements of a cell that was lost.

    Args:
        directory: Of the run's logs.
        assembly: Of the arm.
        due_ends: Handed over by the worker pool; None if it was lost, too.
        ended_us: When the run ended.
    """
    records: list[Record] = []
    frames = read_cell_log(directory / CELL_LOG)
    agents_of = {host: agents for host, _, agents in next(frames)[2]}
    tasks = len(assembly.workload.tasks)
    runtime = CellRuntime(
        assembly.codec,
        assembly.master(),
        hosts_of(agents_of),
        tasks,
        records.append,
        assembly.cell_side,
    )
    for frame in frames:
        replay_frame(runtime, frame)
        yield from ((record.table, record.columns) for record in records)
        records.clear()
    if due_ends is not None:
        runtime.master.record_due_ends(due_ends.allocation, due_ends.end_us)
    for record in runtime.master.finish(ended_us):
        yield record.table, record.columns


@dataclass(frozen=True, slots=True)
class Stored:
    """What store() did.

    Attributes:
        metrics: What the batches add up to.
        errors: Why they are not all in Parquet.
    """

    metrics: RunMetrics
    errors: tuple[str, ...]


def store(
    batches: Iterable[Batch],
    part: str,
    records_dir: Path | None,
    make_metrics: Callable[[], RunMetrics],
) -> Stored:
    """Add up batches, and write them to Parquet in place of what `part` left there."""
    metrics = make_metrics()
    errors: list[str] = []
    sink = None
    if records_dir is not None:
        remove_parts(records_dir, part)
        sink = RecordSink(records_dir, part, metrics.tables)
    for table, columns in batches:
        metrics.add(table, columns)
        if sink is not None and not errors:
            try:
                sink.add(table, columns)
            except AgoraError as error:
                errors.append(str(error))
    metrics.flush()
    if sink is not None:
        try:
            sink.abandon() if errors else sink.close()
        except AgoraError as error:
            errors.append(str(error))
    return Stored(metrics, tuple(errors))
