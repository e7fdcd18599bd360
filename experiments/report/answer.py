"""The first screen of a report: its question, the answer in one paragraph, and what the comparison
rests on, such as choices about decision times, and phases that were not stationary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from experiments.analysis.seed_variation import what_seeds_vary
from experiments.analysis.statistics import (
    FAMILY_LEVEL,
    Difference,
    fewest_seeds,
    level_text,
    median_interval,
    paired_difference,
    seeds_needed,
)
from experiments.analysis.summary_model import (
    ArmSummary,
    ComparedArms,
    RunSummary,
    SeedSummary,
    Sensitivity,
    and_list,
    in_sentence,
    names_by_slug,
)
from experiments.config.decision_basis import (
    basis_condition,
    basis_explained,
    basis_text,
    basis_title,
)
from experiments.config.price_settings import REGRET_OF_PRICED_ARMS
from experiments.report.live_runs import (
    live_cells,
    live_disagreement,
    live_soundness,
    modelled_message_us,
)
from experiments.report.verdict import Row, verdict
from parsync.metrics.quantity import Quantity, Unit, counted, duration, percent_change

MOST_NAMED = 3  # arms
ANSWERED_BY = ("delay_mean_us", "preferred_share")  # soonest, and best placed


def question(summary: RunSummary) -> str:
    """What the run was made to find out."""
    arms = len(summary.arms)
    if arms == 1:
        return f"How well does {summary.arms[0].name} schedule this cell?"
    prefer = any(arm.overall.preferred_share is not None for arm in summary.arms)
    best = ", and which best" if prefer else ""
    return f"Which of {arms} ways to schedule one cell places tasks soonest{best}?"


def answer(summary: RunSummary) -> list[str]:
    """The answer, a sentence for each set of comparable arms."""
    return [sentence for one in summary.sets() if (sentence := _answer_of_set(one))]


def _answer_of_set(one: ComparedArms) -> str:
    """Which of arms that may be ranked is soonest, and which places best."""
    quantities = [quantity for key in ANSWERED_BY if (quantity := one.quantity(key)) is not None]
    rows = verdict(one, quantities)
    if len(one.arms) == 1:
        return _of_one_arm(one.arms[0], rows)
    basis = basis_condition(one.arms[0].basis)
    best = {row.quantity.key: _best(row) for row in rows}
    soonest, placed = (best.get(key) for key in ANSWERED_BY)
    if soonest is None and placed is None:
        return f"{basis}, no arm is ahead of the others."
    value = {row.quantity.key: {cell.slug: cell.value for cell in row.cells} for row in rows}
    delay, share = (value.get(key, {}) for key in ANSWERED_BY)
    names = names_by_slug(one.arms)
    parts = []
    if soonest is not None:
        beside = _beside(rows, ANSWERED_BY[0], names)
        parts.append(
            f"{names[soonest]} places tasks soonest: after {delay[soonest]} on average{beside}"
        )
        if placed is not None and placed != soonest and share.get(soonest):
            parts[-1] += f", {share[soonest]} of them on preferred machines"
    if placed is not None and placed == soonest:
        beside = _beside(rows, ANSWERED_BY[1], names)
        parts.append(f"it also puts most on preferred machines: {share[placed]}{beside}")
    elif placed is not None:
        beside = _beside(rows, ANSWERED_BY[1], names)
        waits = f", after {delay[placed]}" if placed in delay else ""
        parts.append(
            f"{names[placed]} puts most on preferred machines: {share[placed]}{beside}{waits}"
        )
    return f"{basis}, {'; '.join(parts)}."


def _of_one_arm(arm: ArmSummary, rows: Sequence[Row]) -> str:
    """The figures of an arm that no other can be ranked beside."""
    value = {row.quantity.key: row.cells[0].value for row in rows}
    delay, share = (value.get(key) for key in ANSWERED_BY)
    if delay is None:
        return ""
    preferred = f", and {share} run on preferred machines" if share is not None else ""
    name = in_sentence(arm.name)
    return f"Tasks of {name} ({basis_text(arm.basis)}) wait {delay} on average{preferred}."


def _best(row: Row) -> str | None:
    return next((cell.slug for cell in row.cells if cell.best), None)


def _beside(rows: Sequence[Row], key: str, names: dict[str, str]) -> str:
    """The arms that cannot be told from the best one by the seeds."""
    tied = [
        names[cell.slug]
        for row in rows
        if row.quantity.key == key
        for cell in row.cells
        if cell.tied
    ]
    if not tied:
        return ""
    if len(tied) > MOST_NAMED:
        return f" (not for certain ahead of {len(tied)} others)"
    return f" (not for certain ahead of {and_list(tied)})"


def rests_on(summary: RunSummary) -> list[tuple[str, str]]:
    """What the comparison rests on, as (subject, sentences)."""
    rows = [
        (
            f"{basis_title(one.arms[0].basis)}: {counted(len(one.arms), 'arm')}",
            f"{basis_explained(one.arms[0].basis)} {_effective(one)}".strip(),
        )
        for one in summary.sets()
    ]
    about_live = (live_soundness(summary), live_cells(summary), live_disagreement(summary))
    subjects = {
        "Decision times": " ".join(sensitivity_sentences(summary)),
        "Other times": _other_times(summary),
        "Steady state": _steady(summary),
        "Runs": _runs(summary),
        "Seeds": what_seeds_vary(summary),
        "Slot prices": _prices(summary),
        "Live runs": " ".join(filter(None, about_live)),
    }
    return rows + [(subject, text) for subject, text in subjects.items() if text]


def effective_capacity(arm: ArmSummary) -> float | None:
    """An arm's effective capacity over what arrives at 100 % load; None if either is unknown."""
    per_s, arrivals = arm.overall.decisions_per_s, arm.basis.arrivals_per_s
    return per_s / arrivals if per_s and arrivals else None


