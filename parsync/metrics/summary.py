"""The figures of a run as one model: what every metric makes of its sums, for each set of agents
and windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from parsync.metrics import registry
from parsync.metrics.kinds.busyness import BusynessFigures, SolverRoundFigures
from parsync.metrics.kinds.conflicts import ConflictCauses, ConflictFigures, ConflictMetric
from parsync.metrics.kinds.delay import DelayFigures, DelayMetric, UnplaceableFigures
from parsync.metrics.kinds.jobs import JobFigures
from parsync.metrics.kinds.load import (
    BacklogFigures,
    StationarityFigures,
    ThroughputFigures,
    UtilisationFigures,
)
from parsync.metrics.kinds.quality import (
    CostFigures,
    PreferenceFigures,
    PreferenceMetric,
    PreferenceSetFigures,
)
from parsync.metrics.kinds.regret import RegretMeans
from parsync.metrics.kinds.staleness import PartitionStaleness, StalenessMetric
from parsync.metrics.metric import KeptRows, Metric, Scope
from parsync.metrics.quantity import Count, Figures, Number, Quantity, quantities_of
from parsync.metrics.run_metrics import RunMetrics
from schedulers.entry_points import raised
from shared_state.errors import AgoraError
from shared_state.tasks import Int64

# Time series that every run has, int64[agents, buckets].
SERIES = (
    "submitted",
    "committed",
    "delay_us",
    "submitted_prefers",
    "preferred",
    "first_commits",
    "claims",
    "conflicts",
)
# Figures of a whole run that are made of what the cell did, and not by a metric.
OBSERVED = (*RegretMeans.model_fields, *ConflictCauses.model_fields)


class ScopeFigures(
    ConflictCauses,
    RegretMeans,
    SolverRoundFigures,
    BusynessFigures,
    StationarityFigures,
    BacklogFigures,
    UtilisationFigures,
    UnplaceableFigures,
    ThroughputFigures,
    JobFigures,
    CostFigures,
    PreferenceSetFigures,
    PreferenceFigures,
    ConflictFigures,
    DelayFigures,
):
    """The figures of some agents over some windows.

    Attributes:
        others: Figures by key that are not fields of the base classes: those of metrics of other
            packages, and of the values that the workload brings.
        at_least: Lower bounds of figures that leave out what did not get there, by key
            (Metric.lower_bounds).
    """

    others: dict[str, Number | None] = Field(default_factory=dict)
    at_least: dict[str, Number | None] = Field(default_factory=dict)

    def value(self, key: str) -> float | None:
        """The figure of a quantity, or its lower bound where it leaves out too much; None if it is
        not known."""
        found: float | None = self.at_least.get(key, self.plain_value(key))
        return found

    def plain_value(self, key: str) -> float | None:
        """The figure of a quantity as it is, whatever it leaves out."""
        found: float | None = self.others[key] if key in self.others else getattr(self, key, None)
        return found

    def is_bound(self, key: str) -> bool:
        """Whether value() is a lower bound."""
        return key in self.at_least


class PhaseFigures(ScopeFigures):
    """The figures of one load phase."""

    start_us: int
    end_us: int
    load_percent: Count | None


class AgentFigures(ScopeFigures):
    """The figures of one agent over all windows."""

    agent: Count


class GroupFigures(Figures):
    """The figures of a group of agents."""

    name: str
    agents: list[Count]
    overall: ScopeFigures
    phases: list[PhaseFigures]


class StartFigures(PreferenceFigures, CostFigures, DelayFigures):
    """The figures of the tasks submitted at time 0, if no window holds that."""

    at_least: dict[str, Number | None]


class TotalFigures(Figures):
    """Counts of the whole run, within windows or not; see the metrics for their meanings.

    Attributes:
        last_commit_us: Time of the last commit.
        last_us: How far the run was seen.
    """

    submitted: Count
    submitted_prefers: Count
    committed: Count
    preferred: Count
    transactions: Count
    conflicted_transactions: Count
    claims: Count
    accepted: Count
    stale: Count
    full: Count
    machine_down: Count
    evicted: Count
    gang: Count
    duplicate: Count
    held: Count
    ended_finished: Count
    ended_evicted: Count
    ended_lost: Count
    unplaceable: Count
    abandoned: Count
    still_running: Count
    censored: Count | None
    last_commit_us: Count
    last_us: Count


class ArmFigures(Figures):
    """All figures of an arm.

    Attributes:
        overall, phases, groups, agents: Figures of the counting windows only.
        totals: Counts of the whole run.
        rivals: Conflicts of the row's agent with the column's; an agent's own column where nobody
            else had claimed the machine, the last one where the rival is not known.
    """

    overall: ScopeFigures
    phases: list[PhaseFigures]
    groups: list[GroupFigures]
    agents: list[AgentFigures]
    totals: TotalFigures
    start: StartFigures | None
    rivals: list[list[Count]]
    staleness: PartitionStaleness


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures that runs are compared by: as ArmFigures, but for those of single agents and
    partitions."""

    overall: ScopeFigures
    phases: list[PhaseFigures]
    groups: list[GroupFigures]
    totals: TotalFigures


