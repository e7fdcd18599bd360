"""The figures of points on disk, a file for each point that was run, so that many runs can be
stopped at any time and go on later."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from experiments.campaign.points import Point
from experiments.model_files import read_model, write_model
from experiments.summary_model import VERSION, SeedFigures, Version
from experiments.version import version_text
from parsync.metrics.figures import Figures
from parsync.metrics.quantity import counted
from shared_state.errors import AgoraError


class KeptPoint(Figures):
    """A point that was run.

    Attributes:
        version: The version of Agora that ran it.
        arm, seed: Of the point, for people who read the file.
    """

    format: Version = VERSION
    version: str
    arm: str
    seed: int
    figures: SeedFigures


class KeptPoints:
    """A folder of <key>.json files (the model KeptPoint), each whole or absent."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if it is missing. Raises AgoraError if that cannot be done."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AgoraError(f"{folder}: {error.strerror}") from error
        self._folder = folder
        self._version = version_text()

    def get(self, key: str) -> SeedFigures | None:
        """The figures of a point; None if it was not run, was run by another version of Agora, or
        its file cannot be used: it is then run again."""
        kept = self._read(key)
        return kept.figures if isinstance(kept, KeptPoint) else None

    def has(self, key: str) -> bool:
        """Whether get() has the figures of a point."""
        return isinstance(self._read(key), KeptPoint)

    def unusable(self, keys: Collection[str]) -> str:
        """What is kept of these points and cannot be used, as a sentence for people; "" if that is
        nothing."""
        wrong = [kept for kept in map(self._read, keys) if isinstance(kept, str)]
        if wrong:
            run = "runs" if len(wrong) == 1 else "run"
            return f"{counted(len(wrong), 'kept run')} cannot be used and {run} again: {wrong[0]}."
        files = sum(1 for _ in self._folder.glob("*.json"))
        if keys and files and not any((self._folder / f"{key}.json").exists() for key in keys):
            return (
                f"{counted(files, 'kept run')} cannot be used: the files that the workload reads "
                "have changed since, or Agora has."
            )
        return ""

    def _read(self, key: str) -> KeptPoint | str | None:
        """What is kept of a point; why it cannot be used; None if nothing is kept."""
        path = self._folder / f"{key}.json"
        if not path.exists():
            return None
        try:
            kept = read_model(path, KeptPoint)
        except AgoraError as error:
            return str(error)
        if kept.version != self._version:
            return f"{path}: of another version of Agora ({kept.version})"
        return kept

    def put(self, key: str, point: Point, figures: SeedFigures) -> None:
        """Write the figures of a point. Raises AgoraError if they cannot be written."""
        kept = KeptPoint(
            version=self._version, arm=point.arm.name, seed=point.seed, figures=figures
        )
        write_model(self._folder / f"{key}.json", kept)
