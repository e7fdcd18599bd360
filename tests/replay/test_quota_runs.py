"""Whole runs with quota groups in virtual time: the coordinator's shares add up, every agent obeys,
and an overloaded cell is divided as it should be."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.workloads.synthetic import SyntheticOptions, generate
from parsync.core import events
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.effects import Effect, Send
from parsync.core.event import Event
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.metrics.record import Record
from parsync.runtime.arm_directory import read_assembly, write_assembly
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import CellAuditor, quota_audit
from parsync.runtime.calibration import Calibration
from parsync.runtime.virtual.run import VirtualRuntime, run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.invariants import CellAudit
from shared_state.observed_cell import ObservedCell
from shared_state.transaction import Transaction
from tests.fixtures.overloaded_cell import OPTIONS, arm, failing_workload, group
from tests.fixtures.quota_oracle import WatchedAgent

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
    {
        **GROUPED.model_dump(),
        "slots_per_machine": 10,
        "machine_types": [{"capacity": {"cpu_milli": 4_000, "mem_mib": 8_192}}],
        "task_shapes": [
            {"request": {"cpu_milli": (500, 1_500), "mem_mib": 1_024}},
            {"request": {"cpu_milli": 500, "mem_mib": (1_024, 4_096)}},
        ],
        "gang_permille": 300,
        "batch_tasks": 4,
    }
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


class Run:
    """A run whose agents, coordinator and cell are watched."""

    def __init__(
        self, config: ArmConfig, workload: Workload, message_us: int, until_us: int
    ) -> None:
        assembly = Assembly.of(config.seeded(3, 1000, 50_000, live=False), workload)
        assert assembly.quotas is not None
        self.workload, self.quotas = workload, assembly.quotas
        quotas_audit = quota_audit(assembly)
        assert quotas_audit is not None
        self.quotas_audit = quotas_audit
        self.agents = [
            WatchedAgent(assembly.agent(index), index, quotas_audit, assembly.quotas.groups)
            for index in range(assembly.arm.agents)
        ]
        self.master = assembly.master()
        self.audit = CellAudit(workload.cell, assembly.partitioning)
        self.master.cell = ObservedCell(self.master.cell, CellAuditor(self.audit))
        self.audit.submitted(workload.arrival_rows)
        self.shares: list[tuple[int, events.QuotaShares]] = []
        self.now_us = 0
        watching = self

        class WatchedMaster:
            def handle(self, now_us: int, event: Event) -> list[Effect]:
                watching.now_us = now_us
                if isinstance(event, events.QuotaShares):
                    watching.shares.append((now_us, event))
                if isinstance(event, events.CommitRequest):
                    watching.on_request(event.transaction)
                effects = watching.master.handle(now_us, event)
                if isinstance(event, events.CommitRequest):
                    watching.on_commit(effects)
                return effects

            def finish(self, now_us: int) -> list[Record]:
                return watching.master.finish(now_us)

        self.message_us = message_us
        self.reclaimed = 0  # tasks that agents ended to give back
        self.spared = 0  # tasks of higher priority than these that ran on, each time
        participants: dict[int, Any] = dict(enumerate(self.agents))
        participants |= {
            MASTER: WatchedMaster(),
            WORKERS: assembly.workers(),
            COORDINATOR: assembly.coordinator(),
            ARRIVALS: assembly.arrivals(),
        }
        runtime = VirtualRuntime(
            participants, dict(enumerate(self.agents)), lambda _: None, assembly.codec, message_us
        )
        runtime.run_until(until_us)
        self.waiting = sum(agent.agent.queued for agent in self.agents)

    def on_request(self, transaction: Transaction) -> None:
        """Of each group an agent ends tasks of lowest priority before others that it runs."""
        if transaction.evict is None or self.message_us:
            return
        running = self.master.cell.allocations(transaction.scheduler)
        ends = np.isin(running.allocation, transaction.evict)
        of_task, priority = self.quotas.of_task[running.task], self.workload.tasks.priority
        for present in np.unique(of_task[ends]):
            mine = of_task == present
            ended = priority[running.task[mine & ends]]
            others = priority[running.task[mine & ~ends]]
            assert len(others) == 0 or ended.max() <= others.min()
            self.reclaimed += len(ended)
            self.spared += int((others > ended.min()).sum())

    def on_commit(self, effects: list[Effect]) -> None:
        """What a group holds on the cell is within what its agents may come to hold together."""
        started = [e.event for e in effects if isinstance(e, Send) and e.to == WORKERS]
        if self.message_us or not any(isinstance(e, events.TasksStarted) for e in started):
            return
        live = self.master.cell.allocations()
        held = self.quotas.held(live.task, live.request)
        assert (held <= sum(agent.most for agent in self.agents)).all()


@pytest.mark.parametrize(
    ("name", "message_us"),
    [*((name, 0) for name in ARMS), ("parsync adaptive", 1500), ("omega", 1500)],
)
def test_every_agent_obeys_and_every_task_is_placed(name: str, message_us: int) -> None:
    options = RESOURCES if name == "all or nothing" else GROUPED
    run = Run(with_quotas(ARMS[name]), failing_workload(options), message_us, 6_000_000)
    assert run.waiting == 0
    assert run.quotas_audit.commits > 50
    run.audit.finish(waiting=np.zeros(0, np.int64))
    capacity = run.workload.cell.limit.sum(axis=0)
    maximum = np.array([1000, 100, 1000])[:, None] * capacity // 1000
    assert len(run.shares) > 100
    for _, shares in run.shares:
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
    run = Run(with_quotas(ARMS["parsync adaptive"]), failing_workload(GROUPED), 0, 1_000_000)
    dealt = {at_us: int(shares.limit.sum()) for at_us, shares in run.shares}
    assert dealt[440_000] == 240 - 8 and dealt[460_000] == 240 - 12 and dealt[720_000] == 240


Tables = dict[str, dict[str, np.ndarray]]


def recorded(config: ArmConfig, workload: Workload, message_us: int = 500) -> tuple[str, Tables]:
    """The digest of a run, and its tables of quotas."""
    batches: dict[str, list[dict[str, np.ndarray]]] = defaultdict(list)

    def take(record: Record) -> None:
        if record.table.startswith("quota_"):
            batches[record.table].append(record.columns)

    spec = config.seeded(3, 1000, 50_000, live=False)
    outcome = run_virtual(spec, workload, 5_000_000, take, lambda _: None, message_us)
    tables = {
        table: {name: np.concatenate([rows[name] for rows in parts]) for name in parts[0]}
        for table, parts in batches.items()
    }
    return outcome.digest, tables


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
    spec = with_quotas(ARMS["parsync adaptive"], quotas).seeded(3, 1000, 50_000, live=True)
    records: list[Record] = []
    times = Calibration(
        hosts=2,
        tick_us=25_000,
        step_us=(800, 1_000, 1_200),
        other_step_us=(700,),
        push_us=(400, 600),
        lag_us=(50, 100),
    )
    outcome = run_virtual(
        spec, generate(options, 3), 9_000_000, records.append, lambda _: None, calibration=times
    )
    assert outcome.drained
    held = np.concatenate(
        [
            r.columns["held"][r.columns["quota_group"] == 1]
            for r in records
            if r.table == "quota_use"
        ]
    )
    assert held.max() <= 1.5 * 24 and 12 < np.median(held[held > 0]) <= 25


def test_production_jobs_go_first_within_their_group() -> None:
    records: list[Record] = []
    options = GROUPED.model_copy(update={"load_percent": (200,), "phase_s": 1.0})
    options = options.model_copy(
        update={"quota_groups": (options.quota_groups[0].model_copy(update={"share": 1.0}),)}
    )
    workload = generate(options, 3)
    quotas = QuotaSpec(interval_s=0.02, groups=(QuotaGroup(name="ads", maximum=0.5),))
    run_virtual(
        with_quotas(ARMS["parsync adaptive"], quotas).seeded(3, 1000, 50_000, live=False),
        workload,
        9_000_000,
        records.append,
        lambda _: None,
    )
    task, delay = (
        np.concatenate([columns(record) for record in records if record.table == "tasks"])
        for columns in (
            lambda r: r.columns["task"],
            lambda r: r.columns["commit_us"] - r.columns["submit_us"],
        )
    )
    first = workload.tasks.priority[task] > 0
    assert delay[first].mean() < delay[~first].mean() / 3


def test_the_same_seed_gives_the_same_log_and_quotas_change_nothing_else(tmp_path: Any) -> None:
    workload = failing_workload(GROUPED)
    config = ARMS["parsync adaptive"]
    digest, _ = recorded(with_quotas(config), workload)
    assert digest == recorded(with_quotas(config), workload)[0]
    # without quotas it is of no account whether jobs belong to groups
    without, tables = recorded(config, workload)
    assert without == recorded(config, replace(workload, quotas=None))[0] != digest
    assert list(tables) == ["quota_use"]
    write_assembly(
        tmp_path, with_quotas(config).seeded(3, 1000, 50_000, live=False), workload, None
    )
    assembly, _ = read_assembly(tmp_path)
    assert assembly.arm.quotas == QUOTAS
    again = assembly.workload.quotas
    assert again is not None and workload.quotas is not None
    assert again.names == workload.quotas.names
    assert (again.group == workload.quotas.group).all()


@pytest.mark.parametrize("name", ["parsync adaptive", "omega", "all or nothing"])
def test_reclaiming_brings_a_group_its_share_while_tasks_of_others_run(name: str) -> None:
    """Long tasks of one group fill the cell before the other's jobs come."""
    jobs = [{"name": "long", "share": (1.0, 0.5)}, {"name": "late", "share": (0.0, 0.5)}]
    options = SyntheticOptions.model_validate(
        {**GROUPED.model_dump(), "quota_groups": jobs, "load_percent": (600, 600)}
        | {"phase_s": 1.0, "mean_duration_s": 3.0, "duration_sigma": 0.3}
    )
    groups = tuple(QuotaGroup(name=job["name"]) for job in jobs)
    held: dict[float | None, int] = {}
    for after_s in (None, 0.1):
        quotas = QuotaSpec(interval_s=0.02, groups=groups, reclaim_after_s=after_s)
        workload = generate(options, 3)
        run = Run(with_quotas(ARMS[name], quotas), workload, 0, 2_000_000)
        live = run.master.cell.allocations()
        held[after_s] = int(run.quotas.held(live.task, live.request)[1, 0])
        counts = run.audit.finish()  # tasks are ended by their own schedulers only
        assert counts.evicted == run.reclaimed and (counts.evicted > 0) == (after_s is not None)
        share = run.shares[-1][1].share[1, 0]
        assert share > 60
    assert held[None] < 0.5 * share and held[0.1] > 0.8 * share


