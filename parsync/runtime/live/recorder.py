"""Where an actor's measurements go: its accumulators, its Parquet parts, and a log from which they
can be taken up when the actor is killed.

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


def life_log(directory: Path, host: str, epoch: int) -> Path:
    """The record log of a scheduler host's life `epoch`."""
    return records_log(directory, f"{host}-{epoch}")


def life_logs(directory: Path, host: str) -> list[tuple[int, Path]]:
    """(epoch, record log) of each life of a scheduler host, in order."""
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
    """The run is over: what the logs hold is in the accumulators and in Parquet."""
    for path in directory.glob(f"*{_SUFFIX}"):
        path.unlink(missing_ok=True)


class Recorder:
    """One actor's measurements: to its Parquet parts and to its accumulators.

    A Parquet part that was not closed cannot be read, so the batches also go to `log`, if there is
    one. An existing log is taken up first. until: bytes of that log to take up, None for all; the
    rest is cut.
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
        self._sink = None if plan.records_dir is None else RecordSink(Path(plan.records_dir), part)
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
        """The live line of these agents since the last call."""
        return self.metrics.snapshot(at_us, agents)

    def flush(self) -> None:
        """What was recorded so far survives this process."""
        if self._log is not None:
            if self._unflushed:
                self._log.append(encode(tuple(self._unflushed)))
                self._unflushed.clear()
            self._log.flush()

    def mark(self) -> int:
        """Bytes of the log with all that was recorded so far."""
        assert self._log is not None
        self.flush()
        return self._log.end

    def close(self) -> None:
        """The parts and the log are whole, also if the code of a metric fails."""
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
