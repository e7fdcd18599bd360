"""Runs and arms that were loaded: what they measured, as figures, Arrow tables and drawings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.analysis.run_directory import SUMMARY, Run, read_series, read_summary
from experiments.analysis.summary_model import ArmSummary, RunSummary
from experiments.explain.arm_stories import ArmStories, Columns
from experiments.explain.story import TaskStory
from experiments.report.data_dictionary import DataDictionary, arm_tables, data_dictionary
from parsync.metrics.quantity import counted
from parsync.metrics.summary import ScopeFigures
from parsync.metrics.tables import Tables
from parsync.runtime.arm_directory import ARM_FILE, LOG, read_workload_of
from parsync.runtime.records import arrow_schema, record_files
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError, reading

if TYPE_CHECKING:  # drawing takes a while to import
    from matplotlib.figure import Figure


def load_run(directory: Path | str) -> LoadedRun:
    """Load a run directory: its figures, and its tables as they are asked for.

    It also loads runs that did not get to their end:

    - If the run was interrupted, it has what it measured, and `summary.partial_reason` says why it
      ended.
    - If it was killed before it wrote its summary, the summary is first made from the files that
      it left, and written to the directory, as `agora report` does it.
    - If it is still in progress, it has the arms that have ended so far (`in_progress` is true).
      Load it again for more.

    Args:
        directory: The directory that `agora run` wrote.

    Returns:
        The run: `summary`, `arms`, `metrics()`, `seeds()`, `table(name)`, `figure(name)` and more.

    Raises:
        AgoraError: The directory is not a run directory, nothing in it can be used, or another
            version of Agora wrote it. The message is one line that names the file.
    """
    directory = Path(directory)
    if (directory / SUMMARY).is_file():
        return LoadedRun(directory, read_summary(directory), in_progress=False)
    from experiments.studies.run.killed_runs import finish_killed, in_progress, summary_so_far

    if in_progress(directory):
        return LoadedRun(directory, summary_so_far(directory), in_progress=True)
    finish_killed(directory)
    return LoadedRun(directory, read_summary(directory), in_progress=False)


class LoadedRun:
    """A run: its arms, their metrics and tables, and its figures.

    Attributes:
        directory: The run directory.
        summary: Everything in summary.json, typed.
        in_progress: Whether the run still goes on, and only the arms that have ended are here.
        arms: Its arms in the order of its configuration, all under one runtime.
        live: The live runs of arms that are compared in virtual time, as a run of their own; None
            if there are none. Nothing else holds figures of them.
    """

    def __init__(self, directory: Path, summary: RunSummary, in_progress: bool) -> None:
        self.directory = directory
        self.summary = summary
        self.in_progress = in_progress
        self.arms: Sequence[LoadedArm] = tuple(
            LoadedArm(directory / "arms" / arm.slug, arm) for arm in summary.arms
        )
        of_live = summary.live()
        self.live = None if of_live is None else LoadedRun(directory, of_live, in_progress)

    def __repr__(self) -> str:
        state = "in progress, " if self.in_progress else ""
        names = ", ".join(arm.name for arm in self.arms)
        return f"LoadedRun({str(self.directory)!r}, {state}arms: {names})"

    def arm(self, name: str) -> LoadedArm:
        """An arm by its name, or by that of its folder; a separate live run by that of its
        folder. Raises AgoraError naming the arms there are."""
        for arm in self.arms:
            if name in (arm.name, arm.summary.slug):
                return arm
        for arm in () if self.live is None else self.live.arms:
            if name == arm.summary.slug:
                return arm
        names = [arm.name for arm in self.arms]
        names += [] if self.live is None else [arm.summary.slug for arm in self.live.arms]
        known = ", ".join(f"'{name}'" for name in names)
        raise AgoraError(f"{self.directory}: arm {name!r}: expected one of {known}")

    @property
    def dictionary(self) -> DataDictionary:
        """What every metric and every column of the tables means."""
        return data_dictionary(self.summary)

    def describe_metrics(self) -> Any:
        """The metrics that the run has, as a pyarrow.Table: key, label, unit (durations are in
        microseconds), which direction is better, and meaning."""
        names = ("key", "label", "unit", "better", "meaning")
        rows = [
            (entry.key, entry.label, entry.unit, entry.direction, entry.description)
            for entry in self.dictionary.figures
        ]
        return table_of([dict(zip(names, row, strict=True)) for row in rows], _texts(*names))

    def describe_tables(self) -> Any:
        """The columns of all tables, as a pyarrow.Table: table, column, unit, meaning, and what the
        values of codes stand for."""
        names = ("table", "column", "unit", "meaning", "codes")
        rows = [
            (table.name, column.name, column.unit, column.meaning, column.codes)
            for table in self.dictionary.tables
            for column in table.columns
        ]
        return table_of([dict(zip(names, row, strict=True)) for row in rows], _texts(*names))

    def metrics(self) -> Any:
        """The metrics of the arms under the root seed, a pyarrow.Table with one row per arm.

        The first columns are `arm`, `runtime` and `partial`; the others are named by the keys of
        describe_metrics(). A value is null where there is nothing to rest it on. Where a metric
        leaves out tasks that were never placed, the value is its lower bound; `lower_bounds` lists
        these keys.
        """
        rows = [
            {
                "arm": arm.name,
                "runtime": arm.summary.runtime,
                "partial": arm.summary.partial,
                **self._values(arm.summary.overall),
            }
            for arm in self.arms
        ]
        return table_of(rows, {**_texts("arm", "runtime"), "partial": pa.bool_(), **self._types})

    def phases(self) -> Any:
        """The metrics of each load phase, a pyarrow.Table with one row per arm and phase: `arm`,
        `phase`, `start_us`, `end_us`, `load_percent`, and the columns of metrics()."""
        of_phase = ("start_us", "end_us", "load_percent")
        rows = [
            {
                "arm": arm.name,
                "phase": number,
                **{name: getattr(phase, name) for name in of_phase},
                **self._values(phase),
            }
            for arm in self.arms
            for number, phase in enumerate(arm.summary.phases)
        ]
        whole_numbers = dict.fromkeys(("phase", *of_phase), pa.int64())
        return table_of(rows, {**_texts("arm"), **whole_numbers, **self._types})

    def seeds(self) -> Any:
        """The metrics under the paired seeds, a pyarrow.Table with one row per arm and seed: `arm`,
        `seed`, `digest` (of the event log), and the columns of metrics(). They ran in virtual
        time."""
        rows = [
            {
                "arm": arm.name,
                "seed": seed.seed,
                "digest": seed.digest,
                **self._values(seed.overall),
            }
            for arm in self.arms
            for seed in arm.summary.seeds
        ]
        types = {**_texts("arm"), "seed": pa.int64(), **_texts("digest"), **self._types}
        return table_of(rows, types)

    def table(self, name: str, columns: Sequence[str] | None = None) -> Any:
        """A table of measurements of all arms together, a pyarrow.Table.

        The arms' tables stand one below the other, with the name of the arm in the first column,
        `arm`. The other arguments and the errors are those of LoadedArm.table(). Arms that cannot
        have the table, because it belongs to a protocol that they do not use, have no rows.
        """
        having = [arm for arm in self.arms if name in arm.schemas]
        parts = []
        for arm in having or self.arms[:1]:
            table = arm.table(name, columns)
            named = pa.array([arm.name] * len(table), pa.string()).dictionary_encode()
            parts.append(table.add_column(0, "arm", named))
        return pa.concat_tables(parts).unify_dictionaries()

    @property
    def figure_names(self) -> Sequence[str]:
        """The names of the figures that figure() draws."""
        from experiments.figures import all_figures

        return tuple(spec.name for spec in all_figures())

    def figure(self, name: str) -> Figure:
        """Draw a figure of the report anew.

        Args:
            name: One of `figure_names`, such as "delay_distribution".

        Returns:
            A matplotlib figure, not shown anywhere; its axes can be changed before it is saved.

        Raises:
            AgoraError: There is no such figure, the run has nothing to draw in it, or a series
                cannot be read.
        """
        from experiments.figures import all_figures
        from experiments.figures.style import in_drawable_letters

        for spec in all_figures():
            if spec.name == name:
                drawn = spec.draw(in_drawable_letters(self._with_series))
                if drawn is None:
                    raise AgoraError(f"{self.directory}: figure {name!r}: there is nothing to draw")
                return drawn
        raise AgoraError(f"figure {name!r}: expected one of {', '.join(self.figure_names)}")

    def save_figures(self, directory: Path | str) -> list[Path]:
        """Draw all figures that the run has data for, each as NAME.png and NAME.svg.

        Args:
            directory: Where to; it is made if it is not there.

        Returns:
            The files.

        Raises:
            AgoraError: A series cannot be read, or a file cannot be written.
        """
        from experiments.figures import all_figures, draw_all

        folder = Path(directory)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AgoraError(f"{folder}: cannot make the directory: {error.strerror}") from error
        drawn = draw_all(self._with_series, folder, lambda: None, all_figures())
        return [path for figure in drawn for path in (figure.png, figure.svg)]

    @cached_property
    def _with_series(self) -> Run:
        return read_series(self.directory, self.summary)

    @property
    def _types(self) -> dict[str, Any]:
        keys = [quantity.key for quantity in self.summary.quantities]
        return {**dict.fromkeys(keys, pa.float64()), "lower_bounds": pa.list_(pa.string())}

    def _values(self, figures: ScopeFigures) -> dict[str, Any]:
        keys = [quantity.key for quantity in self.summary.quantities]
        values: dict[str, Any] = {key: figures.value(key) for key in keys}
        return {**values, "lower_bounds": [key for key in keys if figures.is_bound(key)]}


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


def table_of(rows: Sequence[Mapping[str, Any]], types: Mapping[str, Any]) -> Any:
    """A table with these columns, in this order, of Arrow types by name; None is a null."""
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}
    )


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, pa.string())


def as_data_frame(table: Any) -> Any:
    """An Arrow table as a pandas data frame. Raises AgoraError if pandas is not installed: Agora
    does not depend on it."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise AgoraError(
            "pandas is not installed: install it (`pip install pandas`), or use the Arrow table"
        ) from error
    return table.to_pandas()