def test_reclaiming_ends_tasks_of_low_priority_before_others_of_their_group() -> None:
    """Both run when the other group comes. Run.on_request() checks each reclaim."""
    jobs = [{"name": "long", "share": (1.0, 0.5)}, {"name": "late", "share": (0.0, 0.5)}]
    options = SyntheticOptions.model_validate(
        {**GROUPED.model_dump(), "quota_groups": jobs, "load_percent": (200, 400)}
        | {"phase_s": 1.0, "mean_duration_s": 3.0, "duration_sigma": 0.3}
        | {"batch_tasks": 2, "production_permille": 300}
    )
    groups = tuple(QuotaGroup(name=job["name"]) for job in jobs)
    quotas = QuotaSpec(interval_s=0.02, groups=groups, reclaim_after_s=0.1)
    run = Run(with_quotas(ARMS["parsync adaptive"], quotas), generate(options, 3), 0, 2_000_000)
    assert run.reclaimed > 30 and run.spared > 100


def test_a_group_of_small_weight_uses_what_is_idle_and_goes_first() -> None:
    """Its jobs could fill the cell several times over, before the others come and beside them."""
    jobs = [{"name": "opportunistic", "share": (1.0, 0.7)}, {"name": "paid", "share": (0.0, 0.3)}]
    options = SyntheticOptions.model_validate(
        {**GROUPED.model_dump(), "quota_groups": jobs, "load_percent": (400, 200)}
        | {"phase_s": 1.0, "mean_duration_s": 1.0, "duration_sigma": 0.3}
    )
    groups = (
        QuotaGroup(name="opportunistic", weight=1),
        QuotaGroup(name="paid", weight=1000),
    )
    quotas = QuotaSpec(interval_s=0.02, groups=groups, reclaim_after_s=0.0)
    config = with_quotas(ARMS["parsync adaptive"], quotas)
    run = Run(config, generate(options, 3), 0, 2_000_000)
    for at_us, shares in run.shares:
        if at_us > 400_000:
            assert shares.wanted.sum() > 240 and shares.share.sum() == 240
            assert shares.share[1] == min(shares.wanted[1, 0], 239)
    live = run.master.cell.allocations()
    idle, paid = run.quotas.held(live.task, live.request)[:, 0]
    assert paid > 0.85 * shares.wanted[1, 0] > 80 and idle > 0.85 * (240 - paid)
    assert run.audit.finish().evicted > 0
