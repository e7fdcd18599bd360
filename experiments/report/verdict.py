"""Who wins at what, by how much, how surely: one row per quantity, for the page and for the
terminal.

Arms are ranked only beside those whose delays rest on the same basis (config/decision_basis.py),
and only if they did as much work. A mean delay over the tasks that were placed is the lower the
more tasks an arm leaves waiting. So where more than a negligible share is missing
(parsync.metrics.metric.NEGLIGIBLE) the figure compared is a lower bound (ScopeFigures.value), in
which the missing ones are charged until the run was last seen, and an arm with a bound is not
ranked against one without. Nor is an arm ranked that left more than twice as many tasks unplaced as
another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.analysis.seed_variation import is_same_under_every_seed
from experiments.analysis.statistics import (
    Difference,
    Interval,
    fewest_seeds,
    level_text,
    paired_difference,
)
from experiments.analysis.summary_model import (
    ArmSummary,
    ComparedArms,
    and_list,
    names_by_slug,
)
from experiments.config.decision_basis import BasisKind, basis_text, basis_titles
from experiments.config.price_settings import NOT_RANKED_BY_REGRET
from parsync.metrics.kinds.regret import RegretMeans
from parsync.metrics.quantity import Better, Quantity, Unit, from_to, is_better, percent_change
from parsync.metrics.summary import ScopeFigures

SAME = "same"
NO_SPREAD = "no spread"  # the run does not depend on the seed
NOT_RANKED = "Not ranked: no two arms have clocks of the same class and capacity."


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm at one quantity.

    A figure that leaves out too much is replaced by its lower bound, marked "≥"; so are changes
    that rest on one ("≤" where it is the baseline's). Neither that figure nor
    any other figure of an arm that left tasks unplaced is best or tied among arms that placed
    theirs.

    Attributes:
        value: The median over seeds, or this run's figure where there are no seeds.
        spread: Its interval.
        change: The difference to the baseline.
        certain: Whether the interval of the change excludes 0.
        good: Whether the change is to the better.
        best: Whether it is the best of all arms.
        tied: Whether the difference to the best is not certain.
        judged: Whether its change is called better or worse.
        beside: The figures that stand beside it in small print.
    """

    arm: str
    slug: str
    value: str
    spread: str
    change: str
    change_interval: str
    certain: bool
    good: bool
    best: bool
    tied: bool
    judged: bool = True
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """All arms at one quantity.

    Attributes:
        beside: The quantities that stand beside it in small print.
    """

    quantity: Quantity
    cells: tuple[Cell, ...]
    sentence: str
    beside: tuple[Quantity, ...] = ()

    def cell(self, slug: str) -> Cell:
        """The cell of an arm."""
        return next(cell for cell in self.cells if cell.slug == slug)


def verdict(summary: ComparedArms, quantities: Sequence[Quantity]) -> list[Row]:
    """A row for each quantity that any arm has a figure for."""
    sets = summary.sets()
    return [
        _row_of_sets(summary, sets, quantity)
        for quantity in quantities
        if any(arm.overall.plain_value(quantity.key) is not None for arm in summary.arms)
    ]


def _row_of_sets(summary: ComparedArms, sets: Sequence[ComparedArms], quantity: Quantity) -> Row:
    """Every set of comparable arms is ranked by itself."""
    if len(sets) == 1:
        return _row(summary, quantity)
    rows = [_row(one, quantity) for one in sets]
    cell_of = {cell.slug: cell for row in rows for cell in row.cells}
    titles = basis_titles([one.arms[0].basis for one in sets])
    ranked_rows = [
        f"{title}: {row.sentence}"
        for title, one, row in zip(titles, sets, rows, strict=True)
        if row.sentence and len(one.arms) > 1
    ]
    cells = tuple(cell_of[arm.slug] for arm in summary.arms)
    if quantity.better is not Better.NEITHER:
        unmodelled = [arm for arm in summary.arms if arm.basis.kind is BasisKind.UNMODELLED]
        alone = all(len(one.arms) == 1 for one in sets)
        if alone and len(summary.arms) - len(unmodelled) > 1:
            ranked_rows = [NOT_RANKED]
        ranked_rows += [f"{arm.name} is {basis_text(arm.basis)}." for arm in unmodelled]
    return Row(quantity, cells, " ".join(ranked_rows), rows[0].beside)


