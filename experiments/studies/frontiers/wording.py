"""What a frontier says, in words: conditions, sets of architectures, areas, who is best; and its
table for the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from experiments.analysis.frontier_model import (
    FrontierArea,
    FrontierBest,
    FrontierCondition,
    FrontierPoint,
    FrontierSummary,
)
from experiments.analysis.statistics import interval_in_words
from experiments.config.decision_basis import basis_title, by_basis
from experiments.report.fitted_table import FittedTable
from experiments.report.terminal import short_range
from parsync.metrics.quantity import Better, counted, duration, from_to, share


def condition_text(condition: FrontierCondition) -> str:
    """A condition as a title, such as "load 80 %, G = 200 ms"."""
    parts = [load_text(condition), gap_text(condition)]
    return ", ".join(part for part in parts if part) or "the workload as it is"


def load_text(condition: FrontierCondition) -> str:
    """The load of a condition; "" where it is the workload's."""
    return "" if condition.load_percent is None else f"load {condition.load_percent} %"


def gap_text(condition: FrontierCondition) -> str:
    """The gap of a condition; "" where it is the arms' own."""
    return "" if condition.gap_s is None else f"G = {duration(condition.gap_s * 1e6)}"


def conditions_by_load(summary: FrontierSummary) -> list[list[int]]:
    """The indices of the conditions as a map: a row for each load, a column for each gap."""
    place = {(one.load_percent, one.gap_s): number for number, one in enumerate(summary.conditions)}
    gaps = list(dict.fromkeys(one.gap_s for one in summary.conditions))
    loads = dict.fromkeys(one.load_percent for one in summary.conditions)
    return [[place[load, gap] for gap in gaps] for load in loads]


def sets_of(summary: FrontierSummary) -> list[tuple[str, list[int]]]:
    """The architectures that may be ranked beside each other, as (what they rest on, indices)."""
    bases = [(index, one.basis) for index, one in enumerate(summary.architectures)]
    return [
        (basis_title(summary.architectures[members[0]].basis), members)
        for members in by_basis(bases)
    ]


def pairs_of(summary: FrontierSummary) -> list[tuple[str, str]]:
    """The pairs of figures that have areas. Where each place costs the same unless it is preferred,
    the cost says what the share says, and its pairs are left out."""
    pairs = list(dict.fromkeys((area.delay, area.quality) for area in summary.areas))
    by_pair = {
        pair: [round(area.area.estimate or 0, 9) for area in summary.areas if pair_of(area) == pair]
        for pair in pairs
    }
    return [
        (delay, quality)
        for delay, quality in pairs
        if quality == "preferred_share"
        or by_pair[delay, quality] != by_pair.get((delay, "preferred_share"))
    ]


def pair_of(one: FrontierArea | FrontierBest) -> tuple[str, str]:
    """The pair of figures that an area or a verdict is about."""
    return one.delay, one.quality


def pair_text(summary: FrontierSummary, delay: str, quality: str) -> str:
    """A pair of figures, such as "Mean delay, preferred machine"."""
    return f"{summary.quantity(delay).label}, {summary.quantity(quality).label.lower()}"


def area_text(area: FrontierArea | None) -> str:
    """An area in per cent of the box; "–" where it is not known."""
    return "–" if area is None or area.area.estimate is None else share(area.area.estimate)


def spread_text(area: FrontierArea | None) -> str:
    """An area's interval, such as "61.2 to 63.4 %"; "" for few seeds."""
    if area is None or area.area.spread is None:
        return ""
    low, high = area.area.spread
    return from_to(share(low), share(high))


def best_of_condition(
    summary: FrontierSummary, condition: int, members: Sequence[int], pair: tuple[str, str]
) -> FrontierBest | None:
    """Who is best among these under a condition; None if they are not ranked."""
    return next(
        (
            best
            for best in summary.bests
            if best.condition == condition
            and list(best.members) == list(members)
            and pair_of(best) == pair
        ),
        None,
    )


def names_text(names: Sequence[str]) -> str:
    """Names of architectures one after another; names with commas in them are set apart."""
    return ("; " if any("," in name for name in names) else ", ").join(names)


def best_text(summary: FrontierSummary, best: FrontierBest | None) -> str:
    """Who is best, in a few words."""
    if best is None or best.best is None:
        return "nobody"
    name = summary.architectures[best.best].name
    return f"{name}; {not_certain_text(summary, best)}" if best.tied else name


def not_certain_text(summary: FrontierSummary, best: FrontierBest) -> str:
    """Of whom the best one is not certainly ahead, or that there are not enough seeds to tell."""
    seeds = len(summary.seeds)
    if seeds < best.seeds_needed:
        return f"not enough seeds to tell ({seeds} of {best.seeds_needed})"
    names = [summary.architectures[index].name for index in best.tied]
    return f"not certainly more than {names_text(names)}"


def limits_us(summary: FrontierSummary) -> list[float]:
    """The decades of the box's delays, as limits on the delay."""
    low, high = math.log10(summary.box.fastest_us), math.log10(summary.box.slowest_us)
    return [10.0**decade for decade in range(math.floor(low) + 1, math.ceil(high))]


