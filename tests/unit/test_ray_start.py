"""What an embedded Ray needs to start: a token, short paths for its sockets, a second attempt; and
where its workers look for modules."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.ray_glue import cluster, internals
from parsync.runtime.live.run import _absolute
from shared_state.errors import AgoraError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_ray_keeps_its_token_in_the_home_directory(home: Path) -> None:
    cluster._provide_token()
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_without_a_home_directory_the_token_is_in_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", os.devnull)
    try:
        cluster._provide_token()
        assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    finally:
        os.environ.pop("RAY_AUTH_TOKEN", None)


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
def test_a_folder_too_long_for_sockets_is_named(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv(variable, "/tmp/" + "a" * 70)
    with pytest.raises(AgoraError, match=rf"^{variable}=/tmp/a+: \d+ bytes too long for the paths"):
        cluster.connect(None, 100, False)


@pytest.mark.parametrize(("fails", "attempts"), [(1, 2), (2, 2)])
def test_ray_gets_a_second_attempt_whatever_it_raises(
    monkeypatch: pytest.MonkeyPatch, fails: int, attempts: int
) -> None:
    made: list[int] = []

    def start(*_: Any) -> None:
        made.append(1)
        if len(made) <= fails:
            raise Exception("The current node timed out during startup.\nand more")

    monkeypatch.setattr(cluster, "_start", start)
    if fails < attempts:
        cluster.connect(None, 100, False)
    else:
        with pytest.raises(AgoraError) as raised:
            cluster.connect(None, 100, False)
        assert str(raised.value) == (
            "Ray does not start: The current node timed out during startup."
        )
    assert len(made) == attempts


def test_workers_look_where_the_driver_does() -> None:
    """Ray puts each folder before the others, in the order given, and adds none of its own."""
    config = internals.DriversPath(["/first", "/second"])
    path = [*sys.path]
    for folder in config._py_driver_sys_path:
        path.insert(0, folder)
    assert path[:2] == ["/first", "/second"]
    assert config._runtime_env_has_working_dir()


def test_actors_get_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may work in another folder: on a cluster, a relative path is none of this command's."""
    monkeypatch.chdir(tmp_path)
    options = _absolute(LiveOptions(Path("run/log"), Path("run"), Path("run/workload")))
    assert options.journal_dir == tmp_path / "run" / "log"
    assert options.records_dir == tmp_path / "run"
    assert options.workload_dir == tmp_path / "run" / "workload"
    assert _absolute(LiveOptions(Path("log"))).records_dir is None


def test_what_ray_does_not_document_is_used_in_one_file() -> None:
    """A release of Ray may change it: internals.py says what happens then."""
    undocumented = re.compile(r"\bray(\._\w+|\.core\.generated)")
    folder = Path(internals.__file__).parents[1]
    uses = [path for path in folder.rglob("*.py") if undocumented.search(path.read_text())]
    assert uses == [Path(internals.__file__)]
