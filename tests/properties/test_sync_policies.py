"""The built-in sync policies against the paper's formulas, in integers of any length; how stale
they leave a view; and the contexts that they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.model.equations import average_staleness_bounds_us
from parsync.protocols import _native
from parsync.protocols.optimistic.sync import SyncContext, kinds, make_sync_policy
from shared_state.errors import AgoraError

LONGEST = 2**63  # numbers of native code are below it


@dataclass(frozen=True)
class Formulas:
    """When the k-th synchronisation is due, the last that is due by a time, and what the k-th
    refreshes."""

    due_us: Callable[[int], int | None]
    latest: Callable[[int], int | None]
    partitions: Callable[[int], list[int]]


def state(of: SyncContext, staggered: bool) -> Formulas:
    offset_us = of.index * of.gap_us // of.agents if staggered else 0
    return Formulas(
        lambda k: k * of.gap_us + offset_us,
        lambda now_us: (now_us - offset_us) // of.gap_us,
        lambda k: list(range(of.partitions)),
    )


def blocks(of: SyncContext, same_block: bool) -> Formulas:
    def partitions(k: int) -> list[int]:
        block = (k if same_block else of.index + k) % of.agents
        first, end = (number * of.partitions // of.agents for number in (block, block + 1))
        return list(range(first, end))

    return Formulas(
        lambda k: k * of.gap_us // of.agents,
        lambda now_us: ((now_us + 1) * of.agents - 1) // of.gap_us,
        partitions,
    )


def single(of: SyncContext) -> Formulas:
    return Formulas(
        lambda k: k * of.gap_us // of.partitions,
        lambda now_us: ((now_us + 1) * of.partitions - 1) // of.gap_us,
        lambda k: [(of.index * of.partitions // of.agents + k) % of.partitions],
    )


def every_attempt(of: SyncContext) -> Formulas:
    return Formulas(lambda k: None, lambda now_us: None, lambda k: list(range(of.partitions)))


FORMULAS: dict[str, Callable[[SyncContext], Formulas]] = {
    "diff_block": lambda of: blocks(of, False),
    "diff_single": single,
    "every_attempt": every_attempt,
    "same_block": lambda of: blocks(of, True),
    "state_aligned": lambda of: state(of, False),
    "state_staggered": lambda of: state(of, True),
}


@st.composite
def contexts(draw: st.DrawFn) -> SyncContext:
    agents = draw(st.integers(1, 40) | st.integers(1, 2_000))
    partitions = agents + draw(st.integers(0, 60))
    index = draw(st.integers(0, agents - 1))
    longest_us = draw(st.sampled_from((1_000_000, 10**12, LONGEST - 1)))
    gap_us = draw(st.integers(partitions, longest_us))
    return SyncContext(gap_us, partitions, index, agents, draw(st.integers(0, 2**64 - 1)))


# beside small numbers, those about which answers of 64 bits end
numbers = st.integers(0, 1_000) | st.integers(0, 10**12) | st.integers(-LONGEST, LONGEST - 1)


def same(native: Callable[[int], int | None], formula: int | None, number: int) -> None:
    if formula is None or -LONGEST <= formula < LONGEST:
        assert native(number) == formula
    else:
        with pytest.raises(OverflowError, match="sync policy: a time of more than 64 bits"):
            native(number)


def test_there_is_a_formula_for_each() -> None:
    assert {kind for kind in kinds() if not kind.startswith("conflicts_")} == set(FORMULAS)


@given(kind=st.sampled_from(sorted(FORMULAS)), context=contexts(), number=numbers)
def test_every_answer_is_that_of_the_formulas(kind: str, context: SyncContext, number: int) -> None:
    policy = make_sync_policy(kind, {}, context)
    assert isinstance(policy, _native.SyncPolicy)
    formulas = FORMULAS[kind](context)
    due_us = formulas.due_us(number)
    same(policy.due_us, due_us, number)
    same(policy.latest, formulas.latest(number), number)
    partitions = policy.partitions(number)
    assert partitions.dtype == np.int32
    assert partitions.tolist() == formulas.partitions(number)
    if due_us is not None and -LONGEST < due_us < LONGEST:  # where `latest` changes its answer
        for now_us in (due_us - 1, due_us):
            same(policy.latest, formulas.latest(now_us), now_us)
    omega = kind == "every_attempt"
    assert (policy.at_every_attempt, policy.wants_feedback) == (omega, False)
    assert policy.retry_us == (context.gap_us if omega else None)


@given(kind=st.sampled_from(sorted(FORMULAS)), context=contexts(), k=st.integers(1, 10**6))
def test_the_latest_changes_when_one_is_due(kind: str, context: SyncContext, k: int) -> None:
    policy = make_sync_policy(kind, {}, context)
    assert isinstance(policy, _native.SyncPolicy)
    due_us = FORMULAS[kind](context).due_us(k)
    if due_us is not None:
        assert (policy.latest(due_us - 1), policy.latest(due_us)) == (k - 1, k)


@pytest.mark.parametrize(("agents", "partitions"), [(1, 1), (2, 2), (10, 20), (20, 20), (8, 30)])
@pytest.mark.parametrize("name", sorted({*FORMULAS} - {"every_attempt"}))
def test_average_staleness_stays_within_the_model_s_bounds(
    name: str, agents: int, partitions: int
) -> None:
    gap_us = 600_000
    context = SyncContext(gap_us, partitions, agents // 2, agents, stream=0)
    policy = make_sync_policy(name, {}, context)
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


@pytest.mark.parametrize(
    ("kind", "gap_us", "partitions", "says"),
    [
        *(
            (kind, 500_000, 7, "partitions: expected at least 8")
            for kind in FORMULAS
            if "_b" in kind
        ),
        ("diff_single", 500_000, 7, "partitions: expected at least 8"),
        ("gossip", 500_000, 8, "unknown sync policy 'gossip'"),
        ("diff_block", 7, 8, "gap_s: expected at least 0.000008"),
        ("state_staggered", 7, 8, "gap_s: expected at least 0.000008"),
        ("every_attempt", 0, 8, "retry_s: expected at least 0.000001"),
    ],
)
def test_a_context_that_does_not_suit_is_refused(
    kind: str, gap_us: int, partitions: int, says: str
) -> None:
    with pytest.raises(AgoraError, match=says):
        make_sync_policy(kind, {}, SyncContext(gap_us, partitions, 0, 8, stream=0))
