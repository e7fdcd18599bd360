"""Files of time series: named arrays, written whole or not at all (.npz)."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.whole_files import whole_file
from shared_state.errors import AgoraError

# What numpy raises for a file that is no archive of plain arrays.
_UNREADABLE = (ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays into a file; it is whole, or as it was. OSError if it cannot be written."""
    named: dict[str, Any] = dict(arrays)
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **named)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays in a file. Raises AgoraError naming it if it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        what = error.strerror or error
        raise AgoraError(f"{path}: cannot read the series: {what}") from error
    except _UNREADABLE as error:
        raise AgoraError(f"{path}: cannot read the series: {error}") from error
