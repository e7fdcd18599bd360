"""What a run was made of, as files: arm.json in the directory of an arm's logs, and the workload's
tables there or in a directory above, where the arms of a run share them.

Together they are all that a replay needs. Schedulers and protocols are named by their registered
kinds; no code is read from a run directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from parsync.runtime.assembly import Assembly
from parsync.runtime.calibration import Calibration
from parsync.runtime.json_files import field_of, read_json, write_json
from parsync.runtime.run_directory import ARM_FILE, LEVELS, OLD_FILE
from parsync.runtime.workload_files import (
    WORKLOAD_DIR,
    WORKLOAD_FILE,
    read_workload,
    workload_digest,
    write_workload,
)
from parsync.spec.arm import SeededArm
from parsync.strict_model import Strict, first_error
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

FORMAT = 3  # of arm.json
FORMER = 2  # which is read as well


class InVirtualTime(Strict):
    """How long a run in virtual time goes on past its workload's end, and how long each message is
    under way; or, instead of that, the live runtime's times."""

    drain_us: int = Field(ge=0)
    message_us: int = Field(ge=0)
    calibration: Calibration | None = None


class ArmFile(Strict):
    """What arm.json holds.

    Attributes:
        arm: The arm, its options that depend on the workload filled in.
        workload: The digest of its workload's files.
        virtual: None for a live run.
    """

    format: Literal[3] = 3
    arm: SeededArm
    workload: str
    virtual: InVirtualTime | None = None


def write_assembly(
    directory: Path,
    arm: SeededArm,
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
    write_arm(directory, ArmFile(arm=arm.for_workload(workload), workload=digest, virtual=virtual))


def write_arm(directory: Path, content: ArmFile) -> str:
    """Into an existing directory; the digest of the file. AgoraError if it cannot be written."""
    return write_json(directory / ARM_FILE, content.model_dump(mode="json"))


def read_arm(directory: Path) -> ArmFile:
    """The arm of a directory. AgoraError naming the file and field at fault, or the older version's
    file that stands in its place."""
    path = directory / ARM_FILE
    if not path.exists() and (directory / OLD_FILE).exists():
        raise AgoraError(
            f"{directory / OLD_FILE}: this run was made by an older version of Agora; replaying it"
            " needs the version that made it (summary.json names it)"
        )
    content = read_json(path, FORMAT, FORMER)
    if content["format"] == FORMER:
        try:
            content = _of_former(content)
        except (AttributeError, KeyError, TypeError, ZeroDivisionError) as error:
            raise AgoraError(f"{path}: damaged: {type(error).__name__}: {error}") from error
    try:
        return ArmFile.model_validate(content)
    except ValidationError as error:
        raise AgoraError(f"{path}: {first_error(error, ArmFile)}") from error


def _of_former(content: Mapping[str, Any]) -> dict[str, Any]:
    """What format FORMER says, as this version has it: there shares, times and limits stood in the
    units of the runtimes, beside the decision clocks."""
    arm = dict(content["arm"])
    arm["live"] = content["virtual"] is None
    arm["groups"] = [_group_of_former(group, arm["partitions"]) for group in arm["groups"]]
    arm["protocols"] = arm.pop("shared_options", {})
    if "evictions" in arm:
        arm["evictions"] = arm["evictions"].lower()
    if (quotas := arm.get("quotas")) is not None:
        after_us = quotas.get("reclaim_after_us")
        arm["quotas"] = {
            "interval_s": quotas["interval_us"] / 1e6,
            "reclaim_after_s": None if after_us is None else after_us / 1e6,
            "groups": [
                {
                    "name": group["name"],
                    "minimum": group["minimum_permille"] / 1000,
                    "maximum": group["maximum_permille"] / 1000,
                    "weight": group["weight"],
                }
                for group in quotas["groups"]
            ],
        }
    return {**content, "format": FORMAT, "arm": arm}


def _group_of_former(group: Mapping[str, Any], partitions: int) -> dict[str, Any]:
    now = dict(group)
    now["share"] = now.pop("share_permille") / 1000
    if now["task_class"] is not None:
        now["task_class"] = now["task_class"].lower()
    clock = dict(now.pop("clock"))
    match clock.pop("clock"):
        case "modelled":
            now["decision"] = {"clock": "modelled", **_times_of_former(clock, partitions)}
        case "modelled_by_class":
            both = _times_of_former(clock["batch"], partitions)
            slow = _times_of_former(clock["service"], partitions)
            service = {name: slow[name] for name in ("job_us", "task_us")}
            now["decision"] = {"clock": "modelled", **both, "service": service}
        case "counted" | "measured" as kind:
            now["decision"] = {"clock": kind, **clock}
        case _:  # the kind's own
            now["decision"] = None
    return now


def _times_of_former(clock: Mapping[str, Any], partitions: int) -> dict[str, Any]:
    task_ns, partition_ns = clock["task_ns"], clock["partition_ns"]
    return {
        "job_us": clock["job_us"],
        "task_us": task_ns / 1000,
        "scan_cost": partition_ns * partitions / task_ns,
        "charges_kept": clock["charges_kept"],
        "price_machine_ns": clock["price_machine_ns"],
    }


def read_assembly(directory: Path) -> tuple[Assembly, InVirtualTime | None]:
    """The arm and its workload; what a run in virtual time needs besides, None of a live one.
    AgoraError naming the file that is missing, damaged, or does not hold what it should."""
    arm = read_arm(directory)
    workload = read_workload(_find_workload(directory, arm.workload))
    try:
        assembly = Assembly.of(arm.arm, workload)
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
    digest = field_of(path, read_json(path, FORMAT, FORMER), "workload", str)
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
