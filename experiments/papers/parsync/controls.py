"""Pessimistic controls beside ParSync's arms: static partitions, and locks on partitions.

ParSync (section 5) names both as ways to schedule without conflicts, says what they cost, and shows
no figure of them. So this figure is one of ours; it stands on section 6's cell and workload.

Static partitions: each of the 20 schedulers has a partition of its own. Locks: a scheduler locks
the partitions that it looks at (parsync.protocols.locking), one, four or all of them, while it
decides on a batch. "Short locks" are released after G / N, the time after which ParSync's
schedulers turn to another partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from experiments.papers.chapter import Chapter, FigureRun, Results, Table, like
from experiments.papers.claims import Value
from experiments.papers.parsync.arms import (
    LATENCY,
    QUALITY,
    SCHEDULERS,
    TAU_S,
    adaptive,
    arms,
)
from experiments.papers.parsync.section6 import (
    CONFLICTS,
    DELAY,
    SHARE,
    backlog,
    highest,
    largest_gap,
    least_difference,
    least_ratio,
)
from experiments.papers.plots import over_time
from experiments.papers.statistics import US_PER_S, figure_text, median_text, percent
from experiments.studies.model_settings import ReproduceScale
from parsync.spec.arm import ArmConfig, GroupConfig, ProtocolChoice

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
STATIC, SHORT = "Static partitions", "Short locks on 1 partition"
LOCKED = (1, 4, SCHEDULERS)  # partitions
_PEAK = 2  # the phase of 95 %


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


def table(results: Results) -> Table:
    """Conflicts, delay, use of the cell, quality and waiting tasks of each arm."""
    columns = (
        ("mean delay in phase 1", 0, DELAY, _seconds),
        ("in phase 3", _PEAK, DELAY, _seconds),
        ("cell in use in phase 3", _PEAK, "utilisation_mean", percent),
        ("on preferred machines in phase 3", _PEAK, SHARE, percent),
    )
    rows = [
        (
            label,
            median_text(results, highest(label, CONFLICTS), percent),
            *(figure_text(results, label, phase, key, text) for _, phase, key, text in columns),
            median_text(results, backlog(label, _PEAK), "{:,.0f}".format),
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


def _seconds(value_us: float) -> str:
    return f"{value_us / US_PER_S:.3g} s"


def _slower(label: str, key: str = DELAY) -> Value:
    """A figure of an arm over that of latency-first, in phase 3."""
    return least_ratio(LATENCY, (label,), key, (_PEAK,))


_ARMS = {
    "static": STATIC,
    **{f"locks_{count}": locks(count) for count in LOCKED},
    "short_locks": SHORT,
}
FIGURES = (
    CHAPTER.figure(
        "controls",
        runs,
        {
            **{
                f"{name}_no_conflicts": like(
                    "no_conflicts", highest(label, CONFLICTS), arm=label.lower()
                )
                for name, label in _ARMS.items()
            },
            "static_leaves_room": _slower(STATIC, "backlog_mean"),
            "static_quality": least_difference(QUALITY, STATIC, SHARE),
            **{
                f"locks_{count}_delay": like(
                    "delay", _slower(locks(count)), arm=locks(count).lower()
                )
                for count in LOCKED[1:]
            },
            "locks_1_block_nobody": _slower(locks(1)),
            "locks_1_quality": least_difference(QUALITY, locks(1), SHARE),
            "short_locks_delay": _slower(SHORT),
            "short_locks_quality": largest_gap(SHORT, LATENCY, SHARE),
        },
        partial(over_time, labels=_LABELS, panels=("log_delay", "share")),
        table,
    ),
)
