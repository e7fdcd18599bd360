"""What a run found out, as the model of summary.json has it (summary_model.py)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.cell_watch import Watched
from experiments.analysis.statistics import (
    Interval,
    level_of_seeds,
    median_interval,
    paired_difference,
)
from experiments.analysis.summary_model import (
    ArmSummary,
    Paired,
    Phase,
    PhaseBound,
    Prediction,
    Restart,
    RunSummary,
    Runtime,
    SeedFigures,
    Sensitivity,
    Settings,
    WorkloadFacts,
    machines_of_live_run,
)
from experiments.config.decision_basis import Capacity, DecisionBasis
from experiments.workloads.inspection import digest, offered_permille
from parsync.metrics.kinds.validity import Validity
from parsync.metrics.quantity import Quantity
from parsync.metrics.summary import ArmFigures
from parsync.workload.workload import Workload

BASELINE = "ParSync adaptive"
LONGEST_SLUG = 60


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One run of an arm under the run's own seed, and its paired seeds.

    The attributes not listed here are as in ArmSummary.

    Attributes:
        quantities: What its figures are called.
        series: What parsync.metrics.summary.series returns.
        seeds: Its figures by seed.
    """

    name: str
    runtime: Runtime
    mix: Sequence[Mapping[str, Any]]
    sync: str
    strategy: str
    decision_clock: str
    basis: DecisionBasis
    clock_notes: Mapping[str, Any]
    figures: ArmFigures
    quantities: Sequence[Quantity]
    series: Mapping[str, NDArray[Any]]
    digest: str
    seeds: Mapping[int, SeedFigures] = field(default_factory=dict)
    watched: Watched = field(default_factory=Watched)
    partial: bool = False
    decision_capacity: Sequence[Capacity] = ()
    restarts: Sequence[Restart] = ()
    validity: Validity | None = None
    prediction: Prediction | None = None
    tears_gangs: str = ""

    @property
    def machines(self) -> int | None:
        """As ArmSummary.machines."""
        return machines_of_live_run(self.clock_notes)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What holds for all arms.

    Attributes:
        runtime: Of the runs that the arms are compared by.
        partial: Why the run did not get to its end, "" if it did.
    """

    seed: int
    version: str
    runtime: Runtime
    settle_us: int
    config: Mapping[str, Any]
    partial: str = ""


def slugs(names: Sequence[str]) -> list[str]:
    """File names for arms: lower case, digits and dashes, not too long; a number is appended where
    two would be alike."""
    taken: list[str] = []
    for name in names:
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower())[:LONGEST_SLUG].strip("-") or "arm"
        slug, number = stem, 2
        while slug in taken:
            slug, number = f"{stem}-{number}", number + 1
        taken.append(slug)
    return taken


def slugs_of_runs(
    arms: Sequence[str], live: Sequence[str], machines: int | None
) -> tuple[list[str], list[str]]:
    """The file names of arms, and of the live runs that some of them have besides.

    Args:
        arms, live: The arms' names.
        machines: Of the cell of the live runs; None if it is that of the arms.
    """
    suffix = "live"
    if machines is not None:
        suffix = f"{machines} machines live"
        live = [name[: LONGEST_SLUG - len(suffix) - 1] for name in live]
    found = slugs([*arms, *(f"{name} {suffix}" for name in live)])
    return found[: len(arms)], found[len(arms) :]


def build_summary(
    facts: RunFacts,
    workload: Workload,
    arms: Sequence[ArmResult],
    live_runs: Sequence[ArmResult] = (),
) -> RunSummary:
    """The summary of a run of this workload."""
    return summary_of_results(facts, workload_facts(workload), arms, live_runs)


def summary_of_results(
    facts: RunFacts,
    workload: WorkloadFacts,
    arms: Sequence[ArmResult],
    live_runs: Sequence[ArmResult] = (),
    sensitivity: Sequence[Sensitivity] = (),
) -> RunSummary:
    """As build_summary, where the facts of the workload are known already."""
    names = slugs_of_runs(
        [arm.name for arm in arms],
        [arm.name for arm in live_runs],
        next((arm.machines for arm in live_runs), None),
    )
    described, live = (
        [describe(arm, slug) for arm, slug in zip(results, its, strict=True)]
        for results, its in zip((arms, live_runs), names, strict=True)
    )
    quantities = [one for arm in (*arms, *live_runs) for one in arm.quantities]
    return summary_of(facts, workload, described, quantities, live, sensitivity)


def summary_of(
    facts: RunFacts,
    workload: WorkloadFacts,
    arms: Sequence[ArmSummary],
    quantities: Sequence[Quantity],
    live_runs: Sequence[ArmSummary] = (),
    sensitivity: Sequence[Sensitivity] = (),
) -> RunSummary:
    """The summary of arms that are described already."""
    known = distinct(quantities)
    return RunSummary(
        digest=summary_digest(arms),
        seed=facts.seed,
        version=facts.version,
        runtime=facts.runtime,
        partial=bool(facts.partial) or any(arm.partial for arm in (*arms, *live_runs)),
        partial_reason=facts.partial,
        settle_us=facts.settle_us,
        workload=workload,
        config=_plain(facts.config),
        quantities=known,
        arms=list(arms),
        live_runs=list(live_runs),
        paired=paired(arms, known),
        sensitivity=list(sensitivity),
    )


def summary_digest(arms: Sequence[ArmSummary]) -> str:
    """The digest of the arms' digests, and of those of their seeds, in order."""
    of_run = hashlib.blake2b(digest_size=16)
    for arm in arms:
        for part in (arm.digest, *(seed.digest for seed in arm.seeds)):
            of_run.update(part.encode())
    return of_run.hexdigest()


