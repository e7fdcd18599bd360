"""Who refreshes what, when."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.model.equations import average_staleness_bounds_us
from parsync.protocols.optimistic import sync as sync_policies
from parsync.protocols.optimistic.sync import SyncContext, SyncPolicy
from shared_state.errors import AgoraError


def make_sync_policy(
    name: str, gap_us: int, partitions: int, index: int, agents: int
) -> SyncPolicy:
    context = SyncContext(gap_us, partitions, index, agents, stream=0)
    return sync_policies.make_sync_policy(name, {}, context)


PERIODIC = [name for name in sync_policies.kinds() if name != "every_attempt"]


@given(
    name=st.sampled_from(PERIODIC),
    agents=st.integers(1, 24),
    extra=st.integers(0, 60),
    gap_us=st.integers(100, 1_000_000),
    first=st.integers(1, 200),
)
def test_every_partition_is_refreshed_once_per_gap(
    name: str, agents: int, extra: int, gap_us: int, first: int
) -> None:
    partitions = agents + extra
    for index in {0, agents - 1}:
        policy = make_sync_policy(name, gap_us, partitions, index, agents)
        rounds = {"state_aligned": 1, "state_staggered": 1, "diff_single": partitions}.get(
            name, agents
        )
        seen = np.concatenate([policy.partitions(k) for k in range(first, first + rounds)])
        assert sorted(seen.tolist()) == list(range(partitions))
        # Computed from k: after one rotation exactly one gap has passed, however the division
        # rounds.
        assert policy.due_us(first + rounds) - policy.due_us(first) == gap_us
        times = [policy.due_us(k) for k in range(first, first + 2 * rounds)]
        assert all(later > earlier for earlier, later in itertools.pairwise(times))


@given(agents=st.integers(1, 24), extra=st.integers(0, 60), k=st.integers(1, 10_000))
def test_diffsyn_agents_refresh_different_partitions(agents: int, extra: int, k: int) -> None:
    partitions = agents + extra
    for name in ("diff_block", "diff_single"):
        blocks = [
            make_sync_policy(name, 1_000_000, partitions, i, agents).partitions(k)
            for i in range(agents)
        ]
        together = np.concatenate(blocks)
        assert len(np.unique(together)) == len(together)


def test_samesyn_agents_refresh_the_same_partitions() -> None:
    blocks = [make_sync_policy("same_block", 1_000_000, 20, i, 10).partitions(7) for i in range(10)]
    assert all(np.array_equal(block, blocks[0]) for block in blocks)


def test_staggered_agents_are_spread_evenly_over_the_gap() -> None:
    due_us = [make_sync_policy("state_staggered", 500_000, 20, i, 20).due_us(3) for i in range(20)]
    assert np.diff(due_us).tolist() == [25_000] * 19
    assert {make_sync_policy("state_aligned", 500_000, 20, i, 20).due_us(3) for i in range(20)} == {
        1_500_000
    }


def test_every_attempt_has_no_periodic_syncs() -> None:
    policy = make_sync_policy("every_attempt", 500_000, 7, 0, 1)
    assert policy.at_every_attempt and policy.due_us(1) is None
    assert policy.partitions(0).tolist() == list(range(7))
    assert policy.retry_us == 500_000
    assert all(make_sync_policy(name, 500_000, 7, 0, 1).retry_us is None for name in PERIODIC)


@pytest.mark.parametrize("name", ["diff_block", "diff_single", "same_block"])
def test_fewer_partitions_than_schedulers_are_refused(name: str) -> None:
    with pytest.raises(AgoraError, match="partitions: expected at least"):
        make_sync_policy(name, 500_000, 7, 0, 8)


def test_unknown_policy_and_vanishing_gap_are_refused() -> None:
    with pytest.raises(AgoraError, match="unknown sync policy 'gossip'"):
        make_sync_policy("gossip", 500_000, 8, 0, 8)
    with pytest.raises(AgoraError, match="gap_s"):
        make_sync_policy("diff_block", 7, 8, 0, 8)
    with pytest.raises(AgoraError, match="retry_s"):
        make_sync_policy("every_attempt", 0, 8, 0, 8)


@pytest.mark.parametrize(("agents", "partitions"), [(1, 1), (2, 2), (10, 20), (20, 20), (8, 30)])
@pytest.mark.parametrize("name", PERIODIC)
def test_average_staleness_stays_within_the_model_s_bounds(
    name: str, agents: int, partitions: int
) -> None:
    gap_us = 600_000
    policy = make_sync_policy(name, gap_us, partitions, agents // 2, agents)
    blocks = {"diff_block": agents, "same_block": agents, "diff_single": partitions}.get(name, 1)
    low_us, high_us = map(float, average_staleness_bounds_us(gap_us, blocks))
    unequal_us = gap_us / partitions if partitions % blocks else 0
    synced_us = np.zeros(partitions, np.int64)
    for k in range(1, 4 * partitions):
        due_us = policy.due_us(k)
        assert due_us is not None
        # just before the k-th sync the state is at its stalest, just after it at its freshest
        stalest_us = due_us - synced_us.mean()
        synced_us[policy.partitions(k)] = due_us
        if k > blocks:
            assert stalest_us == pytest.approx(high_us, abs=unequal_us + 1)
            assert due_us - synced_us.mean() == pytest.approx(low_us, abs=unequal_us + 1)
