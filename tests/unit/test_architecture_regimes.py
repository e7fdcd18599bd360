"""What examples/questions/architectures/regimes.py says of the points of sweeps."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = "examples/questions/architectures/regimes.py"
SEEDS = range(8)


def rows(
    arm: str, delay_ms: float, cost_us: float, unplaced: int = 0, length_s: float = 1.0
) -> list[dict[str, Any]]:
    return [
        {
            "arm": arm,
            "seed": seed,
            "workload.load_percent": 80,
            "workload.mean_duration_s": length_s,
            'arms."*".groups."*".decision.task_us': cost_us,
            "delay_mean_us": (delay_ms + seed / 100) * 1000,
            "submitted": 1000.0,
            "censored": float(unplaced),
        }
        for seed in SEEDS
    ]


Printed = Callable[..., list[list[str]]]


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Printed:
    """The script's output about these points: the cells of each line."""

    def run(given: list[dict[str, Any]], *options: str) -> list[list[str]]:
        pq.write_table(pa.Table.from_pylist(given), tmp_path / "points.parquet")
        monkeypatch.setattr("sys.argv", [SCRIPT, str(tmp_path), *options])
        runpy.run_path(SCRIPT, run_name="__main__")
        lines = capsys.readouterr().out.splitlines()
        return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]

    return run


def test_the_best_is_alone_only_beyond_one_per_cent(printed: Printed) -> None:
    given = [
        *rows("Distributed", 100, 100.0),
        *rows("Two-level", 500, 100.0, unplaced=2),  # more than one in a thousand
        *rows("Shared state, ParSync", 30, 100.0, unplaced=1),
        *rows("Central, one core", 35, 100.0),
    ]
    head, _, point = printed(given)
    assert head[3:7] == ["Distributed", "Two-level", "Shared state, ParSync", "Central, one core"]
    assert point[:3] == ["80 %", "0.1 ms", "1 s"]
    assert point[3:7] == ["10 %", "saturated", "**3 %**", "**3.5 %**"]
    assert point[7] == "Shared state, ParSync: -0.5 % [-0.5 %, -0.5 %]"
    given = [row for row in given if row["arm"] != "Central, one core"]
    assert printed(given)[2][6].startswith("Shared state, ParSync, alone: -7 %")


def test_calibrated_costs_take_arms_from_points_of_other_costs(printed: Printed) -> None:
    given = [
        *(row for cost in (10.0, 100.0, 1000.0) for row in rows("Distributed", 80 + cost, cost)),
        *(row for cost in (10.0, 100.0, 1000.0) for row in rows("Central, one core", cost, cost)),
        *(row for cost in (10.0, 100.0, 1000.0) for row in rows("Shared state, Omega", 95, cost)),
    ]
    _, _, only = printed(given, "--calibrated")
    assert only[1] == "0.1 ms" and only[3:6] == ["**9 %**", "100 %", "**9.5 %**"]
    assert [line[1] for line in printed(given)[2:]] == ["0.01 ms", "0.1 ms", "1 ms"]


def test_cells_of_several_sizes_are_points_of_their_own(printed: Printed) -> None:
    """8 cores decide 80,000 tasks a second: more than 25,600 that arrive, fewer than 102,400."""
    given = [
        {**row, "workload.machines": machines, "delay_mean_us": delay_us}
        for machines, delay_us in ((32_000, 5e5), (8_000, 1e5))
        for row in rows("Distributed", 0, 100.0)
    ]
    head, _, smaller, larger = printed(given)
    assert head[:3] == ["slots", "load", "decision"]
    assert smaller[:2] == ["32,000", "80 %"] and smaller[4] == "**10 %**"
    assert larger[0] == "128,000" and larger[4] == "overloaded"


def test_the_picture_is_drawn(printed: Printed, tmp_path: Path) -> None:
    given = [*rows("Distributed", 100, 100.0), *rows("Central, one core", 35, 100.0)]
    given += rows("Central", 30, 100.0)
    printed(given, "--figure", str(tmp_path / "map.png"))
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
