"""Generated cells with several resources: shares of machine types and task shapes, amounts within
their ranges, a load that is that of the tightest resource, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from experiments.config.run_config import validated
from experiments.workloads import registry
from experiments.workloads.conformance import check_workload
from experiments.workloads.inspection import describe
from experiments.workloads.resources import MachineType, Resources, TaskShape
from experiments.workloads.synthetic import SyntheticOptions, generate
from shared_state.errors import AgoraError
from tests.fixtures.examples import examples

SMALL, LARGE = {"cpu": 4, "mem": 10}, {"cpu": 8, "mem": 40}
MIXED: dict[str, Any] = {
    "machines": 301,
    "mean_duration_s": 0.2,
    "phase_s": 1.0,
    "batch_tasks": 5,
    "load_percent": [40, 80],
    "machine_types": [{"capacity": SMALL, "weight": 2}, {"capacity": LARGE}],
    "task_shapes": [
        {"request": {"cpu": [1, 3], "mem": 2}, "weight": 3},
        {"request": {"cpu": 8, "mem": [5, 20]}},
    ],
}


def mixed(**changes: Any) -> SyntheticOptions:
    return SyntheticOptions.model_validate({**MIXED, **changes})


def test_machines_have_their_exact_shares_and_are_spread_over_the_cell() -> None:
    cell = generate(mixed(), seed=4).cell
    assert cell.dimensions == ("cpu", "mem")
    small = (cell.capacity == [4, 10]).all(axis=1)
    assert small.sum() == 201 and (cell.capacity[~small] == [8, 40]).all()
    for part in np.array_split(small, 4):
        assert 0.5 < part.mean() < 0.8
    other = generate(mixed(), seed=5).cell
    assert (cell.capacity != other.capacity).any()


def test_requests_have_the_shares_of_their_shapes_and_keep_to_their_ranges() -> None:
    request = generate(mixed(), seed=4).tasks.request
    large = request[:, 0] == 8
    assert abs(large.mean() - 0.25) < 0.03
    assert set(request[~large][:, 0]) == {1, 2, 3} and set(request[~large][:, 1]) == {2}
    assert set(request[large][:, 1]) == set(range(5, 21))


def test_the_load_is_that_of_the_tightest_resource() -> None:
    # The cell has 201 * 4 + 100 * 8 = 1604 cpu and 6010 mem; a task asks for 3.5 cpu on average
    # (3 * 2 + 8) / 4 and for 4.625 mem (3 * 2 + 12.5) / 4.
    resources = mixed().resources()
    assert resources.totals() == {"cpu": 1604, "mem": 6010}
    assert resources.tasks_at_once() == ("cpu", Fraction(1604 * 4, 14))
    workload = generate(mixed(duration_sigma=0), seed=4)
    assert workload.facts["load_percent_of"] == "cpu"
    phases: Any = describe(workload)["phases"]
    for phase, load in zip(phases, (40, 80), strict=True):
        assert phase["offered_percent"]["cpu"] == pytest.approx(load, rel=0.06)
        assert phase["offered_percent"]["mem"] < 0.5 * load
    scarce = mixed(task_shapes=[{"request": {"cpu": 1, "mem": [5, 9]}}])
    assert scarce.resources().tasks_at_once() == ("mem", Fraction(6010, 7))


def test_one_type_and_one_shape_draw_nothing_and_are_slots_by_another_name() -> None:
    plain = SyntheticOptions(machines=50, slots_per_machine=4, batch_tasks=5, phase_s=1.0)
    named = SyntheticOptions.model_validate(
        {
            **plain.model_dump(),
            "slots_per_machine": 10,
            "machine_types": [{"capacity": {"cores": 4}}],
            "task_shapes": [{"request": {"cores": 1}}],
        }
    )
    one, other = generate(plain, 7), generate(named, 7)
    assert other.cell.dimensions == ("cores",)
    assert np.array_equal(one.cell.capacity, other.cell.capacity)
    assert np.array_equal(one.arrival_us, other.arrival_us)
    assert np.array_equal(one.duration_us, other.duration_us)
    assert other.tasks.request.strides[0] == 0, "it takes no memory"
    assert "load_percent_of" not in other.facts


amounts = st.integers(1, 50)


@st.composite
def cells(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
    capacities = st.fixed_dictionaries(dict.fromkeys(names, amounts))
    types = draw(st.lists(capacities, min_size=1, max_size=3))
    # every shape fits the first type, which some machine is of
    within = {
        name: st.tuples(st.integers(1, types[0][name]), st.integers(1, types[0][name])).map(sorted)
        for name in names
    }
    shapes = draw(st.lists(st.fixed_dictionaries(within), min_size=1, max_size=3))
    weights = st.integers(1, 9)
    return {
        "machine_types": [
            {"capacity": capacity, "weight": 1000 if not k else draw(weights)}
            for k, capacity in enumerate(types)
        ],
        "task_shapes": [{"request": request, "weight": draw(weights)} for request in shapes],
    }


@examples(40)
@given(cells(), st.integers(1, 60), st.integers(0, 2**32))
def test_every_such_workload_keeps_the_contract(
    cell: dict[str, Any], machines: int, seed: int
) -> None:
    options = {**MIXED, **cell, "machines": machines, "batch_tasks": 2}
    try:
        workload = check_workload(registry.get("synthetic"), options, seed)
    except AgoraError as error:
        assume("no batch arrives" not in str(error))
        raise
    assert workload.facts["tasks_larger_than_every_machine"] == 0
    resources = SyntheticOptions.model_validate(options).resources()
    totals = dict(zip(workload.cell.dimensions, workload.cell.capacity.sum(axis=0), strict=True))
    assert resources.totals() == totals


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"task_shapes": []}, "machine_types and task_shapes: expected both or none of them"),
        ({"machine_types": []}, "machine_types and task_shapes: expected both or none of them"),
        ({"slots_per_machine": 4}, "slots_per_machine: has no effect with machine_types"),
        (
            {"machine_types": [{"capacity": SMALL}, {"capacity": {"cpu": 3, "gpu": 1}}]},
            "machine_types.1: expected amounts of cpu, mem, got cpu, gpu",
        ),
        (
            {"task_shapes": [{"request": {"cpu": 1}}]},
            "task_shapes.0: expected amounts of cpu, mem, got cpu",
        ),
        (
            {"task_shapes": [{"request": {"cpu": [1, 9], "mem": 1}}]},
            "task_shapes.0: larger than every machine",
        ),
        (  # larger than each machine in another resource
            {
                "machine_types": [
                    {"capacity": {"cpu": 9, "mem": 1}},
                    {"capacity": {"cpu": 1, "mem": 9}},
                ],
                "task_shapes": [{"request": {"cpu": 5, "mem": 5}}],
            },
            "task_shapes.0: larger than every machine",
        ),
        (  # its type got none of the machines
            {
                "machines": 1,
                "machine_types": [{"capacity": SMALL, "weight": 9}, {"capacity": LARGE}],
            },
            "task_shapes.1: larger than every machine",
        ),
        (
            {"gang_permille": 10, "batch_tasks": 1605},
            "batch_tasks: a gang of 1,605 tasks does not fit the cell, of 1,604 cpu in all",
        ),
        (
            {"task_shapes": [{"request": {"cpu": [3, 1], "mem": 1}}]},
            "task_shapes.0.request.cpu: expected [least, most], got [3, 1]",
        ),
        (
            {"task_shapes": [{"request": {"cpu": "1", "mem": 1}}]},
            "task_shapes.0.request.cpu: expected an amount, or [least, most]",
        ),
        (
            {"task_shapes": [{"request": {"cpu": [1, 2, 3], "mem": 1}}]},
            "task_shapes.0.request.cpu: expected an amount, or [least, most]",
        ),
        (
            {"task_shapes": [{"request": {"cpu": 0, "mem": [0, 1]}}]},
            "task_shapes.0: some tasks would ask for nothing; expected at least 1 of some resource",
        ),
        (
            {"task_shapes": [{"request": {"cpu": [1, 2.5], "mem": 1}}]},
            "task_shapes.0.request.cpu.1: Input should be a valid integer, got 2.5",
        ),
        (
            {"machine_types": [{"capacity": {"CPU units": 1}}]},
            "machine_types.0.capacity.CPU units.[key]: String should match pattern",
        ),
        ({"machine_types": [{"capacity": {}}]}, "machine_types.0.capacity: "),
        ({"machine_types": [{"capacity": SMALL, "share": 1}]}, "machine_types.0.share: unknown op"),
        ({"machine_types": [{"capacity": SMALL, "weight": 0}]}, "machine_types.0.weight: "),
        ({"machine_types": [{"capacity": {"cpu": True}}]}, "machine_types.0.capacity.cpu: "),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(changes: dict[str, Any], says: str) -> None:
    tree = {"workload": {"kind": "synthetic", **MIXED, **changes}}
    with pytest.raises(AgoraError) as refused:
        validated(tree, "run.toml")
    line = str(refused.value)
    assert line.startswith(("run.toml: workload." + says, "run.toml: workload: " + says)), line


def test_machines_are_shared_out_whole() -> None:
    types = [MachineType(capacity={"a": 1}, weight=weight) for weight in (1, 1, 1)]
    shapes = [TaskShape(request={"a": (1, 1)})]
    assert Resources.of(10, types, shapes).machines == (4, 3, 3)
    assert Resources.of(2, types, shapes).machines == (1, 1, 0)
