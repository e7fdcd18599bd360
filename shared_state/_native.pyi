# The compiled module (shared_state/native). Of the cell, the view and random numbers, the modules
# (cell.py, view.py, random.py) carry the types.
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int32, Int64
from shared_state.transaction import CommitMode, ConflictCheck

def __getattr__(name: str) -> Any: ...
def fits_rows(request: Int64, free: Int64) -> NDArray[np.bool_]: ...
def fits_each(request: Int64, free: Int64, dimensions: int) -> NDArray[np.bool_]: ...
def pack_columns(*arrays: NDArray[Any]) -> bytes: ...
def unpack_columns(packed: bytes) -> list[NDArray[Any]]: ...

@dataclass(frozen=True)
class Transaction:
    scheduler: int
    sequence: int
    task: Int64
    machine: Int32
    request: Int64
    synced_us: Int64
    commit_mode: CommitMode = ...
    conflict_check: ConflictCheck = ...
    gang: Int64 | None = ...
    seqnum: NDArray[np.uint32] | None = ...
    evict: Int64 | None = ...
    holds: Int64 | None = ...
    def __len__(self) -> int: ...

@dataclass(frozen=True)
class CommitResult:
    sequence: int
    reason: NDArray[np.int8]
    allocation: Int64
    rival: Int32
    age_us: Int64
    version: Int64
    evicted: Int64
    @property
    def accepted(self) -> NDArray[np.bool_]: ...

@dataclass(frozen=True)
class PartitionDelta:
    partition: int
    from_version: int
    to_version: int
    at_us: int
    row: NDArray[np.unsignedinteger]
    used: NDArray[np.signedinteger]
    up: NDArray[np.bool_]
    seqnum: NDArray[np.uint32] | None

@dataclass(frozen=True)
class Released:
    task: Int64
    machine: Int32
    allocation: Int64
    owner: Int32
    request: Int64
    version: Int64
    def __len__(self) -> int: ...

@dataclass(frozen=True)
class Holds:
    hold: Int64
    holder: Int32
    machine: Int32
    amount: Int64
    def __len__(self) -> int: ...

class CellObserver:
    def attach(self, cell: Any) -> None: ...
    def before_change(self, now_us: int) -> None: ...
    def before_commit(self, transaction: Transaction, now_us: int) -> None: ...
    def on_commit(self, transaction: Transaction, result: CommitResult, now_us: int) -> None: ...
    def on_release(self, released: Released, now_us: int) -> None: ...
    def on_load(
        self, task: Int64, machine: Int32, request: Int64, owner: Int32, allocation: Int64
    ) -> None: ...
    def on_hold(self, holds: Holds, now_us: int) -> None: ...
    def on_holds_ended(self, ended: Holds, now_us: int) -> None: ...
    def on_machines(
        self, machine: Int32, up: NDArray[np.bool_], lost: Released, now_us: int
    ) -> None: ...
    def on_delta(self, delta: PartitionDelta, now_us: int) -> None: ...
