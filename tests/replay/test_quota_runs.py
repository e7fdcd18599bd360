"""Whole runs with quota groups in virtual time: the coordinator's shares add up, every agent obeys,
and an overloaded cell is divided as it should be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core import events
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.metrics.record import Record
from parsync.runtime.arm_directory import read_assembly, write_assembly
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.transaction import Transaction
from tests.fixtures import feature_runs
from tests.fixtures.feature_runs import QUICK
from tests.fixtures.overloaded_cell import OPTIONS, arm, failing_workload, group
from tests.fixtures.watched_runs import Columns, WatchedRun, Watcher, joined

JOBS = (
    {"name": "ads", "share": (0.1, 0.4, 0.2)},
    {"name": "batch", "share": (0.6, 0.4, 0.6)},
    {"name": "search", "share": (0.3, 0.2, 0.2)},
)
QUOTAS = QuotaSpec(
    interval_s=0.02,
    groups=(
        QuotaGroup(name="search", minimum=0.3),
        QuotaGroup(name="ads", maximum=0.1),
        QuotaGroup(name="batch", weight=3),
    ),
)
GROUPED = SyntheticOptions.model_validate(
    {**OPTIONS.model_dump(), "quota_groups": JOBS, "production_permille": 300}
)
RESOURCES = SyntheticOptions.model_validate(
    {**GROUPED.model_dump(), **feature_runs.RESOURCES, "gang_permille": 300}
)


def with_quotas(config: ArmConfig, quotas: QuotaSpec | None = QUOTAS) -> ArmConfig:
    return config.model_copy(update={"quotas": quotas})


ARMS = {
    "parsync adaptive": arm("diff_block", group(strategy="adaptive", tau_s=0.02)),
    "aligned, waiting for commits": arm(
        "state_aligned", group(strategy="quality_first", commit_pipelining=False)
    ),
    "freed at once, not cut": arm("diff_single", group(freed_at_once=True, cut_at_sync=False)),
    "omega": arm("every_attempt", group("first_fit", losers="requeue", requeue_s=0.03)),
    "whole queue": arm("diff_block", group("preferred_first", 2), group(count=2)),
    "all or nothing": arm("diff_block", group(commit_mode="all_or_nothing")),
}


class Obedient(Watcher):
    """Stands before an agent: what it may come to hold under its last grant, and its grants."""

    def __init__(self, agent: Any, groups: int) -> None:
        super().__init__(agent)
        self.most = self._said = np.zeros((groups, 1), np.int64)  # _said: held, by its last report
        self.grants: list[events.QuotaGrant] = []

    def seen(self, now_us: int, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, events.QuotaGrant):
            self.most = np.maximum(event.amount, self._said)
            self.grants.append(event)
        for sent in (effect.event for effect in effects if isinstance(effect, Send)):
            if isinstance(sent, events.QuotaReport):
                assert (sent.waiting >= 0).all()
                self._said = sent.held


class Divided(Watcher):
    """Stands before the master of a run whose messages may take no time, and watches how the cell
    is divided."""

    def __init__(self, run: WatchedRun, checks: bool) -> None:
        super().__init__(run.master)
        assert run.assembly.quotas is not None
        self.run, self.checks, self.quotas = run, checks, run.assembly.quotas
        self.shares: list[tuple[int, events.QuotaShares]] = []
        self.reclaimed = 0  # tasks that agents ended to give back
        self.spared = 0  # tasks of higher priority than these that ran on, each time

    @property
    def held(self) -> np.ndarray:
        """What each group holds on the cell, int64[groups, dimensions]."""
        live = self.run.cell.allocations()
        return self.quotas.held(live.task, live.request)

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        if self.checks and isinstance(event, events.CommitRequest):
            self.check_reclaims(event.transaction)
        return super().handle(now_us, event)

    def check_reclaims(self, transaction: Transaction) -> None:
        """Of each group an agent ends tasks of lowest priority before others that it runs."""
        if transaction.evict is None:
            return
        running = self.run.cell.allocations(transaction.scheduler)
        ends = np.isin(running.allocation, transaction.evict)
        of_task, priority = self.quotas.of_task, self.run.workload.tasks.priority
        for present in np.unique(of_task[running.task[ends]]):
            mine = of_task[running.task] == present
            ended = priority[running.task[mine & ends]]
            others = priority[running.task[mine & ~ends]]
            assert len(others) == 0 or ended.max() <= others.min()
            self.reclaimed += len(ended)
            self.spared += int((others > ended.min()).sum())

    def seen(self, now_us: int, event: Event, effects: list[Effect]) -> None:
        if isinstance(event, events.QuotaShares):
            self.shares.append((now_us, event))
        if self.checks and isinstance(event, events.CommitRequest):
            sent = [effect.event for effect in effects if isinstance(effect, Send)]
            if any(isinstance(one, events.TasksStarted) for one in sent):
                assert (self.held <= sum(agent.most for agent in self.run.agents)).all()


def divided(
    config: ArmConfig, workload: Workload, until_us: int = 2_000_000, message_us: int = 0
) -> tuple[WatchedRun, Divided]:
    """A run whose agents and master are watched."""
    run = WatchedRun(config, workload)
    watch = run.master = Divided(run, message_us == 0)
    run.agents = [Obedient(agent, watch.quotas.groups) for agent in run.agents]
    return run.run(until_us, message_us), watch


@pytest.mark.parametrize(
    ("name", "message_us"),
    [*((name, 0) for name in ARMS), ("parsync adaptive", 1500), ("omega", 1500)],
)
def test_every_agent_obeys_and_every_task_is_placed(name: str, message_us: int) -> None:
    options = RESOURCES if name == "all or nothing" else GROUPED
    workload = failing_workload(options)
    run, watch = divided(with_quotas(ARMS[name]), workload, 6_000_000, message_us)
    assert run.queued == run.counts.waiting == 0 and run.audit.quota_rounds > 50
    capacity = workload.cell.limit.sum(axis=0)
    maximum = np.array([1000, 100, 1000])[:, None] * capacity // 1000
    assert len(watch.shares) > 100
    for _, shares in watch.shares:
        granted = sum(
            grant.amount
            for agent in run.agents
            for grant in agent.grants
            if grant.round == shares.round
        )
        assert (granted <= shares.limit).all()
        assert (shares.limit.sum(axis=0) <= capacity).all()
        assert (shares.share <= shares.limit).all() and (shares.limit <= maximum).all()
        assert (shares.share <= shares.wanted).all()


def test_down_machines_are_not_divided() -> None:
    """Machines 5 to 7 are down from 0.45 s to 0.7 s."""
    config = with_quotas(ARMS["parsync adaptive"])
    _, watch = divided(config, failing_workload(GROUPED), 1_000_000)
    dealt = {at_us: int(shares.limit.sum()) for at_us, shares in watch.shares}
    assert dealt[440_000] == 240 - 8 and dealt[460_000] == 240 - 12 and dealt[720_000] == 240


def recorded(
    config: ArmConfig, workload: Workload, message_us: int = 500, **changes: Any
) -> tuple[str, dict[str, Columns]]:
    """The digest of a run to its end, and its tables."""
    records: list[Record] = []
    spec = config.seeded(3, 1000, 50_000, live="calibration" in changes)
    outcome = run_virtual(
        spec, workload, 9_000_000, records.append, lambda _: None, message_us, **changes
    )
    assert outcome.drained
    return outcome.digest, joined(records)


def test_an_overloaded_cell_is_divided_by_weight_minimum_and_maximum() -> None:
    """All three groups want more than they may have: search gets its minimum, as a quarter of what
    ads' maximum leaves is less, and batch the rest. What they hold comes close to it."""
    shares = [
        {"name": job["name"], "share": share}
        for job, share in zip(JOBS, (0.3, 0.4, 0.3), strict=True)
    ]
    options = SyntheticOptions.model_validate(
        {**GROUPED.model_dump(), "quota_groups": shares, "load_percent": (250,), "phase_s": 1.2}
    )
    _, tables = recorded(with_quotas(ARMS["parsync adaptive"]), generate(options, 3))
    by_group: dict[str, list[float]] = {}
    for table, column in (("shares", "share"), ("shares", "wanted"), ("use", "held")):
        rows = tables[f"quota_{table}"]
        window = (rows["at_us"] > 600_000) & (rows["at_us"] < 1_200_000)
        groups = (window & (rows["quota_group"] == number) for number in range(3))
        by_group[column] = [float(rows[column][chosen].mean()) for chosen in groups]
    assert by_group["share"] == pytest.approx([72, 24, 144], abs=0)
    assert np.all(np.array(by_group["wanted"]) > by_group["share"])
    for held, share in zip(by_group["held"], by_group["share"], strict=True):
        assert 0.85 * share < held <= 1.02 * share


