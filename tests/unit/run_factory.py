"""A whole run directory made of synthetic records: arms, paired seeds, figures and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from experiments.analysis.cell_watch import Watched
from experiments.analysis.frontier_model import FRONTIER, write_frontier
from experiments.analysis.run_directory import write_run
from experiments.analysis.summary import ArmResult, RunFacts, build_summary
from experiments.analysis.summary_model import ComparedArms, SeedFigures
from experiments.config.decision_basis import BasisKind, DecisionBasis
from parsync.metrics.kinds.conflicts import ConflictCauses
from parsync.metrics.kinds.regret import DecisionRegret, Regret, SystemRegret
from parsync.metrics.run_frame import Group, RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import ArmFigures, quantities, series, summarise
from parsync.workload.workload import InitialPlacement, MachineEvents, Phase, Workload
from shared_state.tasks import CellSpec, PreferenceCatalog, TaskBatch
from tests.unit.frontier_factory import frontier_of
from tests.unit.record_factory import CHARACTERS, PHASES, SECOND, Character, arm_records

S = TypeVar("S", bound=ComparedArms)

AGENTS = PARTITIONS = 8


EQUAL = DecisionBasis(
    kind=BasisKind.EQUAL_CAPACITY, decisions_per_s=20_000, scan_cost=0, cores=8, message_us=500
)
OWN_SPEED = DecisionBasis(kind=BasisKind.OWN_SPEED, cores=8, message_us=500)


def workload(machines: int = 2000, name: str = "parsync") -> Workload:
    none64, none32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Workload(
        name=name,
        cell=CellSpec(
            ("slots",),
            np.full((machines, 1), 10, np.int64),
            np.arange(machines, dtype=np.int32) // 40,
            np.zeros(machines, np.int64),
            np.array([1000]),
        ),
        catalog=PreferenceCatalog.empty(),
        tasks=TaskBatch.empty(1),
        duration_us=none64,
        preferred_permille=700,
        arrival_us=none64,
        arrival_offsets=np.zeros(1, np.int64),
        arrival_rows=none64,
        initial=InitialPlacement(none64, none32),
        machine_events=MachineEvents(none64, none32, np.zeros(0, bool)),
        phases=tuple(Phase(phase.start_us, phase.end_us, phase.load_percent) for phase in PHASES),
        end_us=PHASES[-1].end_us,
        facts={"jobs": 4321, "tasks_larger_than_every_machine": 0, "mean_duration_s": 2.0},
    )


def measured(seed: int, character: Character, step_us: int) -> RunMetrics:
    recorded = arm_records(seed, character, AGENTS, PARTITIONS, step_us)
    greedy = AGENTS - character.flow_agents
    groups = [
        Group("greedy", tuple(range(greedy))),
        Group("flow", tuple(range(greedy, AGENTS))),
    ]
    metrics = RunMetrics(
        RunFrame(
            PHASES,
            AGENTS,
            partitions=PARTITIONS,
            settle_us=2 * SECOND,
            groups=[group for group in groups if group.agents],
            job_of=recorded.job_of,
            preempts=character.flow_agents > 0,
            flows=character.flow_agents > 0,
        )
    )
    for table, columns in recorded.batches:
        metrics.add(table, columns)
    return metrics


def arm_result(name: str, seed: int, seeds: Sequence[int], step_us: int) -> ArmResult:
    character = CHARACTERS[name]
    metrics = measured(seed, character, step_us)
    rng = np.random.default_rng(seed)
    flow = character.flow_agents
    kinds = [("greedy", "weighted_sampling", AGENTS - flow), ("flow", "flow", flow)]
    return ArmResult(
        name=name,
        runtime="virtual",
        mix=[
            {"name": group, "kind": kind, "count": count} for group, kind, count in kinds if count
        ],
        sync="statesync aligned" if "StateSync" in name else "diffsyn block",
        strategy="adaptive" if "adaptive" in name or name == "Mix" else "quality_first",
        decision_clock="measured" if flow == AGENTS else "modelled",
        basis=EQUAL,
        clock_notes={"tick_us": 5000, "step_wait_mean_us": 900.0, "step_wait_share": 0.08},
        figures=summarise(metrics),
        quantities=quantities(metrics),
        series={**series(metrics), **quota_series(), **share_series()},
        digest=f"{abs(hash(name)):032x}",
        seeds={
            s: seed_figures(f"digest of {name} {s}", summarise(measured(s, character, step_us)))
            for s in seeds
        },
        watched=Watched(
            Regret(
                decision=[
                    DecisionRegret(
                        at_us=int(at),
                        agent=0,
                        sequence=number,
                        tasks=10,
                        losers=0,
                        regret=int(rng.exponential(1e4 * (1 - character.preferred))),
                        exact=True,
                    )
                    for number, at in enumerate(np.linspace(0, PHASES[-1].end_us, 40))
                ],
                system=[
                    SystemRegret(
                        at_us=int(at),
                        running=0,
                        waiting=0,
                        cost=0,
                        without_migration=(900 + 50 * k) * character.conflicts,
                        with_migration=(1900 + 60 * k) * character.conflicts,
                        exact=True,
                    )
                    for k, at in enumerate(
                        np.linspace(0, PHASES[-1].end_us, 10) + 3 * character.capacity
                    )
                ],
            ),
            ConflictCauses.of(1, 5 + int(10 * character.conflicts), 9),
        ),
    )


def slower_live(arm: ArmResult, seed: int, step_us: int) -> ArmResult:
    """A live run of an arm, with delays of its own."""
    character = CHARACTERS[arm.name]
    slower = replace(character, capacity=character.capacity / 2)
    metrics = measured(seed, slower, step_us)
    beside = {**quota_series(), **share_series()}
    measures = {"figures": summarise(metrics), "series": {**series(metrics), **beside}}
    return replace(arm, runtime="ray", seeds={}, digest=f"live {arm.digest}", **measures)


def quota_series() -> dict[str, np.ndarray]:
    """What two quota groups hold of one resource, and their shares: a tenth and four tenths of the
    cell, to begin with, and more by and by."""
    at_us = np.repeat(np.linspace(0, PHASES[-1].end_us, 50).astype(np.int64), 2)
    group = np.tile([0, 1], 50)
    share = np.where(group == 0, 2_000, 8_000) + at_us // 100_000
    numbers = {"at_us": at_us, "quota_group": group, "resource": np.zeros_like(group)}
    return {
        **{f"quota_use_{name}": column for name, column in numbers.items()},
        **{f"quota_shares_{name}": column for name, column in numbers.items()},
        "quota_use_held": share - 100,
        "quota_shares_share": share,
    }


def share_series() -> dict[str, np.ndarray]:
    """The dominant shares of schedulers that take offers: each has a tenth more than the one before
    it."""
    share = np.repeat(100_000 * np.arange(AGENTS)[:, None], 50, axis=1)
    return {
        "dominant_share_ppm": share,
        "dominant_share_samples_ppm": np.full_like(share, 1_000_000),
    }


def seed_figures(digest: str, figures: ArmFigures, workload: str = "") -> SeedFigures:
    return SeedFigures(
        digest=digest,
        workload=workload,
        offered_permille=700,
        overall=figures.overall,
        phases=figures.phases,
        groups=figures.groups,
        totals=figures.totals,
    )


def with_overall(summary: S, **by_key: dict[str, object]) -> S:
    """The summary with some figures of its arms changed, by key and arm."""
    arms = [
        arm.model_copy(
            update={
                "overall": arm.overall.model_copy(
                    update={key: of[arm.name] for key, of in by_key.items() if arm.name in of}
                )
            }
        )
        for arm in summary.arms
    ]
    return summary.model_copy(update={"arms": arms})


def write_synthetic_run(
    directory: Path,
    names: Sequence[str] = tuple(CHARACTERS),
    seed: int = 1,
    seeds: Sequence[int] = (),
    partial: str = "",
    machines: int = 2000,
    step_us: int = 500_000,
    own_speed: Sequence[str] = (),
    live: Sequence[str] = (),
) -> Path:
    """Everything of a run directory but the report, the configuration file and the Parquet
    files.

    Args:
        own_speed: The arms whose schedulers are as fast as their code.
        live: The arms that ran live, too; they waited twice as long there.
    """
    directory.mkdir(parents=True)
    arms = [
        replace(
            arm_result(name, seed, seeds, step_us), basis=OWN_SPEED if name in own_speed else EQUAL
        )
        for name in names
    ]
    live_runs = [slower_live(arm, seed, step_us) for arm in arms if arm.name in live]
    config = {
        "seed": seed,
        "runtime": "virtual",
        "cell": {"machines": machines},
        "workload": {"quota_groups": [{"name": "ads"}, {"name": "batch"}]},
        "arms": [{"name": name} for name in names],
    }
    facts = RunFacts(seed, "0.1.0", "virtual", 2 * SECOND, config, partial)
    summary = build_summary(facts, workload(machines), arms, live_runs)
    write_run(directory, summary, arms, live_runs)
    write_frontier(directory / FRONTIER, frontier_of(summary))
    return directory
