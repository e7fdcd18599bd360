"""How far the order of the arms depends on choices about decision times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from experiments.analysis.arm_names import and_list, names_by_slug
from experiments.analysis.statistics import (
    Difference,
    fewest_seeds,
    median_interval,
    paired_difference,
)
from experiments.analysis.summary_model import RunSummary, SeedSummary, Sensitivity
from parsync.metrics.quantity import Quantity, Unit, counted, percent_change

SHOWN = ("delay_mean_us", "preferred_share", "conflict_rate", "jct_mean_us")
ORDERED_BY = "delay_mean_us"


@dataclass(frozen=True, slots=True)
class ChangedFigure:
    """A figure with both choices, medians over the same seeds.

    Attributes:
        doubt: What keeps the change from being certain, "" if nothing does.
    """

    as_run: str
    changed: str
    change: str
    certain: bool
    doubt: str


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """What a choice changes.

    Attributes:
        title: The choice.
        seeds: The number of seeds that the medians are over.
        labels: Of the figures.
        rows: The figures of each arm that the choice concerns, by slug.
        sentence: Which arm would overtake which.
    """

    title: str
    seeds: int
    labels: tuple[str, ...]
    rows: dict[str, tuple[ChangedFigure, ...]]
    sentence: str


def sensitivity_tables(summary: RunSummary) -> list[ChangedTable]:
    """A table for each choice."""
    quantities = [found for key in SHOWN if (found := summary.quantity(key)) is not None]
    labels = tuple(quantity.label for quantity in quantities)
    tables = []
    for one in summary.sensitivity:
        rows = {}
        for arm in one.arms:
            as_run = _as_run(summary, arm.slug, arm.seeds)
            rows[arm.slug] = tuple(_figure(quantity, as_run, arm.seeds) for quantity in quantities)
        seeds = max(len(arm.seeds) for arm in one.arms)
        sentence = _overtakes(summary, one)
        told = sentence[:1].upper() + sentence[1:]
        tables.append(ChangedTable(one.title, seeds, labels, rows, told))
    return tables


def sensitivity_sentences(summary: RunSummary) -> list[str]:
    """For each choice, whether it decides which arm waits less."""
    return [
        f"{one.title}, {sentence}"
        for one in summary.sensitivity
        if (sentence := _overtakes(summary, one))
    ]


def _overtakes(summary: RunSummary, one: Sensitivity) -> str:
    """Which arms wait less than others, for certain, only with this choice. If there are too few
    seeds for an interval, the sentence names arms that do under each seed, and says so. Arms that
    the choice does not concern keep their figures; with another scan cost, only arms that it
    concerns are compared."""
    changed = {arm.slug: arm.seeds for arm in one.arms}
    found: dict[str, list[str]] = {}  # who is overtaken, by who overtakes
    names = names_by_slug(summary.arms)
    pairs = 0
    for members in summary.sets():
        slugs = [arm.slug for arm in members.arms if one.with_others or arm.slug in changed]
        for first, second in permutations(slugs, 2):
            seeds = changed.get(first) or changed.get(second)
            if seeds is None:
                continue
            pairs += 1
            before = _delays(summary, first, seeds), _delays(summary, second, seeds)
            after = (
                _values(changed[first], ORDERED_BY) if first in changed else before[0],
                _values(changed[second], ORDERED_BY) if second in changed else before[1],
            )
            if len({len(values) for values in (*before, *after)}) > 1:
                continue
            if _is_lower(*before) and _is_lower(after[1], after[0]):
                found.setdefault(names[second], []).append(names[first])
    if not pairs:
        return ""
    change = _range_of_change(summary, one)
    most = max(len(arm.seeds) for arm in one.arms)
    few = (
        f" (under each of {counted(most, 'seed')}; an interval takes {fewest_seeds()})"
        if most < fewest_seeds()
        else ""
    )
    if not found:
        return f"{change}no arm would overtake another{few}."
    overtaken = [f"{winner} would overtake {and_list(losers)}" for winner, losers in found.items()]
    return f"{change}{'; '.join(overtaken)}{few}."


def _range_of_change(summary: RunSummary, one: Sensitivity) -> str:
    """How mean delays change, as the beginning of a sentence."""
    ratios = []
    for arm in one.arms:
        as_run = _values(_as_run(summary, arm.slug, arm.seeds), ORDERED_BY)
        changed = _values(arm.seeds, ORDERED_BY)
        if len(as_run) == len(changed):
            relative = paired_difference(changed, as_run).relative.estimate
            ratios += [] if relative is None else [f"{1 + relative:.2f}"]
    if not ratios:
        return ""
    low, high = min(ratios, key=float), max(ratios, key=float)
    if low == high == "1.00":
        return "mean delays would not change, and "
    times = low if low == high else f"{low} to {high}"
    return f"mean delays would be {times} times as long, and "


def _is_lower(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Whether the first is lower for certain; with too few seeds, whether it is so under each."""
    difference = paired_difference(one, other)
    if difference.too_few_seeds:
        return difference.lower_in == difference.absolute.n
    return difference.certain and difference.estimate is not None and difference.estimate < 0


def _as_run(summary: RunSummary, slug: str, seeds: Sequence[SeedSummary]) -> list[SeedSummary]:
    """An arm's own runs under these seeds."""
    wanted = {row.seed for row in seeds}
    (arm,) = (arm for arm in summary.arms if arm.slug == slug)
    return [row for row in arm.seeds if row.seed in wanted]


def _delays(summary: RunSummary, slug: str, seeds: Sequence[SeedSummary]) -> list[float | None]:
    return _values(_as_run(summary, slug, seeds), ORDERED_BY)


def _values(rows: Sequence[SeedSummary], key: str) -> list[float | None]:
    return [row.overall.value(key) for row in rows]


def _figure(
    quantity: Quantity, as_run: Sequence[SeedSummary], changed: Sequence[SeedSummary]
) -> ChangedFigure:
    before, after = (_values(rows, quantity.key) for rows in (as_run, changed))
    difference = paired_difference(after, before) if len(before) == len(after) else None
    return ChangedFigure(
        as_run=quantity.text(median_interval(before).estimate),
        changed=quantity.text(median_interval(after).estimate),
        change=_change(quantity, difference),
        certain=bool(difference and difference.certain),
        doubt=_doubt(difference),
    )


def _doubt(difference: Difference | None) -> str:
    if difference is None or difference.certain or difference.is_equal:
        return ""
    return ": not enough seeds" if difference.too_few_seeds else ": unsure"


def _change(quantity: Quantity, difference: Difference | None) -> str:
    if difference is None or difference.estimate is None:
        return ""
    if difference.is_equal:
        return "same"
    if quantity.unit is Unit.SHARE or difference.relative.estimate is None:
        return quantity.difference_text(difference.estimate)
    return percent_change(difference.relative.estimate)


def seeds_text(table: ChangedTable) -> str:
    """Over how many seeds a table's medians are."""
    return counted(table.seeds, "paired seed")
