"""The example of docs/add_a_protocol.md of a protocol on SchedulerAgent: ParSync with another retry
rule."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from experiments.analysis.run_directory import read_summary
from experiments.commands.replay import app as replay_app
from experiments.commands.run import app
from parsync.metrics.tables import Waiting
from parsync.protocols import registry
from parsync.spec.arm import ProtocolChoice
from shared_state.partition import Partitioning
from tests.fixtures.changed import changed
from tests.fixtures.commands import exit_status
from tests.fixtures.feature_runs import FeatureRun, Seen, failing
from tests.fixtures.overloaded_cell import group, locking_arm
from tests.fixtures.run_toml import short_run_toml
from tests.replay.test_golden_runs import summary_of

ROOT = Path(__file__).parents[2]
KIND = "retry_at_sync"
SOURCE = ROOT / "examples" / "protocols" / KIND / "__init__.py"
GAP = {"gap_s": 0.05, "tau_s": 0.02}
NATIVE = {
    "kind": "optimistic",
    "sync": "diff_block",
    "strategy": "adaptive",
    "commit_mode": "incremental",
    **GAP,
}


@pytest.fixture
def example(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The module of the installed example."""
    monkeypatch.syspath_prepend(example_site("protocols"))
    registry.get(KIND)
    yield sys.modules[KIND]
    sys.modules.pop(KIND)


def run(protocol: dict[str, Any], kind: str, drain_us: int = 1_000_000) -> Seen:
    """What a run of four schedulers on an overloaded cell records; machines fail, and there are
    gangs."""
    workload = failing(gang_permille=200)()
    schedulers = changed(group(kind, 4), protocol=ProtocolChoice.model_validate(protocol))
    run = FeatureRun(
        lambda: locking_arm(schedulers), lambda _: True, lambda: workload, 200, drain_us
    )
    seen = Seen(workload, run.spec())
    summary_of(run, seen.take)
    return seen


def test_the_page_names_the_example_and_it_is_short() -> None:
    page = (ROOT / "docs" / "add_a_protocol.md").read_text(encoding="utf-8")
    source = SOURCE.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 150
    assert f"examples/protocols/{KIND}" in page
    rule = source[source.index("    def on_losers") : source.index("    def waiting")].rstrip()
    assert rule in page


@pytest.mark.parametrize("kind", ["random", "best_fit"])
def test_without_its_rule_it_is_parsync(
    kind: str, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(example.SPEC, make_agent=example.ParSyncAgent)
    monkeypatch.setattr(example, "SPEC", spec)
    native, python = run(NATIVE, kind), run({"kind": KIND, **GAP}, kind)
    assert native.rows("rejections") > 100
    assert native.parts.keys() == python.parts.keys()
    for table, parts in native.parts.items():
        for column in parts[0]:
            same = np.array_equal(native.column(table, column), python.column(table, column))
            assert same, (table, column)


@pytest.mark.parametrize("kind", ["random", "best_fit"])
@pytest.mark.usefixtures("example")
def test_a_rejected_task_waits_for_the_refresh_of_the_partition_of_its_conflict(kind: str) -> None:
    seen = run({"kind": KIND, **GAP}, kind)
    columns = "agent", "sequence", "task", "machine", "rejected_us"
    rejections = list(
        zip(*(seen.column("rejections", one).tolist() for one in columns), strict=True)
    )
    of_round = "agent", "sequence", "start_us"
    commits = zip(*(seen.column("commits", one).tolist() for one in of_round), strict=True)
    start_us = {(agent, number): at_us for agent, number, at_us in commits}
    tries: dict[int, list[int]] = defaultdict(list)  # by task: the starts of rounds that claimed it
    for agent, number, task, _, _ in rejections:
        tries[task].append(start_us[agent, number])
    placed = seen.column("tasks", "task").tolist(), seen.column("tasks", "start_us").tolist()
    for task, at_us in zip(*placed, strict=True):
        tries[task].append(at_us)
    partitioning = Partitioning.by_topology(seen.workload.cell, seen.arm.partitions)
    refreshed_us = seen.column("syncs", "at_us")
    checked = 0
    for agent, _, task, machine, known_us in rejections:
        partition = int(partitioning.of(np.array([machine], np.int32))[0])
        is_its = (seen.column("syncs", "agent") == agent) & (refreshed_us >= known_us)
        is_its &= seen.column("syncs", "partition") == partition
        again = [at_us for at_us in tries[task] if at_us >= known_us]
        if again:
            assert min(again) >= refreshed_us[is_its].min(), task
            checked += 1
    assert checked > 100
    assert seen.rows("tasks") >= len(seen.workload.arrival_rows), "nobody waits for ever"


@pytest.mark.usefixtures("example")
def test_tasks_that_wait_for_a_refresh_are_told_as_the_run_ends() -> None:
    seen = run({"kind": KIND, "gap_s": 1.0}, "best_fit", drain_us=0)
    assert seen.waits(Waiting.REJECTED) > 10


@pytest.mark.usefixtures("example")
def test_schedulers_that_keep_their_rejected_tasks_are_refused() -> None:
    schedulers = group("quincy", 1).model_copy(
        update={"protocol": ProtocolChoice.model_validate({"kind": KIND, **GAP})}
    )
    with pytest.raises(ValidationError, match="its kind of scheduler keeps rejected tasks itself"):
        locking_arm(schedulers)


CONFIG = (
    short_run_toml(90, message_us=200)
    + """
[[arms]]
name = "retries at syncs"
partitions = 4

[[arms.groups]]
name = "parsync"
kind = "random"
count = 4
protocol = { kind = "retry_at_sync", gap_s = 0.05 }
decision = { clock = "modelled", task_us = 100.0 }
"""
)


@pytest.mark.usefixtures("no_figures", "example")
def test_the_example_runs_from_a_configuration_and_is_replayed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CONFIG, encoding="utf-8")
    out = tmp_path / "run"
    assert exit_status(app, "--config", tmp_path / "run.toml", "--out", out) == 0
    [arm] = read_summary(out).arms
    assert arm.totals.committed == arm.totals.submitted > 100
    assert exit_status(replay_app, out) == 0
