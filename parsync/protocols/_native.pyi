# The compiled module (parsync/protocols/native). Of views and planners, the faces carry the types.
from typing import Any

from parsync.core._native import PassedOver, QueuedTasks, QuotaAccount
from parsync.protocols.optimistic.event import OptimisticEvent
from parsync.protocols.optimistic.rounds import Round
from shared_state.static_frozen import static_frozen
from shared_state.tasks import Int32, Int64

def __getattr__(name: str) -> Any: ...

@static_frozen
class SyncDue(OptimisticEvent):
    k: int

@static_frozen
class RequeueDue(OptimisticEvent):
    key: int

@static_frozen
class RetryDue(OptimisticEvent):
    round: int

@static_frozen
class RoundDue(OptimisticEvent): ...

@static_frozen
class DemandReport(OptimisticEvent):
    task: Int64

@static_frozen
class DemandRequest(OptimisticEvent):
    agent: int
    version: int

@static_frozen
class DemandReply(OptimisticEvent):
    version: int
    waiting: int
    preference: Int32
    tasks: Int64
    squares: Int64

class QueueExits:
    def __init__(self) -> None: ...
    @property
    def too_large(self) -> Int64: ...
    @property
    def abandoned(self) -> Int64: ...
    @property
    def retry(self) -> int: ...

NO_EXITS: QueueExits

class PendingQueue:
    def limit_jobs(self, job: Int64, jobs_max: int) -> None: ...
    def has_new(self, now_us: int) -> bool: ...
    @property
    def has_waiting(self) -> bool: ...
    def has_next(self, now_us: int, view_changed: bool) -> bool: ...
    def add(self, work: QueuedTasks) -> None: ...
    def next_batch(self, now_us: int, view_changed: bool) -> int | None: ...
    def current(self) -> QueuedTasks: ...
    def take(self, limit: int | None) -> QueuedTasks: ...
    def holder(self, now_us: int) -> Int64: ...
    def waiting_tasks(self, now_us: int) -> list[tuple[Int64, int, int]]: ...
    def claimed_tasks(self, round_: Round) -> QueuedTasks: ...
    def on_planned(self, round_: Round) -> QueueExits: ...
    def on_committed(self, round_: Round, losers: QueuedTasks) -> QueueExits: ...
    def on_requeue_due(self, key: int) -> None: ...
    def on_adopted(self, task: Int64) -> None: ...
    def on_finished(self, task: Int64) -> bool: ...

class AgentQueue(PendingQueue):
    def __init__(
        self,
        requeues: bool,
        attempts_max: int,
        attempts_max_unplaced: int,
        gang: Int64 | None,
        whole_queue: bool,
        passed: PassedOver | None,
        account: QuotaAccount | None,
        priority: Int32 | None,
        is_own_limit: bool,
    ) -> None: ...

class SchedulerQueue(PendingQueue):
    def __init__(self, whole_queue: bool, gang: Int64 | None) -> None: ...
