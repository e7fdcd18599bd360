"""The cell's side of a live run, and the log from which it comes back after a crash.

CellSideLoop drives the participants in the cell's process: the master and the cell sides of
protocols. CellRuntime adds what waits for each host, and CellService the log and the checkpoints.
Everything that they do follows from the frames of the log (logs.py) alone: times are in them,
timers fire at the first step past their time, and a reply is made from the effects. So the same log
always leads to the same states and effects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from parsync.core._native import CellLoop, EffectsDigest
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.codec import Codec, decode, encode
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import Started, TasksAdopted, TasksEnded, TasksStarted
from parsync.core.master import MasterCore
from parsync.core.participant import CellSide, Participant
from parsync.metrics.record import Record
from parsync.metrics.tables import SCHEMAS, Tables, measured_tables
from parsync.runtime.effect_interpreter import EffectInterpreter, RecordListener, no_receiver
from parsync.runtime.faults import ProtocolPart, blame
from parsync.runtime.live.checkpoint import Checkpoint, Checkpoints
from parsync.runtime.live.logs import Frame, read_cell_log
from parsync.runtime.live.steps import Step, StepDeduplicator
from schedulers.interface import ChangeKind
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.journal import JournalWriter, read_journal

DIGEST_BYTES = 16

HandledListener = Callable[[int, Event, list[Effect]], None]


class CellSideLoop:
    """Drives the participants beside the cell.

    An event is handled to its end: the messages that these participants send each other because of
    it are delivered at once, in the order of sending, before the next event. Timers fire at the
    first step past their time. Subclasses override `handled_listener`, `outgoing`, `placed` and
    `record` to see what happens.

    Args:
        participants: By address, the master among them.
        addresses: Of the run's participants in other processes.
        on_record: Called with every Record as it is made.
        parts: Those of the participants that are of protocols which users brought.
        digest: Covers the messages within the process and the timers, as they are sent and set;
            None: nothing does.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        addresses: Collection[int],
        on_record: RecordListener,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
        digest: EffectsDigest | None = None,
    ) -> None:
        self.participants = dict(participants)
        self._parts = parts
        self._on_record = on_record
        self._digest = digest
        self._everyone = frozenset(addresses) | self.participants.keys()
        self._loop = CellLoop(self.participants, addresses)

    @property
    def now_us(self) -> int:
        """The time of the step handled last."""
        return self._loop.now_us

    def start(self, epoch: int, at_us: int) -> None:
        """Begin an epoch: every participant handles Started, and earlier timers are forgotten."""
        self._run(self._loop.start, Started(epoch), at_us)

    def run(self, at_us: int, messages: Iterable[tuple[int, Event]]) -> None:
        """Handle the timers that are due at at_us, then the messages of a step in their order.

        Messages to participants in other processes go to outgoing().

        Raises:
            AgoraError: A message is addressed to nobody.
        """
        self._run(self._loop.run, messages, at_us)

    @property
    def handled_listener(self) -> HandledListener | None:
        """What is called with (address, event, effects) of every event that was handled, before its
        effects are carried out. None: nobody listens, and native participants are faster."""
        return None

    def outgoing(self, to: int, event: Event) -> None:
        """Called with every message to another process, in the order of sending."""

    def placed(self, event: Event) -> None:
        """Called with every message of the master about tasks that start or end."""

    def send(self, now_us: int, to: int, event: Event, sender: int) -> None:
        """As Runtime.send."""
        self._loop.send(to, event, sender)

    def set_timer(self, now_us: int, at_us: int, event: Event, address: int) -> None:
        """As Runtime.set_timer."""
        self._loop.set_timer(at_us, event, address)

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        self._on_record(record)

    def _run(self, run: Callable[..., None], what: object, at_us: int) -> None:
        # Kept, the interpreter and the runtime would refer to each other, and the memory of a run
        # that has ended would wait for the garbage collector.
        rest = EffectInterpreter(self, self._everyone).carry_out
        outgoing, placed, on_handled = self.outgoing, self.placed, self.handled_listener
        try:
            run(what, at_us, rest, outgoing, _refuse, self._digest, placed, on_handled)
        except Exception as error:
            address, event = self._loop.address, self._loop.event
            if event is not None:
                blame(error, self._parts.get(address), self.participants[address], event)
            raise


def _refuse(to: int, event: Event) -> None:
    """Refuse a step's message to nobody."""
    raise no_receiver("a step", to, event)


