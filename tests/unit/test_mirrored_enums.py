"""What C++ and Python both define is the same on both sides."""

from __future__ import annotations

from enum import IntEnum

import pytest

from schedulers import _native as schedulers_native
from schedulers.greedy.scheduler import PlacementKind
from schedulers.interface import PartitionQuality, PartitionRanking
from schedulers.scoring.scheduler import ScoringKind
from shared_state import _native as state_native
from shared_state.cell import MAX_CAPACITY, MAX_DIMENSIONS, MAX_OVERCOMMIT_PERMILLE
from shared_state.transaction import Reason


@pytest.mark.parametrize(
    ("enum", "names"),
    [
        (Reason, state_native.REASON_NAMES),
        (PartitionRanking, schedulers_native.RANKING_NAMES),
        (PartitionQuality, schedulers_native.QUALITY_NAMES),
        (PlacementKind, schedulers_native.PLACEMENT_KIND_NAMES),
        (ScoringKind, schedulers_native.SCORING_KIND_NAMES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_enums_have_the_same_names_and_values(enum: type[IntEnum], names: list[str]) -> None:
    assert {member.name: member.value for member in enum} == {
        name: value for value, name in enumerate(names)
    }


def test_limits_are_within_what_native_code_takes() -> None:
    assert MAX_DIMENSIONS == state_native.MAX_DIMENSIONS
    assert MAX_CAPACITY * MAX_OVERCOMMIT_PERMILLE // 1000 <= state_native.MAX_AMOUNT