def test_agents_obey_in_the_live_runtime_in_virtual_time() -> None:
    """Grants are a tick or two old there, so a group may be above its limit for a while."""
    options = GROUPED.model_copy(update={"load_percent": (150,), "phase_s": 1.5})
    quotas = QUOTAS.model_copy(update={"interval_s": 0.1})
    config = with_quotas(ARMS["parsync adaptive"], quotas)
    use = recorded(config, generate(options, 3), 0, calibration=QUICK)[1]["quota_use"]
    held = use["held"][use["quota_group"] == 1]
    assert held.max() <= 1.5 * 24 and 12 < np.median(held[held > 0]) <= 25


def test_production_jobs_go_first_within_their_group() -> None:
    one = GROUPED.quota_groups[0].model_copy(update={"share": 1.0})
    changes = {"load_percent": (200,), "phase_s": 1.0, "quota_groups": (one,)}
    workload = generate(GROUPED.model_copy(update=changes), 3)
    quotas = QuotaSpec(interval_s=0.02, groups=(QuotaGroup(name="ads", maximum=0.5),))
    config = with_quotas(ARMS["parsync adaptive"], quotas)
    tasks = recorded(config, workload, 0)[1]["tasks"]
    delay, first = tasks["commit_us"] - tasks["submit_us"], workload.tasks.priority[tasks["task"]]
    assert delay[first > 0].mean() < delay[first == 0].mean() / 3


