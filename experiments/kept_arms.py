"""What an arm came to, on disk as soon as it has ended, so that a run that is killed keeps it:
figures.json (the model KeptArm) and series.npz in the arm's folder, each whole or absent."""

from __future__ import annotations

from pathlib import Path

from experiments.model_files import read_model, write_model
from experiments.run_directory import write_series
from experiments.summary import ArmResult, describe, distinct
from experiments.summary_model import KeptArm, WorkloadFacts

FIGURES_FILE = "figures.json"


def keep_arm(
    directory: Path, arm: ArmResult, slug: str, workload: WorkloadFacts, version: str, stopped: str
) -> None:
    """Write an arm's figures and series into a run directory. Raises AgoraError if they cannot be
    written."""
    folder = directory / "arms" / slug
    write_series(folder, arm.series)
    kept = KeptArm(
        version=version,
        stopped=stopped,
        workload=workload,
        quantities=distinct(arm.quantities),
        arm=describe(arm, slug).model_copy(update={"seeds": []}),
    )
    write_model(folder / FIGURES_FILE, kept)


def kept_arm(folder: Path) -> KeptArm | None:
    """An arm that had ended when its run was killed; None if it had not. Raises AgoraError naming
    the file, and the field at fault, if it cannot be used."""
    path = folder / FIGURES_FILE
    return read_model(path, KeptArm) if path.exists() else None
