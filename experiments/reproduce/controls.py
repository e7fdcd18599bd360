"""Pessimistic controls beside ParSync's arms: static partitions, and locks on partitions.

ParSync (section 5) names both as ways to schedule without conflicts, says what they cost, and shows
no figure of them. So this figure is one of ours; it stands on section 6's cell and workload.

Static partitions: each of the 20 schedulers has a partition of its own. Locks: a scheduler locks
the partitions that it looks at (parsync.protocols.locking), one, four or all of them, while it
decides on a batch. "Short locks" are released after G / N, the time after which ParSync's
schedulers turn to another partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from experiments.reproduce import section6_statistics as statistic
from experiments.reproduce.claims import Claim, Limits
from experiments.reproduce.figure import FigureRun, PaperFigure, ReproduceScale, Results, Table
from experiments.reproduce.section6_claims import CONFLICTS, DELAY, MORE, POINT, SHARE
from experiments.reproduce.section6_plots import over_time
from experiments.reproduce.section6_runs import (
    LATENCY,
    QUALITY,
    SCHEDULERS,
    TAU_S,
    adaptive,
    arms,
)
from experiments.reproduce.section6_statistics import Value
from experiments.statistics import median_interval
from parsync.spec.arm import ArmConfig, GroupConfig, ProtocolChoice

STATIC, SHORT = "Static partitions", "Short locks on 1 partition"
LOCKED = (1, 4, SCHEDULERS)  # partitions
_PEAK = 2  # the phase of 95 %
_SOURCE = "section 5"
_NO_CONFLICTS = "Pessimistic scheduling offers a no-conflict guarantee"


def locks(count: int) -> str:
    """The label of schedulers that lock so many partitions."""
    if count == SCHEDULERS:
        return "Locks on all partitions"
    return f"Locks on {count} partition{'s' if count > 1 else ''}"


_ADAPTIVE = adaptive(TAU_S)
_LABELS = (LATENCY, QUALITY, _ADAPTIVE, STATIC, *map(locks, LOCKED), SHORT)


def runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """ParSync's arms and the controls, on the same workload and with the same capacity."""
    of = arms(scale)
    one = of.latency_first()
    return (
        one,
        of.quality_first(),
        of.adaptive(TAU_S),
        _with_groups(one, STATIC, [_own_partition(one, number) for number in range(SCHEDULERS)]),
        *(_with_groups(one, locks(count), [_locking(one, count)]) for count in LOCKED),
        _with_groups(one, SHORT, [_locking(one, 1, hold_s=of.cell.gap_s / SCHEDULERS)]),
    )


def _with_groups(run: FigureRun, label: str, groups: Sequence[GroupConfig]) -> FigureRun:
    """The same run with other groups of schedulers."""
    arm = ArmConfig(name=label, partitions=run.arm.partitions, groups=tuple(groups))
    return FigureRun(label, run.config.model_copy(update={"arms": (arm,)}), arm)


def _own_partition(run: FigureRun, number: int) -> GroupConfig:
    """One of the run's schedulers, which sees one partition. It synchronises it every G."""
    [group] = run.arm.groups
    protocol = group.protocol.changed(sync="state_aligned", only_partitions=(number,))
    changes = {"name": f"partition {number}", "count": 1, "protocol": protocol}
    return group.model_copy(update=changes)


def _locking(run: FigureRun, count: int, **options: float) -> GroupConfig:
    """The run's schedulers with locks on so many partitions."""
    [group] = run.arm.groups
    protocol = ProtocolChoice.model_validate(
        {"kind": "locking", "locked_partitions": count, "head_of_line_s": 0.0, **options}
    )
    return group.model_copy(update={"name": "locks", "protocol": protocol})


def draw(results: Results) -> Figure:
    """Delay and quality over time."""
    return over_time(results, {label: label for label in _LABELS}, ("log_delay", "share"))


def table(results: Results) -> Table:
    """Conflicts, delay, use of the cell, quality and waiting tasks of each arm."""
    columns = (
        ("mean delay in phase 1", 0, DELAY, _seconds),
        ("in phase 3", _PEAK, DELAY, _seconds),
        ("cell in use in phase 3", _PEAK, "utilisation_mean", _percent),
        ("on preferred machines in phase 3", _PEAK, SHARE, _percent),
    )

    def median(value: Value, text: Callable[[float], str]) -> str:
        found = median_interval([value(seed) for seed in results.seeds]).estimate
        return "not known" if found is None else text(found)

    def in_phase(label: str, phase: int, key: str, text: Callable[[float], str]) -> str:
        bound = any(seed[label].phases[phase].is_bound(key) for seed in results.seeds)
        return ("≥ " if bound else "") + median(statistic.in_phase(label, phase, key), text)

    rows = [
        (
            label,
            median(statistic.highest(label, CONFLICTS), _percent),
            *(in_phase(label, phase, key, text) for _, phase, key, text in columns),
            median(statistic.backlog(label, _PEAK, SCHEDULERS), _count),
        )
        for label in _LABELS
    ]
    header = (
        "",
        "conflicts per claim, most in a phase",
        *(name for name, *_ in columns),
        "waiting per scheduler as phase 3 ends",
    )
    note = (
        "Medians over the seeds. Delays of arms that left tasks waiting are lower bounds (≥). "
        "Tasks that were never committed count as not on preferred machines."
    )
    return Table(header, tuple(rows), note)


