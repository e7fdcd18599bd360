"""The locking protocol: claims on locked partitions never conflict, and what locks cost."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from parsync.core.events import Started, TasksSubmitted
from parsync.protocols.locking import LocksGranted, LocksReleased
from parsync.runtime.assembly import Assembly
from parsync.spec.arm import ArmConfig, check_protocols
from parsync.strict_model import first_error
from shared_state.errors import AgoraError
from tests.fixtures.overloaded_cell import failing_workload, locking_arm, locking_group
from tests.fixtures.service_batch_runs import Tables, group, made, modelled, recorded

# A full cell with slow decisions, in which schedulers meet.
CONTENDED: dict[str, Any] = {
    "machines": 100,
    "duration_s": 400.0,
    "initial_fill_percent": 40,
    "batch": {"interarrival_s": 3.0, "tasks_per_job": 15.0, "run_s": 20.0},
    "service": {"interarrival_s": 10.0, "tasks_per_job": 5.0, "run_s": 20.0},
}
PARTITIONS, SCHEDULERS = 10, 6
SLOW = modelled(500_000, 20_000.0)


@cache
def locked(count: int | None = None) -> Tables:
    """A run of the contended workload under locks on so many partitions; None: on all."""
    protocol: dict[str, Any] = {"kind": "locking"}
    if count is not None:
        protocol["locked_partitions"] = count
    return recorded(
        made(CONTENDED),
        [group("locks", protocol, count=SCHEDULERS, decision=SLOW)],
        PARTITIONS,
        message_us=500,
    )


def most_at_once(tables: Tables) -> int:
    """The largest number of rounds that are decided or committed at the same time."""
    commits = tables["commits"]
    starts, ends = np.sort(commits["start_us"]), np.sort(commits["commit_us"])
    return int(max(np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")))


@pytest.mark.parametrize(("count", "at_once"), [(1, None), (3, 3), (5, 2), (None, 1)])
def test_claims_under_locks_never_conflict(count: int | None, at_once: int | None) -> None:
    """And as many schedulers decide at once as there are locks, each in what it has locked."""
    tables = locked(count)
    commits, tasks = tables["commits"], tables["tasks"]
    assert commits["claims"].sum() > 1_000
    assert (commits["accepted"] == commits["claims"]).all()
    assert at_once is None or most_at_once(tables) == at_once
    by_round: dict[tuple[int, int], set[int]] = {}
    columns = (tasks["agent"], tasks["commit_us"], tasks["machine"] // PARTITIONS)
    for agent, at_us, partition in zip(*(column.tolist() for column in columns), strict=True):
        by_round.setdefault((agent, at_us), set()).add(partition)
    assert max(map(len, by_round.values())) <= (count or PARTITIONS)
    assert set().union(*by_round.values()) == set(range(PARTITIONS))


def test_without_locks_the_same_schedulers_conflict() -> None:
    optimistic = {"kind": "optimistic", "sync": "every_attempt", "gap_s": 1.0}
    groups = [group("omega", optimistic, count=SCHEDULERS, decision=SLOW)]
    commits = recorded(made(CONTENDED), groups, PARTITIONS, message_us=500)["commits"]
    assert (commits["accepted"] < commits["claims"]).any()


def test_a_round_has_as_many_tasks_as_can_be_decided_while_locks_are_held() -> None:
    """A round takes 500 ms, and 20 ms for each task: the fifth begins within 600 ms."""
    protocol = {"kind": "locking", "locked_partitions": 1, "hold_s": 0.6}
    groups = [group("locks", protocol, count=SCHEDULERS, decision=SLOW)]
    workload = made(CONTENDED)
    found = recorded(workload, groups, PARTITIONS, message_us=500)
    assert found["commits"]["decision_us"].max() == 500_000 + 5 * 20_000
    assert len(np.unique(found["tasks"]["task"])) == len(workload.arrival_rows)
    assert (found["commits"]["accepted"] == found["commits"]["claims"]).all()


@pytest.mark.parametrize("kind", ["random", "kubernetes"])
def test_locks_are_taken_for_so_many_tasks(kind: str) -> None:
    protocol = {"kind": "locking", "locked_partitions": 2, "round_tasks": 2, "hold_s": 60.0}
    groups = [group("locks", protocol, kind=kind, count=SCHEDULERS, decision=modelled(1_000, 1.0))]
    workload = made(CONTENDED)
    found = recorded(workload, groups, PARTITIONS, message_us=500)
    assert found["commits"]["claims"].max() == 2
    assert len(np.unique(found["tasks"]["task"])) == len(workload.arrival_rows)


def test_schedulers_that_find_no_room_pause() -> None:
    """In a full cell they look at each partition, and then again after retry_s."""
    full = {**CONTENDED, "initial_fill_percent": 100, "duration_s": 30.0}
    looks = {}
    for retry_s in (0.5, 8.0):
        protocol = {"kind": "locking", "locked_partitions": 5, "retry_s": retry_s}
        one = group("locks", protocol, decision=modelled(1_000, 1.0))
        found = recorded(made(full), [one], PARTITIONS, drain_us=0, message_us=500)
        looks[retry_s] = len(found["syncs"]["partition"])
    assert looks[0.5] > 4 * looks[8.0] > 0


def test_a_lock_for_the_agent_before_a_restart_is_dropped() -> None:
    workload = failing_workload()
    assembly = Assembly.of(locking_arm(locking_group()).seeded(3, 1000, 50_000, False), workload)
    agent = assembly.agent(0)
    first, *_ = agent.handle(0, Started(7))
    assert first.event == LocksReleased(0, 7), "what the agent before it held is free"
    [asked] = agent.handle(0, TasksSubmitted(np.arange(3)))
    assert asked.event.epoch == 7
    partition = np.arange(6, dtype=np.int32)
    assert agent.handle(10, LocksGranted(6, partition)) == []
    [sync] = agent.handle(20, LocksGranted(7, partition))
    assert sync.event.partition.tolist() == partition.tolist()


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"locked_partitions": 7}, "random", "locked_partitions: expected at most 6, .*, got 7"),
        ({}, "flow", "protocol 'locking' cannot drive a scheduler that keeps the tasks"),
        ({"round_tasks": 1}, "preferred_first", "round_tasks: not for a kind of scheduler that"),
    ],
)
def test_what_locks_cannot_serve_is_refused(options: dict[str, Any], kind: str, says: str) -> None:
    with pytest.raises((AgoraError, ValidationError), match=f"group '{kind} with locks': .*{says}"):
        check_protocols(locking_arm(locking_group(kind, **options)).seeded(3, 1000, 50_000, False))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"locked_partitions": 0}, "option 'locked_partitions': .*greater than or equal to 1"),
        ({"round_tasks": 0}, "option 'round_tasks': .*greater than or equal to 1"),
        ({"retry_s": 0.0}, "option 'retry_s': .*greater than or equal to 0.000001"),
        (
            {"sync": "diff_block"},
            "has no option 'sync'; its options: head_of_line_s, hold_s, locked_partitions, retry_s,"
            " round_tasks",
        ),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], says: str) -> None:
    one = group("locks", {"kind": "locking", **options})
    with pytest.raises(ValidationError) as refused:
        ArmConfig.model_validate({"name": "arm", "partitions": 6, "groups": [one]})
    assert re.search(says, first_error(refused.value))
