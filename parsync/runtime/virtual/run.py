"""Runs one arm in virtual time, from its assembly to its digest: one process, an event heap on
integer microseconds; the same seed gives the same event log on any machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeGuard

import numpy as np

from parsync.core._native import EventQueue, NativeParticipant
from parsync.core.addresses import (
    ARRIVALS,
    COORDINATOR,
    MASTER,
    WORKERS,
    address_name,
    is_beside_cell,
)
from parsync.core.codec import Codec
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import (
    DecisionDone,
    SampleDue,
    Started,
    SyncReply,
    SyncRequest,
    TasksCancelled,
    TasksFinished,
    TasksStarted,
    TasksSubmitted,
)
from parsync.core.master import MasterCore
from parsync.core.participant import Agent, Decider, Participant
from parsync.core.workers import WorkerPool
from parsync.metrics.record import GatheredRecords, Measurements, Record
from parsync.protocols.optimistic.events import SyncDue
from parsync.protocols.spec import ProtocolBroken
from parsync.runtime.assembly import Assembly, SchedulerWatch
from parsync.runtime.audit import RunAudit
from parsync.runtime.calibration import Calibration
from parsync.runtime.effect_interpreter import DecisionInterpreter, RecordListener
from parsync.runtime.faults import (
    PLAN_LIMIT_S,
    ProtocolPart,
    blame,
    hand_out_last_records,
    plan_limit,
)
from parsync.runtime.virtual.stepped import SteppedRuntime
from parsync.spec.arm import SeededArm
from parsync.workload.workload import Workload
from shared_state.observed_cell import CellObserver, ObservedCell

REST_US = 600_000_000  # of a shorter time without activity, everything periodic is handled
STEP_US = 1_000_000  # between two looks whether nothing will happen for so long
SAMPLES_AT_REST = 1024  # between two looks for a stop signal


@dataclass(frozen=True, slots=True)
class VirtualOutcome:
    """The end of a run in virtual time.

    Attributes:
        digest: Of all events.
        ended_us: Virtual time of the end.
        events: How many there were.
        drained: Whether every task was committed or given up by then.
        waiting: Tasks that were not.
    """

    digest: str
    ended_us: int
    events: int
    drained: bool
    waiting: int


def run_virtual(
    arm: SeededArm,
    workload: Workload,
    drain_us: int,
    on_record: RecordListener,
    on_progress: Callable[[int], None],
    message_us: int = 0,
    observer: CellObserver | None = None,
    plan_limit_s: float = PLAN_LIMIT_S,
    calibration: Calibration | None = None,
    audit: RunAudit | None = None,
    watch: SchedulerWatch | None = None,
) -> VirtualOutcome:
    """Run an arm until every task is committed, at most drain_us past the workload's end.

    Args:
        arm: The arm.
        workload: Its workload.
        drain_us: The longest time after the workload's end.
        on_record: Called with the measurements of every sample interval, a Record per table.
        on_progress: Called with the virtual time once per sample interval, or less often while
            nothing happens for long.
        message_us: How long a message takes from one participant to another (0 as in the reference
            model of ParSync section 4.3). The master and the participants beside it share a
            process: a message between two of them takes no time.
        observer: Learns of every call to the cell (parsync.metrics.kinds.regret).
        plan_limit_s: Wall time after which a scheduler's call counts as never returning.
        calibration: The times of the live runtime, which is then what is run; message_us has no
            effect.
        audit: Checks all that the cell answers, and what comes of every event.
        watch: Called with every scheduler that is made.

    Raises:
        ContractBroken: A scheduler, or the code of a protocol that users brought, breaks its
            contract.
        InvariantViolation: The audit found a fault.

    Any exception, Ctrl-C too, passes through. What was recorded before has been handed out then,
    except for the last sample interval.
    """
    assembly = Assembly.of(arm, workload, watch)
    static_state = assembly.static_state()
    agents = [assembly.agent(index, static_state) for index in range(arm.agents)]
    master, workers, arrivals = assembly.master(), assembly.workers(), assembly.arrivals()
    bare_cell = master.cell
    audited: Participant = master
    if audit is not None:
        audited = audit.master(master, observer)
    elif observer is not None:
        master.cell = ObservedCell(master.cell, observer)
    participants: dict[int, Participant] = dict(enumerate(agents))
    participants |= assembly.cell_side(master.cell)
    participants |= {
        MASTER: audited,
        WORKERS: workers,
        COORDINATOR: assembly.coordinator(),
        ARRIVALS: arrivals,
    }
    deciders = dict(enumerate(agents))
    records = GatheredRecords(assembly.tables, on_record)
    runtime: VirtualRuntime | SteppedRuntime
    if calibration is None:
        runtime = VirtualRuntime(
            participants,
            deciders,
            records.take,
            assembly.codec,
            message_us,
            assembly.parts,
            audit,
            records.rows,
        )
    else:
        runtime = SteppedRuntime(assembly, participants, deciders, records.take, calibration, audit)
    pace = _Pace(runtime, agents, arm.sample_us, workload.end_us)
    waiting = -1

    def call_under_way() -> int | None:
        return runtime.events if any(agent.calling for agent in agents) else None

    try:
        with plan_limit(plan_limit_s, call_under_way):
            while True:
                waiting = sum(agent.queued for agent in agents)
                if arrivals.exhausted:
                    waiting += _tasks_under_way(runtime, deciders)
                if arrivals.exhausted and waiting == 0 and runtime.now_us >= workload.end_us:
                    break
                if runtime.now_us >= workload.end_us + drain_us:
                    break
                pace.advance()
                records.hand_out()
                on_progress(runtime.now_us)
    finally:
        try:
            _record_due_ends(runtime, master, workers)
            runtime.finish()
        finally:
            records.hand_out()
    if audit is not None:
        audit.matches(bare_cell)
    return VirtualOutcome(runtime.digest, runtime.now_us, runtime.events, waiting == 0, waiting)


class _Pace:
    """Runs an arm one sample interval after the other, and faster where nothing happens for longer
    than REST_US.

    Args:
        runtime: Whose time is a multiple of sample_us.
        agents: Of the arm.
        sample_us: The length of an interval.
        end_us: The workload's end.
    """

    def __init__(
        self,
        runtime: VirtualRuntime | SteppedRuntime,
        agents: Sequence[Agent],
        sample_us: int,
        end_us: int,
    ) -> None:
        self._runtime = runtime
        self._agents = agents
        self._sample_us = sample_us
        self._end_us = end_us
        self._rest_end_us = 0

    def advance(self) -> None:
        """Run until the end of the interval, or of a later one if nothing happens until then."""
        runtime, sample_us = self._runtime, self._sample_us
        stop_us = runtime.now_us + sample_us
        while runtime.now_us < stop_us:
            if isinstance(runtime, VirtualRuntime) and self._rests(runtime):
                until_us = min(self._rest_end_us, runtime.now_us + SAMPLES_AT_REST * sample_us)
                stop_us = max(stop_us, -(-until_us // sample_us) * sample_us)
                # once per sample, but not more than about once a second
                runtime.rest_until(until_us, -(-STEP_US // sample_us) * sample_us)
            else:
                runtime.run_until(min(stop_us, runtime.now_us + STEP_US))

    def _rests(self, runtime: VirtualRuntime) -> bool:
        """Whether nothing will happen in the cell for a while: no task waits, and no event but
        periodic ones is due. Views are synchronised as usual again a second before one is."""
        now_us = runtime.now_us
        if now_us >= self._rest_end_us and not any(agent.queued for agent in self._agents):
            activity_us = runtime.next_activity_us()
            until_us = self._end_us if activity_us is None else min(activity_us, self._end_us)
            if until_us - now_us > REST_US:
                self._rest_end_us = until_us - STEP_US
        return now_us < self._rest_end_us


def _tasks_under_way(runtime: VirtualRuntime | SteppedRuntime, agents: Mapping[int, Agent]) -> int:
    """The number of submitted tasks that no agent has received yet."""
    return sum(
        len(event.task)
        for address in agents
        for _, event in runtime.under_way(address, TasksSubmitted)
        if isinstance(event, TasksSubmitted)
    )


def _record_due_ends(
    runtime: VirtualRuntime | SteppedRuntime, master: MasterCore, workers: WorkerPool
) -> None:
    """Record when the tasks that still run are due to end.

    Messages that are under way count: starts and cancellations that the worker pool has not
    handled, and ends that the master has not handled.
    """
    for _, event in runtime.under_way(WORKERS, TasksStarted, TasksCancelled):
        assert isinstance(event, TasksStarted | TasksCancelled)
        workers.execute(event)
    due_us, allocation, _ = workers.due_ends()
    for at_us, event in runtime.under_way(MASTER, TasksFinished):
        assert isinstance(event, TasksFinished)
        allocation = np.concatenate([allocation, event.allocation])
        due_us = np.concatenate([due_us, np.full(len(event.allocation), at_us)])
    master.record_due_ends(allocation, due_us)


Handler = Callable[[int, Event], list[Effect]]
# What goes on whether or not anything happens in the cell.
PERIODIC = (SampleDue, SyncDue, SyncRequest, SyncReply)


class VirtualRuntime:
    """Drives all participants of an arm in virtual time.

    A decision takes the time that its decider's clock gives it. The digest covers every handled
    event in order, with its time and address.

    Args:
        participants: By address.
        deciders: Those of them that take decisions.
        on_record: Called with every Record as it is made.
        codec: Encodes the events of the arm's protocols.
        message_us: How long a message takes from one participant to another. Those that live
            beside the cell share a process, so a message between two of them takes no time.
        parts: Those of the participants that are of protocols which users brought.
        audit: Checks what comes of every event, before it is carried out.
        gathered: Takes over the rows that native participants hand out, which on_record does not
            get then. None: it gets all.
    """

    def __init__(
        self,
        participants: Mapping[int, Participant],
        deciders: Mapping[int, Decider],
        on_record: RecordListener,
        codec: Codec,
        message_us: int = 0,
        parts: Mapping[int, ProtocolPart] = MappingProxyType({}),
        audit: RunAudit | None = None,
        gathered: Measurements | None = None,
    ) -> None:
        self._gathered = gathered
        beside_cell = frozenset(filter(is_beside_cell, participants))
        self._queue = EventQueue(message_us, beside_cell)
        self.send = self._queue.send
        self.set_timer = self._queue.set_timer
        self._message_us = message_us
        self._participants = participants
        self._parts = parts
        self._codec = codec
        self._audit = audit
        self._broken = False
        self._on_record = on_record
        self._deciders = deciders
        self._digest = codec.log_digest()
        for address in sorted(participants):
            self.set_timer(0, 0, Started(epoch=0), address)

    @property
    def digest(self) -> str:
        """Hex digest of all events handled so far."""
        return self._digest.hexdigest()

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self._queue.now_us

    @property
    def events(self) -> int:
        """How many events were handled so far."""
        return self._queue.handled

    def run_until(self, until_us: int) -> None:
        """Handle every event up to and including until_us.

        Raises:
            ProtocolBroken: A participant of a protocol that users brought breaks its contract.
            AgoraError: Another participant sends to an address without a participant, or decides
                without being a decider.
        """
        queue, digest = self._queue, self._digest
        handlers = {
            address: self._handler(address, participant)
            for address, participant in self._participants.items()
        }
        # Kept, the interpreter and the runtime would refer to each other, and the memory of a run
        # that has ended would wait for the garbage collector.
        carry_out = DecisionInterpreter(self, self._participants, self._deciders).carry_out
        try:
            hash_frames, gathered = digest.hash_frames, self._gathered
            queue.run_until(until_us, digest.frames, handlers, carry_out, hash_frames, gathered)
        except Exception as error:
            self._broken = True
            address, event = queue.address, queue.event
            if event is not None:
                self._check_encodable(address, event)
                blame(error, self._parts.get(address), self._participants[address], event)
            raise

    def next_activity_us(self) -> int | None:
        """When the earliest event is due that is not PERIODIC; None if there is none."""
        times_us = (at_us for at_us, _, event in self._queue.waiting() if _is_activity(event))
        return next(times_us, None)

    def rest_until(self, until_us: int, interval_us: int) -> None:
        """As run_until, for a time in which nothing but PERIODIC events are due.

        Agents then synchronise once per interval, just before its end, and at until_us: all
        synchronisations that are due meanwhile are done together, as where a runtime is late. No
        view misses anything by that, because no row of the cell changes.

        Args:
            until_us: The last time in which nothing else is due.
            interval_us: The length of the intervals, which begin at multiples of it.
        """
        before_us = min(4 * self._message_us + 1000, interval_us // 2)  # for question and answer
        self._queue.begin_rest(SyncDue, until_us, interval_us, before_us)
        try:
            self.run_until(until_us)
        finally:
            self._queue.end_rest()

    def _handler(self, address: int, participant: Participant) -> Handler | NativeParticipant:
        handle, audit = participant.handle, self._audit
        if audit is None:
            return participant if _is_native(participant) else handle

        def audited(now_us: int, event: Event) -> list[Effect]:
            effects = handle(now_us, event)
            audit.handled(address, now_us, event, effects)
            return effects

        return audited

    def _check_encodable(self, address: int, event: Event) -> None:
        """Raise ProtocolBroken if the event that a participant was to handle is one of a protocol
        that users brought and cannot be encoded."""
        receiver = self._parts.get(address)
        kinds = {part.protocol for part in self._parts.values()}
        kind = getattr(event, "kind", None) if receiver is None else receiver.protocol
        if kind not in kinds:
            return
        try:
            self._codec.log_frame(address, self.now_us, event)
        except Exception as error:
            name = address_name(address) if receiver is None else receiver.name
            rule = (
                f"{' '.join(str(error).split())}; expected an event of ProtocolSpec.events, with "
                "fields of numbers, arrays and tuples"
            )
            raise ProtocolBroken(kind, name, f"receiving {type(event).__name__}", rule) from error

    def under_way(self, to: int, *kinds: type) -> list[tuple[int, Event]]:
        """The messages of these kinds to a participant that are sent and not delivered, with the
        times they would be, in that order."""
        return [
            (at_us, event)
            for at_us, address, event in self._queue.waiting()
            if address == to and isinstance(event, kinds)
        ]

    def finish(self) -> None:
        """Hand out the measurements that participants still hold."""
        hand_out_last_records(
            self._participants, self._parts, self.now_us, self._on_record, self._broken
        )

    def finish_decision(
        self, now_us: int, decision: int, elapsed_ns: int, decision_us: int, address: int
    ) -> None:
        """As DecidingRuntime.finish_decision."""
        # The measured time stays out of the event: a virtual run repeats, log and all.
        self.set_timer(now_us, now_us + decision_us, DecisionDone(decision, 0), address)

    def record(self, record: Record) -> None:
        """As Runtime.record."""
        self._on_record(record)


def _is_native(participant: object) -> TypeGuard[NativeParticipant]:
    """Whether it handles events in native code: a subclass may have a handle() of its own."""
    return getattr(type(participant), "handle", None) is NativeParticipant.handle


def _is_activity(event: Event) -> bool:
    return not isinstance(event, PERIODIC)