def summarise(metrics: RunMetrics) -> ArmFigures:
    """All figures of what was recorded. AgoraError naming a metric whose code fails."""
    metrics.flush()
    maker = _FigureMaker(metrics)
    run = _run_figures(metrics, maker)
    return ArmFigures(
        overall=run.overall,
        phases=run.phases,
        groups=run.groups,
        agents=[
            AgentFigures(agent=agent, **maker.figures([agent]))
            for agent in range(metrics.run.agents)
        ],
        totals=run.totals,
        start=_start(metrics, maker.kept),
        rivals=metrics.get(ConflictMetric).rivals.tolist(),
        staleness=metrics.get(StalenessMetric).by_partition(),
    )


def summarise_run(metrics: RunMetrics) -> RunFigures:
    """The figures that runs are compared by. AgoraError as summarise."""
    metrics.flush()
    return _run_figures(metrics, _FigureMaker(metrics))


def _run_figures(metrics: RunMetrics, maker: _FigureMaker) -> RunFigures:
    everyone = range(metrics.run.agents)
    return RunFigures(
        overall=ScopeFigures(**maker.figures(everyone)),
        phases=maker.phases(everyone),
        groups=[
            GroupFigures(
                name=group.name,
                agents=list(group.agents),
                overall=ScopeFigures(**maker.figures(group.agents)),
                phases=maker.phases(group.agents),
            )
            for group in metrics.run.groups
        ],
        totals=_totals(metrics, maker.kept),
    )


def scope_figures(
    metric: Metric, scope: Scope
) -> tuple[dict[str, Any], Mapping[str, float | None]]:
    """The figures that a metric makes of a scope, and their lower bounds."""
    made = metric.figures(scope)
    if not isinstance(made, metric.figures_model):
        raise TypeError(f"expected {metric.figures_model.__name__}, got {type(made).__name__}")
    return made.model_dump(), metric.lower_bounds(scope, made)


