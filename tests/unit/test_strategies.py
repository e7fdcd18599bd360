"""Strategies and the average they rest on."""

from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from parsync.protocols.optimistic.options import (
    DelayAverage,
    OptimisticOptions,
    StrategyKind,
    make_strategy,
)
from parsync.protocols.pending_queue import LoserPolicy
from schedulers.interface import PartitionQuality, PartitionRanking
from shared_state.errors import AgoraError
from shared_state.transaction import CommitMode, ConflictCheck


def test_adaptive_switches_at_tau() -> None:
    adaptive = make_strategy(StrategyKind.ADAPTIVE, 800_000)
    assert adaptive.ranking(799_999) is PartitionRanking.QUALITY_FIRST
    assert adaptive.ranking(800_000) is PartitionRanking.LATENCY_FIRST


@pytest.mark.parametrize("kind", [kind for kind in StrategyKind if kind != "adaptive"])
def test_fixed_strategies_ignore_the_delay(kind: StrategyKind) -> None:
    strategy = make_strategy(kind, 1)
    expected = "QUALITY_FIRST" if kind == "prompt" else kind.name
    assert strategy.ranking(0) is strategy.ranking(10**12) is PartitionRanking[expected]


def test_adaptive_needs_a_threshold() -> None:
    with pytest.raises(AgoraError, match="tau_us"):
        make_strategy(StrategyKind.ADAPTIVE, 0)


def options(**given: object) -> OptimisticOptions:
    return OptimisticOptions.model_validate({"sync": "diff_block", "gap_s": 0.5, **given})


CHOICES: dict[str, type[Enum]] = {
    "strategy": StrategyKind,
    "losers": LoserPolicy,
    "conflict_check": ConflictCheck,
    "commit_mode": CommitMode,
}


@pytest.mark.parametrize(("field", "enum"), CHOICES.items(), ids=CHOICES)
def test_a_choice_is_written_as_the_name_of_its_enum(field: str, enum: type[Enum]) -> None:
    for member in enum:
        chosen = options(**{field: member.name.lower()})
        assert getattr(chosen, field) is member
        assert chosen == options(**{field: member})
        assert chosen.model_dump()[field] == member.name.lower()
        assert OptimisticOptions.model_validate_json(chosen.model_dump_json()) == chosen
    names = [repr(member.name.lower()) for member in enum]
    unset = () if OptimisticOptions.model_fields[field].default is None else (None,)
    for wrong in ("hope", next(iter(enum)).name, 0, True, *unset, ["block"]):
        with pytest.raises(ValidationError, match=f"Input should be .*{' or '.join(names[-2:])}"):
            options(**{field: wrong})


@pytest.mark.parametrize("kind", StrategyKind)
def test_only_strategies_that_look_for_the_best_partition_choose_what_that_is(
    kind: StrategyKind,
) -> None:
    chosen = {"strategy": kind.value, "quality": "mean_score"}
    if kind in (StrategyKind.QUALITY_FIRST, StrategyKind.ADAPTIVE, StrategyKind.PROMPT):
        assert options(**chosen, commit_mode="incremental").quality is PartitionQuality.MEAN_SCORE
    else:
        with pytest.raises(ValidationError, match=f"quality: has no effect.*'{kind.value}'"):
            options(**chosen)


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
    before = average.us
    average.add(0, 0, 100)
    assert average.us == before > 0
