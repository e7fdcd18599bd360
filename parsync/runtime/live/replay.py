"""The logs of a live run, handled again.

replay() compares: the effects are equal to the logged ones, or the first divergence is found. First
the cell's log is fed to a new master and the other participants beside the cell. An audit of its
own checks the cell's invariants meanwhile (shared_state.invariants). Then every other log is fed to
new participants of its actor: agents, worker pool, workload source, coordinator (ReplayedActor).
Other audits check that they kept their quotas and their schedulers' own limits
(parsync.runtime.audit). Sync replies are logged without their payload, which is taken from the
replayed master. Effects are compared by digest.

Before that, every log is compared with what it was when the arm ended (ended.json). Otherwise a
log without its last events would go unnoticed: it replays well as far as it goes.

replay_master() compares nothing: it is for readers that want the run's true state.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.codec import Codec, decode
from parsync.core.effects import Effect, StartDecision
from parsync.core.event import Event
from parsync.core.events import DecisionDone, SyncReply, SyncRequest
from parsync.core.master import MasterCore
from parsync.core.participant import Decider, Participant
from parsync.core.workers import WorkerPool
from parsync.metrics.record import Record
from parsync.metrics.tables import SCHEMAS, Tables, measured_tables
from parsync.runtime.arm_directory import (
    ARM_FILE,
    ArmEnd,
    LogEnd,
    read_assembly,
    read_end,
    shortfall,
)
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import RunAudit
from parsync.runtime.effect_interpreter import RecordListener, ignore
from parsync.runtime.faults import PLAN_LIMIT_S, plan_limit
from parsync.runtime.json_files import digest_of, read_bytes
from parsync.runtime.live.cell import (
    CellRuntime,
    CellSideLoop,
    HandledListener,
    hosts_of,
    replay_frame,
)
from parsync.runtime.live.logs import CELL_LOG, Frame, handled_logs, log_ends, read_cell_log
from parsync.runtime.live.plan import CELL, COORDINATOR_NAME, SOURCE, WORKER_POOL
from parsync.runtime.live.steps import Step
from parsync.runtime.recomputed_tables import (
    AT_THE_END,
    KILLED,
    RecomputedTables,
    last_sample_us,
    measured_only,
)
from parsync.runtime.records import RecordSink, merge_parts
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError
from shared_state.invariants import AuditCounts, InvariantViolation
from shared_state.journal import read_journal
from shared_state.tasks import Int64

INTERRUPTED = "interrupted"  # how an arm ended that a user stopped

# (host, its epoch) -> agent -> replies in order
SyncQueues = dict[tuple[int, int], dict[int, deque[SyncReply]]]
Hosts = tuple[tuple[int, str, tuple[int, ...]], ...]
# bytes of the logs replayed so far, and in all
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay.

    Attributes:
        steps: That the cell handled.
        epochs: Of the cell.
        events: That the participants of each other actor handled, by the actor's name.
        divergence: The first difference of effects; None if there is none.
        counts: The audit's; None without the cell's log.
        gaps: What is missing from the logs, or differs from what they were when the arm ended; a
            sentence each.
        end: How the arm ended; None if it was killed or still runs. Then it is unknown whether
            events are missing at the end of a log.
        cell_log: The cell's log as it is.
        quota_rounds: Of the coordinator, whose grants were found correct and obeyed.
        limited_commits: Requests of schedulers that limit themselves, found to keep the limits.
        tables: What the actors measured; None if nothing of it can be compared with the run's.
    """

    steps: int = 0
    epochs: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    divergence: str | None = None
    counts: AuditCounts | None = None
    gaps: tuple[str, ...] = ()
    end: ArmEnd | None = None
    cell_log: LogEnd | None = None
    quota_rounds: int = 0
    limited_commits: int = 0
    tables: RecomputedTables | None = None


