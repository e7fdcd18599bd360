"""The checks before a run starts: whatever can be refused is refused with nothing written."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Collection, Iterator
from itertools import accumulate, count
from pathlib import Path

from experiments.campaign.progress import processors
from experiments.campaign.running import make_metrics
from experiments.config.run_config import RunConfig
from experiments.toml_text import toml_text
from flowsolver.memory import available_bytes
from parsync.metrics.quantity import counted
from parsync.protocols.spec import ProtocolBroken
from parsync.runtime.assembly import Assembly
from parsync.runtime.faults import plan_limit
from parsync.runtime.workload_files import WORKLOAD_DIR, write_workload
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

RUNS = Path("runs")
CONFIG_FILE = "config.toml"
LEAST_FREE_BYTES = 64 << 20  # on disk: what a demo run writes
FILE_BYTES_PER_TASK = 16  # of the tables of one arm, and of the workload's
BYTES_PER_TASK = 220  # of workload and metrics, measured at paper scale
BYTES_PER_VIEW_ROW = 90  # of one agent's view of a machine with one dimension
BASE_BYTES = 200 << 20  # Python and its libraries
LIVE_BYTES = 800 << 20  # Ray and the processes of the actors
LIVE_BYTES_PER_TASK = 100  # of the workload, which the actors share


@contextlib.contextmanager
def naming_file(file: Path | None) -> Iterator[None]:
    """Prefix errors with the configuration's file, if there is one."""
    try:
        yield
    except AgoraError as error:
        raise error if file is None else AgoraError(f"{file}: {error}") from error


def check_new(out: Path) -> None:
    """Raise AgoraError if `out` exists: results are never overwritten. Also if its path is not
    text, which the files of tables must have."""
    try:
        os.fspath(out.absolute()).encode()
    except UnicodeEncodeError as error:
        raise AgoraError(f"--out {out}: its full path is not UTF-8 text") from error
    try:
        exists = out.exists() or out.is_symlink()
    except OSError as error:  # no name of a file
        raise AgoraError(f"--out {out}: {error.strerror}") from error
    if exists:
        raise AgoraError(f"--out {out}: already exists; choose a new directory")


def check_new_file(out: Path, formats: Collection[str]) -> None:
    """Raise AgoraError unless `out` ends in one of these formats and does not exist."""
    if out.suffix not in formats:
        raise AgoraError(f"--out {out}: expected a name ending in {', '.join(formats)}")
    if out.exists():
        raise AgoraError(f"--out {out}: already exists; choose another name")


@contextlib.contextmanager
def writing_out(out: Path) -> Iterator[None]:
    """Turn what keeps `out` from being written into an error that names it."""
    try:
        yield
    except OSError as error:
        raise AgoraError(f"--out {out}: cannot write it: {error.strerror}") from error


def check_memory(config: RunConfig, workload: Workload | None) -> None:
    """Raise AgoraError if this machine has clearly too little memory for the run.

    Without a workload, its outline tells its size; a trace's is known only once it is read.
    """
    if workload is not None:
        machines, tasks = workload.cell.machines, len(workload.tasks)
    else:
        outline = config.workload.outline()
        if outline is None:
            return
        machines, tasks = outline.machines, outline.tasks
    needed, available = needed_bytes(config, machines, tasks), available_bytes()
    if available is not None and needed > available:
        raise AgoraError(
            f"memory: {counted(tasks, 'task')} on {counted(machines, 'machine')} need about "
            f"{needed / 2**30:.1f} GiB, but only {available / 2**30:.1f} GiB are available; "
            "choose a smaller scale or a shorter duration"
        )


def needed_bytes(config: RunConfig, machines: int, tasks: int) -> int:
    """Estimate the memory, in bytes, of the arm that needs most."""
    agents = max(sum(group.count for group in arm.groups) for arm in config.arms)
    needed = BASE_BYTES + tasks * BYTES_PER_TASK + machines * agents * BYTES_PER_VIEW_ROW
    return needed + LIVE_BYTES + tasks * LIVE_BYTES_PER_TASK if config.runtime == "ray" else needed


