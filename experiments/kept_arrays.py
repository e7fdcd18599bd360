"""Arrays that a run leaves for later commands (.npz): whole, and of this version of Agora."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.model_files import writing
from experiments.series_files import read_arrays, write_arrays
from experiments.version import version_text
from shared_state.errors import AgoraError

_VERSION = "agora_version"


def keep_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays into a file; it is whole, or as it was. Raises AgoraError if it cannot be
    written."""
    with writing(path):
        write_arrays(path, {**arrays, _VERSION: np.array(version_text())})


def kept_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays in a file; None if it is missing or damaged, or another version of Agora made
    it."""
    if not path.exists():
        return None
    try:
        arrays = read_arrays(path)
    except AgoraError:
        return None
    return arrays if str(arrays.pop(_VERSION, "")) == version_text() else None
