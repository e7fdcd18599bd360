"""What is shipped to a cluster's nodes: our packages and those of registered schedulers, found
first there whatever is installed. Without Ray."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from parsync.runtime.live.ray_glue import nodes as shipping
from tests.fixtures.installed import install

ROOT = Path(__file__).parents[2]


def shipped_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_our_packages_are_shipped_without_their_sources_and_nothing_beside_them(
    tmp_path: Path,
) -> None:
    shipping.fill(tmp_path)
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
    shipping.fill(folder)
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
    told = shipping.runtime_env(tmp_path)
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
