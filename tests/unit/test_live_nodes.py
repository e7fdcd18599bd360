"""Which nodes of a cluster can take part in a run, and why others cannot; what is shipped to them.
Without Ray."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parsync.runtime.live.ray_glue import nodes
from parsync.runtime.live.ray_glue.nodes import ClockReading, NodeFacts, objection, room, skewed
from shared_state.errors import AgoraError
from tests.fixtures.installed import install

RUN = Path("/shared/run")
GOOD = NodeFacts(sys.version.split()[0], np.__version__, "", sees=True, writes=True)
MS = 1_000_000


def test_a_node_like_this_one_is_welcome() -> None:
    assert objection(GOOD, RUN) == ""
    assert objection(replace(GOOD, sees=False, writes=False), None) == ""


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(GOOD, python="3.10.1", numpy="1.0"), "runs Python 3.10.1, this process 3."),
        (replace(GOOD, numpy="1.26.4"), f"has numpy 1.26.4, this process {np.__version__}"),
        (
            replace(GOOD, numpy="", problem="ModuleNotFoundError: No module named 'numpy'"),
            "has numpy (none), ",
        ),
        (
            replace(GOOD, problem="ModuleNotFoundError: No module named 'pydantic'"),
            "cannot import Agora there: ModuleNotFoundError: No module named 'pydantic'",
        ),
        (replace(GOOD, sees=False, writes=False), "does not see the run directory /shared/run"),
        (replace(GOOD, writes=False), "cannot write into the run directory /shared/run"),
    ],
)
def test_the_first_thing_that_is_wrong_is_named(facts: NodeFacts, why: str) -> None:
    assert objection(facts, RUN).startswith(why)


def test_what_a_worker_answers_here(tmp_path: Path) -> None:
    ask = nodes._questions()
    (tmp_path / "marker").touch()
    assert NodeFacts(*ask("parsync.runtime.live.cell_host", str(tmp_path / "marker"))) == GOOD
    assert [path.name for path in tmp_path.iterdir()] == ["marker"]
    unseen = NodeFacts(*ask("parsync.no_such_module", str(tmp_path / "elsewhere" / "marker")))
    assert unseen == replace(
        GOOD,
        problem="ModuleNotFoundError: No module named 'parsync.no_such_module'",
        sees=False,
        writes=False,
    )


def test_a_clock_is_called_wrong_only_if_the_readings_prove_it() -> None:
    assert ClockReading(100 * MS, 140 * MS, 150 * MS).ahead_ns == 0
    assert ClockReading(100 * MS, 170 * MS, 150 * MS).ahead_ns == 20 * MS
    assert ClockReading(100 * MS, 70 * MS, 150 * MS).ahead_ns == -30 * MS
    assert skewed(1_500 * MS).startswith("its clock is 1.5 s ahead of this machine's")
    assert skewed(-20 * MS).startswith("its clock is 0.02 s behind this machine's")


def test_hosts_go_to_the_other_nodes_first() -> None:
    whole = {"CPU": 4.0, "memory": 1e9}
    assert room(dict.fromkeys("abc", whole), dict.fromkeys("abc", whole), "b") == ["a", "c", "b"]


def test_nodes_that_others_have_reserved_are_left_out() -> None:
    whole = {"CPU": 4.0, "memory": 1e9}
    free = {"a": {"memory": 1e9}, "b": whole, "c": {"CPU": 4.0}}
    assert room(dict.fromkeys("abc", whole), free, "b") == ["b"]


def test_nodes_without_processors_take_part_only_as_the_caller_s_own() -> None:
    none, whole = {"memory": 1e9}, {"CPU": 4.0, "memory": 1e9}
    assert room({"a": none, "b": none}, {"a": none, "b": none}, "b") == ["b"]
    assert room({"a": whole, "b": none}, {"a": whole, "b": none}, "b") == ["a"]


@pytest.mark.parametrize(
    ("free", "why"),
    [
        ({"a": {"memory": 1e9}, "b": {"memory": 1e9}}, "have reserved all CPUs or all memory"),
        ({"a": {"CPU": 1.0, "memory": 1e9}, "b": {"CPU": 1.0}}, "all memory of this machine's"),
    ],
)
def test_a_cluster_without_room_is_refused(free: dict[str, dict[str, float]], why: str) -> None:
    whole = {"CPU": 4.0, "memory": 1e9}
    with pytest.raises(AgoraError, match=f"^the cluster has no room: other jobs .*{why}"):
        room({"a": whole, "b": whole}, free, "b")


ROOT = Path(__file__).parents[2]


def shipped_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_our_packages_are_shipped_without_their_sources_and_nothing_beside_them(
    tmp_path: Path,
) -> None:
    nodes.fill(tmp_path)
    files = shipped_files(tmp_path)
    assert {Path(file).parts[0] for file in files} == {
        "flowsolver",
        "shared_state",
        "schedulers",
        "parsync",
        "experiments",
    }
    assert {"parsync/runtime/live/cell_host.py", "flowsolver/py.typed"} <= files
    modules = {Path(file).parent.as_posix() for file in files if file.endswith(".so")}
    assert modules == {
        "flowsolver",
        "shared_state",
        "schedulers",
        "parsync/core",
        "parsync/protocols",
        "parsync/metrics",
        "parsync/model",
    }
    assert not [file for file in files if file.endswith((".cpp", ".hpp", ".pyc", ".pyi"))]


def test_what_actors_run_is_shipped_with_its_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, folder = tmp_path / "site", tmp_path / "shipped"
    install(site, "single", "single_file:SPEC", {"single_file.py": "SPEC = 1"})
    package = {"theirs/__init__.py": "", "theirs/native/deep.py": "SPEC = 2", "theirs/a.json": ""}
    install(site, "package", "theirs.native.deep:SPEC", package)
    install(site, "spaced", "space.inner.kind:SPEC", {"space/inner/__init__.py": "", "space/x": ""})
    install(site, "broken", "missing_module:SPEC", {})
    install(site, "protocol", "raffle:SPEC", {"raffle.py": "SPEC = 3"}, "agora.protocols")
    install(site, "policy", "feedback:SPEC", {"feedback.py": "SPEC = 4"}, "agora.sync_policies")
    install(site, "metric", "fairness:SPEC", {"fairness.py": "SPEC = 5"}, "agora.metrics")
    install(site, "trace", "reader:SPEC", {"reader.py": "SPEC = 6"}, "agora.workloads")
    monkeypatch.syspath_prepend(site)
    folder.mkdir()
    nodes.fill(folder)
    assert {"single_file.py", *package, "space/inner/__init__.py"} <= shipped_files(folder)
    assert not (folder / "space/x").exists(), "a namespace is not anybody's package"
    for path in (site, ROOT):
        monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(path)])
    ask = """
        from importlib.metadata import entry_points
        import single_file, theirs.native.deep
        groups = ("schedulers", "protocols", "sync_policies", "metrics", "workloads")
        found = {point.name: point.load() for group in groups
                 for point in entry_points(group="agora." + group) if point.name != "spaced"}
        print(found)
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ask)],
        env={"PYTHONPATH": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == (
        "{'single': 1, 'package': 2, 'protocol': 3, 'policy': 4, 'metric': 5, 'trace': 6}"
    )


def test_what_was_shipped_is_imported_although_an_editable_installation_finds_its_own(
    tmp_path: Path,
) -> None:
    for package in ("parsync", "parsync/inner"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "parsync" / "inner" / "module.py").write_text("SHIPPED = True")
    (tmp_path / "other.py").touch()
    told = nodes.runtime_env(tmp_path)
    assert told["working_dir"] == str(tmp_path)
    # the function as a worker gets it, and this project's own finder first, as in a checkout
    script = f"""
        import sys
        from ray import cloudpickle
        sys.path.append({str(ROOT)!r})
        cloudpickle.loads({_pickled(told["worker_process_setup_hook"])!r})()
        import other, parsync.inner.module
        assert parsync.inner.module.SHIPPED and not hasattr(parsync, "runtime")
        import json, experiments
        assert experiments.__file__.startswith({str(ROOT)!r})
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        check=True,
    )


def _pickled(function: object) -> bytes:
    from ray import cloudpickle

    data: bytes = cloudpickle.dumps(function)
    return data
