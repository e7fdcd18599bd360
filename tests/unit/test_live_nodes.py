"""Which nodes of a cluster can take part in a run, and why others cannot. Without Ray."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parsync.runtime.live.ray_glue import nodes
from parsync.runtime.live.ray_glue.nodes import ClockReading, NodeFacts, objection, room, skewed
from shared_state.errors import AgoraError

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
