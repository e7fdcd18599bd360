"""Slot scores and data locality of placements: by definition, through the metrics, and in a run."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from experiments.campaign.running import make_workload, run_arm_virtual
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import SlotScore
from experiments.interruption import Interruption
from experiments.workloads.input_data import (
    InputLocality,
    InputReplicas,
    input_catalog,
    place_replicas,
)
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.summary import quantities, summarise
from shared_state.random import Stream, stream_key
from shared_state.tasks import CellSpec
from tests.unit.record_factory import Phase

RACK = np.repeat(np.arange(6, dtype=np.int32), 5)


def test_what_lies_near_is_what_a_walk_over_the_replicas_finds() -> None:
    blocks = np.array([1, 3, 12, 20], np.int64)
    catalog = input_catalog(blocks, RACK, 500, Stream(stream_key(7, "input")))
    replica = place_replicas(RACK, int(blocks.sum()), Stream(stream_key(7, "input")))
    places = InputReplicas(catalog, RACK)
    first = np.concatenate([[0], np.cumsum(blocks)])
    for number, size in enumerate(blocks.tolist()):
        machine = np.arange(len(RACK), dtype=np.int32)
        on, near, whole = places.local_gb(np.full(len(RACK), number + 1, np.int32), machine)
        mine = replica[first[number] : first[number + 1]]
        for m in range(len(RACK)):
            held = sum(m in block for block in mine.tolist())
            beside = sum(any(RACK[r] == RACK[m] for r in block) for block in mine.tolist())
            assert on[m] == (held if held * 10 >= size else 0)
            assert near[m] == (beside if beside * 10 >= size else 0)
            assert whole[m] == size
    # no input, no share
    assert places.local_gb(np.zeros(1, np.int32), np.zeros(1, np.int32))[2].tolist() == [0]


def cell(score: list[int], slots: list[int]) -> CellSpec:
    rack = np.zeros(len(score), np.int32)
    return CellSpec(
        ("slots",), np.array(slots)[:, None], rack, np.array(score, np.int64), np.array([1000])
    )


def test_figures_are_ratios_of_sums_over_first_commits_and_survive_merging_and_pickling() -> None:
    value = SlotScore.of_cell(cell([100, 300], [3, 1]))
    assert value.mean == 150
    parts = [
        RunMetrics(RunFrame([Phase(0, 1000, 50)], 1, partitions=1, values=[value]))
        for _ in range(2)
    ]
    zero = {
        name: [0, 0]
        for name in (
            "job",
            "agent",
            "submit_us",
            "start_us",
            "attempts",
            "prefers",
            "preferred",
            "cost",
            "age_us",
        )
    }
    for part, machines in zip(parts, ([0, 1], [1, 1]), strict=True):
        part.add(
            "tasks",
            {**zero, "task": [0, 1], "machine": machines, "commit_us": [5, 6], "first": [1, 1]},
        )
    parts[1].add(
        "tasks", {**zero, "task": [0, 1], "machine": [0, 0], "commit_us": [9, 9], "first": [0, 0]}
    )
    whole, other = parts[0], pickle.loads(pickle.dumps(parts[1]))
    other.flush()
    whole.merge(other)
    figures = summarise(whole)
    assert figures.overall.value("slot_score_mean") == (100 + 300 + 300 + 300) / (4 * 150)
    assert figures.agents[0].value("slot_score_mean") == figures.overall.value("slot_score_mean")


def test_actors_get_the_values_and_hand_back_their_sums_alone() -> None:
    """Every actor of a live run gets a pickled copy of empty metrics, and sends its own back."""
    value = SlotScore.of_cell(cell([100, 300], [3, 1]))
    empty = RunMetrics(RunFrame([Phase(0, 1000, 50)], 1, partitions=1, values=[value]))
    part = pickle.loads(pickle.dumps(copy.deepcopy(empty)))
    assert len(part.run.values) == 1
    part.close()
    assert pickle.loads(pickle.dumps(part)).run.values == ()
    assert [one.key for one in quantities(part) if one.metric == "placement_values"] == [
        "slot_score_mean"
    ]


def test_input_shares_are_of_the_input_and_not_of_the_tasks() -> None:
    catalog = input_catalog(np.array([1, 9]), RACK, 500, Stream(stream_key(7, "input")))
    places = InputReplicas(catalog, RACK)
    near = InputLocality(places, np.array([1, 2], np.int32), in_rack=False)
    got, whole = near.of(np.array([0, 1]), np.array([catalog.machine[0], 0], np.int32))
    assert near.quantity.key == "input_local_share" and whole.tolist() == [1, 9] and got[0] == 1


@pytest.mark.parametrize(("variance", "kinds"), [(2.0, {"slot_score_mean"}), (0.0, set())])
def test_a_run_has_them_where_the_workload_has_scores(variance: float, kinds: set[str]) -> None:
    group = {
        "name": "x",
        "kind": "weighted_sampling",
        "count": 2,
        "protocol": {"kind": "optimistic", "sync": "diff_block", "gap_s": 0.1},
        "decision": {"clock": "modelled", "task_us": 100.0},
    }
    config = RunConfig.model_validate(
        {
            "seeds": 1,
            "settle_s": 0.1,
            "drain_s": 2.0,
            "workload": {
                "kind": "synthetic",
                "machines": 100,
                "mean_duration_s": 0.2,
                "phase_s": 0.5,
                "batch_tasks": 10,
                "load_percent": [30],
                "preference_groups": 0,
                "slot_score_variance": variance,
            },
            "arms": [
                {
                    "name": "A",
                    "partitions": 4,
                    "groups": [group],
                }
            ],
        }
    )
    workload = make_workload(config, 1)
    assert {value.quantity.key for value in config.workload.values(workload)} == kinds
    result = run_arm_virtual(
        config, config.arms[0], workload, 1, None, lambda _: None, Interruption()
    )
    overall = summarise(result.metrics).overall
    if kinds:
        assert overall.others["slot_score_mean"] > 1.5  # it samples by score, and there is room
    else:
        assert "slot_score_mean" not in overall.others
