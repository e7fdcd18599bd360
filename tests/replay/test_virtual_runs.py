"""Whole runs in virtual time: no run breaks an invariant of the cell or loses a task, and time and
messages mean what they should."""

from __future__ import annotations

import gc
import tomllib
import weakref
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.campaign.running import make_workload
from experiments.config.run_config import RunConfig, load_config, validated
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads.service_batch import SPEC as SERVICE_BATCH
from experiments.workloads.synthetic import generate
from parsync.core.participant import Agent
from parsync.metrics.tables import CONFLICT_COLUMNS
from parsync.protocols.optimistic import sync as sync_policies
from parsync.protocols.optimistic.agent import OptimisticAgent
from parsync.protocols.pending_queue import LoserPolicy
from parsync.runtime.assembly import Assembly
from parsync.runtime.virtual.run import VirtualOutcome, run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.interface import ChangeKind
from shared_state.tasks import TaskClass
from shared_state.transaction import ConflictCheck
from tests.fixtures.commands import agora
from tests.fixtures.overloaded_cell import (
    OPTIONS,
    arm,
    failing_workload,
    group,
    locking_arm,
    locking_group,
)
from tests.fixtures.stopping import ROOT
from tests.fixtures.watched_runs import Columns, WatchedRun, Witness, joined

SHARED = {"prices": "implied", "share_demand": True}
ARMS = {
    "aligned quality-first": arm("state_aligned", group(strategy="quality_first")),
    "staggered latency-first": arm("state_staggered", group(strategy="latency_first")),
    "parsync adaptive": arm("diff_block", group(strategy="adaptive", tau_s=0.02)),
    "single partitions, freed at once": arm(
        "diff_single", group(strategy="quality_first", freed_at_once=True)
    ),
    "same blocks, not cut": arm("same_block", group(strategy="latency_first", cut_at_sync=False)),
    "omega": arm(
        "every_attempt",
        group(
            "randomized_first_fit",
            losers="requeue",
            requeue_s=0.05,
            conflict_check="sequence_number",
        ),
    ),
    "every attempt, losers at once": arm("every_attempt", group(strategy="quality_first")),
    "every attempt, flow": arm("every_attempt", group("flow", 1)),
    "all or nothing": arm(
        "diff_block", group(commit_mode="all_or_nothing", losers="requeue", requeue_s=0.02)
    ),
    "best fit and spreading": arm("diff_block", group("best_fit", 2), group("load_spreading", 2)),
    "parsync, waiting for commits": arm(
        "diff_block", group(strategy="quality_first", commit_pipelining=False)
    ),
    "first fit": arm("state_aligned", group("first_fit")),
    "patient": arm(
        "diff_block",
        group(strategy="adaptive", tau_s=0.02, freed_at_once=True, options={"patience_s": 0.02}),
    ),
    "patient, all or nothing": arm(
        "state_aligned",
        group(
            "preferred_first",
            commit_mode="all_or_nothing",
            min_retry_interval_s=0.005,
            options={"patience_s": 0.02},
        ),
    ),
    "preferred first": arm("diff_block", group("preferred_first", 2), group("random", 2)),
    "shared demand": arm(
        "diff_block",
        group("random", 2, options=SHARED),
        group("flow", 1, options=SHARED),
        group("first_fit", 1),
    ),
    "every attempt, shared demand": arm("every_attempt", group(options=SHARED)),
    "every attempt, patient": arm(
        "every_attempt", group("load_spreading", options={"patience_s": 0.02})
    ),
    "patient flow": arm(
        "state_aligned",
        group("flow", 1, min_retry_interval_s=0.005, options={"patience_s": 0.02}),
    ),
    "flow": arm("state_aligned", group("flow", 1)),
    "locks on two partitions": locking_arm(locking_group(locked_partitions=2, hold_s=0.001)),
    "locks on all partitions": locking_arm(locking_group("preferred_first", 3)),
    "locks beside optimists": locking_arm(
        locking_group(count=2, locked_partitions=1), group(count=2)
    ),
    "mix with flow": arm(
        "diff_block", group(strategy="adaptive", share=0.75), group("flow", 1, share=0.25)
    ),
}


def run(
    config: ArmConfig,
    workload: Workload,
    message_us: int = 0,
    sample_us: int = 50_000,
    drain_us: int = 5_000_000,
) -> tuple[VirtualOutcome, dict[str, Columns]]:
    """The outcome of a run and its tables."""
    records: list[Any] = []
    spec = config.seeded(3, 1000, sample_us, live=False)
    outcome = run_virtual(spec, workload, drain_us, records.append, lambda _: None, message_us)
    assert outcome.drained or not drain_us, f"{outcome.waiting} tasks were never placed"
    return outcome, joined(records)


