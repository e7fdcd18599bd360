"""The calibration of virtual time by live runs, in a file of their run directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.analysis.model_files import read_model, write_model
from experiments.analysis.summary_model import VERSION, Version
from parsync.runtime.calibration import Calibration, MeasuredTimes
from parsync.strict_model import Strict
from shared_state.errors import AgoraError

CALIBRATION_FILE = "calibration.json"


class KeptCalibration(Strict):
    """What calibration.json holds."""

    format: Version = VERSION
    calibration: Calibration


def write_calibration(
    directory: Path, times: Sequence[MeasuredTimes], hosts: int, tick_us: int
) -> None:
    """Write calibration.json into a run directory, unless nothing was measured.

    Args:
        directory: Of the run.
        times: Of its live arms that were not disturbed.
        hosts: The number of scheduler processes.
        tick_us: The time between their regular steps.

    Raises:
        AgoraError: It cannot be written.
    """
    calibration = MeasuredTimes.joined(times).calibration(hosts, tick_us)
    if calibration is not None:
        kept = KeptCalibration(calibration=calibration)
        write_model(directory / CALIBRATION_FILE, kept)


def read_calibration(directory: Path) -> Calibration:
    """The calibration of a run directory. AgoraError naming the directory if it has none, or the
    field of its file that cannot be used."""
    path = directory / CALIBRATION_FILE
    if not directory.is_dir():
        raise AgoraError(f"--calibrate: {directory}: no such directory")
    if not path.is_file():
        raise AgoraError(
            f"--calibrate: {directory}: it has no {CALIBRATION_FILE}: expected a run in which an "
            "arm ran live to its end, undisturbed"
        )
    return read_model(path, KeptCalibration).calibration
