"""`agora draw`: pages of kept runs and of configurations, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.flow_graphs.recorder import Wanted, Watch
from experiments.flow_graphs.sources import rounds_of_run
from parsync.runtime.arm_directory import VIRTUAL_LOG, read_assembly
from parsync.runtime.virtual.run import run_virtual
from tests.fixtures.commands import Ended, agora
from tests.fixtures.small_run import SMALL_RUN

TINY = (
    SMALL_RUN.replace("machines = 60", "machines = 8")
    .replace("batch_tasks = 10", "")
    .replace("phase_s = 0.5", "phase_s = 0.5\nload_percent = [150]")
)


def data_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text())
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def draw(tmp_path: Path, *words: object) -> Ended:
    return agora("draw", *words, "--out", tmp_path / "page.html")


def refused(tmp_path: Path, *words: object) -> str:
    """The line with which a command ends that cannot be done; it has written nothing."""
    ended = draw(tmp_path, *words)
    assert ended.returncode == 2 and ended.stdout == ""
    assert not (tmp_path / "page.html").exists()
    assert ended.stderr.count("\n") == 1
    return ended.stderr


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny.toml"
    path.write_text(TINY)
    return path


def test_a_page_of_a_kept_run_tells_its_rounds(whole: Path, tmp_path: Path) -> None:
    ended = draw(tmp_path, whole, "--rounds", "3:6")
    assert ended.returncode == 0
    assert ended.stdout == f"{tmp_path / 'page.html'}: flow-0, 3 rounds, 3 to 5\n"
    rounds = data_of(tmp_path / "page.html")["rounds"]
    assert [one["number"] for one in rounds] == [3, 4, 5]
    assert all(one["proved"] for one in rounds)
    for one in rounds:
        assert sum(arc["cost"] * arc["flow"] for arc in one["arcs"]) == one["cost"]
    assert "the same digest as then" in (tmp_path / "page.html").read_text()


def test_recorded_rounds_are_those_of_the_table_of_rounds(whole: Path, tmp_path: Path) -> None:
    """What the run itself measured: when rounds began, and the sizes of their graphs."""
    import pyarrow.parquet as pq

    table = pq.read_table(whole / "arms/flow/rounds.parquet").to_pydict()
    recording, _ = rounds_of_run(whole, None, "", Wanted(0, 20), lambda done, total: None)
    assert recording.seen == len(table["at_us"])
    for its in recording.rounds:
        assert len(its.graph.kind) == table["nodes"][its.number]
        assert len(its.graph.arc) == table["arcs"][its.number]
        assert its.waiting + its.placed == len(its.graph.waiting)


def test_a_watched_run_is_the_same_run(whole: Path) -> None:
    assembly, virtual = read_assembly(whole / "arms/flow")
    assert virtual is not None
    digests = []
    for watch in (None, Watch(Wanted(0, 200))):
        outcome = run_virtual(
            assembly.arm,
            assembly.workload,
            virtual.drain_us,
            lambda record: None,
            lambda now_us: None,
            virtual.message_us,
            watch=watch,
        )
        digests.append(outcome.digest)
    assert digests[0] == digests[1]


def test_an_arm_of_a_configuration_is_drawn_without_a_run(tiny: Path, tmp_path: Path) -> None:
    ended = draw(tmp_path, tiny)
    assert ended.returncode == 0, ended.stderr
    rounds = data_of(tmp_path / "page.html")["rounds"]
    assert len(rounds) == 20
    assert any(one["waiting"] for one in rounds)
    for one in rounds:
        waits = {task["index"] for task in one["tasks"] if task["waits"]}
        assert len(waits) == one["waiting"]
        for task in one["tasks"]:
            assert task["why"] and (not task["waits"] or "waits" in task["title"])


def test_only_rounds_with_a_chosen_task_are_drawn(tiny: Path, tmp_path: Path) -> None:
    assert draw(tmp_path, tiny, "--rounds", "0:60").returncode == 0
    rounds = data_of(tmp_path / "page.html")["rounds"]
    names = {
        one["number"]: {node["name"] for node in one["nodes"] if node["kind"] == "task"}
        for one in rounds
    }
    often = max(
        set().union(*names.values()),
        key=lambda name: sum(name in its for its in names.values()),
    )
    ended = draw(tmp_path, tiny, "--rounds", "0:60", "--task", often[1:])
    assert ended.returncode == 0
    part = data_of(tmp_path / "page.html")["rounds"]
    assert [one["number"] for one in part] == [n for n, its in names.items() if often in its]
    for one in part:
        [task] = one["tasks"]
        assert task["title"].startswith(f"{often} ")


def test_an_image_of_one_round(tiny: Path, tmp_path: Path) -> None:
    ended = agora("draw", tiny, "--rounds", "4:9", "--out", tmp_path / "round.svg")
    assert ended.returncode == 0
    assert ended.stdout == f"{tmp_path / 'round.svg'}: flow-0, round 4\n"
    assert (tmp_path / "round.svg").read_text().lstrip().startswith("<svg")


def test_what_cannot_be_drawn_is_refused(whole: Path, tmp_path: Path) -> None:
    for words, line in (
        ((), "error: expected a run, a configuration (FILE.toml), or --example POLICY\n"),
        ((whole, "--example", "quincy"), "error: expected a run, a configuration"),
        (("--example", "nobody"), "unknown flow policy 'nobody'"),
        (("--example", "quincy", "--arm", "x"), "have no effect with --example"),
        (("--example", "quincy", "--rounds", "7:9"), "the example has 4 rounds"),
        ((whole, "--arm", "ParSync"), "--arm ParSync: has no flow scheduler"),
        ((whole, "--arm", "Nobody"), "--arm Nobody: expected one of 'Flow'"),
        ((whole, "--scheduler", "flow-1"), "--scheduler flow-1: "),
        ((whole, "--rounds", "5"), "--rounds 5: expected FIRST:END"),
        ((whole, "--rounds", "5:5"), "--rounds 5:5: expected END above FIRST"),
        ((whole, "--rounds", "0:201"), "at most 200 rounds"),
        ((whole, "--rounds", "9000:9001"), "--rounds: expected rounds below "),
        ((whole, "--task", 123456789), "has task 123456789 in the graph of flow-0"),
        ((tmp_path / "none.toml",), "none.toml: No such file"),
        ((tmp_path,), "neither a run nor an arm"),
    ):
        assert line in refused(tmp_path, *words), words
    ended = agora("draw", "--example", "quincy", "--out", tmp_path / "page.pdf")
    assert "expected a name that ends in .html or .svg" in ended.stderr


def test_a_cell_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(SMALL_RUN.replace("machines = 60", "machines = 400"))
    line = refused(tmp_path, path)
    assert re.search(r"round 0: \d+ nodes and [\d,]+ arcs are too many to look at", line)
    assert "--task ID" in line
    assert draw(tmp_path, path, "--task", "0").returncode == 0


def test_a_run_that_does_not_repeat_is_refused(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    path = run / "arms/flow/ended.json"
    text = path.read_text()
    digest = json.loads(text)["logs"][VIRTUAL_LOG]["digest"]
    path.write_text(text.replace(digest, "0" * len(digest)))
    assert "the repeated run differs" in refused(tmp_path, run)