def claims() -> tuple[Claim, ...]:
    """What section 5 says of pessimistic scheduling, and what follows from it."""
    without = [
        _claim(
            f"{name}_no_conflicts",
            f"{_NO_CONFLICTS} ({label.lower()}).",
            "0",
            "highest conflict rate of a phase",
            Limits(high=0.0),
            statistic.highest(label, CONFLICTS),
        )
        for name, label in (
            ("static", STATIC),
            *((f"locks_{count}", locks(count)) for count in LOCKED),
            ("short_locks", SHORT),
        )
    ]
    blocked = [
        _claim(
            f"locks_{count}_delay",
            "Locks can block the actions of other schedulers and increase scheduling delay "
            f"({locks(count).lower()}).",
            "",
            "mean delay over that of latency-first, in phase 3",
            Limits(low=2.0),
            statistic.least_ratio(LATENCY, (locks(count),), DELAY, (_PEAK,)),
        )
        for count in LOCKED[1:]
    ]
    return (
        *without,
        _claim(
            "static_leaves_room",
            "Exclusive partitions can lead to under-utilisation, as some hold idle resources that "
            "other schedulers could use.",
            "",
            "tasks that wait over those under latency-first, mean of phase 3",
            Limits(low=MORE),
            statistic.least_ratio(LATENCY, (STATIC,), "backlog_mean", (_PEAK,)),
        ),
        _claim(
            "static_quality",
            "A scheduler with a partition of its own finds fewer preferred machines than "
            "quality-first, which sees all.",
            "",
            "least difference of the preferred shares, quality-first less static partitions",
            Limits(low=5 * POINT),
            statistic.least_difference(QUALITY, STATIC, SHARE),
        ),
        *blocked,
        _claim(
            "locks_1_block_nobody",
            "With as many partitions as schedulers, a lock on one blocks nobody for long.",
            "",
            "mean delay over that of latency-first, in phase 3",
            Limits(high=1.25),
            statistic.least_ratio(LATENCY, (locks(1),), DELAY, (_PEAK,)),
        ),
        _claim(
            "locks_1_quality",
            "A scheduler that looks at one locked partition finds fewer preferred machines than "
            "quality-first.",
            "",
            "least difference of the preferred shares, quality-first less locks on one",
            Limits(low=5 * POINT),
            statistic.least_difference(QUALITY, locks(1), SHARE),
        ),
        _claim(
            "short_locks_delay",
            "Short locks cost more delay than latency-first, as there is a request for each.",
            "",
            "mean delay over that of latency-first, in phase 3",
            Limits(low=MORE),
            statistic.least_ratio(LATENCY, (SHORT,), DELAY, (_PEAK,)),
        ),
        _claim(
            "short_locks_quality",
            "With locks as short as ParSync's steps, tasks find as many preferred machines as "
            "under latency-first.",
            "",
            "largest difference of the preferred shares, over the phases",
            Limits(high=3 * POINT),
            statistic.largest_gap(SHORT, LATENCY, SHARE),
        ),
    )


def _claim(name: str, statement: str, paper: str, text: str, limits: Limits, value: Value) -> Claim:
    return Claim(f"controls.{name}", _SOURCE, statement, paper, text, limits, value)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _seconds(value: float) -> str:
    return f"{value / 1e6:.3g} s"


def _count(value: float) -> str:
    return f"{value:,.0f}"


FIGURES = (
    PaperFigure(
        "controls",
        "Static partitions and locks as controls",
        "section 5, not a figure of the paper",
        runs,
        claims(),
        draw=draw,
        table=table,
        notes=(
            "The paper has no figure of these. One paragraph of section 5 names three effects: no "
            "conflicts, under-utilisation and blocked schedulers. The other statements follow from "
            "the setting. All limits are ours.",
            "The paper speaks of locks on resource slots. A scheduler has to lock what it looks at "
            "before it decides, and it looks at whole partitions.",
            "Schedulers under locks pay the scan cost for the partitions that they lock.",
            "Short locks were added after the other arms had run: locks on one partition are held "
            "for a whole batch, which leaves few preferred machines to choose from.",
        ),
    ),
)