def replay(
    directory: Path,
    on_progress: Progress = ignore,
    folder: Path | None = None,
    tables_dir: Path | None = None,
) -> Replayed:
    """Replay the logs in `directory`, as far as they are there.

    Args:
        directory: Where they are.
        on_progress: Called with the bytes of logs replayed so far, and of all.
        folder: Where the arm's tables are, which say when each actor ended.
        tables_dir: An empty folder for what the actors measure; None: that is not kept.

    Raises:
        AgoraError: A file is missing without which nothing can be replayed, is corrupt, or is not
            what its name says.
        InvariantViolation: The run broke an invariant of the cell, a quota or a limit.
    """
    assembly, _ = read_assembly(directory)
    end = read_end(directory)
    found = log_ends(directory)
    gaps = [] if end is None else _gaps(directory, end, found)
    if CELL_LOG not in found:
        return Replayed(gaps=(*gaps, *(() if gaps else (f"{CELL_LOG} is missing",))), end=end)
    whole = end is not None and end.stopped in ("", INTERRUPTED) and not gaps
    records = None
    if whole and folder is not None and tables_dir is not None:
        records = _RepeatedRecords(assembly, folder, tables_dir, end.recovered if end else ())
    run = _Replay(directory, assembly, end, found, on_progress, records)
    try:
        if not run.cell():
            return run.result(gaps)
        for name, host, make_actor in run.actors():
            logs = handled_logs(directory, name)
            if not logs and not _is_named(name, end):
                gaps.append(f"{name} has no log")
            for epoch, path in logs:
                actor = make_actor()
                if not run.actor(name, actor, path, (host, epoch), len(logs)):
                    return run.result(gaps)
        run.end_of_cell()
    finally:
        if records is not None:
            records.close()
    made = None if records is None else records.made()
    return replace(run.result(gaps), tables=made)


def _gaps(directory: Path, end: ArmEnd, found: Mapping[str, LogEnd]) -> list[str]:
    """How the files differ from those of the arm as it ended."""
    gaps = []
    if digest_of(read_bytes(directory / ARM_FILE)) != end.arm:
        gaps.append(f"{ARM_FILE}: differs from what it was when the arm ended")
    for name, expected in end.logs.items():
        gap = shortfall(name, found.get(name), expected)
        if gap is not None:
            gaps.append(gap)
    gaps += [f"{name}: no log of this arm" for name in found if name not in end.logs]
    return gaps


def _is_named(actor: str, end: ArmEnd | None) -> bool:
    """Whether the arm ended with a log of this actor; a gap says already that it is missing."""
    return end is not None and any(name.startswith(f"{actor}-") for name in end.logs)


