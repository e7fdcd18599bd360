"""Schedulers that place short jobs by one strategy, and long ones by another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from parsync.protocols.optimistic.options import RoundRankings, StrategyKind, make_strategy
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from schedulers.interface import PartitionRanking
from shared_state.tasks import TaskClass
from tests.fixtures.service_batch_runs import Tables, group, made, modelled, recorded

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
    ("kind", "options"), [("quincy", {}), ("load_spreading", {"patience_s": 1.0})]
)
def test_schedulers_that_keep_waiting_tasks_have_one_strategy(
    kind: str, options: dict[str, Any]
) -> None:
    one = group("both", BY_LENGTH, kind=kind, options=options)
    arm = {"name": "arm", "partitions": 8, "groups": [one]}
    with pytest.raises(ValidationError) as refused:
        ArmConfig.model_validate(arm)
    assert "group 'both': long_strategy: not for a scheduler that keeps" in str(refused.value)


def test_the_option_is_written_and_read_again() -> None:
    arm = {"name": "arm", "partitions": 8, "groups": [group("both", BY_LENGTH)]}
    [one] = ArmConfig.model_validate(arm).groups
    assert one.protocol.options.long_strategy == "optimistic"
    arm["groups"] = [one.model_dump(mode="json", exclude_none=True)]
    assert ArmConfig.model_validate(arm).groups[0].protocol == one.protocol


def test_short_rounds_are_for_all_tasks_or_for_none() -> None:
    one = group("both", {**BY_LENGTH, "long_strategy": "prompt"})
    with pytest.raises(ValidationError) as refused:
        ArmConfig.model_validate({"name": "arm", "partitions": 8, "groups": [one]})
    assert "long_strategy: 'prompt' is quality_first in short rounds" in str(refused.value)
