"""Reading TOML files that a user names."""

from __future__ import annotations

import codecs
import tomllib
from pathlib import Path
from typing import Any

from parsync.runtime.json_files import unreadable
from shared_state.errors import AgoraError

LARGEST_FILE = 1 << 24


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file says. Raises AgoraError naming the file, and the line that is no TOML."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise AgoraError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise AgoraError(f"{path}: is {_no_text(data)}") from error
    if len(data) > LARGEST_FILE:
        raise AgoraError(f"{path}: larger than {LARGEST_FILE >> 20} MiB")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or beyond what Python reads
        raise AgoraError(f"{path}: {unreadable(error)}") from error


def _no_text(data: bytes) -> str:
    """What bytes are that are no UTF-8 text, as far as they tell."""
    if data.startswith(b"\x1f\x8b"):
        return "compressed with gzip; unpack it first"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16 text; save it as UTF-8"
    return "not UTF-8 text"
