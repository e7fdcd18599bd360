"""The slot simulator and the platform agree on small cells, with the same settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.slot_cross_check.comparison import CELLS, FIGURES, LEVEL, compare

SEEDS = range(1, 9)  # fixed: a run passes always or never
MORE_SEEDS = range(1, 21)  # its delay differs more from seed to seed
NOISY = "optimistic, StateSync"


@pytest.mark.parametrize("name", CELLS)
def test_no_figure_differs_and_all_are_known_to_be_close(name: str) -> None:
    for one in compare(CELLS[name], MORE_SEEDS if name == NOISY else SEEDS):
        assert one.p_value > LEVEL / (len(CELLS) * len(FIGURES)), one
        assert one.is_equivalent, one


def test_another_choice_of_one_setting_is_noticed() -> None:
    """The test above can fail."""
    settings = CELLS["latency-first, DiffSyn"]
    conflicts, *_ = compare(settings, SEEDS, on_platform=replace(settings, cut_at_sync=False))
    assert conflicts.p_value < LEVEL / (len(CELLS) * len(FIGURES))
    assert not conflicts.is_equivalent
