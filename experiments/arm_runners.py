"""All arms of a run in virtual time, side by side in processes of this machine."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.arm_config import ArmConfig
from experiments.campaign.loop import run_tasks
from experiments.campaign.points import workload_cache
from experiments.campaign.pool import Processes
from experiments.campaign.task import Measured, Task
from experiments.config import RunConfig
from experiments.interruption import Interruption
from experiments.running import ArmRun, run_arm_virtual
from shared_state.errors import AgoraError


@dataclass(frozen=True)
class ArmTask(Task[ArmRun]):
    """An arm under the run's own seed, and the folder that receives its files. Its results are
    those files, so no store keeps them."""

    config: RunConfig
    arm: ArmConfig
    folder: Path

    def named(self) -> tuple[str, int]:
        return self.arm.name, self.config.seed

    def __str__(self) -> str:
        return f"'{self.arm.name}'"

    def key(self) -> str:
        return str(self.folder)

    def measure(self, before: Measured[ArmRun] | None) -> Measured[ArmRun]:
        config, seed = self.config, self.config.seed
        try:
            shutil.rmtree(self.folder, ignore_errors=True)  # of a process that was killed
            self.folder.mkdir()
            workload = workload_cache().make(config, seed)
            run = run_arm_virtual(
                config, self.arm, workload, seed, self.folder, lambda _: None, Interruption()
            )
        except OSError as error:
            raise AgoraError(f"{self.folder}: {error.strerror}") from error
        return Measured(run)


def run_arms_virtual(
    config: RunConfig,
    arms: Sequence[tuple[ArmConfig, Path]],
    interruption: Interruption,
    processes: int,
) -> Generator[ArmRun, None, None]:
    """Run arms under the run's own seed, and yield each as it is done.

    Folders of arms that did not get to their end are removed.

    Args:
        config: The run's.
        arms: Each with the folder to create for its files.
        interruption: Looked at several times a second.
        processes: How many run at a time.

    Raises:
        KeyboardInterrupt: A stop signal was received.
        AgoraError: The workload cannot be made, or a process is killed each time.
    """
    left = {arm.name: folder for arm, folder in arms}
    tasks = [ArmTask(config, arm, folder) for arm, folder in arms]
    try:
        runs = run_tasks(tasks, interruption, pool=Processes(processes))
        with contextlib.closing(runs):
            for _, measured in runs:
                del left[measured.figures.arm.name]
                yield measured.figures
    finally:
        for folder in left.values():
            shutil.rmtree(folder, ignore_errors=True)
