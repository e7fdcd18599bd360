"""Files that are written whole or not at all; and files of time series, named arrays (.npz). They
are checked before they are drawn: the file may be damaged, or of another version.
"""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.interruption import stop_signals_held
from flowsolver.memory import need_memory
from flowsolver.problem_files import declared_arrays
from parsync.metrics import histogram
from parsync.metrics.kinds.conflicts import Outcome
from parsync.metrics.summary import SERIES
from shared_state.errors import AgoraError, reading


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, renamed to `path` at the end of the block, or removed if that fails.

    Stop signals are delayed until then.
    """
    unfinished = path.with_name(path.name + ".partial")
    with stop_signals_held():
        try:
            yield unfinished
            unfinished.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays into a file; it is whole, or as it was. OSError if it cannot be written."""
    named: dict[str, Any] = dict(arrays)
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **named)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays in a file. Raises AgoraError naming it if it cannot be read, or if its arrays are
    larger than this machine's memory: a small file may declare gigabytes."""
    with reading(f"{path}: cannot read the series"):
        with zipfile.ZipFile(path) as archive:
            arrays = declared_arrays(archive)
        need_memory("its arrays", sum(declared.nbytes for declared in arrays.values()))
        with np.load(path, allow_pickle=False) as file:
            read = {name: file[name] for name in arrays}
    return read


_SAMPLED = {
    "cell": ("used_permille",),
    "agents": ("agent", "queued"),
    "rounds": ("solve_us",),
    "quota_use": ("quota_group", "resource", "held"),
    "quota_shares": ("quota_group", "resource", "share"),
}


def check_series(path: Path, arrays: Mapping[str, NDArray[np.generic]], agents: int) -> None:
    """Raise AgoraError naming the file and the first array that cannot be drawn.

    Args:
        agents: The number of the arm's agents.
    """

    def require(name: str, *shape: int | None) -> NDArray[np.generic]:
        """The array; None: any length."""
        if name not in arrays:
            raise AgoraError(f"{path}: {name} is missing")
        array = arrays[name]
        if array.dtype.kind not in "iufb":
            raise AgoraError(f"{path}: {name}: expected numbers, got {array.dtype}")
        if array.ndim != len(shape) or any(
            length not in (None, of) for length, of in zip(shape, array.shape, strict=False)
        ):
            expected = ", ".join("n" if length is None else str(length) for length in shape)
            raise AgoraError(f"{path}: {name}: expected [{expected}], got {list(array.shape)}")
        return array

    buckets = require(SERIES[0], agents, None).shape[1]
    for name in SERIES:
        require(name, agents, buckets)
    if require("bucket_us", 1)[0] < 1:
        raise AgoraError(f"{path}: bucket_us: expected at least 1")
    require("delay_share", len(require("delay_value_us", None)))
    require("ages", None, Outcome.COUNT, len(histogram.MIDDLE))
    require("group_of", agents)
    for table, columns in _SAMPLED.items():
        if not any(name.startswith(f"{table}_") for name in arrays):
            continue
        rows = len(require(f"{table}_at_us", None))
        for column in columns:
            require(f"{table}_{column}", rows)
    agent = arrays.get("agents_agent", np.zeros(0, np.int64))
    if len(agent) and (agent.dtype.kind not in "iu" or agent.min() < 0 or agent.max() >= agents):
        raise AgoraError(f"{path}: agents_agent: expected 0 to {agents - 1}")
