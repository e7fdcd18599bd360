"""The measurements of a whole run: those that actors handed over, and those that are computed from
the logs because an actor was restarted, lost, or killed with the whole run.

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

Where all processes were killed (measure_killed), no actor handed anything over, and a Parquet file
that was not closed cannot be read. The cell's log is complete up to its last step; each actor's own
logs reach up to its last flush, at most a tick before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parsync.core.addresses import ARRIVALS, COORDINATOR, WORKERS, is_own
from parsync.core.effects import Send
from parsync.core.event import Event
from parsync.core.events import (
    ArrivalsDue,
    CommitReply,
    CommitRequest,
    TasksCancelled,
    TasksStarted,
    TasksSubmitted,
)
from parsync.metrics.record import AgentLog, Record
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.arm_directory import log_end
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.cell import CellRuntime, hosts_of, replay_frame
from parsync.runtime.live.logs import (
    CELL_LOG,
    Batch,
    Frame,
    epoch_logs,
    frame_at_us,
    handled_logs,
    handled_times_us,
    read_cell_log,
    read_handled,
    read_records,
)
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    SOURCE,
    WORKER_POOL,
    DueEnds,
    Finished,
    HostPlan,
    LiveOptions,
    RunPlan,
    plan_run,
)
from parsync.runtime.live.replay import replay_master
from parsync.runtime.live.steps import Step, head_of
from parsync.runtime.records import RecordSink, remove_parts
from shared_state.errors import AgoraError
from shared_state.transaction import CommitResult, Transaction

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
            stored, failures = store(batches, part, records_dir, make_metrics)
            metrics.merge(stored)
            anew.discard(part)
            errors += failures
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


def store(
    batches: Iterable[Batch],
    part: str,
    records_dir: Path | None,
    make_metrics: Callable[[], RunMetrics],
) -> tuple[RunMetrics, list[str]]:
    """Add up batches, and write them to Parquet in place of what `part` left there.

    Returns:
        What the batches add up to, and why they are not all in Parquet.
    """
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
    return metrics, errors


_OTHERS = {WORKERS: WORKER_POOL, ARRIVALS: SOURCE, COORDINATOR: COORDINATOR_NAME}


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of an actor.

    Attributes:
        actor: Its name.
        at_us: Run time of the last event that is known of the process that ended.
        away_us: From then until the first step of its next epoch; of the cell: until its next
            epoch began. None if the run ended before.
    """

    actor: str
    at_us: int
    away_us: int | None


def restarts(directory: Path, lost: Collection[str]) -> tuple[Restart, ...]:
    """Every restart of a run, in order of time.

    Two restarts between two steps of a host count as one. A restart before its first step is at 0.

    Args:
        directory: Of the run's logs.
        lost: Actors that were gone at the end of the run.

    Raises:
        AgoraError: As read_cell_log.
    """
    frames = read_cell_log(directory / CELL_LOG)
    names = _OTHERS | {host: name for host, name, _ in next(frames)[2]}
    found: list[Restart] = []
    last_us: dict[int, int] = {}
    epoch_of: dict[int, int] = {}
    now_us = 0
    for frame in frames:
        if frame[0] == Frame.EPOCH:
            if frame[1] > 0:
                found.append(Restart(CELL, now_us, max(0, frame[2] - now_us)))
            now_us = frame[2]
            continue
        now_us = frame[1]
        host, epoch, _ = head_of(frame[2])
        if host not in epoch_of:
            epoch_of[host] = _first_epoch(directory, names[host], epoch)
        if epoch_of[host] != epoch:
            before_us = last_us.get(host, 0)
            found.append(Restart(names[host], before_us, max(0, now_us - before_us)))
            epoch_of[host] = epoch
        last_us[host] = now_us
    heard_us = {names[host]: at_us for host, at_us in last_us.items()} | {CELL: now_us}
    for name in lost:
        at_us = max(heard_us.get(name, 0), _last_handled_us(directory, name))
        found.append(Restart(name, at_us, None))
    return tuple(sorted(found, key=lambda restart: (restart.at_us, restart.actor)))


def _first_epoch(directory: Path, name: str, stepped: int) -> int:
    """The actor's first epoch.

    Args:
        stepped: The first epoch from which the cell had a step.
    """
    return min((epoch for epoch, _ in handled_logs(directory, name)), default=stepped)


def _last_handled_us(directory: Path, name: str) -> int:
    """When an actor handled the last event that it has on record."""
    logs = (path for _, path in handled_logs(directory, name))
    return max((at_us for path in logs for at_us in handled_times_us(path)), default=0)
