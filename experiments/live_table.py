"""The live table: what every scheduler is doing, shown while an arm runs."""

from __future__ import annotations

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from experiments.report.fitted_table import FittedTable
from parsync.metrics.live import SchedulerLine, Snapshot

UNKNOWN = "-"


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def _milliseconds(us: float | None) -> str:
    return UNKNOWN if us is None else f"{us / 1000:,.1f} ms"


def live_table(
    title: str, names: list[str], snapshot: Snapshot, end_us: int, seconds_left: float | None
) -> RenderableType:
    """Return a table with a row per scheduler below the progress and utilisation of the cell. Where
    the terminal is too narrow for all columns, the last ones are in further tables below.

    Args:
        names: Of the schedulers, by agent index.
        end_us: The end of the workload.
        seconds_left: Estimated real time until then; None if unknown.
    """
    table = FittedTable(pad_edge=False)
    table.add_column("scheduler", min_width=12)
    for column in ("queue", "commits/s", "conflicts", "delay p50", "delay p99", "preferred"):
        table.add_column(column, justify="right")
    others = snapshot.schedulers[0].others if snapshot.schedulers else ()
    for figure in others:
        label = figure.quantity.column_label or figure.quantity.label
        table.add_column(Text(label.lower()), justify="right")
    for line in snapshot.schedulers:
        table.add_row(Text(names[line.agent]), *_cells(line))
    used = UNKNOWN if snapshot.used_permille is None else f"{snapshot.used_permille / 10:.1f} %"
    left = "" if seconds_left is None else f"  about {max(0.0, seconds_left):.0f} s left"
    head = Text.assemble(
        (title, "bold"),
        f"  t = {snapshot.at_us / 1e6:.1f} of {end_us / 1e6:.0f} s  cell used {used}{left}",
    )
    return Stack(
        head,
        ProgressBar(total=max(1, end_us), completed=min(snapshot.at_us, end_us), width=60),
        table,
    )


def _cells(line: SchedulerLine) -> tuple[str, ...]:
    return (
        f"{line.queue:,}",
        f"{line.commits_per_s:,.0f}",
        _percent(line.conflict_rate),
        _milliseconds(line.delay_p50_us),
        _milliseconds(line.delay_p99_us),
        _percent(line.preferred_share),
        *(
            UNKNOWN if figure.value is None else figure.quantity.text(figure.value)
            for figure in line.others
        ),
    )