def delays_us(tables: dict[str, Columns]) -> np.ndarray:
    """From submission to commit, of every placement."""
    return tables["tasks"]["commit_us"] - tables["tasks"]["submit_us"]


def test_the_same_seed_gives_the_same_event_log_and_another_another() -> None:
    config = ARMS["mix with flow"]
    digests = [run(config, failing_workload(seed=seed))[0].digest for seed in (3, 3, 4)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("name", ["every attempt, losers at once", "every attempt, flow"])
def test_schedulers_that_sync_at_every_attempt_find_room_that_comes_free_while_nothing_happens(
    name: str,
) -> None:
    """More work than the cell holds when the last task arrives: no submission, no sync and no end
    tells those that wait."""
    run(ARMS[name], generate(OPTIONS.model_copy(update={"load_percent": (60, 180)}), 3))


def test_schedulers_that_see_their_freed_room_at_once_use_it_sooner() -> None:
    """In a full cell, where the only room is that of tasks that end, those that hear of it at the
    next sync wait for that."""
    full = generate(OPTIONS.model_copy(update={"load_percent": (100, 140)}), 3)
    late, soon = (
        delays_us(run(arm("state_aligned", group(count=2, freed_at_once=at_once)), full)[1]).mean()
        for at_once in (False, True)
    )
    assert soon < late / 2


@pytest.mark.parametrize("message_us", [0, 1500])
@pytest.mark.parametrize("commit_pipelining", [True, False])
@pytest.mark.parametrize("sync", sync_policies.kinds())
def test_one_scheduler_alone_has_no_conflicts_with_itself(
    sync: str, commit_pipelining: bool, message_us: int
) -> None:
    """Whatever it knows late of its own claims, it knows that it made them."""
    alone = group(count=1, conflict_check="sequence_number", commit_pipelining=commit_pipelining)
    changes = {"machines": 24, "slots_per_machine": 10, "load_percent": (60, 130)}
    crowded = generate(OPTIONS.model_copy(update=changes), 3)
    commits = run(arm(sync, alone), crowded, message_us)[1]["commits"]
    assert commits["claims"].sum() > 200
    assert not any(commits[name].any() for name in CONFLICT_COLUMNS)


@pytest.mark.parametrize("message_us", [0, 2000])
@pytest.mark.parametrize("stop_us", [303_000, 700_000])
def test_every_allocation_has_one_end_even_if_the_run_stops_before_or_while_that_is_told(
    message_us: int, stop_us: int
) -> None:
    """Stopped in the middle of things, just after machines failed: starts, ends and losses are
    under way to those who keep the books."""
    workload = replace(failing_workload(), end_us=stop_us)
    config = ARMS["staggered latency-first"]
    outcome, tables = run(config, workload, message_us, sample_us=1000, drain_us=0)
    assert outcome.ended_us == stop_us
    started, ended = (Counter(tables[name]["task"].tolist()) for name in ("tasks", "ends"))
    due = tables["ends"]["end_us"][tables["ends"]["due"] == 1]
    assert len(started) > 200 and len(due) > 20 and due.min() > outcome.ended_us - 1000
    # Granted tasks whose agent has not heard of it yet have an end and no start.
    assert not started - ended and sum((ended - started).values()) <= (0 if message_us == 0 else 20)


def witnessed(
    config: ArmConfig, workload: Workload, message_us: int, until_us: int = 30_000_000
) -> tuple[WatchedRun, Witness]:
    """A run to its end that is followed by an audit and by a witness: every task ran once."""
    run = WatchedRun(config, workload)
    witness = run.master = Witness(run.master, workload)
    run.run_all(until_us, message_us)
    witness.check_all_ran_once()
    counts, tables = run.counts, run.tables
    assert run.queued == counts.waiting == counts.running == 0
    assert counts.claims == witness.claims == tables["commits"]["claims"].sum() > 0
    assert counts.accepted == tables["commits"]["accepted"].sum()
    return run, witness


@pytest.mark.parametrize("message_us", [0, 1500])
@pytest.mark.parametrize("name", ARMS)
def test_no_task_is_lost_or_doubled_and_no_machine_overfilled(name: str, message_us: int) -> None:
    workload = failing_workload(seed=4)
    run, witness = witnessed(ARMS[name], workload, message_us)
    optimists = {i for i, agent in enumerate(run.agents) if isinstance(agent, OptimisticAgent)}
    again = [key for key, count in witness.snapshots.items() if count > 1 and key[0] in optimists]
    assert not again, "a partition that a view holds is not sent whole again"
    tasks, ends = run.tables["tasks"], run.tables["ends"]
    firsts = np.sort(tasks["task"][tasks["first"] == 1])
    assert np.array_equal(firsts, np.arange(len(workload.tasks))), "one first commit of each"
    lost, recommits = (ends["change"] == ChangeKind.LOST).sum(), (tasks["first"] == 0).sum()
    assert lost == recommits > 0, "what a failed machine ran was placed again"


def test_messages_that_take_time_delay_every_commit_by_at_least_two() -> None:
    """Arrival to agent and agent to cell; the order of messages between two participants is kept
    (the invariants above)."""
    config, workload = ARMS["aligned quality-first"], failing_workload()
    at_once, late = (delays_us(run(config, workload, way_us)[1]) for way_us in (0, 1500))
    # The commit itself is one message after the decision; the record's time is the answer's.
    assert late.min() >= at_once.min() + 2 * 1500 and late.mean() > at_once.mean()


def test_the_memory_of_a_run_does_not_wait_for_the_garbage_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[weakref.ref[object]] = []
    make_agent = Assembly.agent

    def witnessed(self: Assembly, *arguments: Any) -> Agent:
        agent = make_agent(self, *arguments)
        made.append(weakref.ref(agent))
        return agent

    monkeypatch.setattr(Assembly, "agent", witnessed)
    gc.disable()
    try:
        run(ARMS["parsync adaptive"], failing_workload())
        assert made and all(agent() is None for agent in made)
    finally:
        gc.enable()


def test_a_run_waits_for_a_batch_that_is_on_its_way_at_the_end_of_the_workload() -> None:
    """A batch is submitted in the last microsecond, when nothing else waits, and the run looks
    whether it is done before the message has arrived."""
    workload = generate(OPTIONS.model_copy(update={"load_percent": (20,)}), 3)
    at_us = np.minimum(workload.arrival_us, workload.end_us // 2)
    at_us[-1] = workload.end_us - 1
    workload = replace(workload, arrival_us=at_us)
    config = arm("state_aligned", group(count=1))
    _, tables = run(config, workload, 500, sample_us=workload.end_us // 4)
    assert len(tables["tasks"]["task"]) == len(workload.arrival_rows)


# --- the cells of examples/ -----------------------------------------------------------------------

MIXED = ROOT / "examples" / "mixed_cell.toml"
OMEGA = load_config(ROOT / "examples" / "omega" / "run.toml")
SMALL_OMEGA = {
    "machines": 100,
    "duration_s": 150.0,
    "batch": {"interarrival_s": 2.0, "tasks_per_job": 20.0, "run_s": 10.0},
    "service": {"interarrival_s": 20.0, "tasks_per_job": 10.0, "run_s": 30.0, "pickiness": 0.25},
}


@pytest.fixture(scope="module")
def mixed() -> RunConfig:
    """Schedulers of Omega, ParSync and Firmament on one cell."""
    return load_config(MIXED)


def test_the_mixed_cell_holds_what_it_says(mixed: RunConfig) -> None:
    groups = {group.name: group for group in mixed.arms[0].groups}
    options = {name: group.protocol.options for name, group in groups.items()}
    assert options["omega"].sync == "every_attempt"
    assert options["omega"].losers is LoserPolicy.REQUEUE
    assert options["omega"].conflict_check is ConflictCheck.SEQUENCE_NUMBER
    assert (options["adaptive"].sync, options["staggered"].sync) == (
        "diff_block",
        "state_staggered",
    )
    assert options["adaptive"].strategy == "adaptive"
    assert groups["adaptive"].protocol.gap_us != groups["staggered"].protocol.gap_us
    assert {groups["quincy"].kind, groups["spreading"].kind} == {"flow", "flow_load_spreading"}


def test_every_scoring_scheduler_of_the_example_places_its_jobs() -> None:
    """Each beside the others, and four of each on a cell of their own."""
    tree = tomllib.loads((ROOT / "examples" / "scoring.toml").read_text(encoding="utf-8"))
    tree["settle_s"] = 0.2
    tree["workload"] |= {"load_percent": [50], "phase_s": 1.0}
    scoring = validated(tree, "scoring")
    workload = make_workload(scoring, scoring.seed)
    for config in scoring.arms:
        _, tables = run(config, workload, 500)
        assert len(tables["tasks"]["task"]) == len(workload.arrival_rows) > 400, config.name
        placed = np.bincount(tables["tasks"]["agent"], minlength=4)
        assert placed.min() > 50 and len(placed) == 4, config.name


def test_eight_nomads_and_two_profiles_of_kubernetes_share_a_cell() -> None:
    """All place tasks and lose claims to each other; one profile ends tasks of others."""
    tree = tomllib.loads((ROOT / "examples" / "scoring_profiles.toml").read_text(encoding="utf-8"))
    tree["workload"] |= {"machines": 40}
    profiles = validated(tree, "scoring_profiles")
    workload, (config,) = make_workload(profiles, profiles.seed), profiles.arms
    run = WatchedRun(config, workload).run(60_000_000, 500)
    assert run.queued == run.counts.waiting == 0
    assert run.counts.finished == len(workload.arrival_rows) > 500 and run.counts.evicted > 0
    commits = run.tables["commits"]
    for agent in range(10):
        its = commits["agent"] == agent
        assert commits["accepted"][its].sum() > 20, agent
    lost = commits["claims"] - commits["accepted"]
    assert lost[commits["agent"] < 8].sum() > 0 and lost[commits["agent"] >= 8].sum() > 0


def test_every_architecture_places_its_jobs_on_the_cell_of_all() -> None:
    """Nobody's tasks are left, each group places some, and nothing stays held."""
    everything = load_config(ROOT / "examples" / "everything.toml")
    workload, (config,) = make_workload(everything, everything.seed), everything.arms
    run = WatchedRun(config, workload).run(60_000_000, 500)
    assert run.queued == run.counts.waiting == 0
    assert run.counts.finished == len(workload.arrival_rows) > 1000
    agent, accepted = run.tables["commits"]["agent"], run.tables["commits"]["accepted"]
    first = 0
    for member in config.groups:
        its = (agent >= first) & (agent < first + member.count)
        assert accepted[its].sum() > 50, member.name
        first += member.count
    assert not len(run.cell.holds().hold)


@pytest.mark.parametrize("message_us", [0, 500])
def test_every_group_of_a_mixed_cell_has_conflicts_and_synchronises_at_its_own_times(
    mixed: RunConfig, message_us: int
) -> None:
    """Syncs of staggered agents lie 0.2 s apart, those of a set of four come every 25 ms."""
    workload, (config,) = make_workload(mixed, mixed.seed), mixed.arms
    run, _ = witnessed(config, workload, message_us, 20_000_000)
    assert run.counts.accepted == len(workload.arrival_rows) > 3000 and run.counts.rejected > 100
    commits, syncs = run.tables["commits"], run.tables["syncs"]
    gaps = {}
    first = 0
    for its in config.groups:
        of = (commits["agent"] >= first) & (commits["agent"] < first + its.count)
        assert set(commits["agent"][of]) == set(range(first, first + its.count))
        assert (commits["claims"] - commits["accepted"])[of].sum() > 0, its.name
        at_us = np.unique(syncs["at_us"][syncs["agent"] == first])
        gaps[its.name] = set(np.diff(at_us[1:]).tolist())
        first += its.count
    if message_us == 0:
        assert gaps["adaptive"] == gaps["quincy"] == {25_000}, "N = 4 in their set"
        assert (gaps["staggered"], gaps["spreading"]) == ({200_000}, {100_000})
        assert len(gaps["omega"]) > 10, "whenever it decides"


@pytest.mark.usefixtures("no_figures")
def test_the_command_runs_a_mixed_cell_and_replay_finds_the_same_digest(tmp_path: Any) -> None:
    toml, out = tmp_path / "mixed.toml", tmp_path / "run"
    toml.write_text(MIXED.read_text("utf-8") + "\n[virtual]\nmessage_us = 500\n", "utf-8")
    assert agora("run", "--config", toml, "--out", out).returncode == 0
    replayed = agora("replay", out)
    assert replayed.returncode == 0 and ": ok: " in replayed.stdout


@pytest.mark.parametrize("config", OMEGA.arms, ids=lambda arm: arm.name)
def test_no_architecture_of_omega_breaks_an_invariant(config: ArmConfig) -> None:
    options = WorkloadConfig.of("service_batch", SERVICE_BATCH.parse_options(SMALL_OMEGA))
    small = OMEGA.model_copy(update={"arms": (config,), "workload": options})
    workload = make_workload(small, small.seed)
    run, _ = witnessed(config, workload, 500, 600_000_000)
    assert run.counts.accepted == len(workload.arrival_rows) > 500
    assert (workload.tasks.task_class == TaskClass.SERVICE).any()