def _row(summary: ComparedArms, quantity: Quantity) -> Row:
    arms, paired = summary.arms, summary.paired
    key, seeds = quantity.key, paired.seeds
    by_seed = {arm.slug: _by_seed(arm, key, seeds) for arm in arms}
    values = {arm.slug: _value(summary, arm, key) for arm in arms}
    bounded = {
        arm.slug: any(figures.is_bound(key) for figures in _compared(arm, seeds)) for arm in arms
    }
    priced = [arm.slug for arm in _priced(summary, quantity)]
    ranked_arms = [
        slug for slug in ranked_by(_compared_figures(summary), key) if slug not in priced
    ]
    comparable = {slug: values[slug] for slug in ranked_arms}
    unranked = [arm for arm in _not_ranked(summary, quantity, comparable) if arm.slug not in priced]
    best = _best(quantity, comparable, len(unranked))
    against_best = {
        slug: paired_difference(
            by_seed[slug], by_seed[best], at_least=bounded[slug], at_most=bounded[best]
        )
        for slug in ranked_arms
        if best is not None and slug != best and seeds
    }
    beside = _beside(summary, key)
    with_baseline = any(arm.slug == paired.baseline for arm in arms)
    cells = []
    for arm in arms:
        slug = arm.slug
        interval = paired.arms.get(slug, {}).get(key)
        change = paired.differences.get(slug, {}).get(key) if with_baseline else None
        missing = interval.missing if interval is not None else 0
        cells.append(
            Cell(
                arm=arm.name,
                slug=slug,
                value=quantity.text(values[slug], bounded[slug]),
                spread=NO_SPREAD
                if is_same_under_every_seed(arm, seeds)
                else _spread(quantity, interval)
                if not missing
                else f"in {missing} of {len(seeds)} seeds",
                change=_change(quantity, change),
                change_interval=_change_interval(quantity, change),
                certain=bool(change and change.certain),
                good=bool(
                    change
                    and change.estimate is not None
                    and is_better(quantity, change.estimate, 0)
                ),
                best=slug == best,
                tied=slug in against_best
                and values[slug] is not None
                and not _is_behind(quantity, against_best[slug])
                and not against_best[slug].absolute.missing,
                judged=slug not in priced,
                beside=_small_print(summary, arm, beside),
            )
        )
    sentence = _sentence(summary, quantity, comparable, best, against_best, bounded)
    return Row(quantity, tuple(cells), sentence, beside)


def _beside(summary: ComparedArms, key: str) -> tuple[Quantity, ...]:
    """The quantities to show beside this one, as far as any arm has a figure."""
    return tuple(
        other
        for other in summary.quantities
        if other.beside == key
        and any(_value(summary, arm, other.key) is not None for arm in summary.arms)
    )


def _small_print(
    summary: ComparedArms, arm: ArmSummary, quantities: Sequence[Quantity]
) -> tuple[str, ...]:
    """What stands beside a figure of an arm: other figures with their labels."""
    values = [(one, _value(summary, arm, one.key)) for one in quantities]
    return tuple(
        f"{(one.column_label or one.label).lower()} {one.text(value)}"
        for one, value in values
        if value is not None
    )


def unplaced_share(summary: ComparedArms, arm: ArmSummary) -> float:
    """The share of its tasks that an arm did not place; 0 where negligible."""
    return missing_share(_compared(arm, summary.paired.seeds))


def is_ranked(summary: ComparedArms, arm: ArmSummary) -> bool:
    """Whether its figures can be best beside the arms it is comparable with: an arm that left far
    more tasks than others is not ranked."""
    return any(arm.slug in ranked(_compared_figures(one)) for one in summary.sets())


def _compared_figures(summary: ComparedArms) -> dict[str, list[ScopeFigures]]:
    """The figures that each arm is compared by; without seeds only those of sound runs."""
    seeds = summary.paired.seeds
    return {arm.slug: _compared(arm, seeds) for arm in summary.arms if seeds or arm.has_sound_run}


def _compared(arm: ArmSummary, seeds: Sequence[int]) -> list[ScopeFigures]:
    """The figures that an arm is compared by: those of the paired seeds, or its own."""
    return [row.overall for row in arm.seeds if row.seed in seeds] if seeds else [arm.overall]


def _by_seed(arm: ArmSummary, key: str, seeds: Sequence[int]) -> list[float | None]:
    by_seed = {row.seed: row.overall.value(key) for row in arm.seeds}
    return [by_seed[seed] for seed in seeds]


