"""The expected conflicts of ParSync's model for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.text import Text

from experiments.report.fitted_table import FittedTable
from experiments.studies.conflict_variations import RoundSetting, Variation
from parsync.metrics.quantity import counted, duration, share
from parsync.model.staleness import average_staleness_bounds_us


def conflict_table(setting: RoundSetting, variations: Sequence[Variation]) -> Group:
    """A row for each value of each parameter. The setting itself is green."""
    is_weighted = setting.score_variance > 0
    table = FittedTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", min_width=21)
    for head in ("N", "K", "idle slots", "conflicts", *(["by score"] if is_weighted else [])):
        table.add_column(head, justify="right")
    for variation in variations:
        table.add_row(Text(variation.label, style="bold"))
        _add_rows(table, setting, variation, is_weighted)
    note = 'Per cent: share of the N K claims. "conflicts": slots are all alike (Eq. 2).'
    if is_weighted:
        note += (
            ' "by score": slots are drawn with weight exp(score), and scores are normal with '
            f"variance {setting.score_variance:g}."
        )
    return Group(_sentence(setting), table, Text(note))


def _sentence(setting: RoundSetting) -> Text:
    return Text(
        f"Expected conflicts of a round: {counted(setting.schedulers, 'scheduler')} (N) with "
        f"{counted(int(setting.tasks), 'task')} each (K) pick from "
        f"{counted(setting.idle_slots, 'idle slot')}, all with the same fresh view. "
        f"{setting.load_percent:g} % of {counted(setting.slots, 'slot')} are taken."
    )


def _add_rows(
    table: FittedTable, setting: RoundSetting, variation: Variation, is_weighted: bool
) -> None:
    columns = [variation.conflicts()]
    if is_weighted:
        columns.append(variation.weighted_conflicts())
    for index, (text, one) in enumerate(
        zip(variation.value_texts, variation.settings, strict=True)
    ):
        counts = [float(column[index]) for column in columns]
        style = "green" if one == setting else ""
        first = [f"{one.schedulers:,}", _number(one.tasks), f"{one.idle_slots:,}"]
        _add_row(table, text, first, counts, one.claims, style)
    if variation.limit is not None:
        counts = [variation.limit.conflicts]
        if is_weighted:
            counts.append(variation.limit.weighted_conflicts)
        first = ["∞", "→ 0", f"{setting.idle_slots:,}"]
        _add_row(table, "limit", first, counts, setting.claims, "")


def _add_row(
    table: FittedTable,
    text: str,
    first: Sequence[str],
    counts: Sequence[float],
    claims: float,
    style: str,
) -> None:
    cells = [f"{_number(count)} {share(count / claims):>7}" for count in counts]
    table.add_row(
        *(Text(cell, style=style, no_wrap=True) for cell in (f"  {text}", *first, *cells))
    )


def staleness_line(schedulers: int, gap_s: float) -> Text:
    """Between which values the average staleness of a view lies, under two sync policies."""
    texts = []
    for name, blocks in (("StateSync", 1), (f"ParSync's DiffSyn, N = {schedulers:,}", schedulers)):
        low, high = (float(one) for one in average_staleness_bounds_us(gap_s * 1e6, blocks))
        texts.append(f"{name}: {duration(low)} to {duration(high)}")
    return Text(f"Average staleness of a view, G = {duration(gap_s * 1e6)}. {'; '.join(texts)}.")


def _number(value: float) -> str:
    """A number of tasks, claims or conflicts; three significant digits if it is small."""
    return f"{value:,.0f}" if value == int(value) or value >= 999.5 else f"{value:.3g}"
