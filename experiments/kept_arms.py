"""What an arm came to, on disk as soon as it has ended, so that a run that is killed keeps it:
figures.json and series.npz in the arm's folder, each whole or absent.

figures.json: format; version, which made it; workload: as in the summary; stopped: why the arm did
not get to its end, "" if it did; arm: as in the summary, its paired seeds left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from experiments.summary import ArmResult, Figures, describe, write_json, write_series
from shared_state.errors import AgoraError

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
    the file if it cannot be read."""
    path = folder / FIGURES_FILE
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise AgoraError(f"{path}: cannot read it: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise AgoraError(f"{path}: not readable as JSON: {error}") from error
    kinds = {"arm": dict, "workload": dict, "version": str, "stopped": str}
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise AgoraError(f"{path}: field format: expected {FORMAT}, as written by this version")
    for name, kind in kinds.items():
        if not isinstance(content.get(name), kind):
            raise AgoraError(f"{path}: field {name}: missing, or not in this version's format")
    return KeptArm(*(content[name] for name in kinds))
