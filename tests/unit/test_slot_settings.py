"""What the slot simulator refuses, and the choices it shares with the agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest

from parsync.model import _native
from parsync.model.slot_results import Ending
from parsync.model.slot_settings import (
    STRATEGIES,
    Phase,
    SchedulerGroup,
    SlotSettings,
    paper_settings,
)
from parsync.model.slot_simulator import simulate
from parsync.protocols.optimistic.choices import (
    SlotWeighting,
    StrategyKind,
    SyncMode,
)
from parsync.protocols.optimistic.sync import registry
from parsync.protocols.pending_queue import LoserPolicy
from schedulers.interface import PartitionQuality
from shared_state.errors import AgoraError
from tests.unit.slot_cells import small_settings

GROUP = SchedulerGroup(schedulers=4, batch_tasks=10)
NAN, INFINITY = float("nan"), float("inf")


def with_group(**changes: Any) -> dict[str, Any]:
    return {"groups": (replace(GROUP, **changes),)}


def with_rates(*rates: float, duration_s: float = 10.0) -> dict[str, Any]:
    return {"phases": (Phase(duration_s=duration_s, rate_per_s=rates),)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sync": SyncMode.DIFF_BLOCK, "partitions": 7}, "partitions: expected at least 8, one"),
        ({"sync": SyncMode.SAME_BLOCK, "partitions": 7}, "partitions: expected at least 8, one"),
        ({"partitions": 0}, "partitions: expected 1 to"),
        ({"partitions": 2_001}, "partitions: expected at most one per slot"),
        ({"slots": 0}, "slots: expected 1 to"),
        ({"slots": 2.5}, "slots: expected a whole number"),
        ({"extra_slots": -1}, "extra_slots: expected 0 or more"),
        ({"score_variance": -2.0}, "score_variance: expected 0 to"),
        ({"score_variance": NAN}, "score_variance: expected 0 to"),
        ({"task_s": 0.0}, "task_s: expected 1e-09 s to"),
        ({"gap_s": 0.0}, "gap_s: expected 1e-09 s to"),
        ({"gap_s": 1e-6}, "gap_s: expected at least 8e-06 s"),
        ({"gap_s": NAN}, "gap_s: expected at most"),
        ({"latency_s": -0.1}, "latency_s: expected 0 s to"),
        ({"service_s": INFINITY}, "service_s: expected at most"),
        ({"scan_cost": -1.0}, "scan_permille: expected 0 to"),
        ({"losers": LoserPolicy.REQUEUE, "requeue_s": 0.0}, "requeue_s: expected"),
        ({"bin_s": 1e-9}, "bin_s: expected fewer than"),
        ({"gap_slices": 0}, "gap_slices: expected 1 to"),
        ({"seed": -1}, "seed: expected 0 to"),
        ({"horizon_s": 5.0}, "horizon_s: expected at least the length of all phases"),
        ({"growing_bins": 3}, "finish_by_s: expected"),
        ({"groups": ()}, "groups: expected at least one"),
        (with_group(schedulers=0), "schedulers: expected 1 to"),
        (with_group(batch_tasks=0), "batch_tasks: expected 1 to"),
        (with_group(decision_s=0.0), "decision_s: expected 1e-09 s to"),
        (with_group(average_permille=0), "average_permille: expected 1 to"),
        (with_group(strategy=StrategyKind.ADAPTIVE, tau_s=0.0), "tau_s: expected"),
        (with_group(strategy=StrategyKind.FRESHEST_PREFERRED), "strategy: expected one of"),
        (with_group(strategy=StrategyKind.PROMPT), "strategy: expected one of"),
        (with_group(schedulers=10_001), "schedulers: expected 1 to"),
        ({"slots": 90_000_000, **with_group(schedulers=1_000)}, "schedulers: 1000 views of"),
        ({"phases": ()}, "phases: expected at least one"),
        (with_rates(100.0, 100.0), "phases: expected a rate for each of the 1 groups, got 2"),
        (with_rates(-1.0), "phases: rate_per_s: expected 0 to"),
        (with_rates(NAN), "phases: rate_per_s: expected a number"),
        (with_rates(0.0), "phases: rate_per_s: no task would arrive"),
        (with_rates(100.0, duration_s=0.0), "phases: duration_s: expected"),
        (with_rates(1e6), "schedulers can decide no more than"),
        ({"slots": 20}, "20 slots can run no more than"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(AgoraError, match="^" + message if ":" in message else message):
        simulate(replace(small_settings(), **changes))


@pytest.mark.parametrize(
    ("enum", "names"),
    [
        (STRATEGIES, _native.STRATEGY_NAMES),
        (SyncMode, _native.SYNC_MODE_NAMES),
        (SlotWeighting, _native.SLOT_WEIGHTING_NAMES),
        (PartitionQuality, _native.PARTITION_QUALITY_NAMES),
        (LoserPolicy, _native.LOSER_POLICY_NAMES),
        (Ending, _native.ENDING_NAMES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_choices_have_the_same_names_and_order_in_native_code(
    enum: Iterable[Enum], names: list[str]
) -> None:
    assert [member.name for member in enum] == names


def test_sync_modes_are_sync_policies_of_the_agent() -> None:
    assert {mode.value for mode in SyncMode} <= set(registry.kinds())


def test_the_paper_setting_is_load_one_of_a_fully_used_cell() -> None:
    settings = paper_settings(4)
    assert isinstance(settings, SlotSettings)
    assert settings.schedulers == 40
    (group,), (phase,) = settings.groups, settings.phases
    assert group.batch_tasks == 25
    assert phase.rate_per_s[0] * settings.task_s == settings.slots
    assert 10 / group.decision_s == phase.rate_per_s[0]
    with pytest.raises(AgoraError, match=r"^schedulers_factor: expected 1 to 100, got 0"):
        paper_settings(0)
