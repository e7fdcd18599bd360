"""The calibration of virtual time by live runs, in a file of their run directory; and what virtual
time predicts of live runs: each live arm again in virtual time, calibrated on the other live arms
of the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.analysis.model_files import read_model, write_model
from experiments.analysis.summary_model import FORMAT, Prediction, SeedFigures, Version
from experiments.campaign.arm_runners import live_validity
from experiments.campaign.points import Point
from experiments.campaign.running import ArmRun
from experiments.config.run_config import RunConfig
from parsync.runtime.calibration import Calibration, MeasuredTimes
from parsync.strict_model import Strict
from shared_state.errors import AgoraError

CALIBRATION_FILE = "calibration.json"


class KeptCalibration(Strict):
    """What calibration.json holds."""

    format: Version = FORMAT
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


def calibrated_on(config: RunConfig, runs: Sequence[ArmRun]) -> dict[str, list[ArmRun]]:
    """The undisturbed live runs that each live arm is calibrated on, by its name: all but itself,
    or itself where there is no other. Without any, an arm is left out."""
    live = [run for run in runs if run.live and not run.stopped]
    sound = [run for run in live if not live_validity(config, run).is_disturbed]
    found = {
        run.arm.name: [other for other in sound if other.arm.name != run.arm.name] or sound
        for run in live
    }
    return {name: on for name, on in found.items() if on}


def prediction_points(config: RunConfig, runs: Sequence[ArmRun]) -> list[Point]:
    """The runs in virtual time that predict the live runs of a configuration, on cells of the same
    size: calibrated on them, unless its virtual time is calibrated already.

    A live run that has no such calibration, or needs none, is predicted by the run of its arm in
    virtual time. If that has another cell, a run without a calibration stands beside it instead.
    """
    of_live = config.of_live_runs()
    calibrations = _calibrations(config, runs)
    points = []
    for arm in of_live.arms:
        if arm.name in calibrations:
            _, calibration = calibrations[arm.name]
            virtual = config.virtual.model_copy(update={"calibration": calibration})
            calibrated = of_live.model_copy(update={"virtual": virtual})
            points.append(Point(calibrated, arm, config.seed))
        elif config.live_cell is not None and _ran_live(arm.name, runs):
            points.append(Point(of_live, arm, config.seed))
    return points


def _calibrations(
    config: RunConfig, runs: Sequence[ArmRun]
) -> dict[str, tuple[list[ArmRun], Calibration]]:
    """The live runs that each live arm is calibrated on, and what they measured, by its name; none
    if the configuration's virtual time is calibrated already."""
    if config.virtual.calibration is not None:
        return {}
    found = {}
    for name, on in calibrated_on(config, runs).items():
        times = MeasuredTimes.joined(run.times for run in on)
        made = times.calibration(config.live.hosts, config.live.tick_ms * 1000)
        if made is not None:
            found[name] = on, made
    return found


def _ran_live(name: str, runs: Sequence[ArmRun]) -> bool:
    return any(run.live and not run.stopped and run.arm.name == name for run in runs)


def predictions_of(
    config: RunConfig, runs: Sequence[ArmRun], figures: Mapping[str, SeedFigures]
) -> dict[str, Prediction]:
    """The predictions by name of the arm, from the figures of prediction_points."""
    calibrations = _calibrations(config, runs)
    return {
        name: Prediction(
            digest=its.digest,
            overall=its.overall,
            calibrated_on=[run.arm.name for run in calibrations[name][0]]
            if name in calibrations
            else [],
        )
        for name, its in figures.items()
    }