def _effective(one: ComparedArms) -> str:
    """The effective capacities of comparable arms."""
    known = {arm.name: ratio for arm in one.arms if (ratio := effective_capacity(arm))}
    if not known:
        return ""
    least, most = (pick(known, key=lambda name: known[name]) for pick in (min, max))
    low, high = times(known[least]), times(known[most])
    amount = low if low == high else f"from {low} ({least}) to {high} ({most})"
    return f"Effective capacity in these runs: {amount} times the arrivals at 100 % load."


def times(ratio: float) -> str:
    """A capacity over the arrivals."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _other_times(summary: RunSummary) -> str:
    message_us = modelled_message_us(summary)
    message = (
        f"In virtual time a message takes {duration(message_us)}"
        if message_us is not None
        else "In virtual time messages take the times that were measured live"
    )
    real = " In live runs all of these take real time." if summary.ran_live else ""
    heartbeat_us = summary.config.get("heartbeat_us")
    ends = (
        f" The workers report ended tasks every {duration(heartbeat_us)}, live too."
        if isinstance(heartbeat_us, int)
        else ""
    )
    return (
        f"{message}. The cell's master, the workers and the source of tasks answer in no time, and "
        f"so does a protocol's participant beside the master.{real}{ends}"
    )


def _steady(summary: RunSummary) -> str:
    warm_up_us, settle_us = summary.workload.warm_up_us, summary.settle_us
    begins = (
        f"Each arm ran for {duration(warm_up_us)} before time 0, uncounted."
        if warm_up_us
        else "The run begins with the tasks that the trace has running."
        if summary.workload.initial_tasks
        else "The run begins with an empty cell."
    )
    settles = (
        f" The first {duration(settle_us)} of each phase are not counted." if settle_us else ""
    )
    drifted = transient_phases(summary) or "No phase drifted."
    return f"{begins}{settles} {drifted}"


def _prices(summary: RunSummary) -> str:
    """What slot prices do to figures and ranks; "" if no arm has any."""
    priced = sum(bool(arm.prices) for arm in summary.arms)
    if not priced:
        return ""
    has = "has them" if priced == 1 else "have them"
    return (
        f"{priced} of {counted(len(summary.arms), 'arm')} {has}; they are named below the arm. "
        f"{REGRET_OF_PRICED_ARMS} Arms with prices are not ranked by regret."
    )


def _what_seeds_tell(summary: RunSummary) -> str:
    """What so many seeds can say of differences, and what they cannot."""
    seeds = len(summary.paired.seeds)
    if summary.paired.level is None:
        return (
            f"{seeds} seeds are not enough for intervals, which take {fewest_seeds()}: "
            "differences may be due to chance."
        )
    level = level_text(summary.paired.level)
    pairs = sum(len(one.arms) - 1 for one in summary.sets())
    if pairs < 2:
        return f"A difference is called certain if its {level} interval excludes zero."
    needed = seeds_needed(pairs)
    level_of_all = level_text(FAMILY_LEVEL)
    together = (
        f"For {pairs} comparisons to hold together with {level_of_all}, {needed} seeds are "
        "needed (--seeds)."
        if needed > seeds
        else f"{pairs} comparisons can hold together with {level_of_all} (agora sweep, until)."
    )
    return (
        f"A difference is called certain if its {level} interval excludes zero. Each interval is "
        "for one comparison: of twenty differences whose true value is zero, about "
        f"{20 * (1 - summary.paired.level):.1g} would be called certain. "
        f"{together}"
    )


def _runs(summary: RunSummary) -> str:
    live = ", ".join(in_sentence(arm.name) for arm in summary.ran_live)
    seeds = len(summary.paired.seeds)
    figures = (
        f"Figures are medians over {seeds} paired seeds in virtual time. "
        f"{_what_seeds_tell(summary)}"
        if seeds > 1
        else f"Figures are of seed {summary.paired.seeds[0]} in virtual time: differences may be "
        "chance."
        if seeds
        else f"Figures are of one run, seed {summary.seed}: differences may be chance."
    )
    apart = "; these runs are reported separately" if summary.runtime == "virtual" else ""
    return figures + (f" Live on Ray: {live}{apart}." if live else "")


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


def is_transient(arm: ArmSummary, phase: int) -> bool:
    """Whether backlog or utilisation of a phase drifted."""
    return arm.phases[phase].transient is True


def transient_phases(summary: ComparedArms) -> str:
    """One sentence with the phases that were transient, and in which arms; "" if none was."""
    found: list[str] = []
    for phase in range(len(summary.workload.phases)):
        arms = [
            arm.name for arm in summary.arms if phase < len(arm.phases) and is_transient(arm, phase)
        ]
        if len(arms) == len(summary.arms) > 1:
            found.append(f"{phase + 1} (all arms)")
        elif arms:
            more = f" and {len(arms) - MOST_NAMED} more" if len(arms) > MOST_NAMED else ""
            found.append(f"{phase + 1} ({', '.join(arms[:MOST_NAMED])}{more})")
    if not found:
        return ""
    phases = "Transient phase" if len(found) == 1 else "Transient phases"
    return f"{phases}, in which backlog or utilisation drifted: {', '.join(found)}."
