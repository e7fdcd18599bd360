"""Who an actor is and what it is doing, as Ray and `ps` show it: during a run, and while --hold
keeps its actors."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.request import urlopen

import pytest
from ray.util.state import list_actors

from experiments.analysis.run_directory import read_summary
from experiments.commands import replay
from tests.fixtures.run_toml import LIVE, arm_toml, workload_toml
from tests.fixtures.stopping import ROOT

pytestmark = pytest.mark.ray
T = TypeVar("T")
ARM = "ParSync, N=2"
CONFIG = LIVE + workload_toml(200, 8.0, "load_percent = [50]")
ACTORS = ("cell", "coordinator", "schedulers-0", "schedulers-1", "source", "workers")


def patiently(look: Callable[[], T | None]) -> T:
    """What there is to see, within a minute."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        seen = look()
        if seen:
            return seen
        time.sleep(0.1)
    raise AssertionError(f"not seen: {look}")


class Command:
    """A live run with --hold, in a process group of its own."""

    def __init__(self, directory: Path) -> None:
        self.run = directory / "run"
        (directory / "run.toml").write_text(CONFIG + arm_toml(ARM, count=2))
        self.mark = uuid.uuid4().hex
        self.output, self.errors = directory / "stdout", directory / "stderr"
        with self.output.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "experiments.parsync_vs_flow", "--hold"),
                    *("--config", str(directory / "run.toml"), "--out", str(self.run)),
                ],
                cwd=ROOT,
                env={**os.environ, "AGORA_TEST_MARK": self.mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def titles(self) -> dict[int, str]:
        """Command line by process, of all that the command started."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes():
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                    found[int(folder.name)] = line
            except OSError:
                continue
        return {pid: line for pid, line in found.items() if line}

    def address(self) -> str | None:
        """Of its Ray."""
        matches = (re.search(r"--gcs-address=(\S+)", line) for line in self.titles().values())
        return next((match[1] for match in matches if match), None)

    def actors(self, address: str) -> dict[str, str]:
        """What `agora actors` says, by actor."""
        said = subprocess.run(
            [sys.executable, "-m", "experiments.actors", "--address", address],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return dict(line.split(f" (arm {ARM})", 1) for line in said.splitlines())


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Command]:
    command = Command(tmp_path)
    yield command
    if command.process.poll() is None:
        os.killpg(command.process.pid, signal.SIGKILL)


def exported(port: int) -> dict[str, float]:
    """Samples of Agora's metrics on a node's metrics port."""
    lines = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode().splitlines()
    ours = (line.rpartition(" ") for line in lines if line.startswith("ray_agora_"))
    return {name: float(value) for name, _, value in ours}


def logged(pid: int) -> list[str]:
    """The log of an actor, of which the dashboard's Actors page shows the end. From its file: the
    dashboard asks an agent for it, and of all Rays on a machine only one has that."""
    logs = Path("/tmp/ray").glob(f"session_*/logs/worker-*-{pid}.out")
    return max(logs, key=lambda path: path.stat().st_mtime).read_text().splitlines()


def test_actors_are_told_apart_and_asked_during_a_run_and_while_held(held: Command) -> None:
    log = held.run / "arms" / "parsync-n-2" / "log" / "cell.journal"
    patiently(lambda: log.exists() and log.stat().st_size > 2_000)
    titled = [f"ray::agora:{name} (arm {ARM})" for name in ACTORS]
    shown = [
        next((title for title in titled if line.startswith(title)), "")
        for line in held.titles().values()
    ]
    assert sorted(filter(None, shown)) == titled, "each process is told apart at any moment"
    address = patiently(held.address)
    during = held.actors(address)
    assert tuple(sorted(during)) == ACTORS
    assert all(re.match(r", \d+\.\d s into the run: ", said) for said in during.values()), during
    assert re.search(r"greedy-1 \w+, \d+ queued, \d+ rounds", during["schedulers-1"])

    patiently(lambda: "Press Ctrl-C to end them" in held.errors.read_text())
    assert "Traceback" not in held.errors.read_text()
    actors = {actor.name: actor for actor in list_actors(address=address, detail=True)}
    assert tuple(sorted(actors)) == ACTORS
    assert {actor.state for actor in actors.values()} == {"ALIVE"}
    assert actors["schedulers-0"].repr_name == f"schedulers-0 (arm {ARM}): greedy-0"
    lines = logged(actors["schedulers-0"].pid)
    its = [line for line in lines if line.startswith(f"schedulers-0 (arm {ARM})")]
    assert len(its) >= 2 and "s into the run: greedy-0 " in its[0] and "finished" in its[-1]

    committed = read_summary(held.run).arms[0].totals.committed
    after = held.actors(address)
    assert all(said.startswith(", finished: ") for said in after.values())
    of_hosts = [after[name] for name in ("schedulers-0", "schedulers-1")]
    assert sum(int(said.split()[2].replace(",", "")) for said in of_hosts) == committed

    (dashboard,) = re.findall(r"http://\S+", held.errors.read_text())
    nodes = json.load(urlopen(f"{dashboard}/nodes?view=summary"))["data"]["summary"]
    port = nodes[0]["raylet"]["metricsExportPort"]
    name = "ray_agora_scheduling_delay_us_count"

    def counted() -> bool:
        its = {line: value for line, value in exported(port).items() if line.startswith(name)}
        ours = [line for line in its if f'arm="{ARM}"' in line]
        return len(ours) == 2 and sum(its.values()) == committed

    patiently(counted)  # every few seconds, and to the last commit

    os.kill(actors["schedulers-1"].pid, signal.SIGKILL)

    def states() -> dict[str, str]:
        return {actor.name: actor.state for actor in list_actors(address=address, detail=True)}

    patiently(lambda: states()["schedulers-1"] == "DEAD")  # not restarted: the run is over
    os.killpg(held.process.pid, signal.SIGINT)
    assert held.process.wait(60) == 0
    patiently(lambda: not held.titles())
    assert "Traceback" not in held.errors.read_text()
    assert "worker died" not in held.output.read_text() + held.errors.read_text()
    assert replay.replay(log.parent).divergence is None
    assert len(list(log.parent.glob("schedulers-1-*.journal"))) == 1
