"""The parallel map on Ray's workers."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from experiments.campaign import loop as engine
from experiments.campaign.points import paired_points, run_points
from experiments.campaign.running import seed_figures
from experiments.config.run_config import validated
from experiments.interruption import Interruption
from parsync.runtime.live.ray_glue.parallel_map import RETRIES, attached, ray_map
from shared_state.errors import AgoraError
from tests.fixtures.mapped import kill_always, kill_once, square
from tests.fixtures.run_toml import arm_toml
from tests.replay.test_sweep_engine import TEXT, never

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("embedded_ray")]


def test_every_item_is_mapped_and_one_whose_worker_is_killed_again(tmp_path: Path) -> None:
    results = dict(ray_map(square, range(8), never))
    assert results == {number: number * number for number in range(8)}
    markers = [tmp_path / name for name in "ab"]
    assert dict(ray_map(kill_once, markers, never, 1)) == dict(enumerate("ab"))


def test_an_item_that_always_kills_its_worker_is_named(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with pytest.raises(AgoraError, match=rf"{marker}: its worker was lost {RETRIES + 1} times"):
        list(ray_map(kill_always, [marker], never))
    assert marker.read_text().count("killed") == RETRIES + 1


def test_a_check_that_raises_ends_the_map() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(ray_map(square, range(100), stop))


def test_nodes_are_asked_for_what_calls_import() -> None:
    with (
        pytest.raises(AgoraError, match=r"node .*: cannot import Agora there: .*no_such_module"),
        attached(None, "experiments.no_such_module"),
    ):
        pass


def test_points_run_on_the_ray_that_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "local_map", None)
    run = validated(tomllib.loads(TEXT + arm_toml("one")), "test")
    done = list(run_points(paired_points(run), Interruption()))
    assert [point.seed for point, _ in done] == [1, 2]
    for point, figures in done:
        assert figures == seed_figures(point.config, point.arm, point.seed)
