"""Phases whose backlog or utilisation drifts are told from those that only fluctuate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from parsync.metrics.kinds.load import FEWEST_SAMPLES, StationarityFigures, trend
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import summarise
from parsync.workload.workload import Phase
from tests.unit.record_factory import columns_of

SAMPLE_US = 100_000
SAMPLES = 60


def noise(seed: int, n: int = SAMPLES, alike: float = 0.0) -> NDArray[np.float64]:
    """Normal noise of variance 1, each value alike the one before."""
    random = np.random.default_rng(seed)
    values = random.normal(size=n)
    for k in range(1, n):
        values[k] = alike * values[k - 1] + np.sqrt(1 - alike**2) * values[k]
    return values


def drifts(values: NDArray[np.float64], share: float = 0.05, least: float = 0.0) -> bool:
    found = trend(values)
    assert found is not None
    return found.drifts(share, least)


def test_a_straight_line_is_found_exactly() -> None:
    found = trend(np.linspace(3.0, 7.0, 20))
    assert found is not None
    assert (found.change, found.error, found.mean) == pytest.approx((4.0, 0.0, 5.0))


@pytest.mark.parametrize("change", [-20.0, 20.0])
def test_a_drift_is_found_in_noise(change: float) -> None:
    ramp = np.linspace(-change / 2, change / 2, SAMPLES)
    assert all(drifts(100 + ramp + noise(seed, alike=0.5)) for seed in range(50))


def test_a_cell_that_fills_drifts_although_its_rest_is_no_noise() -> None:
    """What is left beside the line is a smooth curve: samples in a row are as alike as can be."""
    for lengths in (1, 2, 3):
        filling = 100 * (1 - np.exp(-np.linspace(0, lengths, SAMPLES)))
        assert all(drifts(filling + noise(seed)) for seed in range(20))


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.9])
def test_noise_seldom_drifts(alike: float) -> None:
    """Even where any change is large enough, at most about one in ten, as twice the standard error
    promises for samples that are not too few."""
    false = np.mean([drifts(noise(seed, 200, alike), share=0.0) for seed in range(400)])
    assert false < 0.13


def test_fluctuations_within_the_share_never_drift() -> None:
    assert not any(drifts(100 + noise(seed, alike=0.95)) for seed in range(100))


def test_a_certain_change_that_is_small_is_no_drift() -> None:
    values = np.linspace(100, 104, SAMPLES)
    assert not drifts(values) and drifts(values, share=0.03)
    assert not drifts(values, share=0.03, least=5.0)


def test_constant_samples_do_not_drift() -> None:
    assert not drifts(np.full(20, 7.0)) and not drifts(np.zeros(20))


def test_too_few_samples_say_nothing() -> None:
    assert trend(np.arange(FEWEST_SAMPLES - 1.0)) is None
    assert trend(np.arange(float(FEWEST_SAMPLES))) is not None


def phases_of(
    used_permille: NDArray[np.float64], queued: NDArray[np.float64], jitter: bool = False
) -> list[StationarityFigures]:
    """The figures of two phases of SAMPLES samples each, of two agents with half the queue each."""
    length_us = SAMPLES * SAMPLE_US
    phases = [Phase(0, length_us, 50), Phase(length_us, 2 * length_us, 90)]
    metrics = RunMetrics(RunFrame(phases, 2, partitions=1))
    at_us = np.arange(2 * SAMPLES, dtype=np.int64) * SAMPLE_US
    n = len(at_us)
    cell = {
        "at_us": at_us,
        "running": np.full(n, 1_000, np.int64),
        "machines_up": np.full(n, 10, np.int64),
        "used_permille": used_permille.astype(np.int64),
    }
    metrics.add("cell", cell)
    for agent in range(2):
        late = np.random.default_rng(agent).integers(0, 9_000, n) if jitter else 0
        mine, waiting = np.full(n, agent, np.int32), (queued / 2).astype(np.int64)
        columns = columns_of("agents", at_us=at_us + late, agent=mine, queued=waiting)
        metrics.add("agents", columns)
    figures = summarise(metrics)
    assert figures.overall.transient is None, "several phases have no trend"
    return list(figures.phases)


STEADY = np.full(2 * SAMPLES, 500.0)


def test_each_phase_is_judged_by_its_own_samples() -> None:
    used = STEADY + 10 * noise(1, 2 * SAMPLES)
    used[SAMPLES:] = np.linspace(500, 800, SAMPLES)
    first, second = phases_of(used, STEADY / 50)
    assert (first.transient, second.transient) == (False, True)
    assert second.utilisation_change == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("jitter", [False, True])
def test_a_growing_queue_makes_a_phase_transient(jitter: bool) -> None:
    growing = np.concatenate([np.full(SAMPLES, 40.0), np.linspace(40, 400, SAMPLES)])
    first, second = phases_of(STEADY, growing, jitter)
    assert (first.transient, second.transient) == (False, True)
    assert second.backlog_change == pytest.approx(360, rel=0.05)


def test_a_queue_that_is_short_beside_what_runs_may_grow() -> None:
    _, second = phases_of(STEADY, np.concatenate([np.zeros(SAMPLES), np.linspace(0, 9, SAMPLES)]))
    assert second.transient is False