def distinct(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Each quantity once. `quantities`: those of one arm after the other, each in the order of the
    tables; one that only later arms have follows what precedes it there."""
    known: dict[str, Quantity] = {}
    order: list[str] = []
    before = ""
    for quantity in quantities:
        key = quantity.key
        if key not in known:
            known[key] = quantity
            order.insert(order.index(before) + 1 if before else 0, key)
        before = key
    return [known[key] for key in order]


def workload_facts(
    workload: Workload, bounds: Sequence[PhaseBound | None] | None = None
) -> WorkloadFacts:
    """What the arms had to do.

    Args:
        workload: What was run.
        bounds: The bound of each phase; None: not known.
    """
    bounds = [None] * len(workload.phases) if bounds is None else bounds
    duration_us = workload.duration_us[workload.arrival_rows]
    duration_us = duration_us[duration_us >= 0]
    return WorkloadFacts(
        name=workload.name,
        digest=digest(workload),
        machines=workload.cell.machines,
        dimensions=list(workload.cell.dimensions),
        capacity=workload.cell.capacity.sum(axis=0).tolist(),
        tasks=len(workload.tasks),
        arrivals=len(workload.arrival_rows),
        initial_tasks=len(workload.initial.task),
        preferred_permille=workload.preferred_permille,
        end_us=workload.end_us,
        mean_duration_us=round(float(duration_us.mean())) if len(duration_us) else None,
        phases=[
            Phase(
                start_us=phase.start_us,
                end_us=phase.end_us,
                load_percent=phase.load_percent,
                bound=bound,
            )
            for phase, bound in zip(workload.phases, bounds, strict=True)
        ],
        offered_permille=offered_permille(workload),
        facts=_plain(workload.facts),
    )


def paired(
    arms: Sequence[ArmSummary], quantities: Sequence[Quantity], baseline_name: str = BASELINE
) -> Paired:
    """Intervals and differences over the seeds that every arm ran. The baseline is the arm of that
    name, else the first."""
    common = set.intersection(*({row.seed for row in arm.seeds} for arm in arms)) if arms else set()
    seeds = sorted(common)
    names = [arm.name for arm in arms]
    baseline = (
        arms[names.index(baseline_name) if baseline_name in names else 0].slug if arms else None
    )
    values = {
        arm.slug: [row.overall for seed in seeds for row in arm.seeds if row.seed == seed]
        for arm in arms
    }

    def column(slug: str, key: str) -> list[float | None]:
        return [overall.value(key) for overall in values[slug]]

    def bounded(slug: str, key: str) -> bool:
        return any(overall.is_bound(key) for overall in values[slug])

    def interval(slug: str, key: str) -> Interval:
        return median_interval(column(slug, key), at_least=bounded(slug, key))

    known = {
        slug: [
            quantity.key
            for quantity in quantities
            if rows
            and (quantity.unbounded or any(row.value(quantity.key) is not None for row in rows))
        ]
        for slug, rows in values.items()
    }
    return Paired(
        seeds=seeds,
        level=level_of_seeds(len(seeds)),
        baseline=baseline,
        arms={slug: {key: interval(slug, key) for key in known[slug]} for slug in values},
        differences={
            slug: {
                key: paired_difference(
                    column(slug, key),
                    column(baseline, key),
                    at_least=bounded(slug, key),
                    at_most=bounded(baseline, key),
                )
                for key in known[slug]
                if baseline is not None and key in known[baseline]
            }
            for slug in values
            if slug != baseline
        },
    )


def describe(arm: ArmResult, slug: str) -> ArmSummary:
    """An arm as the summary has it."""
    overall = arm.figures.overall.model_copy(update=arm.watched.figures())
    alike = {
        name: getattr(arm, name)
        for name in ArmSummary.model_fields
        if name in ArmResult.__dataclass_fields__
    }
    return ArmSummary(
        **{
            **alike,
            **dict(arm.figures),
            "overall": overall,
            "slug": slug,
            "mix": [_plain(group) for group in arm.mix],
            "basis": arm.basis.live if arm.runtime == "ray" else arm.basis,
            "decision_capacity": list(arm.decision_capacity),
            "clock_notes": _plain(arm.clock_notes),
            "restarts": list(arm.restarts),
            "regret": arm.watched.regret,
            "seeds": [result.in_summary(seed) for seed, result in sorted(arm.seeds.items())],
        }
    )


def _plain(settings: Mapping[str, Any]) -> Settings:
    """Settings in JSON's own types."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if isinstance(value, Path):
            return str(value)
        raise TypeError(f"{type(value).__name__} does not belong in a summary")

    found: Settings = json.loads(json.dumps(dict(settings), allow_nan=False, default=plain))
    return found
