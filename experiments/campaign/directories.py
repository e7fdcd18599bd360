"""Directories that a command may continue in later: is it the same work, and is nobody else at it?
Sweeps and frontiers have such directories."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.toml_text import toml_value
from shared_state.errors import AgoraError


def first_difference(
    before: Mapping[str, Any], now: Mapping[str, Any], may_change: Collection[str] = ()
) -> str:
    """The first key whose value is not what it was, as "key: expected X, got Y"; "" if there is
    none.

    Args:
        before: What the directory holds, as nested tables.
        now: What is to run there.
        may_change: Dotted keys that do not count.
    """
    old, new = _flat(before), _flat(now)
    for key in sorted(old.keys() | new.keys()):
        if key not in may_change and old.get(key) != new.get(key):
            return f"{key}: expected {_shown(old.get(key))}, got {_shown(new.get(key))}"
    return ""


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """The values of nested tables by dotted key; a list is one value."""
    flat = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{above}{key}."))
        else:
            flat[f"{above}{key}"] = value
    return flat


def _shown(value: Any) -> str:
    text = "nothing" if value is None else toml_value(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


@contextlib.contextmanager
def locked(directory: Path, what: str) -> Iterator[None]:
    """Keep other commands out of a directory inside the block. The lock ends with the process,
    however that ends. A file system without locks is accepted, unlocked.

    Args:
        directory: Exists.
        what: Runs there, for the error: a sweep.

    Raises:
        AgoraError: Another process is at work there.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise AgoraError(
            f"{directory}: its {what} is still in progress; wait for its end"
        ) from error
    except OSError:
        pass
    try:
        yield
    finally:
        os.close(descriptor)
