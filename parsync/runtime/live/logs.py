"""Where an actor's measurements go: its accumulators, its Parquet parts, and a log from which they
can be recovered when the actor is killed.

One file per part, `<part>.records`. A frame holds the batches of one flush, ((table, columns),
...), so that after a kill an agent's batches of one sample are there together or not at all. The
logs are removed when the run is over (remove_records).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parsync.core.codec import decode, encode
from parsync.metrics.live import Snapshot
from parsync.metrics.record import Record
from parsync.metrics.run_metrics import RunMetrics
from parsync.runtime.live.plan import RunPlan
from parsync.runtime.records import RecordSink
from shared_state.journal import JournalWriter, read_journal

Batch = tuple[str, dict[str, Any]]  # table, columns

_SUFFIX = ".records"


def records_log(directory: Path, part: str) -> Path:
    """The record log of `part`."""
    return directory / f"{part}{_SUFFIX}"


def epoch_log(directory: Path, host: str, epoch: int) -> Path:
    """The record log of one epoch of a scheduler host."""
    return records_log(directory, f"{host}-{epoch}")


def epoch_logs(directory: Path, host: str) -> list[tuple[int, Path]]:
    """The record log of each epoch of a scheduler host, as (epoch, record log), in order."""
    found = (
        (path.name.removeprefix(f"{host}-").removesuffix(_SUFFIX), path)
        for path in directory.glob(f"{host}-*{_SUFFIX}")
    )
    return sorted((int(epoch), path) for epoch, path in found if epoch.isdecimal())


def read_records(path: Path) -> Iterator[Batch]:
    """The batches of a record log, in order. Errors as shared_state.journal.read_journal."""
    for payload in read_journal(path):
        yield from decode(payload)


def has_records(directory: Path) -> bool:
    """Whether there are record logs: a run has begun and is not over."""
    return any(directory.glob(f"*{_SUFFIX}"))


def remove_records(directory: Path) -> None:
    """Remove the record logs of a run that is over: accumulators and Parquet hold the records."""
    for path in directory.glob(f"*{_SUFFIX}"):
        path.unlink(missing_ok=True)


class Recorder:
    """Keeps one actor's measurements, in its accumulators and its Parquet parts.

    A Parquet part that was not closed cannot be read. So the batches also go to a log, if there is
    one. An existing log is read first.

    Args:
        plan: Of the run.
        part: The name of the Parquet parts.
        metrics: The accumulators, which know the tables of the run.
        log: The record log; None: the actor keeps none.
        until: Bytes of an existing log to read, None for all; the rest is cut off.
    """

    def __init__(
        self,
        plan: RunPlan,
        part: str,
        metrics: RunMetrics,
        log: Path | None = None,
        until: int | None = None,
    ) -> None:
        self.metrics = metrics
        self._sink = (
            None
            if plan.records_dir is None
            else RecordSink(Path(plan.records_dir), part, metrics.tables)
        )
        self._unflushed: list[Batch] = []
        self._log: JournalWriter | None = None
        if log is not None:
            if log.exists():
                if until is not None:
                    os.truncate(log, until)
                for table, columns in read_records(log):
                    self._add(table, columns)
            self._log = JournalWriter(log, plan.fsync)

    def __call__(self, record: Record) -> None:
        self._add(record.table, record.columns)
        if self._log is not None:
            self._unflushed.append((record.table, record.columns))

    def snapshot(self, at_us: int, agents: tuple[int, ...]) -> Snapshot:
        """The figures of these agents since the last call, for the live line."""
        return self.metrics.snapshot(at_us, agents)

    def flush(self) -> None:
        """Write everything recorded so far to the log, so that it survives this process."""
        if self._log is not None:
            if self._unflushed:
                self._log.append(encode(tuple(self._unflushed)))
                self._unflushed.clear()
            self._log.flush()

    def mark(self) -> int:
        """Flush. Returns the bytes of the log, which holds everything recorded so far."""
        assert self._log is not None
        self.flush()
        return self._log.end

    def close(self) -> None:
        """Close the Parquet parts and the log, which are complete even if a metric fails."""
        try:
            self.metrics.close()
        finally:
            if self._sink is not None:
                self._sink.close()
            if self._log is not None:
                self.flush()
                self._log.close()

    def _add(self, table: str, columns: dict[str, Any]) -> None:
        self.metrics.add(table, columns)
        if self._sink is not None:
            self._sink.add(table, columns)
