"""Directories that a command may continue in later: the same work, and nobody else at it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from rich.text import Text

from experiments.analysis.model_files import writing
from experiments.campaign.preconditions import check_free, check_new, new_directory
from experiments.command_line import error_console
from experiments.config.file_format import read_configuration
from experiments.files import whole_file
from experiments.interruption import Interruption, stop_signals_noted
from experiments.toml_text import toml_value
from shared_state.errors import AgoraError


def holds(out: Path | None, file: str, text: str, what: str, may_change: Collection[str]) -> bool:
    """Whether a directory holds this work already, so that it goes on there.

    Args:
        out: The directory; None if none is given.
        file: The name of the configuration in it that says what its work is.
        text: What that file would say of this work.
        what: The work, for the error: "sweep".
        may_change: Dotted keys of the file that leave its runs what they are.

    Raises:
        AgoraError: `out` is something else, or holds other work.
    """
    if out is None:
        return False
    if not (out / file).is_file():
        check_new(out)
        return False
    other = first_difference(read_configuration(out / file), tomllib.loads(text), may_change)
    if other:
        raise AgoraError(
            f"{out}: holds another {what}: {other}; choose a new --out, or repeat the options it "
            "was made with"
        )
    return True


@contextlib.contextmanager
def directory_of(
    out: Path | None, goes_on: bool, file: str, text: str, what: str
) -> Iterator[Path]:
    """A directory with the file that says what its work is, for this process alone inside the
    block.

    Args:
        out: The directory; None for a new one, runs/TIME.
        goes_on: Whether it exists (holds).
        file, text: The name of the file, and what it says.
        what: The work, for the error: "sweep".

    Raises:
        AgoraError: It cannot be made or written, or another process is at work there.
    """
    directory = out if goes_on and out is not None else new_directory(out)
    with locked(directory, what):
        path = directory / file
        with writing(path), whole_file(path) as unfinished:
            unfinished.write_text(text, "utf-8")
        yield directory


def run_continued(
    directory: Path, what: str, kept: str, work: Callable[[Interruption], None]
) -> int:
    """Do the work in a directory where nobody else works, until a stop signal. Return the exit
    status.

    Args:
        directory: Where the results are kept. It is made if it does not exist.
        what: What runs there, such as "reproduction", for the error if the directory is in use.
        kept: What a stopped command leaves, such as "runs".
        work: Raises KeyboardInterrupt after a stop signal.

    Raises:
        AgoraError: The directory cannot be made or is in use, or its disk is full.
    """
    try:
        check_free(directory)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AgoraError(f"--out {directory}: {error.strerror}") from error
    with stop_signals_noted() as interruption, locked(directory, what):
        interruption.note = (
            f"{kept} that are done are kept; --out {quote(str(directory))} continues"
        )
        try:
            work(interruption)
        except KeyboardInterrupt:
            error_console().print(Text(f"Stopped: {interruption.note}."), soft_wrap=True)
    return interruption.exit_status if interruption.received else 0


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
def locked(path: Path, what: str) -> Iterator[None]:
    """Keep other commands out of a directory inside the block. The lock ends with the process,
    however that ends. A file system without locks is accepted, unlocked.

    Args:
        path: Of the directory, or of the file in it that says what its work is.
        what: Runs there, for the error: "sweep".

    Raises:
        AgoraError: Another process is at work there.
    """
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise AgoraError(f"{path}: its {what} is still in progress; wait for its end") from error
    except OSError:
        pass
    try:
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process is inside locked() with this path."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False
