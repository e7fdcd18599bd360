from typing import Any

from parsync.protocols.optimistic.event import OptimisticEvent
from shared_state.static_frozen import static_frozen
from shared_state.tasks import Int32, Int64

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

# The other classes have faces, which carry the types.
def __getattr__(name: str) -> Any: ...
