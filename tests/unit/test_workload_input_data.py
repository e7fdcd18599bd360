"""The input-data model and Quincy's costs, against the formula in floating point and a walk over
the replicas."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from experiments.workloads.draws import bounded_pareto_table, draw, draw_below, zipf_table
from experiments.workloads.input_data import (
    BLOCKS_MAX,
    COST_PER_GB,
    input_blocks,
    input_catalog,
    place_replicas,
    run_time_limits_us,
)
from shared_state.random import Stream, stream_key


def stream(name: str) -> Stream:
    return Stream(stream_key(5, name))


def blocks_by_formula(run_us: float) -> int:
    quantile = 1 - 0.298 * (run_us / 3.6e9) ** -0.2627
    mb = 64.0 if quantile <= 0.5 else 2 ** ((quantile - 0.5) * math.log2(320) / 0.5) * 64
    return math.ceil(mb / 1024)


def test_blocks_follow_the_formula() -> None:
    hours = [1e-6, 0.1, 0.139, 0.14, 1, 1.6, 1.7, 2, 5, 10, 24, 100, 1000, 10_000, 1e6]
    run_us = np.array([int(h * 3.6e9) for h in hours])
    assert input_blocks(run_us).tolist() == [blocks_by_formula(value) for value in run_us]
    limits = np.array(run_time_limits_us())
    assert len(limits) == BLOCKS_MAX - 1 and (np.diff(limits) > 0).all()
    for number, limit in enumerate(limits[:10], start=1):
        assert (
            blocks_by_formula(limit * (1 - 1e-9)) == number
            and blocks_by_formula(limit * (1 + 1e-9)) == number + 1
        )
    assert input_blocks(np.append(limits, limits + 1)).tolist() == [*range(1, 20), *range(2, 21)]


RACKS = {
    "racks of four": np.repeat(np.arange(6, dtype=np.int32), 4),
    "uneven racks": np.repeat(np.arange(4, dtype=np.int32), [1, 7, 2, 1]),
    "one rack": np.zeros(9, np.int32),
    "lone machines": np.arange(5, dtype=np.int32),
}


@pytest.mark.parametrize("racks", RACKS)
def test_replicas_are_two_in_a_rack_and_one_elsewhere(racks: str) -> None:
    rack = RACKS[racks]
    replica = place_replicas(rack, 3000, stream("replicas"))
    assert ((replica >= 0) & (replica < len(rack))).all()
    assert all(len(set(row)) == 3 for row in replica.tolist())
    size = np.bincount(rack)
    first, second, third = rack[replica].T
    paired = size[first] > 1
    assert (first[paired] == second[paired]).all()
    if len(size) > 1:
        assert (third[paired] != first[paired]).all()
    assert set(replica[:, 0].tolist()) == set(replica[:, 2].tolist()) == set(range(len(rack)))


@pytest.mark.parametrize("machines", [1, 2])
def test_cells_too_small_for_three_replicas(machines: int) -> None:
    replica = place_replicas(np.zeros(machines, np.int32), 50, stream("tiny"))
    assert set(replica.ravel().tolist()) == set(range(machines))
    catalog = input_catalog(np.array([4, 11]), np.zeros(machines, np.int32), 0, stream("tiny"))
    assert (catalog.machine_cost >= 0).all() and catalog.machine_offsets[-1] == 2 * machines


@pytest.mark.parametrize("percent", [2, 10, 14, 60])
@pytest.mark.parametrize("racks", RACKS)
def test_costs_against_a_walk_over_the_replicas(racks: str, percent: int) -> None:
    rack = RACKS[racks]
    blocks = np.array([1, 3, 20, 11, 1, 12])
    replica = place_replicas(rack, int(blocks.sum()), stream("catalog"))
    catalog = input_catalog(blocks, rack, 70, stream("catalog"), percent)
    inputs = np.split(replica, np.cumsum(blocks)[:-1])
    for number, rows in enumerate(inputs, start=1):
        holds = Counter(machine for row in rows.tolist() for machine in set(row))
        rack_holds = Counter(
            where for row in rows.tolist() for where in {int(rack[machine]) for machine in row}
        )
        size = len(rows)
        cost = {}
        for machine in range(len(rack)):
            local, in_rack = holds[machine], rack_holds[int(rack[machine])] - holds[machine]
            if local * 100 >= percent * size:
                cost[machine] = COST_PER_GB * (in_rack + 2 * (size - local - in_rack))
        rack_cost = {
            where: COST_PER_GB * (2 * size - held)
            for where, held in rack_holds.items()
            if held * 100 >= percent * size
        }
        listed = slice(catalog.machine_offsets[number], catalog.machine_offsets[number + 1])
        assert (
            dict(
                zip(
                    catalog.machine[listed].tolist(),
                    catalog.machine_cost[listed].tolist(),
                    strict=True,
                )
            )
            == cost
        )
        listed = slice(catalog.rack_offsets[number], catalog.rack_offsets[number + 1])
        assert (
            dict(
                zip(catalog.rack[listed].tolist(), catalog.rack_cost[listed].tolist(), strict=True)
            )
            == rack_cost
        )
        assert (
            catalog.elsewhere_cost[number]
            == 2 * COST_PER_GB * size
            == catalog.unscheduled_cost[number] - 70
        )


def test_waiting_may_be_made_free_but_never_negative() -> None:
    catalog = input_catalog(np.array([1, 2]), RACKS["one rack"], -(10**6), stream("free"))
    assert catalog.unscheduled_cost.tolist() == [0, 0, 0]


def test_no_inputs() -> None:
    catalog = input_catalog(np.zeros(0, np.int64), RACKS["one rack"], 5, stream("none"))
    assert (
        catalog.sets == 1
        and catalog.machine_offsets.tolist() == [0, 0]
        and catalog.unscheduled_cost.tolist() == [5]
    )


def test_waiting_is_never_cheaper_for_a_task_without_input() -> None:
    catalog = input_catalog(np.array([1, 20, 3]), RACKS["one rack"], 500, stream("services"))
    assert catalog.unscheduled_cost.tolist() == [40_500, 2_500, 40_500, 6_500]


def test_tables_are_the_distributions() -> None:
    zipf = np.diff(zipf_table(50, 0.5), prepend=0)
    assert zipf / zipf[0] == pytest.approx(np.arange(1, 51) ** -0.5, rel=1e-9)
    pareto = np.diff(bounded_pareto_table(30, 1.14), prepend=0)
    k = np.arange(1.0, 31.0)
    assert pareto / pareto.sum() == pytest.approx(
        (k**-1.14 - (k + 1) ** -1.14) / (1 - 31**-1.14), rel=1e-9
    )


def test_draws_follow_their_table_and_bounds() -> None:
    drawn = draw(stream("draw"), np.cumsum(np.array([1, 0, 6, 3])), 20_000)
    assert np.bincount(drawn, minlength=4) / 20_000 == pytest.approx([0.1, 0, 0.6, 0.3], abs=0.02)
    bound = np.tile(np.array([1, 2, 7]), 4000)
    below = draw_below(stream("below"), bound)
    assert ((below >= 0) & (below < bound)).all() and np.bincount(below[bound == 7]).min() > 400
