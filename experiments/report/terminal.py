"""The comparison of a run's arms for the terminal: a table for each set of arms that may be ranked
beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from experiments.analysis.seed_variation import seed_note
from experiments.analysis.statistics import interval_in_words
from experiments.analysis.summary_model import ArmSummary, ComparedArms, restart_count
from experiments.config.decision_basis import basis_titles
from experiments.report.answer import transient_phases
from experiments.report.bound import bound_sentences
from experiments.report.fitted_table import FittedTable
from experiments.report.live_runs import disturbed_runs, live_cells
from experiments.report.verdict import Cell, Row, unplaced_share, verdict
from parsync.metrics.quantity import Quantity, share


def comparison_table(summary: ComparedArms) -> Group:
    """One row per arm, one column per headline quantity: median over the paired seeds and its
    interval, or the run's own figure. Live runs besides have tables of their own below.

    Bold green with a star: best; green: no certain difference to it. Fits 80 columns.
    """
    return compared_table(summary, verdict(summary, _columns(summary)))


def compared_table(summary: ComparedArms, rows: Sequence[Row]) -> Group:
    """As comparison_table, with the quantities of these rows."""
    parts: list[RenderableType] = [arms_table(summary, rows)]
    if (live := summary.live()) is not None:
        title = f"Live runs, seed {summary.seed}: one run each, in real time"
        live_rows = verdict(live, [row.quantity for row in rows])
        parts += [Text(title), *_tables(live, live_rows)]
    sentences = [live_cells(summary), *disturbed_runs(summary)]
    parts += [Text(sentence) for sentence in sentences if sentence]
    return Group(*parts)


def _columns(summary: ComparedArms) -> list[Quantity]:
    return [
        quantity
        for quantity in summary.headline
        if quantity.column_label
        # if all tasks were committed in every arm, a column of that says nothing
        and (quantity.key != "censored" or summary.happened(quantity.key))
    ]


def arms_table(summary: ComparedArms, rows: Sequence[Row]) -> Group:
    """The arms without the live runs besides."""
    seeds = summary.paired.seeds
    basis = (
        f"median of {len(seeds)} paired seeds in virtual time, {interval_in_words(len(seeds))}"
        if len(seeds) > 1
        else "one run in virtual time"
        if summary.runtime == "virtual"
        else "one live run"
    )
    title = Text(f"{summary.workload.name}, seed {summary.seed}: {basis}")
    if summary.partial:
        title.append(f"\nPARTIAL: {summary.partial_reason}")
    shown, sets = {row.quantity.key for row in rows}, summary.sets()
    of_class = " of its clock class" if len(sets) > 1 else ""
    has_capacity = any(arm.basis.capacity for arm in summary.arms)
    cut_short = not seeds and any(arm.partial for arm in summary.arms)
    unplaced = any(unplaced_share(summary, arm) for arm in summary.arms)
    legend = (
        (True, f"★ best{of_class}, green: no certain difference to the best."),
        ("censored" in shown, "Waiting: tasks not committed by the end."),
        (
            has_capacity,
            "A: decisions that all schedulers of an arm have time for, over arrivals at 100 % "
            "load.",
        ),
        ("decisions_per_s" in shown, "Capacity: what they would commit if they never paused."),
        (cut_short, "Arms cut short are not ranked."),
        (
            unplaced,
            "≥: tasks never placed are charged up to the end; arms that left many are not ranked.",
        ),
    )
    notes = [Text(" ".join(text for applies, text in legend if applies), style="dim italic")]
    if seed_text := seed_note(summary):
        notes.append(Text(seed_text))
    if drifted := transient_phases(summary):
        notes.append(Text(drifted))
    if sentences := bound_sentences(summary):
        notes.append(Text(" ".join(sentences)))
    return Group(title, *_tables(summary, rows), *notes)


def _tables(summary: ComparedArms, rows: Sequence[Row]) -> list[FittedTable]:
    """A table for each set of arms that may be ranked beside each other."""
    index_of = {arm.slug: index for index, arm in enumerate(summary.arms)}
    sets = summary.sets()
    titles = basis_titles([one.arms[0].basis for one in sets])
    tables = []
    for title_of_set, one in zip(titles, sets, strict=True):
        table = FittedTable(
            title=Text(title_of_set),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            min_width=60,
        )
        table.add_column("Arm", min_width=12)
        for row in rows:
            table.add_column(row.quantity.column_label or row.quantity.label, justify="right")
        for arm in one.arms:
            name = _name(arm, unplaced_share(summary, arm))
            table.add_row(name, *(_text(row.cells[index_of[arm.slug]]) for row in rows))
        tables.append(table)
    return tables


def _name(arm: ArmSummary, unplaced: float) -> Text:
    """An arm's name, and what is wrong with its run."""
    name = Text(arm.name)
    if arm.partial:
        name.append("\ncut short", style="dim")
    if arm.machines:
        name.append(f"\n{arm.machines:,} machines", style="dim")
    if arm.is_disturbed:
        name.append("\ndisturbed", style="dim")
    if restarted := restart_count(arm.restarts):
        name.append(f"\n{restarted}", style="dim")
    if unplaced:
        name.append(f"\n{share(unplaced, 2)} unplaced", style="dim")
    return name


def short_range(value: str, spread: str) -> str:
    """An interval for a narrow column: without its unit where it is that of the value."""
    _, space, unit = value.rpartition(" ")
    same = f" {unit}" if space and spread.count(f" {unit}") == 1 else ""
    return spread.removesuffix(same).replace(" to ", "–")


def _text(cell: Cell) -> Text:
    style = "bold green" if cell.best else "green" if cell.tied else ""
    text = Text(
        cell.value.replace("≥ ", "≥") + (" ★" if cell.best else ""), style=style, no_wrap=True
    )
    if cell.spread:
        text.append(f"\n{short_range(cell.value, cell.spread)}", style="dim")
    return text
