"""All arms of a run in virtual time, side by side in processes of this machine."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.config import RunConfig
from experiments.interruption import Interruption
from experiments.running import ArmRun, run_arm_virtual
from experiments.sweeps.local_processes import local_map
from experiments.sweeps.workload_cache import workload_cache
from parsync.spec.arm import ArmConfig
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class _Work:
    """An arm, and the folder that receives its files."""

    config: RunConfig
    arm: ArmConfig
    folder: Path

    def __str__(self) -> str:
        return f"'{self.arm.name}'"


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
    work = [_Work(config, arm, folder) for arm, folder in arms]
    left = {arm.name: folder for arm, folder in arms}
    try:
        with contextlib.closing(local_map(_run, work, interruption.check, processes)) as results:
            for _, result in results:
                if isinstance(result, str):
                    raise AgoraError(result)
                del left[result.arm.name]
                yield result
    finally:
        for folder in left.values():
            shutil.rmtree(folder, ignore_errors=True)


def _run(work: _Work) -> ArmRun | str:
    """The run of an arm, or why it could not begin."""
    try:
        shutil.rmtree(work.folder, ignore_errors=True)  # of a process that was killed
        work.folder.mkdir()
        workload = workload_cache().make(work.config, work.config.seed)
        return run_arm_virtual(
            work.config,
            work.arm,
            workload,
            work.config.seed,
            work.folder,
            lambda _: None,
            Interruption(),
        )
    except OSError as error:
        return f"{work.folder}: {error.strerror}"
    except (AgoraError, MemoryError) as error:
        return str(error) or f"{work}: not enough memory"
