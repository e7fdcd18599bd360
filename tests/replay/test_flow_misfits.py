"""What flows could not express, against what the plans of whole runs said."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from experiments.campaign.running import make_metrics
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads.synthetic import generate
from parsync.metrics.kinds.flow_misfits import FlowMisfitMetric
from parsync.metrics.run_metrics import RunMetrics
from parsync.spec.arm import ArmConfig
from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import Plan
from tests.fixtures.feature_runs import CROWDED, RESOURCES, with_changes
from tests.fixtures.overloaded_cell import arm, group
from tests.fixtures.watched_runs import WatchedRun

SECONDS = {**CROWDED, "phase_s": 1.0, "mean_duration_s": 0.4, "batch_tasks": 6}
SIZES = {**SECONDS, **RESOURCES, "gang_permille": 300}
FIGURES = {
    "flow_misfits": "oversubscribed",
    "flow_repairs": "repaired",
    "flow_torn_gangs": "held_back",
    "flow_unrouted": "unrouted",
}


def metrics_of(config: ArmConfig, changes: dict[str, Any]) -> RunMetrics:
    """What a run to its end measured."""
    options = with_changes(**changes)
    run = WatchedRun(config, generate(options, 3))
    run.run(40_000_000)
    workload = WorkloadConfig.of("synthetic", options)
    whole = RunConfig(workload=workload, arms=(config,), settle_s=0.1)
    metrics = make_metrics(whole, config, run.workload)
    for record in run.records:
        metrics.add(record.table, record.columns)
    metrics.flush()
    return metrics


@pytest.mark.parametrize(
    ("options", "shows"),
    [
        ({}, ("flow_misfits", "flow_repairs", "flow_torn_gangs")),
        ({"algorithm": "relaxation", "max_operations": 1_000}, ("flow_unrouted",)),
    ],
    ids=["whole rounds", "a budget"],
)
def test_the_figures_are_those_of_the_plans(
    options: dict[str, Any], shows: tuple[str, ...]
) -> None:
    said: dict[FlowScheduler, Counter[str]] = {}
    plan = FlowScheduler.plan

    def watched(self: FlowScheduler, *given: Any) -> Plan:
        made = plan(self, *given)
        said.setdefault(self, Counter()).update(made.stats)
        return made

    config = arm("diff_block", group("flow", 2, options=options), group(count=2))
    with patch.object(FlowScheduler, "plan", watched):
        metrics = metrics_of(config, SIZES)
    metric = metrics.get(FlowMisfitMetric)
    every = range(metrics.run.slots)
    found = [metric.figures(metrics.scope([agent], every)).model_dump() for agent in range(4)]
    expected = [{key: one[name] for key, name in FIGURES.items()} for one in said.values()]
    assert len(expected) == 2
    assert sorted(map(str, found[:2])) == sorted(map(str, expected))
    assert not any(value for one in found[2:] for value in one.values())
    assert all(found[0][name] > 0 for name in shows), "the run is empty of what it is for"
    # windows of phases hold what happened in them
    inside = metric.figures(metrics.scope()).model_dump()
    rows = metrics.samples("rounds")
    within = np.isin(metrics.run.slot_of(rows["at_us"]), range(len(metrics.run.phases)))
    assert inside == {key: rows[name][within].sum() for key, name in FIGURES.items()}


def test_arms_without_a_flow_have_no_such_figures() -> None:
    metrics = metrics_of(arm("state_aligned", group(count=2)), SECONDS)
    assert FlowMisfitMetric.kind not in metrics.metrics
