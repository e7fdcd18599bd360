"""examples/mixed_cell.toml on Ray: schedulers of Omega, ParSync and Firmament on one cell. The logs
replay to equal effects under audit, which counts what the figures do."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.campaign.running import make_workload
from experiments.config.run_config import load_config
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.run import run_live
from tests.fixtures.live_runs import metrics_of
from tests.ray.killed_host import replay_with_tables

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]
EXAMPLE = Path(__file__).parents[2] / "examples" / "mixed_cell.toml"
DRAIN_US = 20_000_000


def test_a_mixed_cell_runs_live_and_its_logs_replay_to_the_figures(tmp_path: Path) -> None:
    config = load_config(EXAMPLE)
    workload = make_workload(config, config.seed)
    spec = config.arms[0].seeded(config.seed, config.heartbeat_us, 100_000, live=True)
    options = LiveOptions(tmp_path / "journal", tmp_path / "records")
    make_metrics = metrics_of(workload, spec)
    outcome = run_live(spec, workload, options, DRAIN_US, make_metrics, lambda _: None)
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
