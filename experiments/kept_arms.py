"""What an arm came to, on disk as soon as it has ended, so that a run that is killed keeps it:
figures.json and series.npz in the arm's folder, each whole or absent.

figures.json: format; version, which made it; workload: as in the summary; stopped: why the arm did
not get to its end, "" if it did; arm: as in the summary, its paired seeds left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.summary import ArmResult, Figures, describe, write_json, write_series
from experiments.summary_fields import check_kept_arm
from parsync.runtime.json_files import read_json

FORMAT = 1
FIGURES_FILE = "figures.json"


@dataclass(frozen=True, slots=True)
class KeptArm:
    """What figures.json holds."""

    arm: Figures
    workload: Figures
    version: str
    stopped: str


def keep_arm(
    directory: Path, arm: ArmResult, slug: str, workload: Figures, version: str, stopped: str
) -> None:
    """Write an arm's figures and series into a run directory. Raises AgoraError if they cannot be
    written."""
    folder = directory / "arms" / slug
    write_series(folder, arm.series)
    content = {
        "format": FORMAT,
        "version": version,
        "workload": workload,
        "stopped": stopped,
        "arm": describe(arm, slug),
    }
    write_json(folder / FIGURES_FILE, content)


def kept_arm(folder: Path) -> KeptArm | None:
    """An arm that had ended when its run was killed; None if it had not. Raises AgoraError naming
    the file, and the field at fault, if it cannot be used."""
    path = folder / FIGURES_FILE
    if not path.exists():
        return None
    content = read_json(path, FORMAT)
    check_kept_arm(path, content)
    return KeptArm(content["arm"], content["workload"], content["version"], content["stopped"])