class _Replay:
    """The replay of one arm's logs, the cell's first."""

    def __init__(
        self,
        directory: Path,
        assembly: Assembly,
        end: ArmEnd | None,
        found: Mapping[str, LogEnd],
        on_progress: Progress,
        records: _RepeatedRecords | None,
    ) -> None:
        self._records = records
        self._master: MasterCore | None = None
        self._due_ends: tuple[Int64, Int64] | None = None
        self._path = directory / CELL_LOG
        self._assembly = assembly
        self._end, self._cell_log = end, found[CELL_LOG]
        # if the cell's log is known to be cut, syncs that it lacks are no divergence
        self._cell_is_whole = end is not None and end.logs.get(CELL_LOG) == found[CELL_LOG]
        self._on_progress = on_progress
        self._done = 0
        self._total = sum((directory / name).stat().st_size for name in found)
        self._hosts: Hosts = ()
        self._queues: SyncQueues = defaultdict(lambda: defaultdict(deque))
        self._steps = self._epochs = 0
        self._events: dict[str, int] = {}
        self._divergence: str | None = None
        self._counts: AuditCounts | None = None
        self._audit = RunAudit(assembly)

    def result(self, gaps: list[str]) -> Replayed:
        """What was found."""
        return Replayed(
            self._steps,
            self._epochs,
            self._events,
            self._divergence,
            self._counts,
            tuple(gaps),
            self._end,
            self._cell_log,
            self._audit.quota_rounds,
            self._audit.limited_commits,
        )

    def cell(self) -> bool:
        """Replay the cell's log under audit; False at a divergence."""
        assembly, path = self._assembly, self._path
        frames = read_cell_log(path)
        _, _, self._hosts = next(frames)  # there is one: read_cell_log sees to it
        agents_of = {host: agents for host, _, agents in self._hosts}
        if sorted(agent for agents in agents_of.values() for agent in agents) != list(
            range(assembly.arm.agents)
        ):
            raise AgoraError(f"{path}: frame 0: lists the hosts of another run")
        bare = assembly.master()
        cell = bare.cell
        self._master = bare
        runtime = CellRuntime(
            assembly.codec,
            cast(MasterCore, self._audit.master(bare)),
            hosts_of(agents_of),
            len(assembly.workload.tasks),
            self._taker(CELL, (), 1),
            assembly.cell_side,
            assembly.tables,
        )
        for number, frame in enumerate(frames, start=1):
            equal = _handled(runtime, frame, f"{path}: frame {number}")
            if not equal:
                self._divergence = (
                    f"{path}: frame {number}, at {runtime.now_us} us: other effects than logged"
                )
                break
            self._epochs += frame[0] == Frame.EPOCH
            if frame[0] == Frame.STEP:
                self._advance(len(frame[2]))
                self._keep_syncs(runtime, Step.of(assembly.codec, frame[2]))
        else:
            self._audit.matches(cell)
        self._steps = runtime.steps
        self._counts = self._audit.cell_counts()
        return self._divergence is None

    def actors(self) -> list[tuple[str, int, Callable[[], ReplayedActor]]]:
        """Every actor but the cell's, as (name, id as a host, what makes its participants)."""
        assembly = self._assembly

        def agents(indexes: tuple[int, ...]) -> ReplayedActor:
            made = {index: assembly.agent(index) for index in indexes}
            return ReplayedActor(assembly.codec, made, made, assembly.tables)

        def one(address: int, make: Callable[[], Participant]) -> ReplayedActor:
            return ReplayedActor(assembly.codec, {address: make()}, {}, assembly.tables)

        return [
            (COORDINATOR_NAME, COORDINATOR, partial(one, COORDINATOR, assembly.coordinator)),
            (SOURCE, ARRIVALS, partial(one, ARRIVALS, assembly.arrivals)),
            *((name, host, partial(agents, indexes)) for host, name, indexes in self._hosts),
            (WORKER_POOL, WORKERS, partial(one, WORKERS, assembly.workers)),
        ]

    def actor(
        self, name: str, actor: ReplayedActor, path: Path, host_epoch: tuple[int, int], epochs: int
    ) -> bool:
        """Feed an actor's log to its participants, made anew; False at a divergence.

        Args:
            host_epoch: Its id as a host, and the epoch of the log.
            epochs: How many the actor had.
        """
        replies = self._queues[host_epoch]
        agents = next((of for host, _, of in self._hosts if host == host_epoch[0]), ())
        take = self._taker(name, agents, epochs)
        last_us = 0
        for number, payload in enumerate(read_journal(path), start=1):
            self._advance(len(payload))
            entry = actor.entry(payload, f"{path}: event {number}")
            address, event = entry.address, entry.event
            agent = f"{self._assembly.arm.agent_name(address)} " if address >= 0 else ""
            where = f"{path}: event {number}, {agent}at {entry.at_us} us"
            if isinstance(event, tuple):
                if not replies[address] and not self._cell_is_whole:
                    return True  # no further: the cell's log ends before this reply
                event = _reply(event, replies[address])
                if event is None:
                    self._divergence = f"{where}: a sync reply that the replayed cell did not give"
                    return False
            self._events[name] = self._events.get(name, 0) + 1
            try:
                effects, digest = actor.effects_of(address, entry.at_us, event)
            except Exception as error:  # the live core had none, or its log would end before
                self._divergence = f"{where}: {type(error).__name__}: {error}"
                return False
            if digest != entry.digest:
                self._divergence = f"{where}: {type(event).__name__} has other effects than logged"
                return False
            self._audit.handled(address, entry.at_us, event, effects)
            last_us = entry.at_us
            for effect in effects:
                if isinstance(effect, Record):
                    take(effect)
        if self._records is not None and name != COORDINATOR_NAME:
            self._records.finish(name, actor, agents, epochs, last_us)
            if name == WORKER_POOL:
                end_us, allocation, _ = cast(WorkerPool, actor.participant(WORKERS)).due_ends()
                self._due_ends = allocation, end_us
        return True

    def end_of_cell(self) -> None:
        """Take what the cell measures at its end, from what the worker pool handed over."""
        if self._records is None or self._master is None:
            return
        if self._due_ends is not None:
            self._master.record_due_ends(*self._due_ends)
        take = self._taker(CELL, (), 1)
        for record in self._master.finish(0):  # it makes no use of the time
            take(record)

    def _taker(self, name: str, agents: Collection[int], epochs: int) -> RecordListener:
        if self._records is None or name == COORDINATOR_NAME:  # which measures nothing
            return ignore
        return self._records.taker(name, agents, epochs)

    def _keep_syncs(self, runtime: CellRuntime, step: Step) -> None:
        """Keep the sync replies of the step just replayed for the agents they went to."""
        for address, data in runtime.codec.decode(runtime.known(step) or b""):
            event = runtime.codec.decode(data)
            if isinstance(event, SyncReply):
                self._queues[step.host, step.epoch][address].append(event)

    def _advance(self, size: int) -> None:
        self._done = min(self._done + size, self._total)
        self._on_progress(self._done, self._total)


def _handled(runtime: CellRuntime, frame: tuple[Any, ...], where: str) -> bool:
    """Whether a frame of the cell's log has the logged effects.

    Raises:
        AgoraError: No cell can have logged this frame.
    """
    try:
        return replay_frame(runtime, frame)
    except InvariantViolation:
        raise
    except AgoraError as error:
        raise AgoraError(f"{where}: {error}") from error
    except Exception as error:  # a foreign frame may hold anything
        raise AgoraError(
            f"{where}: not an event of a cell: {type(error).__name__}: {error}"
        ) from error