def _value(summary: ComparedArms, arm: ArmSummary, key: str) -> float | None:
    if summary.paired.seeds:
        interval = summary.paired.arms[arm.slug].get(key)
        return None if interval is None else interval.estimate
    return arm.overall.value(key)


def _best(quantity: Quantity, values: Mapping[str, float | None], unranked: int = 0) -> str | None:
    """The best of these; none if they are alike, or if there is but one and all are ranked."""
    known = {slug: value for slug, value in values.items() if value is not None}
    if quantity.better is Better.NEITHER or len(known) + unranked < 2 or not known:
        return None
    if len(known) > 1 and len(set(known.values())) == 1:
        return None
    pick = min if quantity.better is Better.LOWER else max
    return pick(known, key=lambda slug: known[slug])


def _spread(quantity: Quantity, interval: Interval | None) -> str:
    if interval is None or interval.spread is None:
        return ""
    low, high = interval.spread
    return from_to(quantity.text(low), quantity.text(high))


def _change(quantity: Quantity, change: Difference | None) -> str:
    if change is None or change.estimate is None:
        return ""
    if change.is_equal:
        return SAME
    interval, text = _shown(quantity, change)
    return _side(change) + text(interval.estimate)


def _shown(
    quantity: Quantity, change: Difference
) -> tuple[Interval, Callable[[float | None], str]]:
    """The one interval of a change that is printed, and how: relative, of shares in percentage
    points."""
    if quantity.unit is Unit.SHARE or change.relative.estimate is None:
        return change.absolute, quantity.difference_text
    return change.relative, percent_change


def _side(change: Difference) -> str:
    """On which side of what is stated the difference lies, if bounds are all there is."""
    if change.at_least and change.at_most:
        return "? "
    return "≥ " if change.at_least else "≤ " if change.at_most else ""


def _change_interval(quantity: Quantity, change: Difference | None) -> str:
    if change is None:
        return ""
    interval, text = _shown(quantity, change)
    if interval.spread is None:
        return ""
    low, high = interval.spread
    return from_to(text(low), text(high))


def _sentence(
    summary: ComparedArms,
    quantity: Quantity,
    values: Mapping[str, float | None],
    best: str | None,
    against_best: Mapping[str, Difference],
    bounded: Mapping[str, bool],
) -> str:
    if quantity.better is Better.NEITHER:
        return ""
    names = names_by_slug(summary.arms)
    known = [slug for slug, value in values.items() if value is not None]
    out = _why_not_ranked(summary, quantity, _not_ranked(summary, quantity, values))
    if best is None:
        alike = len(known) > 1
        return (("All arms alike." if not out else "All other arms alike.") if alike else "") + (
            out if alike else out.lstrip()
        )
    adjective = "lowest" if quantity.better is Better.LOWER else "highest"
    among = " of the ranked arms," if out else ""
    equal = [slug for slug in known if slug in against_best and against_best[slug].is_equal]
    firsts = [names[slug] for slug in (best, *equal)]
    lead = (
        f"{and_list(firsts)} {_is(firsts)} {adjective}{among} at "
        f"{quantity.text(values[best], bounded[best])}"
    )
    if equal:
        lead += ", the same under every seed"
    others = sorted(
        (slug for slug in known if slug != best and slug not in equal),
        key=lambda slug: float(values[slug] or 0),
        reverse=quantity.better is Better.HIGHER,
    )
    if not others:
        return f"{lead}.{out}"
    second = others[0]
    if not against_best:
        next_best = quantity.text(values[second], bounded[second])
        return (
            f"{lead}, before {names[second]} at {next_best}; "
            f"one run gives no confidence interval.{out}"
        )
    if against_best[second].too_few_seeds:
        seeds = against_best[second].absolute.n
        return (
            f"{lead}, before {names[second]} at {quantity.text(values[second], bounded[second])}: "
            f"not enough seeds to tell ({seeds}; an interval takes {fewest_seeds()}).{out}"
        )
    tied = [slug for slug in others if not _is_behind(quantity, against_best[slug])]
    if len(tied) == len(others):
        return (
            f"{lead}, but no difference to the others is certain."
            if len(others) > 1
            else f"{lead}, but the difference is not certain."
        ) + out
    if tied:
        rest = [slug for slug in others if slug not in tied]
        return (
            f"{lead}; the difference to {and_list([names[slug] for slug in tied])} is not certain. "
            f"{_ahead(quantity, names[rest[0]], against_best[rest[0]])}{out}"
        )
    return f"{lead}. {_ahead(quantity, names[second], against_best[second])}{out}"