def within(
    summary: FrontierSummary,
    architecture: int,
    condition: int,
    pair: tuple[str, str],
    limit_us: float,
) -> FrontierPoint | None:
    """The best placed point of an architecture whose delay is at most the limit; None without any.

    Points whose delay is a lower bound are left out.
    """
    delay, quality = pair
    known = [
        (value, point)
        for point in summary.points_of(architecture, condition)
        if delay not in point.bounds
        and delay in point.figures
        and quality in point.figures
        and (mean_us := point.figures[delay].estimate) is not None
        and mean_us <= limit_us
        and (value := point.figures[quality].estimate) is not None
    ]
    if not known:
        return None
    if summary.quantity(quality).better is Better.LOWER:
        return min(known, key=lambda row: row[0])[1]
    return max(known, key=lambda row: row[0])[1]


def answers(summary: FrontierSummary) -> list[str]:
    """One sentence for each set of architectures: who is best by mean delay and the first
    quality."""
    pairs = pairs_of(summary)
    found = []
    for title, members in sets_of(summary):
        if len(members) < 2 or not pairs:
            continue
        bests = [
            best
            for best in summary.bests
            if list(best.members) == members and pair_of(best) == pairs[0]
        ]
        if len(bests) == 1:
            found.append(f"{title}: {_one(summary, bests[0])}.")
            continue
        certain = {
            index: [
                condition_text(summary.conditions[best.condition])
                for best in bests
                if best.best == index and not best.tied
            ]
            for index in members
        }
        parts = [
            f"{summary.architectures[index].name} is certainly best in {len(where)} of"
            f" {len(bests)} conditions"
            for index, where in certain.items()
            if where
        ]
        seeds, needed = len(summary.seeds), max(best.seeds_needed for best in bests)
        open_ones = sum(bool(best.tied) or best.best is None for best in bests)
        if seeds < needed:
            found.append(
                f"{title}: not enough seeds to tell who is certainly best in any of {len(bests)} "
                f"conditions ({seeds} of {needed})."
            )
            continue
        if open_ones:
            parts.append(f"in {open_ones} of {len(bests)} nobody is certainly best")
        found.append(f"{title}: {'; '.join(parts)}.")
    return found


def _one(summary: FrontierSummary, best: FrontierBest) -> str:
    if best.best is None:
        return "no architecture has a point in the box"
    area = summary.area_of(best.best, best.condition, *pair_of(best))
    name = summary.architectures[best.best].name
    text = f"{name} dominates most, {area_text(area)} of the box"
    return f"{text}; {not_certain_text(summary, best)}" if best.tied else text


def box_text(summary: FrontierSummary) -> str:
    """The box in words: its delays, and the worst value of each quality."""
    box = summary.box
    worst = ", ".join(
        f"{summary.quantity(key).label.lower()} {summary.quantity(key).text(value)}"
        for key, value in box.worst.items()
    )
    return (
        f"Delays from {duration(box.fastest_us)} to {duration(box.slowest_us)} on a logarithmic "
        f"scale. Reference point: {duration(box.slowest_us)} and {worst}"
    )


def bounds_text(summary: FrontierSummary) -> str:
    """The best preferred share and cost of every load, in words; "" where none is known."""
    parts = {}
    for condition in summary.conditions:
        bound = condition.bound
        if bound is None or bound.preferred_share is None:
            continue
        cost = "" if bound.cost_mean is None else f" at a mean cost of {bound.cost_mean:,.4g}"
        load = load_text(condition)
        of_load = f"{load}: " if load else ""
        about = "about " if bound.is_estimate else ""
        parts[load] = f"{of_load}{about}{share(bound.preferred_share)} preferred{cost}"
    return "; ".join(parts.values())


def frontier_table(summary: FrontierSummary) -> Group:
    """A table for each set of architectures that may be ranked: a row for each, a column for each
    condition, or for each pair of figures if there is one condition."""
    pairs = pairs_of(summary)
    many = len(summary.conditions) > 1
    columns = [
        (place, pair)
        for place in range(len(summary.conditions))
        for pair in (pairs[:1] if many else pairs)
    ]
    what = f": {pair_text(summary, *pairs[0])}" if many and pairs else ""
    title = Text(
        f"Dominated area in per cent of the box{what}; median of "
        f"{counted(len(summary.seeds), 'paired seed')}, {interval_in_words(len(summary.seeds))}"
    )
    if summary.partial:
        title.append(f"\nPARTIAL: {summary.partial}")
    parts: list[RenderableType] = [title]
    for text, members in sets_of(summary):
        table = FittedTable(
            title=Text(text),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            min_width=60,
        )
        table.add_column("Architecture", min_width=12)
        for place, pair in columns:
            head = condition_text(summary.conditions[place]) if many else pair_text(summary, *pair)
            table.add_column(head, justify="right")
        for index in members:
            cells = []
            for place, pair in columns:
                area = summary.area_of(index, place, *pair)
                best = best_of_condition(summary, place, members, pair)
                is_best = best is not None and best.best == index
                is_tied = best is not None and index in best.tied
                style = "bold green" if is_best else "green" if is_tied else ""
                cell = Text(area_text(area) + (" ★" if is_best else ""), style=style, no_wrap=True)
                if spread := spread_text(area):
                    cell.append(f"\n{short_range(area_text(area), spread)}", style="dim")
                cells.append(cell)
            table.add_row(Text(summary.architectures[index].name), *cells)
        parts.append(table)
    legend = "★ largest area of its clock class, green: not certainly smaller."
    parts.append(Text(f"{legend} {box_text(summary)}.", style="dim italic"))
    parts += [Text(answer) for answer in answers(summary)]
    return Group(*parts)
