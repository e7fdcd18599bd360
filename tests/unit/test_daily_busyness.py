"""The median of the daily busyness, and its deviation."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.metrics.run_frame import DAY_US, RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise
from tests.unit.record_factory import Phase


def busyness(
    end_us: int, every_us: int, shares: list[list[float]], settle_us: int = 0
) -> list[tuple[float | None, float | None]]:
    """Median and deviation of all schedulers and of each, given the share of the time that each
    spends on decisions between two samples (the last one goes on)."""
    agents = len(shares)
    metrics = RunMetrics(
        RunFrame([Phase(0, end_us, 90)], agents, partitions=1, settle_us=settle_us)
    )
    at_us = np.arange(0, end_us, every_us)
    for agent, of_agent in enumerate(shares):
        share = np.array([of_agent[min(k, len(of_agent) - 1)] for k in range(len(at_us))])
        busy_us = np.concatenate([[0], np.cumsum(share * every_us)])[:-1].astype(np.int64)
        zero = np.zeros(len(at_us), np.int64)
        columns = {"at_us": at_us, "agent": zero + agent, "busy_us": busy_us}
        for name in ("queued", "ema_us", "latency_first", "wasted_us", "staleness_us"):
            columns[name] = zero
        metrics.add("agents", columns)
    summary = summarise(metrics)
    return [
        (figures.others["busyness_median"], figures.others["busyness_mad"])
        for figures in (summary.overall, *summary.agents)
    ]


def test_long_runs_are_divided_into_days() -> None:
    """Samples four times a day; the five days are busy 0.1, 0.2, 0.5, 0.3, 0.3 of the time."""
    days = np.repeat([0.1, 0.2, 0.5, 0.3, 0.3], 4).tolist()
    [overall, only] = busyness(5 * DAY_US, DAY_US // 4, [days])
    assert overall == only
    assert overall[0] == pytest.approx(0.3)
    assert overall[1] == pytest.approx(0.1)  # of 0.2, 0.1, 0.2, 0, 0


def test_short_runs_are_divided_into_tenths() -> None:
    tenths = [0.1] * 4 + [0.4] * 6
    [overall] = busyness(1_000_000, 100_000, [tenths])[:1]
    assert overall[0] == pytest.approx(0.4)
    assert overall[1] == pytest.approx(0.0)


def test_schedulers_count_beside_each_other() -> None:
    overall, idle, busy = busyness(1_000_000, 50_000, [[0.0], [0.8]])
    assert overall == (pytest.approx(0.4), pytest.approx(0.4))
    assert idle == (0, 0)
    assert busy == (pytest.approx(0.8), pytest.approx(0))


def test_what_is_left_out_counts_for_no_day() -> None:
    [overall] = busyness(1_000_000, 50_000, [[0.9] * 10 + [0.2]], settle_us=500_000)[:1]
    assert overall == (pytest.approx(0.2), pytest.approx(0))


def test_nothing_recorded() -> None:
    metrics = RunMetrics(RunFrame([Phase(0, 1_000_000, 90)], 1, partitions=1))
    assert summarise(metrics).overall.others["busyness_median"] is None
