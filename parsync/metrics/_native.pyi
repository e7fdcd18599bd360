from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int32, Int64

class RowBuffer:
    def __init__(self, bytes: list[int]) -> None: ...
    def __len__(self) -> int: ...
    def add(self, rows: int, values: tuple[Any, ...]) -> None: ...
    def arrays(self) -> tuple[NDArray[Any], ...]: ...
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
        sequence: int,
        cell_us: int,
        task: Int64,
        machine: Int32,
        attempts: Int32,
        first: NDArray[np.int8],
        reason: NDArray[np.int8],
        rival: Int32,
        age_us: Int64,
    ) -> tuple[tuple[int, ...], int, int]: ...
