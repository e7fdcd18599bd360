"""docs/cluster.md followed literally: two nodes on this machine, a token, and a run on both of
them. Then what a user may get wrong, a wheel, and nodes that are lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.run_directory import read_summary
from experiments.analysis.summary_model import RunSummary
from experiments.commands import replay
from parsync.runtime.live.logs import CELL_LOG
from tests.fixtures.commands import without_progress
from tests.fixtures.installed import install
from tests.fixtures.ray_nodes import ROOT, RayNodes
from tests.fixtures.run_toml import LIVE, arm_toml, workload_toml
from tests.unit.test_registry import OWN_SCHEDULER

pytestmark = pytest.mark.ray

CONFIG = LIVE + workload_toml(200, 1.5, "load_percent = [40, 80]") + arm_toml("small")

# Each actor's name and node, in the order in which they were created.
WHERE = """
import json, sys, ray
from ray._private.state import actors
ray.init(address=sys.argv[1], logging_level="ERROR")
found = []
for a in actors().values():
    found.append((a["StartTime"], a["Name"], a["Address"]["NodeID"], a["NumRestarts"]))
print(json.dumps([entry[1:] for entry in sorted(found)]))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    cluster = RayNodes()
    try:
        cluster.second_node()
        yield cluster
    finally:
        cluster.stop()


def config(folder: Path, text: str = CONFIG) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def nodes_and_restarts(nodes: RayNodes) -> tuple[dict[str, str], dict[str, int]]:
    """By name of the last run's actors: where each is or was, and how often it was restarted."""
    where = json.loads(nodes.shell(f"python -c '{WHERE}' {nodes.address}"))
    return {name: node for name, node, _ in where}, {name: times for name, _, times in where}


def test_the_page_s_commands_run_an_arm_on_both_nodes(nodes: RayNodes, tmp_path: Path) -> None:
    nodes.shell(f"{nodes.run.strip()} --config {config(tmp_path)}")
    run = nodes.shared / "agora" / "runs" / "first"
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    [arm] = summary["arms"]
    assert not summary["partial"]
    assert arm["totals"]["committed"] == summary["workload"]["arrivals"] > 0
    assert (run / "report.html").exists()
    assert replay.replay(run / "arms" / "small" / "log").divergence is None
    node_of, _ = nodes_and_restarts(nodes)
    home = node_of["cell"]
    assert node_of["schedulers-0"] != home, "the first host goes to the other node"
    assert {node_of[n] for n in ("schedulers-1", "workers", "source", "coordinator")} == {home}


@pytest.fixture(scope="module")
def wheel(nodes: RayNodes) -> Path:
    """The Python of an environment into which Agora was installed from a wheel. What it depends on
    is found in the environment of the tests; .pth files there, as of the editable installation of
    Agora, have no effect."""
    built, environment = nodes.shared / "wheel", nodes.shared / "environment"
    development = ROOT / "build" / "release"
    cache = development / "CMakeCache.txt"
    before = cache.read_bytes() if cache.exists() else b""
    pip = f"{sys.executable} -m pip --disable-pip-version-check"
    # Its build configures, links and installs. Objects are those of the development build, which
    # took minutes; what is missing there is compiled unoptimised, in a third of the time.
    launcher = f"{ROOT / 'tests' / 'fixtures' / 'built_objects.sh'};{development}"
    build = f"{pip} wheel -q --no-build-isolation --no-deps -C cmake.build-type=None"
    build += f" -C 'cmake.define.CMAKE_CXX_COMPILER_LAUNCHER={launcher}' -w {built} {ROOT}"
    nodes.shell(build, limit_s=900.0)
    assert not before or cache.read_bytes() == before
    nodes.shell(f"{sys.executable} -m venv --without-pip {environment}")
    python = environment / "bin" / "python"
    nodes.shell(f"{pip} --python {python} install -q --no-deps --no-index {built}/*.whl")
    site = nodes.shell(f"{python} -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'")
    rest = Path(site.strip()) / "rest.pth"
    rest.write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return python


