"""examples/mixed_cell.toml: schedulers of Omega, ParSync and Firmament on one cell, every event of
which is audited."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from experiments.campaign.running import make_workload
from experiments.commands import replay
from experiments.commands.run import app
from experiments.config.run_config import RunConfig, load_config
from parsync.core.addresses import ARRIVALS, COORDINATOR, MASTER, WORKERS
from parsync.core.participant import Participant
from parsync.metrics.record import Record
from parsync.protocols.pending_queue import LoserPolicy
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import AuditedMaster
from parsync.runtime.virtual.run import VirtualRuntime
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.invariants import AuditCounts, CellAudit
from shared_state.transaction import ConflictCheck
from tests.fixtures.commands import exit_status
from tests.replay.test_virtual_runs import Witness

EXAMPLE = Path(__file__).parents[2] / "examples" / "mixed_cell.toml"


class Audited(AuditedMaster):
    """An audited master that hands out its measurements."""

    def finish(self, now_us: int) -> list[Record]:
        return self._master.finish(now_us)


class Watched:
    """A run whose cell is followed by an audit and by a witness, which share no code."""

    def __init__(
        self,
        config: RunConfig,
        workload: Workload,
        message_us: int,
        until_us: int = 20_000_000,
    ) -> None:
        self.arm: ArmConfig = config.arms[0]
        spec = self.arm.seeded(config.seed, config.heartbeat_us, 100_000, live=False)
        assembly = Assembly.of(spec, workload)
        audit = CellAudit(workload.cell, assembly.partitioning)
        audit.submitted(workload.arrival_rows)
        agents = [assembly.agent(i) for i in range(spec.agents)]
        master = assembly.master()
        cell = master.cell
        self.witness = Witness(Audited(master, audit), workload)
        self.records: list[Record] = []
        participants: dict[int, Participant] = {
            **dict(enumerate(agents)),
            MASTER: self.witness,
            WORKERS: assembly.workers(),
            COORDINATOR: assembly.coordinator(),
            ARRIVALS: assembly.arrivals(),
        }
        deciders = dict(enumerate(agents))
        runtime = VirtualRuntime(
            participants, deciders, self.records.append, assembly.codec, message_us
        )
        runtime.run_until(until_us)
        runtime.finish()
        self.queued = sum(agent.queued for agent in agents)
        audit.matches(cell)
        self.counts: AuditCounts = audit.finish(np.zeros(0, np.int64))

    def total(self, table: str, column: str) -> int:
        return sum(int(r.columns[column].sum()) for r in self.records if r.table == table)


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return load_config(EXAMPLE)


@pytest.fixture(scope="module")
def workload(config: RunConfig) -> Workload:
    return make_workload(config, config.seed)


def test_the_example_holds_what_it_says(config: RunConfig) -> None:
    (arm,) = config.arms
    groups = {group.name: group for group in arm.groups}
    syncs = {name: group.protocol.options.sync for name, group in groups.items()}
    assert syncs["omega"] == "every_attempt"
    assert groups["omega"].protocol.options.losers is LoserPolicy.REQUEUE
    assert groups["omega"].protocol.options.conflict_check is ConflictCheck.SEQUENCE_NUMBER
    assert (syncs["adaptive"], syncs["staggered"]) == ("diff_block", "state_staggered")
    assert groups["adaptive"].protocol.options.strategy == "adaptive"
    assert groups["adaptive"].protocol.gap_us != groups["staggered"].protocol.gap_us
    assert {groups["quincy"].kind, groups["spreading"].kind} == {"quincy", "flow_load_spreading"}


@pytest.mark.parametrize("message_us", [0, 500])
def test_no_invariant_breaks_and_no_task_is_lost_or_doubled(
    config: RunConfig, workload: Workload, message_us: int
) -> None:
    run = Watched(config, workload, message_us)
    counts, tasks = run.counts, len(workload.arrival_rows)
    assert run.queued == counts.waiting == counts.running == 0
    assert counts.submitted == counts.accepted == tasks > 3000
    assert run.witness.placed == set(range(tasks)), "every task has a place"
    assert set(run.witness.ended) == set(range(tasks)), "and runs to its end"
    assert max(run.witness.ended.values()) == 1, "once"
    assert counts.claims == run.witness.claims == run.total("commits", "claims")
    assert counts.accepted == run.total("commits", "accepted")
    assert counts.rejected > 100, "they compete"
    claims, accepted = Counter[int](), Counter[int]()
    for columns in (r.columns for r in run.records if r.table == "commits"):
        asked_of, got_of = columns["claims"], columns["accepted"]
        for agent, asked, got in zip(columns["agent"], asked_of, got_of, strict=True):
            claims[int(agent)] += int(asked)
            accepted[int(agent)] += int(got)
    agents = sum(group.count for group in run.arm.groups)
    assert set(accepted) == set(range(agents)) and min(accepted.values()) > 0
    first = 0
    for group in run.arm.groups:
        own = range(first, first + group.count)
        assert sum(claims[i] - accepted[i] for i in own) > 0, f"{group.name} has conflicts"
        first += group.count


def test_groups_synchronise_at_their_own_times(config: RunConfig, workload: Workload) -> None:
    """Syncs of staggered agents lie 0.2 s apart, those of a set of four come every 25 ms."""
    run = Watched(config, workload, 0)
    at_us: dict[int, list[int]] = {}
    for columns in (r.columns for r in run.records if r.table == "syncs"):
        for agent, time in zip(columns["agent"].tolist(), columns["at_us"].tolist(), strict=True):
            at_us.setdefault(agent, []).append(time)
    first = {group.name: 0 for group in run.arm.groups}
    count = 0
    for group in run.arm.groups:
        first[group.name], count = count, count + group.count
    gaps = {
        name: set(np.diff(np.unique(at_us[agent])[1:]).tolist()) for name, agent in first.items()
    }
    assert gaps["adaptive"] == gaps["quincy"] == {25_000}, "N = 4 in their set"
    assert gaps["staggered"] == {200_000}
    assert gaps["spreading"] == {100_000}
    assert len(gaps["omega"]) > 10, "whenever it decides"


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("message_us", [0, 500])
def test_the_command_runs_it_and_replay_finds_the_same_digest(
    tmp_path: Path, message_us: int, capsys: pytest.CaptureFixture[str]
) -> None:
    toml, run = tmp_path / "mixed.toml", tmp_path / "run"
    text = EXAMPLE.read_text(encoding="utf-8") + f"\n[virtual]\nmessage_us = {message_us}\n"
    toml.write_text(text, encoding="utf-8")
    assert exit_status(app, "--config", toml, "--out", run) == 0
    capsys.readouterr()
    assert replay.main([str(run)]) == 0
    assert ": ok: " in capsys.readouterr().out
