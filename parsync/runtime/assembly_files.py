"""What a run was made of, as files: arm.json in the directory of an arm's logs, and the workload's
tables there or in a directory above, where the arms of a run share them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parsync.runtime.arm_file import ARM_FILE, FORMAT, ArmFile, InVirtualTime, read_arm, write_arm
from parsync.runtime.arm_spec import ArmSpec
from parsync.runtime.assembly import Assembly
from parsync.runtime.json_files import field_of, read_json
from parsync.runtime.run_directory import LEVELS
from parsync.runtime.workload_files import (
    WORKLOAD_DIR,
    WORKLOAD_FILE,
    read_workload,
    workload_digest,
    write_workload,
)
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError


def write_assembly(
    directory: Path,
    arm: ArmSpec,
    workload: Workload,
    workload_dir: Path | None = None,
    virtual: InVirtualTime | None = None,
) -> None:
    """Write an arm's assembly into an existing directory.

    Args:
        workload_dir: Where the workload is written already, at most three levels above; None: it is
            written into the directory, too.
        virtual: The settings of a run in virtual time.

    Raises:
        AgoraError: Names the file that cannot be written.
    """
    if workload_dir is None:
        digest = write_workload(directory / WORKLOAD_DIR, workload, [arm.partitions])
    else:
        digest = workload_digest(workload_dir)
    write_arm(directory, ArmFile(arm.for_workload(workload), digest, virtual))


def read_assembly(directory: Path) -> tuple[Assembly, InVirtualTime | None]:
    """The arm and its workload; what a run in virtual time needs besides, None of a live one.
    AgoraError naming the file that is missing, damaged, or does not hold what it should."""
    arm = read_arm(directory)
    workload = read_workload(_find_workload(directory, arm.workload))
    try:
        assembly = Assembly.of(arm.spec, workload)
        assembly.owners()
        assembly.check_quotas()
        assembly.check_mapreduce()
    except AgoraError as error:
        raise AgoraError(f"{directory / ARM_FILE}: {error}") from error
    return assembly, arm.virtual


def read_workload_of(directory: Path) -> Workload:
    """The workload of an arm, whose schedulers need not be installed. AgoraError naming the file
    that is missing, damaged, or does not hold what it should."""
    path = directory / ARM_FILE
    digest = field_of(path, read_json(path, FORMAT), "workload", str)
    return read_workload(_find_workload(directory, digest))


def _find_workload(directory: Path, digest: str) -> Path:
    """The folder with the workload of that digest, the nearest first."""
    found = [folder for folder in _candidates(directory) if (folder / WORKLOAD_FILE).is_file()]
    for folder in found:
        if workload_digest(folder) == digest:
            return folder
    if found:
        raise AgoraError(
            f"{found[0] / WORKLOAD_FILE}: its digest is not that of {directory / ARM_FILE}:"
            " damaged, changed, or another run's"
        )
    raise AgoraError(
        f"{directory}: no folder {WORKLOAD_DIR} with {WORKLOAD_FILE} here or above: an arm copied"
        " without its run?"
    )


def _candidates(directory: Path) -> Iterator[Path]:
    here = directory.resolve()
    for folder in (here, *list(here.parents)[:LEVELS]):
        yield folder / WORKLOAD_DIR
