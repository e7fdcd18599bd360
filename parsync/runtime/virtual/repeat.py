"""Repeating an arm of a run in virtual time: the same configuration, workload and seed give the
same events, and so the same digest and measurements. Meanwhile the run is audited, as the replay of
a live one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from parsync.metrics.record import Record
from parsync.runtime.arm_directory import (
    ARM_FILE,
    VIRTUAL_LOG,
    LogEnd,
    read_assembly,
    read_end,
)
from parsync.runtime.assembly import SchedulerWatch
from parsync.runtime.audit import RunAudit
from parsync.runtime.json_files import digest_of, read_bytes
from parsync.runtime.recomputed_tables import RecomputedTables, ReplayedArm, measured_only
from parsync.runtime.records import RecordSink, merge_parts
from parsync.runtime.virtual.run import VirtualOutcome, run_virtual
from parsync.workload.workload import Workload
from schedulers.decision_clock import Measured
from shared_state.errors import AgoraError
from shared_state.invariants import InvariantViolation
from shared_state.observed_cell import CellObserver


def no_observer(workload: Workload) -> CellObserver | None:
    """Create no observer."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(ReplayedArm):
    """The result of a repetition.

    Attributes:
        log: The events of the repeated run; None if there was nothing to compare it with, and it
            was not run.
        outcome: The end of the repeated run, if it is equal to the first.
    """

    log: LogEnd | None = None
    outcome: VirtualOutcome | None = None


def repeat(
    directory: Path,
    on_progress: Callable[[int, int], None],
    known: str | None = None,
    tables_dir: Path | None = None,
    make_observer: Callable[[Workload], CellObserver | None] = no_observer,
    watch: SchedulerWatch | None = None,
) -> Repeated:
    """Run the arm of `directory` again.

    Args:
        directory: The arm's.
        on_progress: Called with the virtual time so far, and the workload's end.
        known: The digest of the arm's events, for an arm without ended.json.
        tables_dir: An empty folder for what the run measures; None: that is not kept.
        make_observer: Creates an observer of the cell from the arm's workload.
        watch: Called with every scheduler that is made.

    Raises:
        AgoraError: A file is missing or is not what it should be, or the arm does not repeat
            because its decision times were measured by the clock.
        InvariantViolation: The run breaks an invariant of the cell, a quota or a limit.
    """
    assembly, virtual = read_assembly(directory)
    if virtual is None:
        raise AgoraError(f"{directory / ARM_FILE}: not an arm of a run in virtual time")
    arm, workload = assembly.arm, assembly.workload
    measured = [group.name for group in arm.groups if isinstance(arm.clock(group), Measured)]
    if measured:
        raise AgoraError(
            f"{directory}: group '{measured[0]}' has measured decision times, which differ in"
            " every run: it cannot be repeated"
        )
    end = read_end(directory)
    if end is None and not known:
        return Repeated()
    same_arm = end is None or digest_of(read_bytes(directory / ARM_FILE)) == end.arm
    gaps = () if same_arm else (f"{ARM_FILE}: differs from what it was when the arm ended",)
    audit = RunAudit(assembly)
    not_made = measured_only(assembly.tables)
    sink = None if tables_dir is None else RecordSink(tables_dir, tables=assembly.tables)

    def take(record: Record) -> None:
        if sink is not None and record.table not in not_made:
            sink.add(record.table, record.columns)

    try:
        outcome = run_virtual(
            arm,
            workload,
            virtual.drain_us,
            take,
            lambda now_us: on_progress(min(now_us, workload.end_us), workload.end_us),
            virtual.message_us,
            make_observer(workload),
            calibration=virtual.calibration,
            plan_limit_s=math.inf,  # the first run had one of its own, and kept it
            audit=audit,
            watch=watch,
        )
        if sink is not None and tables_dir is not None:
            sink.close()
            merge_parts(tables_dir, assembly.tables)
    except (AgoraError, InvariantViolation):
        raise
    except Exception as error:  # a scheduler's: the first run had none, or would not have ended
        return Repeated(
            divergence=f"the repeated run fails: {type(error).__name__}: {error}",
            gaps=gaps,
            end=end,
        )
    log = LogEnd(outcome.events, outcome.digest, 0, outcome.ended_us)
    was = known if end is None else end.logs.get(VIRTUAL_LOG)
    divergence = None
    if was not in (log, log.digest):
        divergence = f"the repeated run differs: {_described(log)}, not {_described(was)}"
    equal = divergence is None
    made = None if tables_dir is None else RecomputedTables(assembly, tables_dir, not_made)
    return Repeated(
        divergence=divergence,
        gaps=gaps,
        end=end,
        counts=audit.cell_counts(),
        quota_rounds=audit.quota_rounds,
        limited_commits=audit.limited_commits,
        tables=made if equal else None,
        log=log,
        outcome=outcome if equal else None,
    )


def _described(log: LogEnd | str | None) -> str:
    if isinstance(log, LogEnd):
        return f"{log.events:,} events, digest {log.digest}"
    return f"digest {log}" if log else "none"