def test_the_same_seed_gives_the_same_log_and_quotas_change_nothing_else(tmp_path: Any) -> None:
    workload = failing_workload(GROUPED)
    config = ARMS["parsync adaptive"]
    digest, _ = recorded(with_quotas(config), workload)
    assert digest == recorded(with_quotas(config), workload)[0]
    # without quotas it is of no account whether jobs belong to groups
    without, tables = recorded(config, workload)
    assert without == recorded(config, replace(workload, quotas=None))[0] != digest
    assert [table for table in tables if table.startswith("quota_")] == ["quota_use"]
    write_assembly(
        tmp_path, with_quotas(config).seeded(3, 1000, 50_000, live=False), workload, None
    )
    assembly, _ = read_assembly(tmp_path)
    assert assembly.arm.quotas == QUOTAS
    again = assembly.workload.quotas
    assert again is not None and workload.quotas is not None
    assert again.names == workload.quotas.names
    assert (again.group == workload.quotas.group).all()


def of_two(*names: str, **changes: Any) -> SyntheticOptions:
    """Long tasks of one group fill the cell before the other's jobs come."""
    groups = [{"name": name, "share": share} for name, share in zip(names, SHARES, strict=True)]
    its = {"quota_groups": groups, "phase_s": 1.0, "mean_duration_s": 3.0, "duration_sigma": 0.3}
    return SyntheticOptions.model_validate({**GROUPED.model_dump(), **its, **changes})


SHARES = (1.0, 0.5), (0.0, 0.5)
LONG_AND_LATE = QuotaGroup(name="long"), QuotaGroup(name="late")


@pytest.mark.parametrize("name", ["parsync adaptive", "omega", "all or nothing"])
def test_reclaiming_brings_a_group_its_share_while_tasks_of_others_run(name: str) -> None:
    workload = generate(of_two("long", "late", load_percent=(600, 600)), 3)
    held: dict[float | None, int] = {}
    for after_s in (None, 0.1):
        quotas = QuotaSpec(interval_s=0.02, groups=LONG_AND_LATE, reclaim_after_s=after_s)
        run, watch = divided(with_quotas(ARMS[name], quotas), workload)
        held[after_s] = int(watch.held[1, 0])
        evicted = run.counts.evicted  # tasks are ended by their own schedulers only
        assert evicted == watch.reclaimed and (evicted > 0) == (after_s is not None)
        share = watch.shares[-1][1].share[1, 0]
        assert share > 60
    assert held[None] < 0.5 * share and held[0.1] > 0.8 * share


def test_reclaiming_ends_tasks_of_low_priority_before_others_of_their_group() -> None:
    """Both run when the other group comes. Divided.check_reclaims() checks each reclaim."""
    options = of_two("long", "late", load_percent=(200, 400), batch_tasks=2)
    quotas = QuotaSpec(interval_s=0.02, groups=LONG_AND_LATE, reclaim_after_s=0.1)
    _, watch = divided(with_quotas(ARMS["parsync adaptive"], quotas), generate(options, 3))
    assert watch.reclaimed > 30 and watch.spared > 100


def test_a_group_of_small_weight_uses_what_is_idle_and_goes_first() -> None:
    """Its jobs could fill the cell several times over, before the others come and beside them."""
    jobs = [{"name": "opportunistic", "share": (1.0, 0.7)}, {"name": "paid", "share": (0.0, 0.3)}]
    options = of_two("", "", quota_groups=jobs, load_percent=(400, 200), mean_duration_s=1.0)
    groups = QuotaGroup(name="opportunistic", weight=1), QuotaGroup(name="paid", weight=1000)
    quotas = QuotaSpec(interval_s=0.02, groups=groups, reclaim_after_s=0.0)
    config = with_quotas(ARMS["parsync adaptive"], quotas)
    run, watch = divided(config, generate(options, 3))
    for at_us, shares in watch.shares:
        if at_us > 400_000:
            assert shares.wanted.sum() > 240 and shares.share.sum() == 240
            assert shares.share[1] == min(shares.wanted[1, 0], 239)
    idle, paid = watch.held[:, 0]
    assert paid > 0.85 * shares.wanted[1, 0] > 80 and idle > 0.85 * (240 - paid)
    assert run.counts.evicted > 0
