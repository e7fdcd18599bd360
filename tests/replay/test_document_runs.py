"""What the documents show runs: every configuration at smoke size, the commands that take seconds,
and the Python that reads what they leave."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands.registry import COMMANDS
from experiments.commands.run import app
from experiments.config.run_config import load_config
from experiments.results import load_run
from experiments.studies.sweeps.sweep_file import read_sweep
from experiments.toml_text import toml_text
from tests.documents import (
    LOADS_A_RUN,
    PACKAGE_OF,
    ROOT,
    Block,
    blocks,
    blocks_of,
    main_comparison,
    run_python,
    whole_toml,
)
from tests.fixtures.commands import exit_status
from tests.fixtures.installed import install
from tests.fixtures.small_run import SMALL_RUN

# of a workload, by kind; a trace that is not part of the repository is only validated (tests/unit)
SMALL: dict[str, dict[str, Any]] = {
    "synthetic": {"machines": 64, "phase_s": 0.5, "mean_duration_s": 0.2, "batch_tasks": 10},
    "service_batch": {"machines": 64, "duration_s": 30.0},
    "csv_trace": {},
}
RUNS = [
    block
    for block in blocks("toml")
    if "project" not in (tree := whole_toml(block))
    and ("workload" not in tree or tree["workload"]["kind"] in SMALL)
]


@pytest.mark.parametrize("block", RUNS, ids=str)
def test_a_configuration_of_a_page_runs_at_smoke_size(
    block: Block,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    example_site: Callable[[str], Path],
    no_figures: None,
    one_process: None,
) -> None:
    for kind, package in PACKAGE_OF.items():
        if f'kind = "{kind}"' in block.text:
            monkeypatch.syspath_prepend(example_site(package))
    monkeypatch.chdir(ROOT)
    (tmp_path / "config.toml").write_text(toml_text(main_comparison()))
    file = tmp_path / "file.toml"
    file.write_text(toml_text(whole_toml(block)))
    if "sweep" in tomllib.loads(file.read_text()):
        config = read_sweep(file, {}).combinations[0].config
    else:
        config = load_config(file)
    file.write_text(toml_text(small(config.model_dump(mode="json", exclude_none=True))))
    assert exit_status(app, "--config", file, "--out", tmp_path / "run") == 0


def small(tree: dict[str, Any]) -> dict[str, Any]:
    """The same arms, or those of the frontier, with little to do: once, in virtual time."""
    shown = {one["arm"] for one in tree.pop("frontier", {}).get("architectures", ())}
    arms = [arm for arm in tree["arms"] if not shown or arm["name"] in shown]
    workload = {**tree["workload"], **SMALL[tree["workload"]["kind"]]}
    of_run = {"runtime": "virtual", "seeds": 1, "sensitivity_seeds": 0, "settle_s": 0.1}
    return {**tree, **of_run, "live": {}, "workload": workload, "arms": arms}


@pytest.mark.parametrize("page", ["README.md", "docs/add_a_scheduler.md"])
def test_the_scheduler_of_a_page_places_every_task(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_figures: None
) -> None:
    """As printed: the first block is the whole module of a package."""
    block = next(block for block in blocks_of(ROOT / page) if block.language == "python")
    install(tmp_path, "last_fit", "last_fit_of_a_page:SPEC", {"last_fit_of_a_page.py": block.text})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "last_fit_of_a_page", raising=False)
    config = tmp_path / "run.toml"
    config.write_text(SMALL_RUN.replace('kind = "random"', 'kind = "last_fit"'))
    assert exit_status(app, "--config", config, "--out", tmp_path / "run") == 0
    for arm in read_summary(tmp_path / "run").arms:
        assert arm.totals.committed == arm.totals.submitted > 0


SHOWN = [  # commands that take seconds, as the pages have them
    "agora model",
    "agora model --load 95 --factor 1,2,4 --out conflicts.svg",
    "agora slots --set extra_slots=2000 --set sync=diff_block --set partitions=20 --out diff_block",
    "agora slots examples/slots.toml --set groups.strategy=adaptive",
    "agora run --config examples/cpu_and_memory.toml",
]


@pytest.mark.parametrize("line", SHOWN)
def test_a_command_of_a_page_runs(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    no_figures: None,
    one_process: None,
) -> None:
    shown = next(block for block in blocks("bash") if line in block.text)
    assert call(line, tmp_path, monkeypatch) == 0
    if "extra_slots" in line:
        after = next(
            block
            for block in blocks_of(shown.page)
            if block.language == "text" and block.line > shown.line
        )
        assert unspaced(after.text) in unspaced(capsys.readouterr().out)


def test_the_page_on_quotas_has_the_delays_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_figures: None, one_process: None
) -> None:
    line = "agora run --config examples/quotas.toml"
    assert call(f"{line} --out run", tmp_path, monkeypatch) == 0
    text = (ROOT / "docs" / "quotas.md").read_text(encoding="utf-8")
    assert line in text
    shown = dict(re.findall(r"^\| (\w+) \(.*?\) \| (.+ s \| .+ s) \|$", text, re.M))
    found: dict[str, list[str]] = {}
    for arm in load_run(tmp_path / "run").arms:
        tasks, quotas = arm.table("tasks"), arm.workload.quotas
        assert quotas is not None
        submitted_s = tasks["submit_us"].to_numpy() / 1e6
        delay_s = tasks["commit_us"].to_numpy() / 1e6 - submitted_s
        group = quotas.group[tasks["task"].to_numpy()]
        counts = tasks["first"].to_numpy().astype(bool) & (submitted_s >= 7) & (submitted_s < 12)
        for number, name in enumerate(quotas.names):
            mean_s = delay_s[counts & (group == number)].mean()
            found.setdefault(name, []).append(f"{mean_s:.2f} s")
    assert shown == {name: " | ".join(delays) for name, delays in found.items()}


def unspaced(text: str) -> str:
    """Text without what depends on the width of the terminal."""
    return " ".join(text.split())


@pytest.mark.usefixtures("one_plot", "one_process")
@pytest.mark.parametrize("name", LOADS_A_RUN)
def test_the_python_of_a_page_reads_what_a_run_left(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    if name == "sweep.md":
        line = "agora sweep examples/sweep.toml --out sweeps/first"
        assert call(line, tmp_path, monkeypatch) == 0
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first").symlink_to(whole)
    monkeypatch.chdir(tmp_path)
    names = run_python(ROOT / "docs" / name)
    table = names["tasks"] if name == "results.md" else names["table"]
    assert table.num_rows > 0


def call(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of a command that is called in a folder with the examples beside it."""
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    _, name, *arguments = shlex.split(line)
    return exit_status(import_module(COMMANDS[name][0]).app, *arguments)