def _reply(logged: tuple[Any, ...], replies: deque[SyncReply]) -> SyncReply | None:
    """The next sync reply, if it is the logged one: (epoch, ((partition, from, to), ...))."""
    if not replies:
        return None
    reply = replies.popleft()
    moved = tuple((delta.partition, delta.from_version, delta.to_version) for delta in reply.deltas)
    return reply if (reply.epoch, moved) == logged else None


@dataclass(frozen=True, slots=True)
class Entry:
    """A frame of an actor's log.

    Attributes:
        address: Of the participant that handled the event.
        at_us: Run time of that.
        event: In its log form: a sync reply is a tuple (parsync.core.codec).
        digest: Of the effects that the event had (logs.py).
    """

    address: int
    at_us: int
    event: Any
    digest: bytes


class ReplayedActor:
    """The participants of an actor, made anew.

    Args:
        codec: Of the arm.
        participants: By address.
        deciders: Those of them that take decisions.
        tables: Of the arm.
    """

    def __init__(
        self,
        codec: Codec,
        participants: Mapping[int, Participant],
        deciders: Mapping[int, Decider],
        tables: Tables = SCHEMAS,
    ) -> None:
        self._codec = codec
        self._digest = codec.event_effects_digest(measured_tables(tables))
        self._participants = participants
        self._deciders = deciders

    def entry(self, payload: bytes, where: str) -> Entry:
        """The entry in a frame of the actor's log.

        Args:
            payload: The frame.
            where: Names the file and the frame, for messages.

        Raises:
            AgoraError: The frame is not an entry of the log of an actor with these participants.
        """
        try:
            logged, digest = decode(payload)
            address, at_us, event = self._codec.decode(logged)
        except Exception as error:  # a foreign frame may hold anything
            raise AgoraError(f"{where}: not an entry of an actor's log: {error}") from error
        known = type(address) is int and address in self._participants
        if not (known and type(at_us) is int and type(digest) is bytes):
            raise AgoraError(f"{where}: belongs to another actor's log")
        if type(event) is not tuple and not isinstance(event, Event):
            raise AgoraError(f"{where}: not an event of an actor's log")
        return Entry(address, at_us, event, digest)

    def effects_of(self, address: int, at_us: int, event: Event) -> tuple[list[Effect], bytes]:
        """Let a participant handle an event. Return its effects and their digest.

        A decision that it starts is computed as it was: at once, and with the decision time that
        was measured then. Exceptions of the participant pass through.
        """
        decider = self._deciders.get(address)
        if decider is not None and isinstance(event, DecisionDone):
            decider.decision_us(event.elapsed_ns)
        effects = self._participants[address].handle(at_us, event)
        digest = self._digest.of(effects)
        if decider is not None:
            for effect in effects:
                if isinstance(effect, StartDecision):
                    self._decide(decider, effect.decision, at_us)
        return effects, digest

    def participant(self, address: int) -> Participant:
        """The participant of an address."""
        return self._participants[address]

    def finish(self, now_us: int) -> Iterator[tuple[int, Record]]:
        """The measurements that the participants still hold at the end, each with the address of
        its participant."""
        for address in sorted(self._participants):
            for record in self._participants[address].finish(now_us):
                yield address, record

    @staticmethod
    def _decide(decider: Decider, decision: int, at_us: int) -> None:
        # Where a scheduler broke its contract it does so again: the run ended there. (Where it did
        # not, the round's DecisionDone follows, and finds no plan.)
        with contextlib.suppress(ContractBroken), plan_limit(PLAN_LIMIT_S, lambda: at_us):
            decider.decide(decision, at_us)


