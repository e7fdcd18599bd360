"""What preemption wasted and gained, against figures worked out from the messages of whole runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from experiments.campaign.running import make_metrics
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads.synthetic import generate
from parsync.core import events
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.metrics.kinds.preemption import PreemptionFigures, PreemptionMetric, UrgentMetric
from parsync.metrics.run_metrics import RunMetrics
from parsync.spec.arm import ArmConfig
from schedulers.interface import ChangeKind
from schedulers.objective import placement_cost
from tests.fixtures.feature_runs import CROWDED, RESOURCES, preempting, with_changes
from tests.fixtures.overloaded_cell import arm, group
from tests.fixtures.watched_runs import WatchedRun, Watcher

SECONDS = {**CROWDED, "phase_s": 1.0, "mean_duration_s": 0.4}


@dataclass
class Stay:
    """A task on a machine, from a start to an end."""

    task: int
    machine: int
    start_us: int
    owner: int
    end_us: int = -1
    evicted_by: int = -1
    followed_by: Stay | None = None


@dataclass
class Stays(Watcher):
    """Stands before the master and keeps every stay, and how many starts each machine had when."""

    participant: Any
    every: list[Stay] = field(default_factory=list)
    last: dict[int, Stay] = field(default_factory=dict)  # by task
    of: dict[int, Stay] = field(default_factory=dict)  # by allocation
    starts: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def seen(self, now_us: int, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, events.TasksFinished):
            for allocation in event.allocation.tolist():
                self.of[allocation].end_us = now_us
        sent = [one for one in (getattr(effect, "event", None) for effect in effects) if one]
        for one in sent:
            if isinstance(one, events.TasksEnded) and one.change == ChangeKind.EVICTED:
                assert isinstance(event, events.CommitRequest)
                for task in one.task.tolist():
                    self.last[task].end_us = now_us
                    self.last[task].evicted_by = event.transaction.scheduler
        for one in sent:
            if isinstance(one, events.TasksStarted):
                columns = one.task, one.machine, one.allocation, one.owner
                for task, machine, allocation, owner in zip(
                    *(column.tolist() for column in columns), strict=True
                ):
                    stay = Stay(task, machine, now_us, owner)
                    if task in self.last:
                        self.last[task].followed_by = stay
                    self.last[task] = self.of[allocation] = stay
                    self.every.append(stay)
                    self.starts[machine, now_us] += 1


def expected(run: WatchedRun, agents: set[int]) -> dict[str, float]:
    """The figures of some schedulers, from their definitions, stay by stay."""
    workload, stays = run.workload, run.master
    alpha = workload.preferred_permille

    def cost(stay: Stay) -> tuple[int, bool]:
        preference = workload.tasks.preference[[stay.task]]
        machine = np.array([stay.machine], np.int32)
        found, preferred = placement_cost(workload.catalog, workload.cell.rack, preference, machine)
        return int(found[0]), bool(preferred[0])

    def elsewhere_us(task: int) -> int:
        last = stays.last[task]
        ran = last.end_us - last.start_us
        return ran * 1000 // alpha if cost(last)[1] else ran

    found: dict[str, float] = dict.fromkeys(PreemptionFigures.model_fields, 0)
    left: dict[tuple[int, int], list[int]] = defaultdict(list)
    for stay in stays.every:
        if stay.evicted_by not in agents:
            continue
        after, whole_us = stay.followed_by, elsewhere_us(stay.task)
        assert after is not None
        (had, liked), (has, likes) = cost(stay), cost(after)
        if stay.evicted_by != stay.owner:
            found["preemptions_of_others"] += 1
        else:
            found["migrations" if has < had else "preemptions_own"] += 1
        found["preemption_lost_us"] += stay.end_us - stay.start_us
        found["preemption_wait_us"] += after.start_us - stay.end_us
        found["preemption_cost_saved"] += had - has
        shorter_us = whole_us - whole_us * alpha // 1000
        found["preemption_run_saved_us"] += shorter_us * (likes - liked)
        would_end_us = stay.start_us + (whole_us * alpha // 1000 if liked else whole_us)
        left[stay.machine, stay.end_us].append(max(would_end_us - stay.end_us, 0))
    for place, times in left.items():
        found["preemption_wait_saved_us"] += sum(sorted(times, reverse=True)[: stays.starts[place]])
    return found


def run_of(config: ArmConfig, changes: dict[str, Any]) -> tuple[WatchedRun, RunMetrics]:
    """A run to its end, and its metrics."""
    options = with_changes(**SECONDS, **changes)
    run = WatchedRun(config, generate(options, 3))
    run.master = Stays(run.master)
    run.run(40_000_000)
    assert run.counts.finished == run.counts.submitted
    workload = WorkloadConfig.of("synthetic", options)
    whole = RunConfig(workload=workload, arms=(config,), settle_s=0.1)
    metrics = make_metrics(whole, config, run.workload)
    for record in run.records:
        metrics.add(record.table, record.columns)
    metrics.flush()
    return run, metrics


FLOW = arm("state_aligned", group("flow", 2, options={"preemption": True}))


@pytest.mark.parametrize(
    ("config", "changes", "shows"),
    [
        (preempting(), {"batch_tasks": 10}, ("preemptions_own", "preemptions_of_others")),
        (preempting("every_attempt"), {**RESOURCES, "batch_tasks": 10}, ("preemptions_of_others",)),
        (FLOW, {"batch_tasks": 10}, ("migrations", "preemptions_own")),
    ],
    ids=["greedy", "greedy, resources", "flow"],
)
def test_the_figures_are_those_of_the_messages(
    config: ArmConfig, changes: dict[str, Any], shows: tuple[str, ...]
) -> None:
    run, metrics = run_of(config, changes)
    metric = metrics.get(PreemptionMetric)
    every = range(metrics.run.slots)
    for agents in ({*range(metrics.run.agents)}, {0}, {1}):
        scope = metrics.scope(sorted(agents), every)
        assert metric.figures(scope).model_dump() == expected(run, agents)
        assert metric.lower_bounds(scope, metric.figures(scope)) == {}
    whole = metric.figures(metrics.scope(slots=every)).model_dump()
    assert all(whole[name] > 0 for name in shows), "the run is empty of what it is for"
    by_kind = ("migrations", "preemptions_own", "preemptions_of_others")
    assert sum(whole[name] for name in by_kind) == run.counts.evicted
    assert metric.series()["evictions"].sum() == run.counts.evicted


def test_arms_that_do_not_evict_have_no_such_figures() -> None:
    config = arm("state_aligned", group("flow", 2))
    _, metrics = run_of(config, {"batch_tasks": 10})
    assert PreemptionMetric.kind not in metrics.metrics


def test_urgent_tasks_are_told_apart_where_others_make_room_for_them() -> None:
    run, metrics = run_of(preempting(), {"batch_tasks": 10})
    first_us = {stay.task: stay.start_us for stay in reversed(run.master.every)}
    tasks = run.workload.tasks
    waited = [
        first_us[task] - int(tasks.submit_us[task]) for task in np.flatnonzero(tasks.priority)
    ]
    scope = metrics.scope(slots=range(metrics.run.slots))
    found = metrics.get(UrgentMetric).figures(scope)
    assert found.urgent_tasks == len(waited) > 100
    assert found.urgent_delay_mean_us == pytest.approx(np.mean(waited))
    _, without = run_of(arm("state_aligned", group()), {"batch_tasks": 10})
    assert UrgentMetric.kind not in without.metrics
