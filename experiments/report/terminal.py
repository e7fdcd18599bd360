"""The comparison of a run's arms as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from experiments.report.fitted_table import FittedTable
from experiments.report.verdict import Cell, Row, unplaced_share, verdict
from experiments.restarts import count
from experiments.summary_model import ComparedArms
from parsync.metrics.quantity import counted, share


def comparison_table(summary: ComparedArms) -> Table:
    """One row per arm, one column per headline quantity: mean over the paired seeds and its
    interval, or the run's own figure.

    Bold green with a star: best; green: no certain difference to it. Fits 80 columns.
    """
    return arms_table(
        summary,
        verdict(summary, [quantity for quantity in summary.headline if quantity.column_label]),
    )


def arms_table(summary: ComparedArms, rows: Sequence[Row]) -> Table:
    """As comparison_table, with any quantities."""
    seeds = summary.paired.seeds
    basis = (
        f"mean of {counted(len(seeds), 'paired seed')} in virtual time, ± half its 95 % interval"
        if seeds
        else "one run"
    )
    title = Text(f"{summary.workload.name}, seed {summary.seed}: {basis}")
    if summary.partial:
        title.append(f"\nPARTIAL: {summary.partial_reason}")
    waiting = (
        " Waiting: tasks not committed by the end."
        if any(row.quantity.key == "censored" for row in rows)
        else ""
    )
    cut = (
        " Arms cut short are not ranked."
        if any(arm.partial for arm in summary.arms) and not seeds
        else ""
    )
    shares = {arm.slug: unplaced_share(summary, arm) for arm in summary.arms}
    bounds = (
        " ≥: tasks never placed are charged up to the end; arms that left many are not ranked."
        if any(shares.values())
        else ""
    )
    table = FittedTable(
        title=title,
        title_justify="left",
        caption="★ best, green: no certain difference to the best." + waiting + cut + bounds,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        min_width=60,  # of title and legend, where there are no figures
    )
    table.add_column("Arm", min_width=12)
    for row in rows:
        table.add_column(row.quantity.column_label or row.quantity.label, justify="right")
    for index, arm in enumerate(summary.arms):
        name = Text(arm.name)
        if arm.partial:
            name.append("\ncut short", style="dim")
        if restarted := count(arm.restarts):
            name.append(f"\n{restarted}", style="dim")
        if shares[arm.slug]:
            name.append(f"\n{share(shares[arm.slug], 2)} unplaced", style="dim")
        table.add_row(name, *(_text(row.cells[index]) for row in rows))
    return table


def _text(cell: Cell) -> Text:
    style = "bold green" if cell.best else "green" if cell.tied else ""
    text = Text(
        cell.value.replace("≥ ", "≥") + (" ★" if cell.best else ""), style=style, no_wrap=True
    )
    if cell.spread:
        text.append(f"\n{cell.spread}", style="dim")
    return text
