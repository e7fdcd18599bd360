"""docs/add_a_protocol.md and its examples, each a protocol in a package of its own, installed and
run: one with a participant beside the master, and ParSync with another retry rule."""

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
from parsync.metrics.tables import Waiting
from parsync.protocols import registry
from parsync.spec.arm import ProtocolChoice
from shared_state.errors import AgoraError
from shared_state.partition import Partitioning
from tests.fixtures.changed import changed
from tests.fixtures.commands import agora
from tests.fixtures.feature_runs import FeatureRun, Seen, failing
from tests.fixtures.installed import install
from tests.fixtures.overloaded_cell import group, locking_arm
from tests.fixtures.run_toml import group_toml, short_run_toml
from tests.fixtures.stopping import ROOT
from tests.replay.test_golden_runs import summary_of

EXAMPLES = ROOT / "examples" / "protocols"
LOTTERY = (EXAMPLES / "lottery" / "__init__.py").read_text("utf-8")
CONFIG = short_run_toml(70, message_us=200)
MODELLED = 'decision = { clock = "modelled", task_us = 100.0 }'
BESIDE = group_toml("parsync", "random", 2, 'sync = "diff_block", gap_s = 0.05', MODELLED)


def lottery_arm(name: str = "lottery beside ParSync", kind: str = "lottery") -> str:
    """Two agents of the lottery beside two of ParSync."""
    own = f'name = "lottery"\ncount = 2\nprotocol = {{ kind = "{kind}" }}\n{MODELLED}\n'
    return f'\n[[arms]]\nname = "{name}"\npartitions = 4\n\n[[arms.groups]]\n{own}{BESIDE}'


RETRYING = f"""
[[arms]]
name = "retries at syncs"
partitions = 4
{BESIDE.replace('"optimistic", sync = "diff_block"', '"retry_at_sync"')}"""


