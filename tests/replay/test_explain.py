"""`agora explain`: the stories of tasks agree with what the cell itself was asked and answered,
followed call by call in a repetition of the run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from experiments.commands.explain import app as explain_app
from experiments.commands.run import app
from experiments.config.decision_basis import basis_title
from experiments.explain.story import COMMITTED, TaskStory
from experiments.results import LoadedArm, LoadedRun, load_run
from parsync.runtime.arm_directory import read_assembly
from parsync.runtime.virtual.run import run_virtual
from shared_state.cell import Cell
from shared_state.observed_cell import CellObserver
from shared_state.transaction import CommitResult, Transaction
from tests.fixtures.claim_oracle import (
    CONFLICTS,
    Outcome,
    by_task,
    check_claims,
    check_rivals,
    outcomes_of,
)
from tests.fixtures.commands import exit_status, without_figures
from tests.fixtures.run_toml import group_toml

MESSAGE_US = 700
ALIGNED = 'sync = "state_aligned", gap_s = 0.05'
PARSYNC = (
    'sync = "diff_block", gap_s = 0.1, strategy = "quality_first", commit_mode = "all_or_nothing"'
)
OMEGA = (
    'sync = "every_attempt", gap_s = 0.05, losers = "requeue", requeue_s = 0.02, '
    'conflict_check = "sequence_number"'
)
SLOW = '\ndecision = { clock = "modelled", task_us = 900 }'
ALONE = 'decision = { clock = "modelled", task_us = 300 }'
PREEMPTING = """share = 0.25
options = { preemption = true }
decision = { clock = "counted" }"""
CONFIG = f"""
runtime = "virtual"
seeds = 1
settle_s = 0.1
drain_s = 0.0
virtual = {{ message_us = {MESSAGE_US} }}

[workload]
kind = "synthetic"
machines = 40
slots_per_machine = 4
machines_per_rack = 10
mean_duration_s = 0.3
batch_tasks = 10
load_percent = [70, 180]
phase_s = 0.8
preference_groups = 6
gang_permille = 300
no_preference_permille = 200

[[arms]]
name = "Shared"
partitions = 4
{group_toml("parsync", "random", 3, PARSYNC, f"share = 0.5{SLOW}")}
{group_toml("omega", "randomized_first_fit", 2, OMEGA, f"share = 0.25{SLOW}")}
{group_toml("flow", "flow", 1, ALIGNED, PREEMPTING)}

