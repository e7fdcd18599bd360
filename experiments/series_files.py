"""Files of time series: named arrays, written whole or not at all (.npz)."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.whole_files import whole_file
from flowsolver.memory import need_memory
from flowsolver.problem_files import declared_arrays
from shared_state.errors import reading


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
