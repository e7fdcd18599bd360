"""An arm of a run that was loaded: its figures, its tables, its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.analysis.summary_model import ArmSummary
from experiments.explain.arm_stories import ArmStories
from experiments.explain.outcomes import Columns
from experiments.explain.story import TaskStory
from experiments.report.data_dictionary import arm_tables
from experiments.results.arrow import as_data_frame
from parsync.metrics.quantity import counted
from parsync.metrics.tables import Tables
from parsync.runtime.arm_directory import ARM_FILE, LOG, read_workload_of
from parsync.runtime.records import arrow_schema, record_files
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError, reading


class LoadedArm:
    """An arm of a run: what it measured. Tables are read when they are asked for.

    Attributes:
        name: Its name in the configuration.
        directory: The folder with its files.
        summary: Its figures, as summary.json has them: overall, by phase, by group, by scheduler.
        schedulers: The names of its schedulers by number, the column `agent` of its tables.
    """

    def __init__(self, directory: Path, summary: ArmSummary) -> None:
        self.name = summary.name
        self.directory = directory
        self.summary = summary
        names = [""] * len(summary.agents)
        for group in summary.groups:
            for place, agent in enumerate(group.agents):
                names[agent] = f"{group.name}-{place}"
        self.schedulers: Sequence[str] = tuple(names)

    def __repr__(self) -> str:
        cut = ", cut short" if self.summary.partial else ""
        return f"LoadedArm({self.name!r}, {self.summary.runtime}{cut})"

    @cached_property
    def schemas(self) -> Tables:
        """The tables that it may have, by name: what a row is, and the unit and meaning of each
        column."""
        return arm_tables(self.summary)

    def table(self, name: str, columns: Sequence[str] | None = None) -> Any:
        """A table of measurements.

        Args:
            name: Such as "tasks", "commits" or "rejections"; `schemas` has all of them.
            columns: Those to read; None: all.

        Returns:
            A pyarrow.Table, without rows if the arm recorded none. Its schema carries what a row
            is, and the unit and meaning of each column, as metadata.

        Raises:
            AgoraError: There is no such table or column, the file is missing although the summary
                counts rows of it, or it cannot be read: it is damaged, or was not closed because
                the run was killed.
        """
        if name not in self.schemas:
            known = ", ".join(sorted(self.schemas))
            raise AgoraError(f"table {name!r}: expected one of {known}")
        schema = self.schemas[name]
        for column in columns or ():
            if column not in schema.columns:
                known = ", ".join(schema.columns)
                raise AgoraError(f"table {name!r}: column {column!r}: expected one of {known}")
        wanted = list(schema.columns if columns is None else columns)
        paths = record_files(self.directory, {name: schema}).get(name, [])
        if not paths:
            self._check_no_rows(name)
            empty = arrow_schema(schema).empty_table()
            return empty.select(wanted)
        return pa.concat_tables([_read(path, wanted) for path in paths])

    def _check_no_rows(self, name: str) -> None:
        """Raise AgoraError if the summary tells of rows of a table that has no file."""
        totals, validity = self.summary.totals, self.summary.validity
        told = {
            "actors": (0 if validity is None else validity.seconds, "measured second"),
            "commits": (totals.claims, "claim"),
            "rejections": (totals.claims - totals.accepted, "rejected claim"),
            "submissions": (totals.submitted, "submitted task"),
            "tasks": (totals.committed, "committed task"),
        }
        number, what = told.get(name, (0, ""))
        if number:
            raise AgoraError(
                f"{self.directory / f'{name}.parquet'}: missing; the summary counts "
                f"{counted(number, what)}"
            )

    def data_frame(self, name: str, columns: Sequence[str] | None = None) -> Any:
        """As table(), as a pandas.DataFrame.

        Raises:
            AgoraError: As table(), and if pandas is not installed.
        """
        return as_data_frame(self.table(name, columns))

    @cached_property
    def workload(self) -> Workload:
        """The cell, its tasks and their preferences, as this arm had them. Raises AgoraError if
        they cannot be read."""
        own, log = self.directory, self.directory / LOG
        return read_workload_of(own if (own / ARM_FILE).is_file() else log)

    def explain(self, task: int) -> TaskStory:
        """What became of a task: its claims, its conflicts and their rivals, and what they cost.

        print() shows it as text.

        Raises:
            AgoraError: There is no such task, or a table cannot be read.
        """
        return self._stories.story(task)

    def worst_conflicts(self, count: int = 10) -> list[TaskStory]:
        """The stories of the tasks whose conflicts added most delay, the worst first. Raises
        AgoraError if a table cannot be read."""
        return self._stories.worst(count)

    @cached_property
    def _stories(self) -> ArmStories:
        seen_us = self.summary.totals.last_us
        return ArmStories(self.name, self._columns, self.workload, self.schedulers, seen_us)

    def _columns(self, name: str) -> Columns:
        """The columns of a table as arrays; read once."""
        if name not in self._read_columns:
            table = self.table(name)
            self._read_columns[name] = {
                column: np.ascontiguousarray(table[column].to_numpy())
                for column in table.column_names
            }
        return self._read_columns[name]

    @cached_property
    def _read_columns(self) -> dict[str, Mapping[str, Any]]:
        return {}


def _read(path: Path, columns: Sequence[str]) -> Any:
    with reading(f"{path}: cannot read the table"), pq.ParquetFile(path) as file:
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise AgoraError(
                f"{path}: it has no column {missing[0]!r}: the run was made by another version "
                "of Agora; run it again"
            )
        table = file.read(columns=list(columns))
    return table
