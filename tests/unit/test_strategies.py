"""Strategies and the average they rest on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.protocols.optimistic.strategies import DelayAverage, make_strategy
from schedulers.interface import PartitionRanking
from shared_state.errors import AgoraError


def test_adaptive_switches_at_tau() -> None:
    adaptive = make_strategy("adaptive", 800_000)
    assert adaptive.ranking(799_999) is PartitionRanking.QUALITY_FIRST
    assert adaptive.ranking(800_000) is PartitionRanking.LATENCY_FIRST


@pytest.mark.parametrize("name", ["optimistic", "quality_first", "latency_first"])
def test_fixed_strategies_ignore_the_delay(name: str) -> None:
    strategy = make_strategy(name, 1)
    assert strategy.ranking(0) is strategy.ranking(10**12) is PartitionRanking[name.upper()]


def test_bad_strategies_are_refused() -> None:
    with pytest.raises(AgoraError, match="unknown 'hope'"):
        make_strategy("hope", 1)
    with pytest.raises(AgoraError, match="tau_us"):
        make_strategy("adaptive", 0)


@given(
    coefficient=st.integers(1, 1000),
    batches=st.lists(
        st.tuples(st.integers(0, 10**8), st.integers(1, 200)), min_size=1, max_size=30
    ),
)
def test_average_follows_the_real_valued_one(
    coefficient: int, batches: list[tuple[int, int]]
) -> None:
    average, exact = DelayAverage(coefficient), 0.0
    for mean_us, committed in batches:
        average.add(mean_us * committed, committed, 100)
        exact += (mean_us - exact) * coefficient / 1000 * min(committed, 100) / 100
    assert average.us == pytest.approx(exact, abs=2)


def test_nothing_committed_changes_nothing() -> None:
    average = DelayAverage(100)
    average.add(5_000, 1, 1)
    before = average.scaled
    average.add(0, 0, 100)
    assert average.scaled == before
