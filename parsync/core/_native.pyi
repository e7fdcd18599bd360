from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parsync.core.effects import Effect
from parsync.core.event import CoreEvent, Event, static_frozen
from parsync.core.participant import NodeSide, Participant
from parsync.metrics.record import Measurements
from shared_state._native import CellObserver as NativeCellObserver
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver
from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitResult, PartitionDelta, Transaction

class QueuedTasks:
    task: Int64
    attempts: Int32
    first: NDArray[np.int8]
    rounds: int
    some_placed: bool
    __match_args__: ClassVar[tuple[str, ...]]
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __init__(
        self,
        task: Int64,
        attempts: Int32,
        first: NDArray[np.int8],
        rounds: int = 0,
        some_placed: bool = False,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def take(self, rows: np.ndarray | slice) -> QueuedTasks: ...
    def split(self, count: int) -> tuple[QueuedTasks, QueuedTasks]: ...
    @staticmethod
    def new(task: Int64, first: int) -> QueuedTasks: ...
    @staticmethod
    def join(parts: list[QueuedTasks]) -> QueuedTasks: ...

def split_batch(
    work: QueuedTasks, limit: int | None, gang: Int64 | None
) -> tuple[QueuedTasks, QueuedTasks]: ...

class UnitSizes:
    def __init__(
        self, request: Int64, resources: int, gang: Int64, preference: Int32, elsewhere_cost: Int64
    ) -> None: ...
    @property
    def are_alike(self) -> bool: ...

class QuotaAccount:
    def __init__(
        self, of_task: Int32, groups: int, request: Int64, resources: int, gang: Int64
    ) -> None: ...
    @property
    def held(self) -> Int64: ...
    @property
    def waiting(self) -> Int64: ...
    granted: Int64
    def submit(self, task: Int64) -> None: ...
    def offer(self, task: Int64) -> None: ...
    def withdraw(self, task: Int64) -> None: ...
    def drop(self, task: Int64) -> None: ...
    def adopt(self, task: Int64) -> None: ...
    def end(self, task: Int64) -> None: ...
    def look(self) -> None: ...
    def within(self, task: Int64) -> NDArray[np.bool_]: ...
    def has_room(self, task: Int64, before: Int64) -> bool: ...

class SkippedUnits:
    def __init__(
        self,
        sizes: UnitSizes,
        head_of_line_us: int | None,
        gang: Int64 | None,
        account: QuotaAccount | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def holds(self, now_us: int) -> bool: ...
    def holder(self, now_us: int) -> Int64: ...
    def all_tasks(self) -> Int64: ...
    def on_view_changed(self) -> None: ...
    def due(self, now_us: int, others: bool) -> int | None: ...
    def take(self, place: int, limit: int | None) -> QueuedTasks: ...
    def pass_on(self) -> None: ...
    def on_no_room(self, now_us: int, left: QueuedTasks) -> None: ...

class NativeParticipant:
    def handle(self, now_us: int, event: Event) -> list[Effect]: ...

class Master(NativeParticipant):
    def __init__(
        self,
        cell: Any,
        request: Int64,
        priority: Int32,
        initial_task: Int64,
        initial_machine: Int32,
        initial_owner: Int32,
        ends_notice: list[int],
        sample_us: int,
        watchers: list[int],
        capacity: int,
        quota_of_task: Int32 | None,
        quotas: int,
        partition_offsets: Int64,
        records: Measurements,
    ) -> None: ...
    def observe(
        self, native_cell: Any, cell: Cell, observers: list[CellObserver | NativeCellObserver]
    ) -> None: ...
    def restore_counts(self, epoch: int, running: int) -> None: ...
    def waiting_ends(self) -> tuple[tuple[int, TasksEnded], ...]: ...
    def add_waiting_ends(self, agent: int, ended: TasksEnded) -> None: ...
    def forget_ends(self, agent: int) -> None: ...
    def record_due_ends(self, allocation: Int64, end_us: Int64) -> None: ...
    @property
    def running(self) -> int: ...
    @property
    def epoch(self) -> int: ...

class WorkerPool(NativeParticipant):
    def __init__(
        self,
        heartbeat_us: int,
        duration_us: Int64,
        preference: Int32,
        catalog: object,
        preferred_permille: int,
        node_sides: list[tuple[str, NodeSide]],
        protocol_of: list[str],
    ) -> None: ...
    def execute(self, event: TasksStarted | TasksCancelled) -> None: ...
    def due_ends(self) -> tuple[Int64, Int64, Int32]: ...
    @property
    def pending_ends(self) -> int: ...

class ArrivalSource(NativeParticipant):
    def __init__(
        self,
        at_us: Int64,
        offsets: Int64,
        rows: Int64,
        agent: Int32,
        job: Int64,
        prefers: Int64,
        machine_at_us: Int64,
        machine: Int32,
        up: NDArray[np.bool_],
        records: Measurements,
    ) -> None: ...
    @property
    def exhausted(self) -> bool: ...
    @property
    def submitted(self) -> int: ...

class Encoder:
    def __init__(self, array_type: type, integer_type: type) -> None: ...
    def add_class(self, cls: type, code: int, prefix: bytes, fields: list[str]) -> None: ...
    def encode(self, value: object) -> bytes: ...
    def log_entry(self, address: int, at_us: int, event: object) -> bytes: ...

class Decoder:
    def __init__(self, make_array: Callable[[bytes], NDArray[Any]]) -> None: ...
    def add_class(self, cls: type, kind: str, number: int, fields: int) -> None: ...
    def decode(self, data: bytes) -> Any: ...

class LogFrames:
    def __init__(self, encoder: Encoder) -> None: ...
    def append(self, address: int, at_us: int, event: object) -> int: ...
    def take(self) -> bytes: ...

class EffectsDigest:
    def __init__(self, encoder: Encoder, digest_bytes: int) -> None: ...
    def add(self, value: object) -> None: ...
    def add_outgoing(self, to: int, event: object) -> bytes: ...
    def take(self) -> bytes: ...

class EventEffectsDigest:
    def __init__(self, encoder: Encoder, measured: Set[str]) -> None: ...
    def of(self, effects: Iterable[object]) -> bytes: ...

class HandledFrames:
    def __init__(self, encoder: Encoder, measured: Set[str]) -> None: ...
    def append(self, address: int, at_us: int, event: object, effects: Iterable[object]) -> int: ...
    def take(self) -> bytes: ...

class StepWaits:
    def __init__(self, submit_us: Int64, group_of: Int32, groups: int) -> None: ...
    def handled(self, at_us: int, event: Event, effects: Iterable[Effect]) -> None: ...
    def stepped(self, now_us: int) -> None: ...
    @property
    def tasks(self) -> list[int]: ...
    @property
    def submission_us(self) -> list[int]: ...
    @property
    def claim_us(self) -> list[int]: ...

class ActorLoop:
    def __init__(
        self, participants: Mapping[int, Participant], addresses: Iterable[int], lateness_us: int
    ) -> None: ...
    def deliver(self, address: int, event: Event) -> None: ...
    def send(self, to: int, event: Event, sender: int) -> None: ...
    def set_timer(self, at_us: int, event: Event, address: int) -> None: ...
    def add_decision(
        self, due_us: int, address: int, event: Event, took_us: int, over_us: int
    ) -> None: ...
    def advance(
        self,
        now_us: Callable[[], int],
        rest: Callable[[int, int, list[Effect]], None],
        on_decision: Callable[[int, int], None],
        log: HandledFrames | None,
        write_log: Callable[[], None] | None,
        waits: StepWaits | None,
        on_handled: Callable[[int, int, Event, list[Effect]], None] | None,
    ) -> None: ...
    handle_messages = advance
    def take_outgoing(self, rotation: int) -> list[tuple[int, Event]]: ...
    def messages(self) -> list[tuple[int, Event]]: ...
    @property
    def next_due_us(self) -> int | None: ...
    @property
    def unhandled(self) -> int: ...
    @property
    def has_outgoing(self) -> bool: ...
    @property
    def decision_start_us(self) -> int | None: ...
    @property
    def address(self) -> int: ...
    @property
    def event(self) -> Event | None: ...

class CellLoop:
    def __init__(
        self, participants: Mapping[int, Participant], addresses: Iterable[int]
    ) -> None: ...
    now_us: int
    def replace(self, participants: Mapping[int, Participant]) -> None: ...
    def start(
        self,
        event: Event,
        at_us: int,
        rest: Callable[[int, int, list[Effect]], None],
        outgoing: Callable[[int, Event], None],
        unknown: Callable[[int, Event], None],
        digest: EffectsDigest | None,
        on_placed: Callable[[Event], None] | None,
        on_handled: Callable[[int, Event, list[Effect]], None] | None,
    ) -> None: ...
    def run(
        self,
        messages: Iterable[tuple[int, Event]],
        at_us: int,
        rest: Callable[[int, int, list[Effect]], None],
        outgoing: Callable[[int, Event], None],
        unknown: Callable[[int, Event], None],
        digest: EffectsDigest | None,
        on_placed: Callable[[Event], None] | None,
        on_handled: Callable[[int, Event, list[Effect]], None] | None,
    ) -> None: ...
    def send(self, to: int, event: Event, sender: int) -> None: ...
    def set_timer(self, at_us: int, event: Event, address: int) -> None: ...
    def timers(self) -> tuple[int, tuple[Any, ...]]: ...
    def restore_timers(self, state: tuple[int, tuple[Any, ...]]) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def event(self) -> Event | None: ...

class EventQueue:
    def __init__(self, message_us: int, beside_cell: frozenset[int]) -> None: ...
    def send(self, now_us: int, to: int, event: Event, sender: int) -> None: ...
    def set_timer(self, now_us: int, at_us: int, event: Event, address: int) -> None: ...
    def begin_rest(
        self, event: type[Event], until_us: int, interval_us: int, before_us: int
    ) -> None: ...
    def end_rest(self) -> None: ...
    def run_until(
        self,
        until_us: int,
        log: LogFrames,
        handlers: Mapping[int, NativeParticipant | Callable[[int, Event], list[Effect]]],
        carry_out: Callable[[int, int, list[Effect]], None],
        hash_log: Callable[[], None],
        gathered: Measurements | None,
    ) -> None: ...
    def waiting(self) -> list[tuple[int, int, Event]]: ...
    @property
    def now_us(self) -> int: ...
    @property
    def handled(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def event(self) -> Event | None: ...

class NativeEvent: ...

@static_frozen
class Started(CoreEvent):
    epoch: int

@static_frozen
class TasksSubmitted(CoreEvent):
    task: Int64

@static_frozen
class SyncRequest(CoreEvent):
    agent: int
    partition: Int32
    version: Int64
    with_seqnum: bool

@static_frozen
class SyncReply(CoreEvent):
    epoch: int
    deltas: tuple[PartitionDelta, ...]

@static_frozen
class CommitRequest(CoreEvent):
    reply_to: int
    transaction: Transaction

@static_frozen
class CommitReply(CoreEvent):
    epoch: int
    scheduler: int
    result: CommitResult

@static_frozen
class DecisionDone(CoreEvent):
    decision: int
    elapsed_ns: int

@static_frozen
class TasksStarted(CoreEvent):
    start_us: int
    task: Int64
    allocation: Int64
    machine: Int32
    owner: Int32

@static_frozen
class TasksCancelled(CoreEvent):
    allocation: Int64

@static_frozen
class TasksFinished(CoreEvent):
    allocation: Int64
    owner: Int32
    end_us: Int64

@static_frozen
class TasksEnded(CoreEvent):
    change: int
    task: Int64
    allocation: Int64
    machine: Int32
    request: Int64
    version: Int64

@static_frozen
class TasksAdopted(CoreEvent):
    task: Int64
    allocation: Int64
    machine: Int32

@static_frozen
class MachinesChanged(CoreEvent):
    machine: Int32
    up: NDArray[np.bool_]

@static_frozen
class SampleDue(CoreEvent):
    sample: int

@static_frozen
class HeartbeatDue(CoreEvent): ...

@static_frozen
class PhaseDue(CoreEvent):
    phase: int

@static_frozen
class ArrivalsDue(CoreEvent):
    batch: int

@static_frozen
class MachinesDue(CoreEvent):
    row: int

@static_frozen
class ClaimsSettled(CoreEvent):
    transaction: Transaction
    result: CommitResult

@static_frozen
class AllocationsEnded(CoreEvent):
    change: int
    task: Int64
    allocation: Int64
    machine: Int32
    owner: Int32

@static_frozen
class QuotaRoundDue(CoreEvent):
    round: int

@static_frozen
class QuotaRequest(CoreEvent):
    round: int

@static_frozen
class QuotaReport(CoreEvent):
    agent: int
    round: int
    held: Int64
    waiting: Int64

@static_frozen
class QuotaGrant(CoreEvent):
    round: int
    amount: Int64
    reclaim: Int64

@static_frozen
class QuotaShares(CoreEvent):
    round: int
    wanted: Int64
    share: Int64
    limit: Int64

@static_frozen
class RunningRequest(CoreEvent):
    agent: int
    partition: Int32
    below: int

@static_frozen
class RunningReply(CoreEvent):
    partition: Int32
    allocation: Int64
    task: Int64
    machine: Int32

@static_frozen
class HoldRequest(CoreEvent):
    reply_to: int
    sequence: int
    holder: Int32
    machine: Int32
    amount: Int64

@static_frozen
class HoldReply(CoreEvent):
    sequence: int
    hold: Int64

@static_frozen
class HoldsReleased(CoreEvent):
    hold: Int64

@static_frozen
class HoldsEnded(CoreEvent):
    hold: Int64
    remainder: Int64
    cause: int

@static_frozen
class RoomFreed(CoreEvent):
    machine: Int32
