"""The packages and runs of examples/: pip installs each package elsewhere, and what is installed so
runs beside what is built in."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from experiments.analysis.run_directory import read_summary
from experiments.config.run_config import load_config
from experiments.config.workload_config import WorkloadConfig
from experiments.workloads import registry as workloads
from experiments.workloads.synthetic import SyntheticOptions
from schedulers import registry
from schedulers.conformance import check_conformance
from tests.fixtures.commands import agora
from tests.fixtures.run_toml import group_toml, short_run_toml
from tests.fixtures.stopping import ROOT
from tests.unit.test_add_a_sync_policy import install_mistaken, site_of

EXAMPLES = ROOT / "examples"
PACKAGES = (
    "flow_policies",
    "metrics",
    "protocols",
    "schedulers",
    "slot_prices",
    "sync_policies",
    "workloads",
)


@pytest.fixture
def installed(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Puts the package of a folder on the path, and returns where it is."""

    def put(folder: str) -> Path:
        site = example_site(folder)
        monkeypatch.syspath_prepend(site)
        return site

    return put


@pytest.mark.parametrize("folder", PACKAGES)
def test_pip_installs_it(example_site: Callable[[str], Path], folder: str) -> None:
    site = example_site(folder)  # and leaves nothing behind
    [package] = distributions(path=[str(site)])
    assert package.version == "1.0" and package.requires == ["agora"] and package.entry_points
    for point in package.entry_points:
        assert point.group == f"agora.{folder}"
        assert (site / point.module / "__init__.py").is_file()


def test_their_settings_differ_in_names_only() -> None:
    def form(folder: str) -> dict[str, object]:
        tree = tomllib.loads((EXAMPLES / folder / "pyproject.toml").read_text(encoding="utf-8"))
        [(_, points)] = tree["project"].pop("entry-points").items()
        del tree["project"]["name"]
        assert tree["tool"]["scikit-build"]["wheel"].pop("packages") == [*points]
        return tree

    assert sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml")) == [*PACKAGES]
    assert all(form(folder) == form("schedulers") for folder in PACKAGES)


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("add_a_metric", "metrics/long_waits"),
        ("add_a_protocol", "protocols/lottery"),
        ("", "schedulers/two_choices"),
    ],
)
def test_its_page_shows_the_example_whole_and_it_is_short(page: str, source: str) -> None:
    code = (EXAMPLES / source / "__init__.py").read_text("utf-8")
    assert len(code.splitlines()) < 60
    if page:
        text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
        folder, name = source.split("/")
        assert f"```python\n{code}```" in text
        entry_point = f'[project.entry-points."agora.{folder}"]\n{name} = "{name}:'
        assert entry_point in text
        assert entry_point in (EXAMPLES / folder / "pyproject.toml").read_text("utf-8")


