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
from collections.abc import Iterator
from pathlib import Path

from experiments.campaign.directories import first_difference, locked
from experiments.config import read_toml
from experiments.model_files import writing
from experiments.preconditions import check_new, new_directory
from experiments.sweeps.sweep_file import Sweep
from experiments.toml_text import toml_text
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
    may_change = {f"sweep.{name}" for name in _MAY_CHANGE}
    other = first_difference(read_toml(out / SWEEP_FILE), sweep.tree(), may_change)
    if other:
        raise AgoraError(f"{out}: holds another sweep: {other}; choose a new --out")
    return True


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
    with locked(directory, "sweep"):
        path = directory / SWEEP_FILE
        with writing(path), whole_file(path) as unfinished:
            unfinished.write_text(toml_text(sweep.tree()), encoding="utf-8")
        yield directory
