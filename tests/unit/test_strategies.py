"""Strategies, also of long jobs apart from short ones, and the average they rest on."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from parsync.protocols.optimistic.options import (
    DelayAverage,
    OptimisticOptions,
    RoundRankings,
    StrategyKind,
    make_strategy,
)
from parsync.protocols.pending_queue import LoserPolicy
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.interface import PartitionQuality, PartitionRanking
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from shared_state.transaction import CommitMode, ConflictCheck
from tests.fixtures.service_batch_runs import Tables, group, made, modelled, recorded


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


def test_an_average_out_of_range_is_refused() -> None:
    average = DelayAverage(1000)
    with pytest.raises(ValueError, match="batch_size: expected more than 0"):
        average.add(1, 1, 0)
    with pytest.raises(OverflowError, match="expected a mean delay below"):
        average.add((1 << 63) - 1, 1, 1)
    average.add(1 << 46, 1, 1)  # the longest delays do not overflow
    assert average.us == 1 << 46


# A full cell with slow decisions, in which schedulers meet, and batches wait for each other.
CONTENDED: dict[str, Any] = {
    "machines": 100,
    "duration_s": 400.0,
    "initial_fill_percent": 40,
    "batch": {"interarrival_s": 3.0, "tasks_per_job": 15.0, "run_s": 20.0},
    "service": {"interarrival_s": 10.0, "tasks_per_job": 5.0, "run_s": 20.0},
}
SLOW = modelled(500_000, 20_000.0)
LATENCY, OPTIMISTIC = PartitionRanking.LATENCY_FIRST, PartitionRanking.OPTIMISTIC
BY_LENGTH = {
    "kind": "optimistic",
    "sync": "diff_block",
    "gap_s": 5.0,
    "strategy": "latency_first",
    "long_strategy": "optimistic",
}


def claims(workload: Workload, tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """Of each committed task, whether its job is long, bool[n], and how the round that committed it
    ranked partitions, int[n]."""
    tasks, commits = tables["tasks"], tables["commits"]
    columns = (commits["agent"], commits["commit_us"], commits["accepted"], commits["ranking"])
    ranking: dict[tuple[int, int], set[int]] = {}
    for agent, at_us, accepted, ranked in zip(*(one.tolist() for one in columns), strict=True):
        if accepted:
            ranking.setdefault((agent, at_us), set()).add(ranked)
    rows = zip(tasks["agent"].tolist(), tasks["commit_us"].tolist(), strict=True)
    ranked_by = [ranking[row] for row in rows]
    alone = np.array([len(one) == 1 for one in ranked_by])
    assert alone.mean() > 0.9, "commits of one agent are rarely answered together"
    is_long = workload.tasks.task_class[tasks["task"]] == TaskClass.SERVICE
    return is_long[alone], np.array([min(one) for one in ranked_by])[alone]


@pytest.mark.parametrize("changes", [{}, {"commit_pipelining": False}, {"losers": "requeue"}])
@pytest.mark.parametrize("kind", ["load_spreading", "preferred_first"])
def test_long_jobs_are_placed_by_a_strategy_of_their_own(
    kind: str, changes: dict[str, Any]
) -> None:
    workload = made(CONTENDED)
    groups = [group("both", {**BY_LENGTH, **changes}, kind=kind, count=4, decision=SLOW)]
    tables = recorded(workload, groups, 8, message_us=500)
    assert len(np.unique(tables["tasks"]["task"])) == len(workload.arrival_rows)
    commits = tables["commits"]
    assert (commits["stale"] + commits["full"]).any(), "losers of both lengths are offered again"
    is_long, ranking = claims(workload, tables)
    assert is_long.any() and (~is_long).any()
    assert (ranking[is_long] == OPTIMISTIC).all()
    assert (ranking[~is_long] == LATENCY).all()


def test_without_it_long_jobs_are_placed_like_others() -> None:
    workload = made(CONTENDED)
    protocol = {name: value for name, value in BY_LENGTH.items() if name != "long_strategy"}
    groups = [group("one", protocol, kind="load_spreading", count=4, decision=SLOW)]
    _, ranking = claims(workload, recorded(workload, groups, 8, message_us=500))
    assert (ranking == LATENCY).all()


def test_a_round_ends_where_the_length_of_jobs_changes() -> None:
    classes = np.array([0, 0, 1, 1, 0], np.int8)
    adaptive = make_strategy(StrategyKind.ADAPTIVE, 10)
    rankings = RoundRankings(make_strategy(StrategyKind.LATENCY_FIRST, 1), adaptive, classes)
    assert rankings.tells_lengths
    assert rankings.of(np.array([0, 4, 1, 2])) == (LATENCY, 3)
    assert rankings.of(np.array([2, 0])) == (PartitionRanking.QUALITY_FIRST, 1)
    rankings.begin_batch(10)  # long jobs have an adaptive strategy
    assert rankings.of(np.array([2, 3])) == (LATENCY, 2)
    assert rankings.of(np.zeros(0, np.int64)) == (LATENCY, 0)


@pytest.mark.parametrize(
    ("kind", "options"), [("flow", {}), ("load_spreading", {"patience_s": 1.0})]
)
def test_schedulers_that_keep_waiting_tasks_have_one_strategy(
    kind: str, options: dict[str, Any]
) -> None:
    one = group("both", BY_LENGTH, kind=kind, options=options)
    arm = {"name": "arm", "partitions": 8, "groups": [one]}
    with pytest.raises(ValidationError) as refused:
        ArmConfig.model_validate(arm)
    assert "group 'both': long_strategy: not for a scheduler that keeps" in str(refused.value)


def test_short_rounds_are_for_all_tasks_or_for_none() -> None:
    one = group("both", {**BY_LENGTH, "long_strategy": "prompt"})
    with pytest.raises(ValidationError) as refused:
        ArmConfig.model_validate({"name": "arm", "partitions": 8, "groups": [one]})
    assert "long_strategy: 'prompt' is quality_first in short rounds" in str(refused.value)