def no_cell_side(cell: Cell) -> Mapping[int, CellSide]:
    """The participants beside the master of an arm whose protocols have none."""
    return {}


class TaskPlacementState(IntEnum):
    """What the cell knows of a task, so that a restarted host's agents get every task exactly
    once."""

    NEVER_PLACED = 0
    PLACED = 1  # running, or has run
    DISPLACED = 2  # evicted or lost its machine, and not placed again


class CellRuntime(CellSideLoop):
    """The cell's side of a live run: its participants, and what waits for each host.

    It is deterministic: the same epochs and steps give the same replies, records and digests. The
    messages for a host wait in its outbox until it steps, in the order of their arrival. They come
    from the participants beside the cell and, through the steps of other hosts, from everyone else.

    Args:
        codec: Encodes the events of the arm's protocols.
        master: Has the address MASTER.
        host_of: The host of every address outside of the cell.
        tasks: How many the workload has.
        on_record: Called with every Record as it is made.
        make_cell_side: Creates the participants beside the master, by address; they may read the
            cell.
        tables: Of the arm.
        parts: Those of the participants that are of protocols which users brought.
    """

    def __init__(
        self,
        codec: Codec,
        master: MasterCore,
        host_of: Mapping[int, int],
        tasks: int,
        on_record: RecordListener,
        make_cell_side: Callable[[Cell], Mapping[int, CellSide]] = no_cell_side,
        tables: Tables = SCHEMAS,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
    ) -> None:
        cell_side = make_cell_side(master.cell)
        digest = codec.effects_digest(DIGEST_BYTES)
        super().__init__({MASTER: master, **cell_side}, host_of, on_record, parts, digest)
        self._make_cell_side = make_cell_side
        self._measured = measured_tables(tables)
        self._cell_side = dict(sorted(cell_side.items()))
        self.codec = codec
        self.master = master
        self._host_of = dict(host_of)
        self._deduplicator = StepDeduplicator()
        self._outbox: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
        self._placement_state = np.zeros(tasks, np.int8)
        self._owner = np.full(tasks, -1, np.int32)
        self._effects = digest
        self.epoch = -1
        self.steps = 0

    def begin_epoch(self, epoch: int, at_us: int) -> bytes:
        """Start the participants in a new epoch. Returns the digest of the effects."""
        self._effects.take()  # what a step that failed has left
        self.epoch = epoch
        self.start(epoch, at_us)
        return self._effects.take()

    def known(self, step: Step) -> bytes | None:
        """The reply to a step that needs no handling; None if it does."""
        return self._deduplicator.known(step)

    def handle(self, step: Step, at_us: int) -> tuple[bytes, bytes]:
        """Handle a new step.

        Returns:
            The reply, and the digest of the effects. The caller puts the step on record and then
            calls answered(), which makes the step known.
        """
        self._effects.take()  # what a step that failed has left
        self._loop.now_us = max(self.now_us, at_us)
        self.steps += 1
        if self._deduplicator.is_new_epoch(step):
            self._resync_host(step.host)
        self.run(at_us, step.messages)
        reply = self.codec.encode(tuple(self._outbox.pop(step.host, ())))
        return reply, self._effects.take()

    def answered(self, step: Step, reply: bytes) -> None:
        """Remember the reply to the step just handled, which is on record now."""
        self._deduplicator.answered(step, reply)

    def checkpoint(self) -> tuple[bytes, ...]:
        """The whole state, for restore()."""
        messages = tuple((host, tuple(waiting)) for host, waiting in sorted(self._outbox.items()))
        own = (self.epoch, self.now_us, self.steps, self._loop.timers())
        rest = self.codec.encode((self._deduplicator.checkpoint(), messages, own))
        cell_side = (self.master, *self._cell_side.values())
        states = [part for one in cell_side for part in _parts_of(self.codec, one.checkpoint())]
        return rest, self._placement_state.tobytes(), self._owner.tobytes(), *states

    def restore(self, parts: tuple[bytes, ...]) -> None:
        """Take the state that checkpoint() returned.

        Raises:
            AgoraError: It is the state of another arm, cell or workload.
        """
        rest, placement_state, owner, *states = parts
        if (len(placement_state), len(owner)) != (self._placement_state.nbytes, self._owner.nbytes):
            raise AgoraError("cell checkpoint: of another workload")
        found = _states_of(self.codec, states)
        if len(found) != 1 + len(self._cell_side):
            raise AgoraError("cell checkpoint: of another arm")
        self.master.restore(found[0])
        # they read the cell, which is another now
        self._cell_side = dict(sorted(self._make_cell_side(self.master.cell).items()))
        self.participants |= self._cell_side
        self._loop.replace(self.participants)
        for participant, state in zip(self._cell_side.values(), found[1:], strict=True):
            participant.restore(state)
        deduplicator, messages, own = self.codec.decode(rest)
        self._deduplicator.restore(deduplicator)
        self._outbox.update((host, list(waiting)) for host, waiting in messages)
        self.epoch, self._loop.now_us, self.steps, timers = own
        self._loop.restore_timers(timers)
        self._placement_state = np.frombuffer(placement_state, np.int8).copy()
        self._owner = np.frombuffer(owner, np.int32).copy()

    @property
    def waiting(self) -> int:
        """How many messages wait for the next steps of their hosts."""
        return sum(map(len, self._outbox.values()))

    def never_placed(self) -> np.ndarray:
        """The tasks that hold no place and never held one, bool[tasks]."""
        never: np.ndarray = self._placement_state == TaskPlacementState.NEVER_PLACED
        return never

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        if record.table not in self._measured:
            self._effects.add((record.table, tuple(record.columns.values())))
        super().record(record)

    def outgoing(self, to: int, event: Event) -> None:
        """Keep a message until its receiver's host steps."""
        data = self._effects.add_outgoing(to, event)
        self._outbox[self._host_of[to]].append((to, data))

    def placed(self, event: Event) -> None:
        """Take note of tasks that start, or that lose their place."""
        if type(event) is TasksStarted:
            self._placement_state[event.task] = TaskPlacementState.PLACED
            self._owner[event.task] = event.owner
        elif type(event) is TasksEnded and event.change != ChangeKind.FINISHED:
            self._placement_state[event.task] = TaskPlacementState.DISPLACED

    def _resync_host(self, host: int) -> None:
        """Bring the new agents of a restarted host up to date.

        They receive which of their tasks run and which have lost their place. What waited for the
        agents before them is dropped. Tasks that were never placed are submitted again.
        """
        self._outbox.pop(host, None)
        displaced = np.flatnonzero(self._placement_state == TaskPlacementState.DISPLACED)
        for address, its_host in sorted(self._host_of.items()):
            if its_host != host or address < 0:
                continue
            self.master.forget_ends(address)
            running = self.master.cell.allocations(address)
            if len(running):
                self.outgoing(
                    address, TasksAdopted(running.task, running.allocation, running.machine)
                )
            task = displaced[self._owner[displaced] == address]
            if len(task):
                unknown = np.full(len(task), -1, np.int64)
                request = np.zeros((len(task), self.master.cell.used.shape[1]), np.int64)
                ended = TasksEnded(
                    int(ChangeKind.LOST), task, unknown, unknown.astype(np.int32), request, unknown
                )
                self.outgoing(address, ended)


