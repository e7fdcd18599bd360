"""The results of a benchmark: one Result for each solver on each graph, and the file of all
results.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

BASELINE = "ortools"  # what all are compared with


class Outcome(StrEnum):
    OK = "ok"
    OVER_TIME = "over time"  # stopped at the limit
    NOT_TRIED = "not tried"  # the note says why
    FAILED = "failed"  # an error, no answer
    WRONG = "wrong"  # not the cost of a certified answer, or a certificate that fails


@dataclass
class Result:
    figure: str
    case: str
    position: int
    nodes: int
    arcs: int
    solver: str
    mode: str  # scratch, incremental
    outcome: Outcome
    costs: list[int] = field(default_factory=list)  # of each solve; rounds differ
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    certified: bool | None = None  # all answers; only ours are
    note: str = ""

    @property
    def median_s(self) -> float | None:
        return statistics.median(self.seconds) if self.outcome is Outcome.OK else None


def judge(results: Sequence[Result]) -> None:
    """Mark the results of one graph whose costs differ from those of a certified answer.

    If there is no certified answer, all costs must agree.
    """
    answered = [result for result in results if result.outcome is Outcome.OK]
    for result in answered:
        if result.certified is False:
            result.outcome = Outcome.WRONG
            result.note = "failed its certificate"
    trusted = [result for result in answered if result.certified] or answered
    if not trusted:
        return
    length = max(len(result.costs) for result in trusted)
    truth = next(result.costs for result in trusted if len(result.costs) == length)
    for result in answered:
        wrong = [
            (cost, right) for cost, right in zip(result.costs, truth, strict=False) if cost != right
        ]
        if result.outcome is Outcome.OK and wrong:
            result.outcome = Outcome.WRONG
            result.note = f"cost {wrong[0][0]}, not {wrong[0][1]}"


def explanation(results: Sequence[Result], limit_s: float) -> str:
    """Why some results have no time."""
    stopped = any(result.outcome is Outcome.OVER_TIME for result in results)
    reasons = sorted({result.note for result in results if result.outcome is Outcome.NOT_TRIED})
    words = [f"> {limit_s:g} s: stopped at the time limit of one solve"] if stopped else []
    return "; ".join(words + ([f"not tried: {' or '.join(reasons)}"] if reasons else []))


def as_json(
    machine: dict[str, Any], options: dict[str, Any], partial: bool, results: Sequence[Result]
) -> str:
    rows = [{**asdict(result), "median_s": result.median_s} for result in results]
    return (
        json.dumps(
            {"machine": machine, "options": options, "partial": partial, "results": rows}, indent=1
        )
        + "\n"
    )