class _RepeatedRecords:
    """The measurements of a live arm's actors, made again.

    Args:
        assembly: Of the arm.
        folder: Where its tables are.
        tables_dir: Receives those that are made again.
        recovered: The actors whose measurements the run computed from logs. They are not made
            again: the logs that they rest on are removed at the end of a run.
    """

    def __init__(
        self, assembly: Assembly, folder: Path, tables_dir: Path, recovered: Collection[str]
    ) -> None:
        self._assembly = assembly
        self._folder = folder
        self._tables_dir = tables_dir
        self._recovered = set(recovered)
        self._sinks: dict[str, RecordSink] = {}
        self._not_made = measured_only(assembly.tables)
        self._lost_agents: set[int] = set()
        self._of_agents: set[str] = set()
        self._of_others: set[str] = set()

    def taker(self, name: str, agents: Collection[int], epochs: int) -> RecordListener:
        """What takes the records of an actor.

        Args:
            agents: Those that it hosts.
            epochs: Of the actor; the cell's makes its measurements anew in each.
        """
        is_lost = name in self._recovered or (epochs > 1 and bool(agents))
        if is_lost:
            self._lost_agents.update(agents)
        elif name not in self._sinks:
            self._sinks[name] = RecordSink(self._tables_dir, name, self._assembly.tables)

        def take(record: Record) -> None:
            table = record.table
            (self._of_agents if agents else self._of_others).add(table)
            if is_lost and not (agents and "agent" in self._assembly.tables[table].dtypes):
                self._not_made.setdefault(table, KILLED)
            elif not is_lost and table not in self._not_made:
                self._sinks[name].add(table, record.columns)

        return take

    def finish(
        self, name: str, actor: ReplayedActor, agents: Collection[int], epochs: int, last_us: int
    ) -> None:
        """Take what an actor's participants hold at their end.

        Args:
            last_us: The time of its last event. What it makes at its end has the time of that,
                which the last samples of its agents tell.
        """
        take = self.taker(name, agents, epochs)
        sample_us = last_sample_us(self._folder, list(agents)) if agents else None
        at_us = last_us if sample_us is None else max(last_us, sample_us)
        for address, record in actor.finish(at_us):
            if sample_us is None and address != ARRIVALS:
                self._not_made.setdefault(record.table, AT_THE_END)
            take(record)

    def close(self) -> None:
        """Write what is held."""
        for sink in self._sinks.values():
            sink.close()

    def made(self) -> RecomputedTables:
        """The tables, which are closed."""
        merge_parts(self._tables_dir, self._assembly.tables)
        return RecomputedTables(
            self._assembly,
            self._tables_dir,
            self._not_made,
            frozenset(self._lost_agents),
            frozenset(self._of_others - self._of_agents),
        )


@dataclass(frozen=True, slots=True)
class Handled:
    """An event that the master handled again.

    Attributes:
        at_us: The cell's time.
        epoch: Of the host whose step led to it; -1 if none did.
        event: The event.
        effects: What the master asked for.
    """

    at_us: int
    epoch: int
    event: Event
    effects: list[Effect]


def replay_master(
    codec: Codec,
    log: Path,
    master: Participant,
    cell_side: Mapping[int, Participant],
    on_outgoing: Callable[[int, int, Event], None] = ignore,
) -> Iterator[Handled]:
    """Feed a cell's log to a master as it was at the start of the run.

    Agents' requests to sync are left out: they change nothing.

    Args:
        codec: Of the arm.
        log: The cell's.
        master: Handles the events.
        cell_side: The other participants beside the cell, new, by address.
        on_outgoing: Called with (time, address, event) of each message to other processes.

    Returns:
        Every event that the master handles, in order. Times never decrease.

    Raises:
        AgoraError: As read_cell_log.
    """
    frames = read_cell_log(log)
    _, _, hosts = next(frames)
    host_of = hosts_of({host: agents for host, _, agents in hosts})
    loop = _MasterLoop({MASTER: master, **cell_side}, host_of, on_outgoing)
    for frame in frames:
        loop.epoch = -1
        if frame[0] == Frame.EPOCH:
            _, epoch, at_us, _ = frame
            loop.start(epoch, at_us)
        else:
            _, at_us, request, _ = frame
            step = Step.of(codec, request)
            loop.epoch = step.epoch
            loop.run(at_us, (message for message in step.messages if not _only_reads(*message)))
        yield from loop.handled_by_master
        loop.handled_by_master.clear()


def _only_reads(to: int, event: Event) -> bool:
    return to == MASTER and type(event) is SyncRequest


class _MasterLoop(CellSideLoop):
    """Keeps what the master handled, and hands on the messages to other processes."""

    def __init__(
        self,
        participants: Mapping[int, Participant],
        addresses: Collection[int],
        on_outgoing: Callable[[int, int, Event], None],
    ) -> None:
        super().__init__(participants, addresses, ignore)
        self._on_outgoing = on_outgoing
        self.epoch = -1
        self.handled_by_master: list[Handled] = []

    @property
    def handled_listener(self) -> HandledListener:
        return self._handled

    def _handled(self, address: int, event: Event, effects: list[Effect]) -> None:
        if address == MASTER:
            self.handled_by_master.append(Handled(self.now_us, self.epoch, event, effects))

    def outgoing(self, to: int, event: Event) -> None:
        self._on_outgoing(self.now_us, to, event)
