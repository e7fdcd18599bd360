"""The benchmark report: which figure stands against which, and what better means for it."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.report import cells, comparison, rows_of


def benchmark(group: str, param: str, median_s: float = 1.0, **extra_info: Any) -> dict[str, Any]:
    return {
        "group": group,
        "name": f"test[{param}]",
        "param": param,
        "stats": {"median": median_s},
        "extra_info": extra_info,
    }


def report(*benchmarks: dict[str, Any]) -> dict[str, Any]:
    return {"benchmarks": list(benchmarks)}


def test_a_rate_is_better_when_larger_and_a_time_when_smaller() -> None:
    rate, time = rows_of(
        report(
            benchmark("rate", "agora", 2.0, unit="tasks/s", amount=100, target=60),
            benchmark("rate", "peer", 4.0),
            benchmark("time", "agora", 0.002, unit="ms", target=3, ratio_target=1.5),
            benchmark("time", "peer", 0.004),
        )
    )
    assert (rate["ours"], rate["theirs"], rate["ratio"], rate["met"]) == (50, 25, 2, False)
    assert (time["ours"], time["theirs"], time["ratio"], time["met"]) == (2, 4, 2, True)


def test_a_benchmark_may_give_its_figure_itself() -> None:
    (memory,) = rows_of(
        report(
            benchmark(
                "memory",
                "case-agora",
                9.0,
                unit="MB",
                figure=500,
                target=1000,
                note="of one process",
            ),
            benchmark("memory", "case-peer", 7.0, figure=750, label="the peer"),
        )
    )
    assert (memory["ours"], memory["peer"], memory["theirs"], memory["ratio"]) == (
        500,
        "the peer",
        750,
        1.5,
    )
    assert memory["met"] and cells(memory)[-1] == "of one process"


def test_two_reports_compare_by_what_is_better() -> None:
    old = report(
        benchmark("memory", "agora", unit="MB", figure=400),
        benchmark("rate", "agora", 1.0, unit="x/s", amount=8),
    )
    new = report(
        benchmark("memory", "agora", unit="MB", figure=200),
        benchmark("rate", "agora", 2.0, unit="x/s", amount=8),
    )
    assert [row[-1] for row in comparison(old, new)] == ["2", "0.5"]
