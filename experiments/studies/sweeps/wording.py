"""The sentences and numbers of a sweep, for its page and the terminal; and its tables for the
terminal, one for each metric, a row for each combination.
"""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.analysis.statistics import (
    FAMILY_LEVEL,
    Interval,
    fewest_seeds,
    interval_in_words,
    level_of_seeds,
    level_text,
    seeds_needed,
)
from experiments.report.fitted_table import FittedTable
from experiments.studies.sweeps.looks import LOOKS
from experiments.studies.sweeps.result import (
    ArmComparison,
    ArmResult,
    CombinationResult,
    SweepSummary,
)
from experiments.studies.sweeps.sweep_file import assignments, value_text
from parsync.metrics.quantity import Quantity, Unit, counted, from_to


def interval_text(quantity: Quantity, interval: Interval) -> str:
    """A median with its interval."""
    text = quantity.text(interval.estimate, interval.at_least)
    if interval.spread is None:
        return text
    low, high = interval.spread
    return f"{text} ({from_to(quantity.text(low), quantity.text(high))})"


def baselines(summary: SweepSummary) -> list[str]:
    """The arms that others are compared with."""
    compared = (its for one in summary.combinations for arm in one.arms for its in arm.comparisons)
    return list(dict.fromkeys(its.baseline for its in compared))


def difference_texts(quantity: Quantity, arm: ArmResult, several: bool) -> list[str]:
    """The difference to each baseline with its interval; none for the baseline.

    Args:
        several: Whether arms have several baselines, so that each is named.
    """
    texts = [(its.baseline, difference_text(quantity, its)) for its in arm.comparisons]
    return [f"to {baseline}: {text}" if several else text for baseline, text in texts if text]


def difference_text(quantity: Quantity, comparison: ArmComparison) -> str:
    """The difference to a baseline with its interval; "" where it is not known."""
    difference = comparison.differences[quantity.key]
    if difference.estimate is None:
        return ""
    if difference.is_equal:
        return "same"
    text = quantity.difference_text(difference.estimate)
    if difference.at_least or difference.at_most:
        return f"{text} (rests on a lower bound)"
    if difference.absolute.spread is None:
        return text
    ends = from_to(*(quantity.difference_text(end) for end in difference.absolute.spread))
    return f"{text} ({ends}{'' if difference.certain else ': unsure'})"


def basis_sentence(summary: SweepSummary) -> str:
    """What the figures rest on."""
    seeds = sorted({len(one.seeds) for one in summary.combinations})
    if seeds[-1] < 2:
        return "One seed each: differences may be due to chance."
    over = f"{seeds[0]} seeds" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    if level_of_seeds(seeds[-1]) is None:
        return (
            f"Medians over {over}, which are not enough for intervals: these take "
            f"{fewest_seeds()}. Differences may be due to chance."
        )
    levels = [level_text(level_of_seeds(one)) for one in seeds]
    intervals = (
        interval_in_words(seeds[0])
        if len(seeds) == 1
        else "intervals of "
        + ", ".join(
            f"{level} ({counted(one, 'seed')})"
            for one, level in zip(seeds, levels, strict=True)
            if level
        )
    )
    return (
        f"Medians over {over}, {intervals}. Differences are taken seed by seed. Intervals are not "
        "corrected for how many there are."
    )


def until_sentence(summary: SweepSummary) -> str:
    """What came of `until`; "" if it was not asked for."""
    if not summary.until:
        return ""
    metric = summary.quantity(summary.metrics[0])
    known = [
        difference
        for one in summary.combinations
        for arm in one.arms
        for compared in arm.comparisons
        if (difference := compared.known) is not None
    ]
    reached = sum(one.reached for one in known)
    target = (
        f"{summary.until.strip().removesuffix('%').strip()} percentage points"
        if metric.unit is Unit.SHARE
        else f"{summary.until} of the baseline's median"
    )
    needed = seeds_needed(len(LOOKS) * max(map(_compared, summary.combinations)))
    few = sum(one.difference.estimate is not None and one.difference.low is None for one in known)
    too_few = (
        f" {few} {'has' if few == 1 else 'have'} not enough seeds ({needed} needed)." if few else ""
    )
    return (
        f"{metric.label}: {reached} of {counted(len(known), 'difference')} to a baseline "
        f"{'is' if reached == 1 else 'are'} known to within {target}.{too_few} Looked at after "
        f"{', '.join(map(str, LOOKS[:-1]))} and {LOOKS[-1]} seeds; these intervals are corrected "
        f"for the looks and for the differences of a combination, which all hold together with "
        f"{level_text(FAMILY_LEVEL)}."
    )


