"""The figures of an arm, written as soon as it ends, so that a killed run keeps them.

They are figures.json and series.npz in the arm's folder; each is complete or absent. figures.json
holds `format`, `version` (of Agora), `workload` (as in the summary), `stopped` (why the arm ended
early, "" if it did not) and `arm` (as in the summary, without paired seeds).
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
    """The content of figures.json."""

    arm: Figures
    workload: Figures
    version: str
    stopped: str


def keep_arm(
    directory: Path, arm: ArmResult, slug: str, workload: Figures, version: str, stopped: str
) -> None:
    """Write an arm's figures and series into a run directory.

    Raises:
        AgoraError: They cannot be written.
    """
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
    """Return the figures of an arm that had ended when its run was killed, None if it had not.

    Raises:
        AgoraError: The file or one of its fields is damaged.
    """
    path = folder / FIGURES_FILE
    if not path.exists():
        return None
    content = read_json(path, FORMAT)
    check_kept_arm(path, content)
    return KeptArm(content["arm"], content["workload"], content["version"], content["stopped"])