@pytest.fixture
def example(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The examples are installed: the module of the one on SchedulerAgent."""
    monkeypatch.syspath_prepend(example_site("protocols"))
    for kind in ("lottery", "retry_at_sync"):
        registry.get(kind)
    yield sys.modules["retry_at_sync"]
    for kind in ("lottery", "retry_at_sync"):  # another test may install another of that name
        sys.modules.pop(kind)


@pytest.mark.usefixtures("no_figures", "example", "one_process")
def test_the_examples_share_a_cell_with_parsync_and_are_replayed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CONFIG + lottery_arm() + RETRYING, "utf-8")
    run = tmp_path / "run"
    assert agora("run", "--config", tmp_path / "run.toml", "--out", run).returncode == 0
    for arm in read_summary(run).arms:
        assert arm.totals.committed == arm.totals.submitted > 100
    assert agora("replay", run).returncode == 0


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        (
            'kind: ClassVar[str] = "lottery"\n    number: ClassVar[int] = 2',
            'kind: ClassVar[str] = "raffle"\n    number: ClassVar[int] = 2',
            ":SPEC: events: Drawn.kind: expected 'lottery'",
        ),
        (
            "number: ClassVar[int] = 2",
            "number: ClassVar[int] = 1",
            "events: Ask and Drawn have the same number, 1",
        ),
    ],
    ids=["the kind of an event", "two events with one number"],
)
def test_a_mistake_is_one_line(
    right: str, wrong: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LOTTERY.count(right) == 1
    site, module = tmp_path / "site", f"lottery_{len(wrong)}"
    files = {f"{module}.py": LOTTERY.replace(right, wrong)}
    install(site, "lottery", f"{module}:SPEC", files, "agora.protocols")
    monkeypatch.syspath_prepend(site)
    (tmp_path / "run.toml").write_text(CONFIG + lottery_arm(), "utf-8")
    run = agora("run", "--config", tmp_path / "run.toml", "--out", tmp_path / "run")
    (line,) = run.stderr.splitlines()
    assert run.returncode == 2 and says in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["--quick", "--runtime", "virtual"],
        ["--mix", "lottery=2"],
        ["--mix", "random=2"],
        ["--mix", "latency_first=2"],
    ],
)
def test_two_protocols_of_one_name_are_one_line_for_presets_and_mixes(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("one", "two"):
        site, name = tmp_path / module, f"twin_lottery_{module}"
        install(site, "lottery", f"{name}:SPEC", {f"{name}.py": LOTTERY}, "agora.protocols")
        (site / "lottery-1.0.dist-info").rename(site / f"{module}-1.0.dist-info")
        monkeypatch.syspath_prepend(site)
    run = agora("run", *arguments, "--out", tmp_path / "run")
    [line] = run.stderr.splitlines()
    assert run.returncode == 2 and not (tmp_path / "run").exists()
    assert "protocol 'lottery' is registered twice: twin_lottery_" in line


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("mix", "says"),
    [
        ("nope=3", "or a protocol that runs no schedulers (lottery, probing)"),
        ("lottery:=3", "'lottery:=3' is not of the form [protocol:]kind=count"),
    ],
)
def test_a_mix_lists_the_protocols_that_stand_alone(mix: str, says: str, tmp_path: Path) -> None:
    run = agora("run", "--mix", mix, "--out", tmp_path / "run")
    assert run.returncode == 2 and says in run.stderr


def test_unknown_protocols_and_options_are_named(request: pytest.FixtureRequest) -> None:
    known = "unknown protocol 'lottery'; known: locking, offers, optimistic"
    with pytest.raises(AgoraError, match=known):
        registry.get("lottery")
    request.getfixturevalue("example")
    with pytest.raises(AgoraError, match="protocol 'lottery' has no option 'price'"):
        registry.get("lottery").parse_options({"price": 3})


# --- ParSync with another retry rule --------------------------------------------------------------

KIND = "retry_at_sync"
GAP = {"gap_s": 0.05, "tau_s": 0.02}
ADAPTIVE = {"sync": "diff_block", "strategy": "adaptive", "commit_mode": "incremental"}
NATIVE = {"kind": "optimistic", **ADAPTIVE, **GAP}


def test_the_page_names_the_example_and_it_is_short() -> None:
    page = (ROOT / "docs" / "add_a_protocol.md").read_text("utf-8")
    source = (EXAMPLES / KIND / "__init__.py").read_text("utf-8")
    assert len(source.splitlines()) < 150
    assert f"examples/protocols/{KIND}" in page
    rule = source[source.index("    def on_losers") : source.index("    def waiting")].rstrip()
    assert rule in page


def seen_of(protocol: dict[str, Any], kind: str, drain_us: int = 1_000_000) -> Seen:
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


@pytest.mark.parametrize("kind", ["random", "best_fit"])
def test_without_its_rule_it_is_parsync(
    kind: str, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(example.SPEC, make_agent=example.ParSyncAgent)
    monkeypatch.setattr(example, "SPEC", spec)
    native, python = seen_of(NATIVE, kind), seen_of({"kind": KIND, **GAP}, kind)
    assert native.rows("rejections") > 100
    assert native.parts.keys() == python.parts.keys()
    for table, parts in native.parts.items():
        for column in parts[0]:
            same = np.array_equal(native.column(table, column), python.column(table, column))
            assert same, (table, column)


@pytest.mark.parametrize("kind", ["random", "best_fit"])
@pytest.mark.usefixtures("example")
def test_a_rejected_task_waits_for_the_refresh_of_the_partition_of_its_conflict(kind: str) -> None:
    seen = seen_of({"kind": KIND, **GAP}, kind)
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
    seen = seen_of({"kind": KIND, "gap_s": 1.0}, "best_fit", drain_us=0)
    assert seen.waits(Waiting.REJECTED) > 10


@pytest.mark.usefixtures("example")
def test_schedulers_that_keep_their_rejected_tasks_are_refused() -> None:
    schedulers = group("flow", 1).model_copy(
        update={"protocol": ProtocolChoice.model_validate({"kind": KIND, **GAP})}
    )
    with pytest.raises(ValidationError, match="its kind of scheduler keeps rejected tasks itself"):
        locking_arm(schedulers)