def _compared(one: CombinationResult) -> int:
    """The number of differences of a combination."""
    return sum(len(arm.comparisons) for arm in one.arms)


MOST_ROWS = 40
MOST_COLUMNS = 2  # of parameters; more would leave no room for the arms


def metric_tables(summary: SweepSummary) -> Group:
    """The medians of each metric with their intervals, arms in columns; and what `until` came
    to. Of a long sweep the first rows. Combinations of many parameters are numbered, and listed
    first.

    With several baselines the differences to these are shown, too, unless the sweep is long."""
    notes = [basis_sentence(summary), summary.seeds_vary, until_sentence(summary)]
    if summary.partial:
        notes.insert(0, f"PARTIAL: {summary.partial}.")
    if len(summary.combinations) > MOST_ROWS:
        notes.append(f"The page has all {len(summary.combinations)} combinations.")
    metrics = [summary.quantity(key) for key in summary.metrics]
    below = [Text(note) for note in notes if note]
    is_long = len(summary.combinations) * len(summary.arms) > MOST_ROWS
    if len(baselines(summary)) > 1 and not is_long:
        return Group(*(_table_of_differences(summary, one) for one in metrics), *below)
    tables = [_table_of_medians(summary, one) for one in metrics]
    return Group(*_numbered(summary), *tables, *below)


def _are_numbered(summary: SweepSummary) -> bool:
    return len(summary.parameters) > MOST_COLUMNS


def _numbered(summary: SweepSummary) -> list[Text]:
    if not _are_numbered(summary):
        return []
    labels = [parameter.label for parameter in summary.parameters]
    shown = enumerate(summary.combinations[:MOST_ROWS], 1)
    return [Text(f"{number}: {assignments(labels, one.values)}") for number, one in shown]


def _table(summary: SweepSummary, metric: Quantity) -> Table:
    return FittedTable(
        title=Text(f"{summary.name}: {metric.label}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )


def _table_of_differences(summary: SweepSummary, metric: Quantity) -> Table:
    """Arms in rows, the baselines in columns."""
    table = _table(summary, metric)
    table.add_column("arm")
    table.add_column("median", justify="right")
    compared = baselines(summary)
    for name in compared:
        table.add_column(Text(f"to {name}"), justify="right")
    labels = [parameter.label for parameter in summary.parameters]
    differ = len({len(one.seeds) for one in summary.combinations}) > 1
    for one in summary.combinations:
        seeds = f": {counted(len(one.seeds), 'seed')}" if differ else ""
        table.add_row(Text(f"{assignments(labels, one.values)}{seeds}", style="bold"))
        for arm in one.arms:
            median = interval_text(metric, arm.figures[metric.key]).replace(" (", "\n(")
            to = {its.baseline: difference_text(metric, its) for its in arm.comparisons}
            cells = [median, *(_on_two_lines(to.get(name, "")) for name in compared)]
            table.add_row(Text(arm.name), *(Text(cell, no_wrap=True) for cell in cells))
    return table


def _on_two_lines(difference: str) -> str:
    """A difference, and its interval below."""
    text = difference.removesuffix(": unsure)")
    if text != difference:
        text = text.replace(" (", " unsure (") + ")"
    return text.replace(" (", "\n(")


def _table_of_medians(summary: SweepSummary, metric: Quantity) -> Table:
    table = _table(summary, metric)
    labels = ["#"] if _are_numbered(summary) else [one.label for one in summary.parameters]
    table.add_column(", ".join(labels) or "as it is", justify="right")
    numbers = {len(one.seeds) for one in summary.combinations}
    if len(numbers) > 1:  # else a sentence below says how many
        table.add_column("seeds", justify="right")
    for name in summary.arms:
        table.add_column(Text(name), justify="right")
    for number, one in enumerate(summary.combinations[:MOST_ROWS], 1):
        values = [number] if _are_numbered(summary) else one.values
        cells = [", ".join(map(value_text, values))]
        cells += [str(len(one.seeds))] if len(numbers) > 1 else []
        figures = [interval_text(metric, arm.figures[metric.key]) for arm in one.arms]
        cells += [text.replace(" (", "\n(") for text in figures]  # two lines, as in other tables
        table.add_row(*(Text(cell, no_wrap=True) for cell in cells))
    return table