def test_a_wheel_runs_from_an_empty_folder(nodes: RayNodes, wheel: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    agora = wheel.parent / "agora"
    runs = {runtime: nodes.shared / f"wheel-{runtime}" for runtime in ("virtual", "ray")}
    for runtime, run in runs.items():
        options = ["--config", config(tmp_path), "--runtime", runtime, "--out", run]
        done = nodes.try_command([agora, "run", *options], empty)
        assert done.returncode == 0, done.stderr
        summary = json.loads((run / "summary.json").read_text("utf-8"))
        assert summary["runtime"] == runtime
        assert summary["arms"][0]["totals"]["committed"] == summary["workload"]["arrivals"] > 0
    for command in (["replay", *runs.values()], ["compare", *runs.values()], ["report", run]):
        done = nodes.try_command([agora, *command], empty)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert not list(empty.iterdir())


def test_a_wheel_has_every_package_with_its_types(wheel: Path, tmp_path: Path) -> None:
    names = ["flowsolver", "shared_state", "schedulers", "parsync", "experiments"]
    ask = f"import importlib; print(*(importlib.import_module(n).__file__ for n in {names}))"
    found = subprocess.run(
        [wheel, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for file in map(Path, found.stdout.split()):
        assert file.is_relative_to(wheel.parents[1]) and (file.parent / "py.typed").is_file()


def test_a_wheel_attaches_and_ships_itself_and_a_registered_scheduler(
    nodes: RayNodes, wheel: Path, tmp_path: Path
) -> None:
    empty, site = tmp_path / "empty", tmp_path / "site"
    empty.mkdir()
    site.mkdir()
    # The nodes were started from the checkout: without shipping, their workers would import that.
    shipped = """
        import os, schedulers
        assert schedulers.__file__.startswith(os.environ["RAY_TMPDIR"]), schedulers.__file__
"""
    begin = "    def plan(self, tasks, view, context):\n"
    assert begin in OWN_SCHEDULER
    source = OWN_SCHEDULER.replace(begin, begin + shipped)
    install(site, "last_fit", "third_party_last_fit:SPEC", {"third_party_last_fit.py": source})
    text = CONFIG.replace('kind = "random"', 'kind = "last_fit"')
    run = nodes.shared / "wheel-attached"
    command = [wheel, "-m", "experiments.parsync_vs_flow", "--config", config(tmp_path, text)]
    command += ["--address", nodes.address, "--out", run]
    done = nodes.try_command(command, empty, {"PYTHONPATH": str(site)})
    assert done.returncode == 0, done.stderr
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    assert summary["arms"][0]["totals"]["committed"] == summary["workload"]["arrivals"] > 0


def refusal(nodes: RayNodes, tmp_path: Path, changes: dict[str, str], before: str = "") -> str:
    """The line with which a run on the nodes is refused; nothing is left of the run."""
    out = nodes.shared / "refused"
    script = f"""
from experiments.commands.run import app
from experiments.command_line import run_command
{before}
run_command(app)
"""
    arguments = ["--config", config(tmp_path), "--address", nodes.address, "--out", out]
    done = nodes.try_command([sys.executable, "-c", script, *arguments], environment=changes)
    assert done.returncode == 2 and done.stdout == "" and not out.exists()
    *others, line = without_progress(done.stderr)
    # nodes are looked at when the first arm begins
    assert all(re.fullmatch(r"1 arm live: about \d+ s\.", other) for other in others), done.stderr
    assert len(others) <= 1
    return line


def test_what_the_real_nodes_refuse(nodes: RayNodes, tmp_path: Path) -> None:
    said = partial(refusal, nodes, tmp_path)
    prefix = f"error: --address {nodes.address}: "
    assert said({"RAY_AUTH_MODE": "disabled"}) == (
        f"{prefix}the cluster asks for a token, and RAY_AUTH_MODE=disabled here"
    )
    assert said({"RAY_AUTH_TOKEN": "another"}) == (
        f"{prefix}the token in RAY_AUTH_TOKEN is not the cluster's"
    )
    ray = said({}, "import ray; ray.__version__ = '2.59.0'")
    assert ray.startswith(f"{prefix}cannot attach: Version mismatch: The cluster was started with:")
    host = nodes.address.rpartition(":")[0]
    assert said({}, "import numpy; numpy.__version__ = '2.0.0'").startswith(
        f"error: node {host}: has numpy {np.__version__}, this process 2.0.0; every node needs"
    )


class Losing:
    """A run of six seconds on the nodes, of which something is lost after its first second."""

    def __init__(self, nodes: RayNodes, folder: Path, lose: Callable[[], None]) -> None:
        text = CONFIG.replace("phase_s = 1.5", "phase_s = 3.0")
        self.run = nodes.shared / folder.name
        self.log = self.run / "arms" / "small" / "log"
        command = [sys.executable, "-m", "experiments.parsync_vs_flow"]
        command += ["--config", config(folder, text), "--address", nodes.address]
        with ThreadPoolExecutor(1) as beside:
            done = beside.submit(nodes.try_command, [*command, "--out", self.run])
            journal = self.log / CELL_LOG
            while not (done.done() or (journal.exists() and journal.stat().st_size > 100_000)):
                time.sleep(0.05)
            lose()
            self.command = done.result()
        self.replayed = replay.replay(self.log)  # raises InvariantViolation
        assert self.replayed.divergence is None

    @property
    def summary(self) -> RunSummary:
        return read_summary(self.run)


def test_schedulers_of_a_lost_node_go_on_on_another(nodes: RayNodes, tmp_path: Path) -> None:
    lost = nodes.second_node()
    run = Losing(nodes, tmp_path, lambda: nodes.lose(lost))
    assert run.command.returncode == 0, run.command.stderr
    [arm] = run.summary.arms
    arrivals = run.summary.workload.arrivals
    assert not run.summary.partial
    assert run.replayed.counts.accepted == arm.totals.committed == arrivals
    node_of, restarts_of = nodes_and_restarts(nodes)
    assert restarts_of["schedulers-0"] == 1 and sum(restarts_of.values()) == 1
    assert set(node_of.values()) == {node_of["cell"]}
    assert "schedulers-0 was lost" in run.command.stderr


def test_the_end_of_the_node_that_the_run_was_started_on(nodes: RayNodes, tmp_path: Path) -> None:
    # The last of these tests: the nodes are of no use afterwards.
    home = nodes.raylets()[0]
    run = Losing(nodes, tmp_path, lambda: nodes.lose(home))
    assert run.command.returncode == 2
    said = "cell, workers, source and coordinator: their node is gone"
    assert run.command.stderr.splitlines()[-1].startswith(f"error: 'small': {said}")
    assert run.summary.partial and said in run.summary.partial_reason
    [arm] = run.summary.arms
    assert 0 < arm.totals.committed == run.replayed.counts.accepted
    assert arm.totals.committed < run.summary.workload.arrivals
    assert (run.run / "report.html").exists()