def runs_at_a_time(config: RunConfig, workload: Workload) -> int:
    """How many arms can run side by side in virtual time, each in a process with a workload of its
    own: as many as there are processors for it, fewer where memory is short."""
    most, available = processors(), available_bytes()
    if available is None:
        return most
    alone = config.model_copy(update={"runtime": "virtual"})
    needed = needed_bytes(alone, workload.cell.machines, len(workload.tasks))
    return max(1, min(most, available // needed))


def check_arms(config: RunConfig, workload: Workload) -> None:
    """Raise AgoraError for an arm that does not fit the workload, or has an unusable scheduler or
    agent."""
    for arm in config.arms:
        spec = arm.seeded(config.seed, config.heartbeat_us, 1, live=False)
        try:
            assembly = Assembly.of(spec, workload)
            assembly.owners()
            assembly.check_quotas()
            assembly.check_mapreduce()
            make_metrics(config, arm, workload)
            with plan_limit(config.plan_limit_s, lambda: 0):
                for first in accumulate((group.count for group in spec.groups[:-1]), initial=0):
                    if spec.group_of(first).kind is None:  # its protocol runs no schedulers
                        # one that breaks its contract is reported when its arm runs, which it ends
                        with contextlib.suppress(ProtocolBroken):
                            assembly.agent(first)
                    else:
                        assembly.scheduler(first)
        except AgoraError as error:
            raise AgoraError(f"arm '{arm.name}': {error}") from error


def make_run_directory(out: Path | None, config: RunConfig, workload: Workload) -> Path:
    """Create a run directory with its folders, its configuration and its workload's tables.

    Args:
        out: The directory to create; None for a new one, runs/TIME.

    Raises:
        AgoraError: It exists or cannot be made. Nothing is left of it then.
    """
    tasks = len(workload.tasks) * (1 + len(config.arms))
    made = new_directory(out, max(LEAST_FREE_BYTES, tasks * FILE_BYTES_PER_TASK))
    try:
        (made / "arms").mkdir()
        (made / CONFIG_FILE).write_text(toml_text(config.model_dump(mode="json")), encoding="utf-8")
        write_workload(made / WORKLOAD_DIR, workload, [arm.partitions for arm in config.arms])
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        raise AgoraError(f"--out {made}: {error.strerror}") from error
    except BaseException:  # Ctrl-C, too
        shutil.rmtree(made, ignore_errors=True)
        raise
    return made


def check_free(directory: Path, free_bytes: int = LEAST_FREE_BYTES) -> None:
    """Raise AgoraError if the disk of a directory, which need not exist yet, has less than
    free_bytes free. OSError if that cannot be told."""
    whole = directory.absolute()
    above = next(folder for folder in (whole, *whole.parents) if folder.exists())
    free = shutil.disk_usage(above).free
    if free < free_bytes:
        raise AgoraError(
            f"--out {directory}: expected at least {free_bytes >> 20:,} MiB free on its disk, got "
            f"{free >> 20} MiB"
        )


def new_directory(out: Path | None, free_bytes: int = LEAST_FREE_BYTES) -> Path:
    """Create a directory: `out`, or runs/TIME. Raises AgoraError if it exists, cannot be made, or
    its disk has less than free_bytes free."""
    name = time.strftime("%Y%m%d-%H%M%S")
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    for made in [out] if out is not None else (RUNS / name for name in names):
        if out is not None:
            check_new(made)
        try:
            check_free(made, free_bytes)
            made.mkdir(parents=True)
            return made
        except FileExistsError as error:  # by a run that began in the same second
            if out is not None:
                raise AgoraError(f"--out {made}: {error.strerror}") from error
        except OSError as error:
            raise AgoraError(f"--out {made}: {error.strerror}") from error
    raise AssertionError("there is a number for every run")
