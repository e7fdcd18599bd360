"""The directory of a sweep, which can be gone on with after any end.

sweep.toml      the sweep as resolved, the configuration in it
points/         the figures of each run, in a file of its own (kept_points.py)
points.parquet  a row for each run (points_table.py)
sweep.json      the model SweepSummary (result.py)
figures/        one PNG and one SVG for each plot
sweep.html      the page, self-contained
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.config import read_toml
from experiments.model_files import writing
from experiments.preconditions import check_new, new_directory
from experiments.sweeps.sweep_file import Sweep
from experiments.toml_text import toml_text, toml_value
from experiments.whole_files import whole_file
from shared_state.errors import AgoraError

SWEEP_FILE = "sweep.toml"
KEPT = "points"
# What of [sweep] may change when a sweep goes on: its runs stay what they are.
_MAY_CHANGE = {"name", "seeds", "metric", "baseline", "until"}


def check_directory(out: Path | None, sweep: Sweep) -> bool:
    """Whether `out` holds this sweep already, so that it goes on there.

    Raises:
        AgoraError: `out` is something else, or another sweep.
    """
    if out is None or not (out / SWEEP_FILE).is_file():
        if out is not None:
            check_new(out)
        return False
    before, now = _flat(read_toml(out / SWEEP_FILE)), _flat(sweep.tree())
    for key in sorted(before.keys() | now.keys()):
        if key not in {f"sweep.{name}" for name in _MAY_CHANGE} and before.get(key) != now.get(key):
            raise AgoraError(
                f"{out}: holds another sweep: {key}: expected {_shown(before.get(key))}, got "
                f"{_shown(now.get(key))}; choose a new --out"
            )
    return True


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
def sweep_directory(out: Path | None, sweep: Sweep, goes_on: bool) -> Iterator[Path]:
    """The directory with the sweep's file, for this process alone inside the block.

    Args:
        out: The directory; None for a new one, runs/TIME.
        sweep: What runs there.
        goes_on: Whether it exists (check_directory).

    Raises:
        AgoraError: It cannot be made or written, or another process is at work there.
    """
    directory = out if goes_on and out is not None else new_directory(out)
    with _locked(directory):
        path = directory / SWEEP_FILE
        with writing(path), whole_file(path) as unfinished:
            unfinished.write_text(toml_text(sweep.tree()), encoding="utf-8")
        yield directory


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other commands out of a directory. The lock ends with the process, however that ends. A
    file system without locks is accepted, unlocked."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise AgoraError(
            f"{directory}: its sweep is still in progress; wait for its end"
        ) from error
    except OSError:
        pass
    try:
        yield
    finally:
        os.close(descriptor)