class _FigureMaker:
    """Makes the figures of any set of agents over any set of windows, of each once: the agents of
    most arms are one group."""

    def __init__(self, metrics: RunMetrics) -> None:
        self._metrics = metrics
        self.kept = metrics.kept()
        self._made: dict[tuple[tuple[int, ...], tuple[int, ...]], dict[str, Any]] = {}

    def phases(self, agents: Sequence[int]) -> list[PhaseFigures]:
        return [
            PhaseFigures(
                start_us=phase.start_us,
                end_us=phase.end_us,
                load_percent=phase.load_percent,
                **self.figures(agents, [number]),
            )
            for number, phase in enumerate(self._metrics.run.phases)
        ]

    def figures(self, agents: Sequence[int], slots: Sequence[int] | None = None) -> dict[str, Any]:
        """The fields of ScopeFigures."""
        scope = self._metrics.scope(agents, slots, self.kept)
        key = scope.agents, scope.slots
        if key not in self._made:
            self._made[key] = self._figures_of(scope)
        return self._made[key]

    def _figures_of(self, scope: Scope) -> dict[str, Any]:
        fields: dict[str, Any] = dict.fromkeys(OBSERVED)
        others: dict[str, Any] = {}
        at_least: dict[str, float | None] = {}
        for name, metric in self._metrics.metrics.items():
            try:
                made, bounds = scope_figures(metric, scope)
            except Exception as error:
                raise AgoraError(f"metric {name!r}: figures: {raised(error, metric)}") from error
            own = registry.declared_in(ScopeFigures, type(metric))
            (fields if own else others).update(made)
            at_least.update(bounds)
        return {**fields, "others": others, "at_least": at_least}


def quantities(metrics: RunMetrics) -> list[Quantity]:
    """The quantities among the figures of this run, in the order of the report's tables."""
    every = [one for metric in metrics.metrics.values() for one in metric.run_quantities()]
    causes = quantities_of(ConflictCauses, ConflictMetric.kind)
    return [*every, *causes, *quantities_of(RegretMeans, "regret")]


def _start(metrics: RunMetrics, kept: dict[str, KeptRows]) -> StartFigures | None:
    scope = metrics.scope(slots=[metrics.run.start], kept=kept)
    delay, preferences = metrics.get(DelayMetric), metrics.get(PreferenceMetric)
    delays = delay.figures(scope)
    if not delays.submitted:
        return None
    cost = metrics.metrics["cost"].figures(scope)
    return StartFigures(
        **delays.model_dump(),
        **preferences.figures(scope).model_dump(),
        **cost.model_dump(),
        at_least=dict(delay.lower_bounds(scope, delays)),
    )


def _totals(metrics: RunMetrics, kept: dict[str, KeptRows]) -> TotalFigures:
    everything = metrics.scope(slots=range(metrics.run.slots), kept=kept)
    count = metrics.count
    return TotalFigures(
        censored=metrics.get(DelayMetric).censored(everything),
        last_commit_us=metrics.last_commit_us,
        last_us=metrics.last_us,
        **{
            name: everything.sum(count[name]) for name in TotalFigures.model_fields if name in count
        },
    )


def series(metrics: RunMetrics) -> dict[str, NDArray[Any]]:
    """The arrays that the figures are drawn from (saved next to the summary).

    Returns:
        bucket_us: int64[1]; SERIES: int64[agents, buckets]; group_of: int64[agents];
        delay_value_us, delay_share: the distribution of delays; ages: int64[groups, Outcome,
        histogram buckets]; cell_*, agents_*, rounds_*, quota_use_*, quota_shares_*: the
        columns of those tables.
    """
    scope: Scope = metrics.scope()
    counted: dict[str, Int64] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for metric in metrics.metrics.values():
        counted.update(metric.series())
        arrays.update(metric.arrays(scope))
    ends = [int(used[-1]) + 1 for used in map(_used, counted.values()) if len(used)]
    buckets = max(ends, default=0)
    arrays.update({name: _resized(counts, buckets) for name, counts in counted.items()})
    arrays["bucket_us"] = np.array([metrics.run.bucket_us])
    arrays["group_of"] = metrics.run.group_of
    for table in scope.kept:
        for name, column in metrics.samples(table).items():
            arrays[f"{table}_{name}"] = column
    return arrays


def _used(counts: Int64) -> NDArray[np.intp]:
    return np.flatnonzero(counts.any(axis=0))


def _resized(counts: Int64, buckets: int) -> Int64:
    """So many buckets of a series."""
    resized = np.zeros((len(counts), buckets), np.int64)
    common = min(buckets, counts.shape[1])
    resized[:, :common] = counts[:, :common]
    return resized
