"""What the engine can do, on Ray: quotas, preemption, shared demand, queues at the machines, and a
mixed cell. A scheduler host is killed meanwhile. The figures are complete, and the logs replay to
equal effects under audit and to the same tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.campaign.running import make_workload
from experiments.config.run_config import load_config
from experiments.workloads.synthetic import generate
from parsync.core.addresses import CELL_SIDE
from parsync.core.quotas import QuotaGroup, QuotaSpec
from parsync.metrics.summary import summarise
from parsync.protocols.optimistic.shared_demand import DemandLedger
from parsync.protocols.probing.options import ProbingOptions, ProbingSharedOptions
from parsync.runtime.assembly import Assembly
from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.plan import CELL, LiveOptions
from parsync.runtime.live.replay import Replayed, replay, replay_master
from parsync.runtime.live.run import LiveOutcome, run_live
from parsync.runtime.recomputed_tables import compare_tables
from parsync.runtime.records import merge_parts
from parsync.spec.arm import ProtocolChoice, SeededArm
from parsync.spec.decision_times import ModelledTime
from parsync.workload.workload import QuotaMembership, Workload
from tests.fixtures.changed import changed
from tests.fixtures.feature_runs import (
    CROWDED,
    kubernetes_preempting,
    preempting,
    with_changes,
)
from tests.fixtures.live_runs import (
    metrics_of,
    mixed_arm,
    offers_arm,
    queues_arm,
    small_arm,
    small_workload,
)
from tests.fixtures.overloaded_cell import group
from tests.fixtures.stopping import ROOT
from tests.ray.test_killed_actors import kill

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
HOST = "schedulers-0"
DRAIN_US = 20_000_000


def run_with_killed_host(
    directory: Path, arm: SeededArm, workload: Workload, at_us: int, cell_at_us: int | None = None
) -> tuple[LiveOutcome, Replayed]:
    """Run an arm to its end on Ray, kill the first scheduler host once, and replay the logs. The
    run must be complete and must obey every invariant.

    Args:
        directory: Receives the logs, in journal, and the records, in records.
        at_us: The time of the run at which the host is killed.
        cell_at_us: The later time at which the cell is killed, too; None: it is not.
    """
    todo = [(HOST, at_us)]
    if cell_at_us is not None:
        todo.append((CELL, cell_at_us))

    def killer(status: RunStatus) -> None:
        if todo and status.at_us >= todo[0][1]:
            kill(todo.pop(0)[0])

    options = LiveOptions(directory / "journal", directory / "records", checkpoint_bytes=4096)
    outcome = run_live(arm, workload, options, DRAIN_US, metrics_of(workload, arm), killer)
    assert outcome.drained and not outcome.partial, outcome.notes
    assert not todo and outcome.epochs[HOST] == 2
    assert outcome.epochs[CELL] == (1 if cell_at_us is None else 2)

    replayed = replay_with_tables(outcome, directory / "made")
    assert replayed.end is not None and replayed.end.recovered == (HOST,)
    assert replayed.tables is not None and 0 in replayed.tables.lost_agents
    assert len(replayed.tables.lost_agents) < arm.agents
    return outcome, replayed


def replay_with_tables(outcome: LiveOutcome, made: Path) -> Replayed:
    """Replay a run, whose tables must be those that the replay makes again.

    Args:
        made: A folder to create for these.
    """
    records = outcome.records_dir
    assert records is not None
    merge_parts(records, outcome.metrics.tables)
    made.mkdir()
    replayed = replay(outcome.journal_dir, ignore, records, made)  # raises InvariantViolation
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.tables is not None
    compared = compare_tables(records, replayed.tables)
    assert compared.differences == () and {"tasks", "commits", "cell"} <= set(compared.equal)
    return replayed


def short(workload: Workload) -> Workload:
    """No task runs for longer than half a second."""
    return replace(workload, duration_us=np.minimum(workload.duration_us, 500_000))


def test_production_tasks_take_the_room_of_others(tmp_path: Path) -> None:
    """The replay audits who ended whose tasks."""
    workload = generate(with_changes(**{**CROWDED, "phase_s": 1.0, "mean_duration_s": 0.4}), 3)
    spec = preempting().seeded(3, 10_000, 50_000, live=True)
    _, replayed = run_with_killed_host(tmp_path, spec, workload, at_us=700_000)
    counts = replayed.counts
    assert counts is not None and counts.waiting == 0
    assert counts.evicted > 20 and counts.accepted == counts.submitted + counts.evicted


def test_scoring_schedulers_are_replaced(tmp_path: Path) -> None:
    """Those of Kubernetes lose their queues with their back-offs and nominations. Their successors
    are offered what waits as new, and preempt like them."""
    others = [group(kind, 1, round_tasks=1) for kind in ("swarmkit", "nomad", "stranded")]
    spec = kubernetes_preempting(*others, round_tasks=1)
    workload = generate(with_changes(**{**CROWDED, "phase_s": 1.0, "mean_duration_s": 0.4}), 3)
    outcome, replayed = run_with_killed_host(
        tmp_path, spec.seeded(3, 10_000, 50_000, live=True), workload, at_us=700_000
    )
    counts = replayed.counts
    assert counts is not None and counts.waiting == 0
    assert counts.evicted > 0 and counts.accepted == counts.submitted + counts.evicted
    assert (outcome.metrics.count["committed"].sum(axis=1) > 0).all()


def test_firmament_races_in_a_process_of_its_own_and_replays(tmp_path: Path) -> None:
    """It evicts and migrates, beside schedulers whose host is killed. Which racer wins depends on
    counted work, so that its decisions are repeated from the logs."""
    arm = mixed_arm()
    random, flow = arm.groups
    arm = changed(arm, groups=(random, changed(flow, kind="firmament", decision=None)))
    outcome, replayed = run_with_killed_host(
        tmp_path, arm, short(small_workload(phase_s=1.0, machines=60)), at_us=700_000
    )
    assert outcome.epochs["flow"] == 1, "its process is not the one that was killed"
    assert (outcome.metrics.count["committed"].sum(axis=1) > 0).all()
    assert replayed.counts is not None and replayed.counts.waiting == 0


def test_quotas_are_obeyed_between_processes(tmp_path: Path) -> None:
    """The agents of the killed host learn again what their tasks hold, and a group stays near its
    maximum."""
    workload = short(small_workload(phase_s=1.0, machines=60))
    group = (workload.tasks.job % 3 == 0).astype(np.int32)  # a third is of the second group
    workload = replace(workload, quotas=QuotaMembership(("free", "capped"), group))
    groups = QuotaGroup(name="free", minimum=0.3), QuotaGroup(name="capped", maximum=0.2)
    arm = changed(small_arm(), quotas=QuotaSpec(groups=groups))
    run_with_killed_host(tmp_path, arm, workload, at_us=1_200_000)

    assert merge_parts(tmp_path / "records", Assembly.of(arm, workload).tables) == []
    shares = pq.read_table(tmp_path / "records" / "quota_shares.parquet").to_pandas()
    use = pq.read_table(tmp_path / "records" / "quota_use.parquet").to_pandas()
    maximum = int(workload.cell.limit.sum()) // 5
    capped = shares[shares.quota_group == 1]
    assert len(capped) > 10 and (capped.limit <= maximum).all() and (capped.wanted > maximum).any()
    held = use[use.quota_group == 1].held
    assert maximum / 2 < held.max() <= 1.5 * maximum


def test_demand_is_shared_between_processes(tmp_path: Path) -> None:
    """By two greedy schedulers and one of flow; the ledger has counted every task once."""
    workload, arm = short(small_workload(phase_s=0.5, machines=60)), mixed_arm()
    shared = {"prices": "implied", "share_demand": True}
    arm = changed(arm, groups=tuple(changed(group, options=shared) for group in arm.groups))
    outcome, _ = run_with_killed_host(tmp_path, arm, workload, at_us=700_000)

    assembly = Assembly.of(arm, workload)
    assert merge_parts(tmp_path / "records", assembly.tables) == []
    master = assembly.master()
    beside = assembly.cell_side(master.cell)
    log = outcome.journal_dir / CELL_LOG
    assert len(list(replay_master(assembly.codec, log, master, beside))) > 0
    ledger = beside[CELL_SIDE]
    assert isinstance(ledger, DemandLedger)
    tasks = ledger.state[2]
    assert np.array_equal(tasks, np.bincount(workload.tasks.preference, minlength=len(tasks)))

    updates = pq.read_table(tmp_path / "records" / "demand_updates.parquet")
    learnt = np.bincount(updates["agent"].to_numpy(), updates["tasks"].to_numpy(), minlength=3)
    assert (learnt > 0).all(), "every scheduler learnt what others were offered"


def test_queues_at_the_machines_run_live_and_their_logs_replay_to_the_figures(
    tmp_path: Path,
) -> None:
    """The toy protocol of fixtures/protocols beside random schedulers on one cell."""
    workload, arm = short(small_workload(phase_s=0.5, machines=60)), queues_arm()
    # more work than room, so that tasks wait at the machines
    cell = replace(workload.cell, capacity=workload.cell.capacity // 2)
    workload = replace(workload, cell=cell)
    outcome, replayed = run_with_killed_host(tmp_path, arm, workload, at_us=700_000)

    figures, totals = outcome.metrics.count, summarise(outcome.metrics).totals
    arrivals = len(workload.arrival_rows)
    assert totals.submitted == totals.committed == arrivals and totals.censored == 0
    assert (figures["accepted"].sum(axis=1) > 0).all(), "every agent has tasks that run"
    assert merge_parts(tmp_path / "records") == []
    assert replayed.end is not None and replayed.end.logs[CELL_LOG].digest == outcome.digest
    assert replayed.events["workers"] > 0
    counts = replayed.counts
    assert counts is not None and counts.waiting == 0
    assert counts.submitted == counts.accepted == figures["accepted"].sum() == arrivals
    assert counts.claims == figures["claims"].sum() >= arrivals
    assert counts.rejected == counts.claims - arrivals


@pytest.mark.parametrize("lock", [True, False])
def test_offers_and_probes_survive_killed_processes(lock: bool, tmp_path: Path) -> None:
    """The killed host has a scheduler that decides slowly about what it is offered, and one that
    probes; the other host, one that is offered room, and an optimistic one. Then the cell is
    killed, with allocator and queues."""
    arm = offers_arm(lock=lock)
    offers, random = arm.groups
    offers = changed(offers, decision=ModelledTime(job_us=50_000, task_us=50))
    random = changed(random, count=1, share=0.25)
    protocol = ProtocolChoice(kind="probing", options=ProbingOptions())
    probing = changed(random, name="probing", kind=None, protocol=protocol)
    shared = {**arm.protocols, "probing": ProbingSharedOptions()}
    arm = changed(arm, groups=(offers, probing, random), protocols=shared)
    workload = short(small_workload(phase_s=0.5, machines=60))
    outcome, replayed = run_with_killed_host(tmp_path, arm, workload, 400_000, 900_000)

    counts, arrivals = replayed.counts, len(workload.arrival_rows)
    assert counts is not None and counts.waiting == 0
    assert counts.accepted == counts.submitted == arrivals
    assert (outcome.metrics.count["committed"].sum(axis=1) > 0).all()
    offered = pq.read_table(tmp_path / "records" / "offers.parquet").to_pandas().sum()
    ends = offered[["accepted", "declined", "rescinded", "expired"]]
    assert offered.made == ends.sum() and offered.rescinded > 0, "of the killed scheduler"

    assembly = Assembly.of(arm, workload)
    master = assembly.master()
    log = outcome.journal_dir / CELL_LOG
    beside = assembly.cell_side(master.cell)
    assert len(list(replay_master(assembly.codec, log, master, beside))) > 0
    assert not master.cell.held.any()


@pytest.mark.parametrize("example", ["mixed_cell", "everything"])
def test_a_mixed_cell_runs_live_and_its_logs_replay_to_the_figures(
    example: str, tmp_path: Path
) -> None:
    config = load_config(ROOT / "examples" / f"{example}.toml")
    workload = make_workload(config, config.seed)
    spec = config.arms[0].seeded(config.seed, config.heartbeat_us, 100_000, live=True)
    options = LiveOptions(tmp_path / "journal", tmp_path / "records")
    make_metrics = metrics_of(workload, spec)
    outcome = run_live(spec, workload, options, DRAIN_US, make_metrics, lambda _: None)
    assert set(outcome.waited) == {group.protocol.kind for group in spec.groups}
    assert all((waited.mean_us or 0) > 0 for waited in outcome.waited.values())
    assert outcome.drained and not outcome.partial, outcome.notes

    replayed = replay_with_tables(outcome, tmp_path / "made")
    assert replayed.tables is not None and not replayed.tables.lost_agents
    assert replayed.end is not None and replayed.end.stopped == ""
    assert replayed.end.logs[CELL_LOG].digest == outcome.digest
    assert min(replayed.events.values()) > 0

    counts, figures = replayed.counts, outcome.metrics.count
    assert counts is not None and counts.waiting == 0
    assert counts.submitted == figures["submitted"].sum() == len(workload.arrival_rows)
    assert counts.claims == figures["claims"].sum()
    assert counts.accepted == figures["accepted"].sum() == figures["committed"].sum()
    assert counts.rejected == counts.claims - figures["accepted"].sum() > 0
    assert counts.evicted == counts.lost == 0
    assert counts.finished + counts.running == counts.accepted
    assert (figures["accepted"].sum(axis=1) > 0).all(), "every scheduler places tasks"