def _parts_of(codec: Codec, state: Any) -> Iterator[bytes]:
    """A participant's state as parts of a checkpoint.

    The first part holds all but the byte strings of a tuple. Each of those is a part of its own,
    without a copy: the master's has megabytes.
    """
    values = state if type(state) is tuple else (state,)
    large = [value for value in values if type(value) is bytes]
    rest = tuple(None if type(value) is bytes else (value,) for value in values)
    yield codec.encode((type(state) is tuple, rest))
    yield from large


def _states_of(codec: Codec, parts: Sequence[bytes]) -> list[Any]:
    """The states of several participants, from their parts."""
    states: list[Any] = []
    left = iter(parts)
    for head in left:
        is_tuple, rest = codec.decode(head)
        values = tuple(next(left) if value is None else value[0] for value in rest)
        states.append(values if is_tuple else values[0])
    return states


def no_records() -> int:
    """The length of the record log of a cell that keeps none."""
    return 0


class CellService:
    """A CellRuntime with its log: steps are carried out exactly once, also across crashes.

    An existing log is replayed first, from the newest checkpoint on if there is one. The runtime
    and its replies come back as they were, and so do the records made after the checkpoint. The
    caller then begins a new epoch.

    Args:
        runtime: As it is at the start of a run.
        journal: The log's path.
        fsync: Wait for the disk at each step. Then the log survives a crash of the machine, and not
            only of the process.
        checkpoints: Of this log; None: none are written.
        mark: Writes all records made so far to the record log, and returns its length in bytes.

    Attributes:
        origin_ns: The wall-clock time of the run's time 0; None before start().
        recovered_steps: The steps in the log that was found.
        replayed_steps: Those of them that the checkpoint did not include.
    """

    def __init__(
        self,
        runtime: CellRuntime,
        journal: Path,
        fsync: bool,
        checkpoints: Checkpoints | None = None,
        mark: Callable[[], int] = no_records,
    ) -> None:
        self.runtime = runtime
        self.origin_ns: int | None = None
        self._checkpoints = checkpoints
        self._mark = mark
        self._epochs = 0
        self._failure: Exception | None = None
        # a cell that was killed before its first frame left an empty log: the next is the first
        has_frames = journal.exists() and next(read_journal(journal), None) is not None
        header = next(read_cell_log(journal)) if has_frames else None
        begin = restored_steps = 0
        if header is not None:
            self.origin_ns = header[1]
            begin = self._resume()
            restored_steps = runtime.steps
            for payload in read_journal(journal, begin):
                frame = decode(payload)
                if frame[0] != Frame.HEADER:
                    self._epochs += frame[0] == Frame.EPOCH
                    replay_frame(runtime, frame)
        self.recovered_steps = runtime.steps
        self.replayed_steps = runtime.steps - restored_steps
        self._writer = JournalWriter(journal, fsync, whole=begin)

    def _resume(self) -> int:
        """Restore the newest checkpoint. Returns the bytes of the log that it includes."""
        found = None if self._checkpoints is None else self._checkpoints.take()
        if found is None:
            return 0
        self.runtime.restore(found.parts)
        self._epochs = found.epochs
        return found.log_end

    def start(self, origin_ns: int, hosts: tuple[tuple[int, str, tuple[int, ...]], ...]) -> None:
        """Begin the first epoch.

        Args:
            origin_ns: The wall-clock time of the run's time 0.
            hosts: (id, name, agents) of each scheduler host, for the log.
        """
        self.origin_ns = origin_ns
        self._writer.append(encode((int(Frame.HEADER), origin_ns, hosts)))
        self.begin_epoch(0)

    def begin_epoch(self, at_us: int) -> None:
        """Begin an epoch, before its first step."""
        digest = self.runtime.begin_epoch(self._epochs, at_us)
        self._writer.append(encode((int(Frame.EPOCH), self._epochs, self.runtime.now_us, digest)))
        self._writer.flush()
        self._epochs += 1

    def step(self, request: bytes, at_us: int) -> bytes:
        """Carry out a step exactly once.

        A step that raises an exception may be carried out in part. It is not on record, and neither
        is any step after it: they raise the same.

        Raises:
            AgoraError: The log cannot be written, or a message is addressed to nobody.
        """
        if self._failure is not None:
            raise self._failure
        step = Step.of(self.runtime.codec, request)
        reply = self.runtime.known(step)
        if reply is None:
            try:
                reply, digest = self.runtime.handle(step, at_us)
            except Exception as error:
                self._failure = error
                raise
            self._writer.append(encode((int(Frame.STEP), self.runtime.now_us, request, digest)))
            self._writer.flush()
            # not before: what the log does not hold is never acknowledged
            self.runtime.answered(step, reply)
            if self._checkpoints is not None and self._checkpoints.due(self._writer.end):
                self._checkpoint(self._checkpoints)
        return reply

    def close(self) -> None:
        """Close the log, which is complete."""
        self._writer.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def _checkpoint(self, checkpoints: Checkpoints) -> None:
        assert self.origin_ns is not None
        parts = self.runtime.checkpoint()
        checkpoints.write(
            Checkpoint(self.origin_ns, self._writer.end, self._mark(), self._epochs, parts)
        )


def replay_frame(runtime: CellRuntime, frame: tuple[Any, ...]) -> bool:
    """Feed an EPOCH or STEP frame to a runtime. Returns whether it has the logged effects."""
    if frame[0] == Frame.EPOCH:
        _, epoch, at_us, logged = frame
        return bool(runtime.begin_epoch(epoch, at_us) == logged)
    _, at_us, request, logged = frame
    step = Step.of(runtime.codec, request)
    reply, digest = runtime.handle(step, at_us)
    runtime.answered(step, reply)
    return bool(digest == logged)


def hosts_of(hosts: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """The host of every address outside of the cell, from the agents of each scheduler host. Worker
    pool, arrivals and coordinator have hosts of their own, which are known by their addresses."""
    addresses = {agent: host for host, agents in hosts.items() for agent in agents}
    return addresses | {address: address for address in (WORKERS, ARRIVALS, COORDINATOR)}
