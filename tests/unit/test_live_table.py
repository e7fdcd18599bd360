"""The table that is shown while an arm runs holds every column, however narrow the terminal."""

from __future__ import annotations

import pytest
from rich.console import Console

from experiments.campaign.arm_runners import live_table
from parsync.metrics.live_line import LiveFigure, SchedulerLine, Snapshot
from tests.unit.known_quantities import QUANTITIES

ADDED = ("age_mean_us", "cost_mean", "utilisation_mean", "jct_mean_us")


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_column_is_cut_off(width: int) -> None:
    quantities = [QUANTITIES[key] for key in ADDED]
    line = SchedulerLine(
        agent=0,
        queue=12_345,
        commits_per_s=1250.0,
        conflict_rate=0.125,
        delay_p50_us=98_700,
        delay_p99_us=198_700,
        preferred_share=0.75,
        delays_below=(),
        delay_sum_us=0,
        others=tuple(LiveFigure(quantity, 7654.0) for quantity in quantities),
    )
    console = Console(width=width, record=True)
    snapshot = Snapshot(1_000_000, 500_000, (line,), 1, 1, 500)
    console.print(live_table("arm", ["scheduler-0"], snapshot, 1, None))
    shown = console.export_text()
    assert "…" not in shown
    for text in ("12,345", "1,250", "12.5 %", "98.7 ms", "198.7 ms", "75.0 %"):
        assert text in shown, text
    for quantity in quantities:
        assert shown.count(quantity.text(7654.0)) >= 1
        words = (quantity.column_label or quantity.label).lower().split()
        assert all(word in shown for word in words), quantity.label