[[arms]]
name = "Alone"
partitions = 1
{group_toml("greedy", "best_fit", 1, f"{ALIGNED}, freed_at_once = true", ALONE)}
"""


@dataclass
class Witness(CellObserver):
    """Everything that the cell was asked and answered, in order."""

    outcomes: list[Outcome] = field(default_factory=list)
    transactions: int = 0

    def on_commit(
        self, cell: Cell, transaction: Transaction, result: CommitResult, now_us: int
    ) -> None:
        self.transactions += 1
        self.outcomes += outcomes_of(self.transactions, now_us, transaction, result)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    folder = tmp_path_factory.mktemp("explain")
    (folder / "run.toml").write_text(CONFIG)
    with without_figures():
        assert exit_status(app, "--config", folder / "run.toml", "--out", folder / "run") == 0
    return load_run(folder / "run")


@pytest.fixture(scope="module")
def witness(run: LoadedRun) -> Witness:
    """Of the first arm."""
    arm = run.arm("Shared")
    assembly, virtual = read_assembly(arm.directory)
    assert virtual is not None and virtual.message_us == MESSAGE_US
    seen = Witness()
    outcome = run_virtual(
        assembly.arm,
        assembly.workload,
        virtual.drain_us,
        lambda record: None,
        lambda now_us: None,
        virtual.message_us,
        seen,
    )
    assert outcome.digest == arm.summary.digest
    return seen


@pytest.fixture(scope="module")
def stories(run: LoadedRun) -> dict[int, TaskStory]:
    arm = run.arm("Shared")
    return {task: arm.explain(task) for task in range(len(arm.workload.tasks))}


def learned(arm: LoadedArm, witness: Witness) -> list[Outcome]:
    """The outcomes that schedulers learned of before the run was stopped."""
    last_us = arm.summary.totals.last_us
    return [one for one in witness.outcomes if one.at_us + MESSAGE_US <= last_us]


def test_every_claim_of_every_task_is_told(
    run: LoadedRun, witness: Witness, stories: dict[int, TaskStory]
) -> None:
    arm = run.arm("Shared")
    outcomes = learned(arm, witness)
    check_claims(stories, outcomes, arm.schedulers)
    assert {one.reason for one in outcomes} >= {COMMITTED, "stale", "full", "gang"}
    for story in stories.values():
        assert all(one.learned_us == one.handled_us + MESSAGE_US for one in story.claims)


def test_each_conflict_names_the_claims_that_were_first(
    run: LoadedRun, witness: Witness, stories: dict[int, TaskStory]
) -> None:
    arm = run.arm("Shared")
    conflicts, named = check_rivals(stories, learned(arm, witness), arm.schedulers)
    assert conflicts > 100 and named > 50


def test_a_conflict_costs_the_time_until_the_next_outcome(
    run: LoadedRun, witness: Witness, stories: dict[int, TaskStory]
) -> None:
    arm = run.arm("Shared")
    expected: dict[int, int] = {}
    bounds = 0
    for task, outcomes in by_task(learned(arm, witness)).items():
        times = [one.at_us + MESSAGE_US for one in outcomes] + [arm.summary.totals.last_us]
        cost = sum(
            after - at
            for at, after, one in zip(times, times[1:], outcomes, strict=False)
            if one.reason in CONFLICTS
        )
        assert stories[task].conflict_us == cost
        assert stories[task].is_bound == (outcomes[-1].reason in CONFLICTS)
        bounds += stories[task].is_bound
        if cost:
            expected[task] = cost
    assert bounds > 0, "tasks that were never placed after a conflict"
    worst = sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:20]
    assert [(story.task, story.conflict_us) for story in arm.worst_conflicts(20)] == worst


def test_delays_and_costs_are_those_of_the_tables(
    run: LoadedRun, stories: dict[int, TaskStory]
) -> None:
    arm = run.arm("Shared")
    firsts = [row for row in arm.table("tasks").to_pylist() if row["first"]]
    for row in firsts:
        story = stories[row["task"]]
        if story.initial_machine is None:
            assert story.delay_us == row["commit_us"] - row["submit_us"]
            assert story.costs is not None and story.costs[1] == row["cost"]
            assert story.claims[0].number == 1
    placed = {row["task"] for row in firsts}
    waiting = [task for task, story in stories.items() if story.delay_us is None]
    assert set(waiting) == set(stories) - placed and len(waiting) > 10
    evicted = [s for s in stories.values() if any(end.change == "evicted" for end in s.ends)]
    assert evicted, "tasks were evicted, and placed again"
    ends = {(row["task"], row["end_us"]) for row in arm.table("ends").to_pylist()}
    assert {(s.task, end.at_us) for s in stories.values() for end in s.ends} == ends


def test_each_kind_of_story_can_be_read(stories: dict[int, TaskStory]) -> None:
    texts = {task: str(story) for task, story in stories.items()}
    for phrase in (
        "It had no conflict. Its delay was",
        "No scheduler claimed a machine for it.",
        "It was never placed.",
        "still waits when the run ends",
        "as the run begins",
        "evicted from machine",
        "due to finish on machine",
        "the rival omega-",
        "cost: at least",
        "another task of its gang found no place",
    ):
        assert any(phrase in text for text in texts.values()), phrase
    for text in texts.values():
        assert "None" not in text and " -1" not in text


def test_the_command_prints_a_table_and_the_stories(
    run: LoadedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    worst = run.arm("Shared").worst_conflicts(10)
    assert exit_status(explain_app, run.directory) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0].split()[:3] == ["Task", "Arm", "Scheduler"]
    assert [int(line.split()[0]) for line in lines[1:11]] == [story.task for story in worst]
    assert printed.count("\n\nTask ") == 10 and str(worst[0]) in printed
    assert exit_status(explain_app, run.directory, "--worst", "3", "--arm", "shared") == 0
    assert capsys.readouterr().out.count("\n\nTask ") == 3
    assert exit_status(explain_app, run.directory, "--arm", "Alone") == 0
    assert capsys.readouterr().out == "There was no conflict in arm 'Alone'.\n"


def test_arms_that_may_not_be_compared_have_tables_of_their_own(
    run: LoadedRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worst = run.arm("Shared").worst_conflicts(2)
    monkeypatch.setattr(LoadedArm, "worst_conflicts", lambda arm, count: worst[:count])
    assert exit_status(explain_app, run.directory, "--worst", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [number for number, line in enumerate(lines) if line.split()[1:2] == ["Arm"]]
    assert len(headings) == len(run.summary.sets()) > 1
    titles = {basis_title(arm.summary.basis) for arm in run.arms}
    assert {lines[number - 1] for number in headings} == titles


def test_a_task_is_told_in_every_arm(run: LoadedRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(explain_app, run.directory, "--task", "50") == 0
    printed = capsys.readouterr().out
    assert "in arm 'Shared'" in printed and "in arm 'Alone'" in printed
    sizes = {arm.name: len(arm.workload.tasks) for arm in run.arms}
    larger, size = max(sizes.items(), key=lambda item: item[1])
    assert size > min(sizes.values()), "what runs at time 0 differs between arms"
    assert exit_status(explain_app, run.directory, "--task", size - 1) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n\nTask ") == 0 and f"in arm '{larger}'" in printed


def test_json_holds_all_of_it(run: LoadedRun, capsys: pytest.CaptureFixture[str]) -> None:
    story = run.arm("Shared").worst_conflicts(1)[0]
    assert exit_status(explain_app, run.directory, "--worst", "1", "--json") == 0
    (plain,) = json.loads(capsys.readouterr().out)
    assert plain["task"] == story.task and plain["conflict_us"] == story.conflict_us
    assert len(plain["claims"]) == len(story.claims)
    assert plain["claims"][0]["others"][0]["task"] == story.claims[0].others[0].task


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--task", "-1"], "task -1: expected 0 to "),
        (["--task", "1000000"], "task 1000000: expected 0 to "),
        (["--arm", "nobody"], "arm 'nobody': expected one of 'Shared', 'Alone'"),
        (["--task", "1", "--worst", "2"], "--task and --worst: expected one of them"),
    ],
)
def test_what_cannot_be_told_is_refused_in_one_line(
    run: LoadedRun, arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(explain_app, run.directory, *arguments) == 2
    said: Any = capsys.readouterr()
    assert said.out == "" and error in said.err and said.err.count("\n") == 1


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(explain_app, tmp_path) == 2
    assert "not a run directory" in capsys.readouterr().err


def test_who_was_offered_the_room_of_a_claim_is_named(tmp_path: Path) -> None:
    """What the rival placed on the machine before the state that was planned on is no reason."""
    slow = f"share = 0.5{SLOW}"
    offers = group_toml("offers", "random", 2, "refuse_s = 5", slow)
    offers = offers.replace('"optimistic"', '"offers"')
    head = CONFIG[: CONFIG.index("[[arms]]")]
    parsync = group_toml("parsync", "random", 2, PARSYNC, slow)
    arm = '[[arms]]\nname = "Both"\npartitions = 4\nprotocols.offers.interval_s = 0.05\n'
    (tmp_path / "run.toml").write_text(head + arm + offers + parsync)
    with without_figures():
        assert exit_status(app, "--config", tmp_path / "run.toml", "--out", tmp_path / "run") == 0
    both = load_run(tmp_path / "run").arm("Both")
    told = [
        claim
        for task in range(len(both.workload.tasks))
        for claim in both.explain(task).claims
        if claim.outcome == "held"
    ]
    assert {claim.scheduler for claim in told} == {"parsync-0", "parsync-1"}
    assert {claim.rival for claim in told} == {"offers-0", "offers-1"}
    for claim in told:
        assert claim.is_conflict
        assert all(claim.state_us < other.start_us for other in claim.others)
