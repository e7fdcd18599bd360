"""Queues at the machines on Ray: the toy protocol of fixtures/protocols beside random schedulers on
one cell. A scheduler host is killed; the figures are complete, and the logs replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parsync.metrics.summary import summarise
from parsync.runtime.live.logs import CELL_LOG
from parsync.runtime.records import merge_parts
from tests.fixtures.live_runs import queues_arm, small_workload
from tests.ray.killed_host import run_with_killed_host

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


def test_queues_at_the_machines_run_live_and_their_logs_replay_to_the_figures(
    tmp_path: Path,
) -> None:
    workload = small_workload(phase_s=0.5, machines=60)
    # more work than room, so that tasks wait at the machines
    cell = replace(workload.cell, capacity=workload.cell.capacity // 2)
    duration_us = np.minimum(workload.duration_us, 500_000)
    workload = replace(workload, cell=cell, duration_us=duration_us)
    arm = queues_arm()
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
