"""The flow policy of docs/add_a_flow_policy.md, as a package of somebody else: it keeps the
contract and does what it says, and the check finds what is wrong with others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from schedulers import registry
from schedulers.conformance import NonConformance
from schedulers.flow.kinds import build
from schedulers.flow.options import FlowOptions, options_with_policy
from schedulers.flow.policies import registry as policies
from schedulers.flow.policies.conformance import check_policy_conformance
from schedulers.flow.policies.interface import AggregatorArcs, MachineLoad, ObservedCell, TaskArcs
from schedulers.flow.policies.registry import PolicySpec
from shared_state.errors import AgoraError
from shared_state.tasks import Int64, TaskBatch
from tests.flow_world import FlowWorld, environment, slot_cell, tasks_of
from tests.unit.test_flow_policy import ServicesFirst

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "flow_policies"
FILE = EXAMPLE / "fullest_first" / "__init__.py"
SOURCE = FILE.read_text(encoding="utf-8")


@pytest.fixture
def spec(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> policies.PolicySpec:
    monkeypatch.syspath_prepend(example_site("flow_policies"))
    monkeypatch.setitem(sys.modules, "fullest_first", None)  # so that it is gone afterwards
    monkeypatch.delitem(sys.modules, "fullest_first")
    return policies.get("fullest_first")


def test_the_page_shows_the_example_whole_and_it_is_short() -> None:
    page = (ROOT / "docs" / "add_a_flow_policy.md").read_text(encoding="utf-8")
    assert SOURCE in page
    assert len(SOURCE.splitlines()) < 60
    entry_point = (
        '[project.entry-points."agora.flow_policies"]\nfullest_first = "fullest_first:SPEC"\n'
    )
    assert entry_point in page and entry_point in (EXAMPLE / "pyproject.toml").read_text()


def test_the_example_keeps_the_contract(spec: PolicySpec) -> None:
    check_policy_conformance(spec)


def test_the_example_fills_the_fullest_machines_first(spec: PolicySpec) -> None:
    cell = slot_cell(machines=3, slots=2, rack_size=3)
    options = options_with_policy(FlowOptions, {"policy": "fullest_first"})
    world = FlowWorld(cell, build(options(policy="fullest_first"), environment(cell)))
    world.rival_claims([1], 1_000)
    world.sync()
    for task in range(3):
        world.offer(tasks_of(np.array([task])))
        plan = world.plan()
        if task == 0:
            assert plan.machine.tolist() == [1]
        world.commit(plan)
        world.sync()
    assert sorted(world.view.free[:, 0].tolist()) == [0, 0, 2]


def test_a_file_with_a_policy_becomes_a_kind_of_flow_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SOURCE.replace('PolicySpec("fullest_first"', 'PolicySpec("of_mine"'))
    with registry.registered([str(file)]) as kinds:
        assert kinds == ("of_mine",)
        spec = registry.get("of_mine")
        options = spec.parse_options({"waiting": 7, "preemption": True})
        cell = slot_cell(machines=2, slots=1, rack_size=2)
        scheduler = spec.build(options, environment(cell))
        assert scheduler._policy.waiting == 7
    assert "of_mine" not in registry.kinds() and "of_mine" not in policies.kinds()


class _Forgets(ServicesFirst):
    """Its costs follow the load, and it does not say so."""

    def __init__(self) -> None:
        self.free: Int64 = np.zeros(1, np.int64)

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        self.free = cell.free[:, 0]

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        machine = np.arange(len(load.room))
        return AggregatorArcs(machine * 0, machine, self.free * 3, machine * 0)

    def stale_aggregators(self) -> Int64:
        return np.zeros(0, np.int64)


class _Draws(ServicesFirst):
    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        arcs = super().task_arcs(tasks)
        return TaskArcs(arcs.row, arcs.head, np.random.randint(0, 50, len(tasks)))  # noqa: NPY002


class _NoOptions(BaseModel):
    pass


class _Repairs(BaseModel):
    repairs: int = 3


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (
            _Forgets,
            "the round costs as little as the arcs allow .*not have named what became stale",
        ),
        (_Draws, "task_arcs: tasks that are asked about again at once have the same arcs"),
    ],
)
def test_the_check_finds_what_is_wrong(policy: type[ServicesFirst], says: str) -> None:
    with pytest.raises(NonConformance, match=says):
        check_policy_conformance(PolicySpec("mine", _NoOptions, lambda *_: policy()))


def test_options_of_a_policy_have_names_of_their_own() -> None:
    with pytest.raises(
        AgoraError, match="flow policy 'mine': option 'repairs' is also one of all flow schedulers"
    ):
        check_policy_conformance(PolicySpec("mine", _Repairs, lambda *_: ServicesFirst()))


@pytest.mark.parametrize("name", sorted(policies.BUILT_IN))
def test_the_policies_of_the_project_keep_the_contract(name: str) -> None:
    check_policy_conformance(policies.get(name), resources=("net_mbps", "cpu"))
