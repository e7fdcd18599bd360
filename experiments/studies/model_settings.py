"""The runs of ParSync's sections 4 and 5: Eq. 2 and Figs. 2 to 4, by the slot simulator.

The cell has 200,000 slots, tasks run for 5 s, and 40,000 arrive per second for 90 s. 10 A
schedulers take 0.25 ms a task. At smoke scale the cell, the arrivals and the batches are a tenth,
and a decision takes ten times as long: so there are as many schedulers, and the shares of slots
that they claim are the same. Searches then last 30 s.

Where the paper is silent: slots are drawn with weight exp(score); a scheduler sees freed slots at
its next sync, its own too; StateSync is aligned; a round is cut at the next sync; quality-first
ranks partitions by the mean score of idle slots. A run keeps up if its last commit is before 110 %
of the time of arrivals.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from experiments.studies.model_runs import RoundsRun, SearchRun, SimulationRun, chained
from parsync.model.extra_slots import ExtraSlotsSearch
from parsync.model.slot_settings import (
    Phase,
    SchedulerGroup,
    SlotSettings,
    SyncMode,
    paper_settings,
)
from parsync.protocols.optimistic.options import StrategyKind


class ReproduceScale(StrEnum):
    """The size of the runs.

    SMOKE: a small cell and short runs, to see that a figure can be made.
    PAPER: the paper's cell and phases; where these are not public, what stands in for them.
    """

    SMOKE = "smoke"
    PAPER = "paper"


RATE_PER_S, GAP_S, VARIANCE, PARTITIONS = "R (tasks/s)", "G (s)", "V", "P"
PAPER_SLOTS = 200_000
SMOKE_PART = 10
SERVICE_S = 2e-6  # of the master per claim, where P is varied
DIFF, SAME = "DiffSyn", "SameSyn"
FIG2_FACTORS, FIG3_FACTORS = (2, 4, 8), (1, 2, 4)
# The values of each axis at paper scale; the paper's default comes first.
VALUES: dict[str, tuple[float, ...]] = {
    RATE_PER_S: (40_000, 20_000, 30_000, 50_000),
    GAP_S: (0.5, 0.1, 0.25, 1.0),
    VARIANCE: (2, 0.5, 1, 4, 8),
    PARTITIONS: (1, 2, 5, 10),
}
SMOKE_VALUES: dict[str, tuple[float, ...]] = {
    RATE_PER_S: (40_000, 30_000, 50_000),
    GAP_S: (0.5, 0.25, 1.0),
    VARIANCE: (2, 1, 4),
    PARTITIONS: (1, 10),
}
_SMOKE_ARRIVALS_S = 30.0
_RESOLUTION = {ReproduceScale.PAPER: 1_000, ReproduceScale.SMOKE: 200}  # slots

EQ2_FACTORS, EQ2_TIMES = (1, 2, 4, 8), (1, 2, 4, 8)
_EQ2_SCHEDULERS, _EQ2_TASKS, _EQ2_IDLE, _EQ2_ROUNDS = 10, 2_000, 20_000, 200

FIG4_STRATEGIES = {
    "Quality-first": StrategyKind.QUALITY_FIRST,
    "Latency-first": StrategyKind.LATENCY_FIRST,
    "Adaptive": StrategyKind.ADAPTIVE,
}
FIG4_SCHEDULERS = (6, 7)  # of groups A and B
FIG4_PHASE_S, TAU_S = 30.0, 1.5
_FIG4_EXTRA_SLOTS = 15_000


def part(scale: ReproduceScale) -> int:
    """What part of the paper's cell a scale has: one of so many."""
    return SMOKE_PART if scale is ReproduceScale.SMOKE else 1


def slots(scale: ReproduceScale) -> int:
    """S at a scale."""
    return PAPER_SLOTS // part(scale)


def values(scale: ReproduceScale, axis: str) -> tuple[float, ...]:
    """The values of an axis, in the paper's units; the default first."""
    return (SMOKE_VALUES if scale is ReproduceScale.SMOKE else VALUES)[axis]


def eq2_label(factor: int, times: int) -> str:
    """The label of rounds with A times the schedulers, and S_idle this many times 20,000."""
    return f"A = {factor}, {times} x"


def eq2_runs(scale: ReproduceScale) -> tuple[RoundsRun, ...]:
    """Rounds with more schedulers, and with more idle slots."""
    of = part(scale)
    pairs = [(factor, 1) for factor in EQ2_FACTORS] + [(1, times) for times in EQ2_TIMES[1:]]
    return tuple(
        RoundsRun(
            eq2_label(factor, times),
            _EQ2_SCHEDULERS * factor,
            _EQ2_TASKS // of // factor,
            times * _EQ2_IDLE // of,
            _EQ2_ROUNDS,
        )
        for factor, times in pairs
    )