@pytest.mark.usefixtures("no_figures")
def test_a_scheduler_keeps_the_contract_and_shares_a_cell_with_a_kind_of_ours(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    site = installed("schedulers")
    spec = registry.get("two_choices")
    assert Path(str(sys.modules[spec.build.__module__].__file__)).is_relative_to(site)
    check_conformance(spec)
    check_conformance(spec, {"choices": 1})
    groups = group_toml("mine", "two_choices", 2, TOGETHER, "options = { choices = 3 }")
    groups += group_toml("random", "random", 2, TOGETHER)
    (tmp_path / "run.toml").write_text(
        f'{short_run_toml(90)}\n[[arms]]\nname = "Two choices"\npartitions = 6\n{groups}'
    )
    run = agora("run", "--config", tmp_path / "run.toml", "--out", tmp_path / "run")
    assert run.returncode == 0, run.stderr
    [arm] = read_summary(tmp_path / "run").arms
    assert arm.totals.committed == arm.totals.submitted > 0


TOGETHER = 'sync = "diff_block", gap_s = 0.05, sync_set = "all"'


def summary_of(run: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text("utf-8"))
    return summary


@pytest.mark.usefixtures("no_figures")
def test_a_sync_policy_runs_from_its_toml_file(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    installed("sync_policies")
    run = agora("run", "--config", EXAMPLES / "sync_policies/run.toml", "--out", tmp_path / "run")
    assert run.returncode == 0, run.stderr
    ours, theirs = summary_of(tmp_path / "run")["arms"]
    assert ours["name"] == "conflicts first" and ours["digest"] != theirs["digest"]
    for arm in (ours, theirs):
        assert arm["totals"]["committed"] == arm["totals"]["submitted"] > 1000


@pytest.mark.usefixtures("no_figures", "one_process")
def test_a_sync_policy_that_breaks_its_contract_ends_its_arm_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, out = site_of(tmp_path), tmp_path / "run"
    says = install_mistaken(site, "a list of int64")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setitem(sys.modules, "conflicts_first", None)  # so that it is gone afterwards
    monkeypatch.delitem(sys.modules, "conflicts_first")
    run = agora("run", "--config", EXAMPLES / "sync_policies/run.toml", "--out", out)
    assert run.returncode == 2
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [f"error: 'conflicts first': in the warm-up before time 0: {says}"]
    broken, other = summary_of(out)["arms"]
    assert broken["partial"] and not broken["totals"]["committed"], "it broke in its warm-up"
    assert other["totals"]["committed"] == other["totals"]["submitted"] > 1000


@pytest.mark.usefixtures("no_figures")
def test_a_trace_reader_runs_from_its_toml_file_and_its_run_again(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    installed("workloads")
    run, toml = tmp_path / "run", EXAMPLES / "workloads/run.toml"
    done = agora("run", "--config", toml, "--out", run)
    assert done.returncode == 0, done.stderr
    summary = summary_of(run)
    assert summary["workload"]["name"] == summary["config"]["workload"]["kind"] == "csv_trace"
    for arm in summary["arms"]:
        assert arm["totals"]["committed"] == arm["totals"]["submitted"] == 499
    assert workloads.get("csv_trace").attribution in (run / "report.html").read_text("utf-8")
    again, asked = (load_config(file).model_dump() for file in (run / "config.toml", toml))
    for arm in again["arms"]:
        for one in arm["groups"]:  # the workload has no gangs, which settles the mode
            assert one["protocol"].pop("commit_mode") == "incremental"
    assert (again.pop("sample_s"), asked.pop("sample_s")) == (0.1, None)  # settled, too
    assert again == asked, "it can be run again"


@pytest.mark.usefixtures("no_figures")
def test_the_example_of_a_cpu_and_memory_cell_runs(tmp_path: Path) -> None:
    run, toml = tmp_path / "run", EXAMPLES / "cpu_and_memory.toml"
    options = ["--seeds", 1, "--duration", 4]
    assert agora("run", "--config", toml, *options, "--out", run).returncode == 0
    shorter = load_config(toml).workload.options.model_dump() | {"phase_s": 2.0}
    expected = WorkloadConfig.of("synthetic", SyntheticOptions.model_validate(shorter))
    assert load_config(run / "config.toml").workload == expected
    summary = summary_of(run)
    assert summary["workload"]["dimensions"] == ["cpu_milli", "mem_mib"]
    assert summary["workload"]["facts"]["load_percent_of"] == "cpu_milli"
    packed, spread = summary["arms"]
    assert [arm["name"] for arm in (packed, spread)] == ["best fit", "random"]
    for arm in (packed, spread):
        assert arm["totals"]["committed"] == arm["totals"]["submitted"] > 1000
    assert packed["digest"] != spread["digest"]


def test_omega_s_picture_is_drawn_of_a_sweep(tmp_path: Path) -> None:
    """Of two arms, one of which saturates and has lower bounds then."""
    rows = [
        {
            "arm": arm,
            'arms."Shared".groups.service.decision.job_us': t_job,
            "arms.Single.groups.all.decision.job_us": t_job,
            "seed": seed,
            "lower_bounds": "job_wait_batch_mean_us" if t_job > 1000 else "",
            "job_wait_batch_mean_us": 5.0 * t_job,
            "job_wait_service_mean_us": 7.0 * t_job,
            "service_useful_share": 0.1,
            "service_wasted_share": 0.2,
            "service_conflict_fraction": None if arm == "Single" else 0.5,
        }
        for arm in ("Single", "Shared")
        for t_job in (1_000, 1_000_000)
        for seed in (1, 2)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "points.parquet")
    png = tmp_path / "omega.png"
    command = [sys.executable, str(EXAMPLES / "omega" / "figure.py"), str(tmp_path), str(png)]
    subprocess.run(command, check=True)
    assert png.read_bytes().startswith(b"\x89PNG")