def _not_ranked(
    summary: ComparedArms, quantity: Quantity, comparable: Mapping[str, float | None]
) -> list[ArmSummary]:
    """The arms that are not ranked here because they left tasks or jobs; those that were cut short
    or disturbed are named elsewhere."""
    seeds = summary.paired.seeds
    return [
        arm
        for arm in summary.arms
        if arm.slug not in comparable
        and (seeds or arm.has_sound_run)
        and _value(summary, arm, quantity.key) is not None
    ]


def _priced(summary: ComparedArms, quantity: Quantity) -> list[ArmSummary]:
    """The arms that are not ranked by regret, because they have slot prices; none for another
    quantity."""
    if quantity.key not in RegretMeans.model_fields:
        return []
    return [arm for arm in summary.arms if arm.prices]


def _why_not_ranked(summary: ComparedArms, quantity: Quantity, out: Sequence[ArmSummary]) -> str:
    priced = [arm.slug for arm in _priced(summary, quantity)]
    others = [arm for arm in out if arm.slug not in priced]
    waiting = [arm.slug for arm in others if unplaced_share(summary, arm)]
    unfinished = [arm.slug for arm in others if arm.slug not in waiting]
    names = names_by_slug(summary.arms)
    reasons = (
        (waiting, "left tasks unplaced and {is_are} not ranked."),
        (unfinished, "left jobs unfinished and {is_are} not ranked here."),
        (priced, "{has} slot prices and {is_are} not ranked here: " + NOT_RANKED_BY_REGRET + "."),
    )
    return "".join(
        f" {and_list([names[slug] for slug in slugs])} "
        + text.format(is_are=_is(slugs), has="has" if len(slugs) == 1 else "have")
        for slugs, text in reasons
        if slugs
    )


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _is_behind(quantity: Quantity, difference: Difference) -> bool:
    """Whether an arm is worse than the best one for certain."""
    estimate = difference.estimate
    return difference.certain and estimate is not None and is_better(quantity, 0, estimate)


def _ahead(quantity: Quantity, name: str, difference: Difference) -> str:
    """How far an arm is behind the best one."""
    absolute = difference.absolute
    if absolute.estimate is None:
        return ""
    worse_in = difference.higher_in if quantity.better is Better.LOWER else difference.lower_in
    text = quantity.difference_text
    relative = ""
    if quantity.unit is not Unit.SHARE and difference.relative.estimate is not None:
        relative = f"{percent_change(difference.relative.estimate)}, "
    lead = f"{name} is next: {relative}{text(absolute.estimate)}"
    if not absolute.varied:
        return f"{lead}, the same under every seed."
    if absolute.low is None or absolute.high is None:
        return f"{lead}."
    return (
        f"{lead} ({level_text(absolute.level)} interval "
        f"{from_to(text(absolute.low), text(absolute.high))}), worse in {worse_in} of "
        f"{absolute.n} seeds."
    )


def missing_share(compared: Sequence[ScopeFigures]) -> float:
    """The share of the submitted tasks that were not committed, over several runs; 0 where it is
    negligible in each of them."""
    if not any(figures.incomplete for figures in compared):
        return 0.0
    censored = sum(figures.censored or 0 for figures in compared)
    return float(censored / max(1, sum(figures.submitted or 0 for figures in compared)))


def ranked(compared: Mapping[str, Sequence[ScopeFigures]]) -> list[str]:
    """The arms, by name, that left no more than twice as many tasks as any, in order.

    Args:
        compared: The figures of each arm, of one or several runs.
    """
    missing = {arm: missing_share(figures) for arm, figures in compared.items()}
    least = min(missing.values(), default=0.0)
    return [arm for arm in compared if missing[arm] <= 2 * least]


def ranked_by(compared: Mapping[str, Sequence[ScopeFigures]], key: str) -> list[str]:
    """The arms of `ranked` whose figure may be the best: those without bounds, if there are any."""
    arms = ranked(compared)
    exact = [arm for arm in arms if not any(figures.is_bound(key) for figures in compared[arm])]
    return exact or arms