def line_label(factor: int, sync: str = "") -> str:
    """The name of a line of Figs. 2 and 3."""
    return f"{sync}, A = {factor}" if sync else f"A = {factor}"


def point_label(line: str, axis: str, value: float) -> str:
    """The label of a search of Figs. 2 and 3."""
    return f"{line}, {axis} = {value:g}"


def fig2_runs(scale: ReproduceScale, axis: str) -> tuple[SearchRun, ...]:
    """Searches over one axis under StateSync."""
    return tuple(
        run
        for factor in FIG2_FACTORS
        for run in _line(scale, line_label(factor), axis, default_settings(scale, factor))
    )


def fig3_runs(scale: ReproduceScale, axis: str) -> tuple[SearchRun, ...]:
    """Searches over one axis under DiffSyn and SameSyn, with a partition for each scheduler."""
    found: list[SearchRun] = []
    for name, sync in ((DIFF, SyncMode.DIFF_BLOCK), (SAME, SyncMode.SAME_BLOCK)):
        for factor in FIG3_FACTORS:
            settings = default_settings(scale, factor)
            settings = replace(settings, sync=sync, partitions=settings.schedulers)
            found.extend(_line(scale, line_label(factor, name), axis, settings))
    return tuple(found)


def default_settings(scale: ReproduceScale, factor: int) -> SlotSettings:
    """The paper's default setting with A times the schedulers, at a scale."""
    settings = paper_settings(factor)
    of = part(scale)
    if of == 1:
        return settings
    (group,), (phase,) = settings.groups, settings.phases
    group = replace(
        group,
        batch_tasks=max(1, round(group.batch_tasks / of)),
        decision_s=group.decision_s * of,
    )
    phase = Phase(duration_s=_SMOKE_ARRIVALS_S, rate_per_s=(phase.rate_per_s[0] / of,))
    return replace(settings, groups=(group,), phases=(phase,), slots=settings.slots // of)


def fig4_runs(scale: ReproduceScale) -> tuple[SimulationRun, ...]:
    """Two groups of schedulers in three phases, under each strategy."""
    of = part(scale)
    rates = [40_000 / of * count / sum(FIG4_SCHEDULERS) for count in FIG4_SCHEDULERS]
    phases = tuple(
        Phase(duration_s=FIG4_PHASE_S, rate_per_s=(rates[0] * a, rates[1] * b))
        for a, b in ((2 / 3, 2 / 3), (1, 2 / 3), (1, 1))
    )
    return tuple(
        SimulationRun(
            label,
            SlotSettings(
                groups=tuple(
                    SchedulerGroup(
                        schedulers=count,
                        batch_tasks=100 // of,
                        strategy=strategy,
                        decision_s=0.25e-3 * of,
                        tau_s=TAU_S,
                    )
                    for count in FIG4_SCHEDULERS
                ),
                phases=phases,
                slots=slots(scale),
                extra_slots=_FIG4_EXTRA_SLOTS // of,
                partitions=sum(FIG4_SCHEDULERS),
                sync=SyncMode.DIFF_BLOCK,
            ),
        )
        for label, strategy in FIG4_STRATEGIES.items()
    )


def search_at(scale: ReproduceScale) -> ExtraSlotsSearch:
    """How closely to look for S_extra at a scale."""
    of = part(scale)
    return ExtraSlotsSearch(
        largest=256_000 // of,
        first_step=2_000 // of,
        resolution=_RESOLUTION[scale],
        confirmations=2,
    )


def _line(scale: ReproduceScale, line: str, axis: str, settings: SlotSettings) -> list[SearchRun]:
    """A search for each value of an axis. They begin with the default, so that figures share it."""
    search, of = search_at(scale), part(scale)
    points = values(scale, axis)

    def at(value: float) -> SlotSettings:
        if axis == RATE_PER_S:
            (phase,) = settings.phases
            return replace(settings, phases=(replace(phase, rate_per_s=(value / of,)),))
        if axis == GAP_S:
            return replace(settings, gap_s=value)
        if axis == VARIANCE:
            return replace(settings, score_variance=float(value))
        return replace(settings, partitions=int(value), service_s=SERVICE_S * of)

    def make(value: float, neighbour: SearchRun | None) -> SearchRun:
        return SearchRun(point_label(line, axis, value), at(value), search, neighbour)

    return chained(points, points[0], make)
