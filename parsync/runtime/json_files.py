"""Small JSON files of a run: written whole or not at all, read with suspicion."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from shared_state.errors import AgoraError

DIGEST_BYTES = 16
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}
_T = TypeVar("_T")


def write_json(path: Path, content: Mapping[str, Any]) -> str:
    """The content under a name, whole or absent; the digest of the file. AgoraError naming it."""
    data = to_json(content)
    unfinished = path.with_name(path.name + ".partial")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise AgoraError(f"{path}: cannot write it: {error.strerror}") from error
    return digest_of(data)


def to_json(content: Mapping[str, Any]) -> bytes:
    """The content as text for people and programs."""
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False, default=_plain)
    return text.encode() + b"\n"


def read_json(path: Path, version: int, *former: int) -> dict[str, Any]:
    """The object in a file that write_json wrote with field `format` = version, or a former one
    that is read as well. AgoraError naming the file, or its field."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise AgoraError(f"{path}: not readable as JSON: {unreadable(error)}") from error
    if not isinstance(content, dict) or content.get("format") not in (version, *former):
        raise AgoraError(f"{path}: field format: expected {version}, as written by this version")
    return content


def unreadable(error: ValueError | RecursionError) -> str:
    """Why Python's readers of JSON and TOML refuse a text; their own words where it is its
    syntax."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    # the one ValueError that is about int(), with advice for programmers
    return (
        "a number has too many digits" if "integer string conversion" in str(error) else str(error)
    )


def field_of(path: Path, content: Mapping[str, Any], name: str, kind: type[_T]) -> _T:
    """One field of an object in a file. AgoraError naming both if it is missing or of another
    type."""
    value = content.get(name)
    if type(value) is not kind:
        raise AgoraError(f"{path}: field {name}: expected {_KINDS[kind]}")
    return value


def read_bytes(path: Path) -> bytes:
    """The content of a file. AgoraError naming it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise AgoraError(f"{path}: cannot read it: {error.strerror}") from error


def digest_of(data: Any) -> str:
    """The blake2b-128 digest of bytes, or of what holds them, in hex."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, date | time):  # TOML knows them, so a scheduler's options may hold some
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no plain value")
