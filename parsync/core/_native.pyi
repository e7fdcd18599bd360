from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int32, Int64

class RunningTasks:
    def __init__(
        self,
        tick_us: int,
        duration_us: Int64,
        preference: Int32,
        catalog: object,
        preferred_permille: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    def start(
        self, start_us: int, task: Int64, allocation: Int64, machine: Int32, owner: Int32
    ) -> None: ...
    def cancel(self, allocation: Int64) -> None: ...
    def take(self, now_us: int) -> tuple[Int64, Int64, Int32]: ...
    def next_us(self) -> int: ...

class RowBuffer:
    def __init__(self, bytes: list[int]) -> None: ...
    def __len__(self) -> int: ...
    def add(self, rows: int, values: tuple[Any, ...]) -> None: ...
    def read(self, columns: tuple[NDArray[Any], ...]) -> None: ...
    def clear(self) -> None: ...

class CommitLog:
    def __init__(
        self,
        agent: int,
        job: Int64,
        submit_us: Int64,
        preference: Int32,
        catalog: object,
        tasks: RowBuffer,
        rejections: RowBuffer,
    ) -> None: ...
    def add(
        self,
        now_us: int,
        task: Int64,
        machine: Int32,
        attempts: Int32,
        first: NDArray[np.int8],
        reason: NDArray[np.int8],
        rival: Int32,
        age_us: Int64,
    ) -> tuple[tuple[int, ...], int, int]: ...

class Encoder:
    def __init__(
        self, array_type: type, integer_type: type, contiguous: Callable[..., Any]
    ) -> None: ...
    def add_class(self, cls: type, code: int, fields: list[str]) -> None: ...
    def add_form(self, cls: type, code: int, form: Callable[[Any], Any]) -> None: ...
    def encode(self, value: object) -> bytes: ...

class Frames:
    def __init__(self, encoder: Encoder) -> None: ...
    def append(self, value: object) -> int: ...
    def take(self) -> bytes: ...
