"""Tables 1 and 2 of ParSync, ours beside the paper's (section6.toml)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from experiments.analysis.summary_model import SeedFigures
from experiments.papers.chapter import Like, like
from experiments.papers.claims import Value
from experiments.papers.figure import FigureRun, Results, Table
from experiments.papers.parsync.arms import (
    LATENCY,
    LOW_SCAN_COST,
    QUALITY,
    SCAN_COSTS,
    adaptive,
    arms,
    arms_of_scale,
    with_cost,
)
from experiments.papers.parsync.section6 import CHAPTER
from experiments.papers.statistics import (
    US_PER_S,
    Reader,
    divided,
    growths,
    least,
    median_text,
    most,
    of,
    over,
    overall,
    quotient,
    ratio,
)
from experiments.studies.model_runs.settings import ReproduceScale

ALPHAS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
TIMES = (1, 2, 3, 4)
ADAPTIVE = adaptive(1.0)
STRATEGIES = (LATENCY, ADAPTIVE, QUALITY)

# Table 1 in seconds: latency-first, adaptive, quality-first, by alpha.
STET_S = (
    *((922, 914, 904), (888, 873, 854), (858, 822, 772)),
    *((836, 788, 712), (797, 726, 622), (762, 600, 542)),
)
JSD_S = (
    *((0.4, 0.8, 3.7), (0.4, 0.8, 3.3), (0.4, 0.8, 2.9)),
    *((0.4, 0.8, 2.0), (0.4, 0.8, 1.9), (0.4, 0.7, 1.5)),
)
JCT_S = (
    *((10.3, 10.6, 12.7), (10.3, 10.5, 12.1), (10.2, 10.3, 11.2)),
    *((10.2, 10.0, 9.9), (10.1, 9.5, 9.1), (10.1, 8.6, 8.4)),
)
# Table 2 in seconds: latency-first and quality-first, by the scale.
TST_S = ((64.11, 70.79), (64.64, 70.84), (64.81, 70.95), (65.11, 70.94))


def at_alpha(label: str, alpha: float) -> str:
    """The label of a run of Table 1."""
    return f"{label}, alpha {alpha:g}"


def at_times(label: str, times: int) -> str:
    """The label of a run of Table 2."""
    return f"{label}, {times} x"


def _seconds(key: str) -> Reader:
    """A figure of a whole run in microseconds, in seconds."""
    read = overall(key)
    return lambda run: quotient(read(run), US_PER_S)


_STET, _JSD, _JCT = _seconds("stet_mean_us"), _seconds("jsd_mean_us"), _seconds("jct_mean_us")


def _table1_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """Each strategy under each alpha."""
    of_scale = arms(scale)
    found: list[FigureRun] = []
    for alpha in ALPHAS:
        given = {"preferred_permille": round(alpha * 1000), "draws_series": False}
        three = (
            of_scale.latency_first(**given),
            of_scale.adaptive(1.0, **given),
            of_scale.quality_first(**given),
        )
        found.extend(replace(run, label=at_alpha(run.label, alpha)) for run in three)
    return tuple(found)


def _table1(results: Results) -> Table:
    """By strategy, ours and the paper's."""
    rows = []
    for name, read, paper, form in (
        ("STET", _STET, STET_S, "{:.0f}"),
        ("JSD", _JSD, JSD_S, "{:.2f}"),
        ("JCT", _JCT, JCT_S, "{:.1f}"),
    ):
        for alpha, of_paper in zip(ALPHAS, paper, strict=True):
            row = [f"{name}, alpha {alpha:g}"]
            for label, of_strategy in zip(STRATEGIES, of_paper, strict=True):
                ours = median_text(results, of(read, at_alpha(label, alpha)), form.format)
                row += [ours, f"{of_strategy:g}"]
            rows.append(tuple(row))
    header = ["seconds"] + [text for label in STRATEGIES for text in (label, "paper")]
    return Table(tuple(header), tuple(rows), "Means over jobs, medians over the seeds.")


def _deviation(label: str, paper_s: float) -> Value:
    """How far the STET of a run is from the paper's, relative."""
    return lambda runs: over(lambda stet: abs(stet[0] / paper_s - 1), [_STET(runs[label])])


def _ratios(read: Reader, one: str, other: str) -> list[Value]:
    """A figure of one strategy over that of another, under each alpha."""
    return [ratio(read, at_alpha(one, alpha), at_alpha(other, alpha)) for alpha in ALPHAS]


def _jct_ratio(alpha: float) -> Value:
    return ratio(_JCT, at_alpha(QUALITY, alpha), at_alpha(LATENCY, alpha))


_TABLE1 = CHAPTER.figure(
    "table1",
    _table1_runs,
    {
        "stet_close": most(
            [
                _deviation(at_alpha(label, alpha), paper_s)
                for alpha, row in zip(ALPHAS, STET_S, strict=True)
                for label, paper_s in zip(STRATEGIES, row, strict=True)
            ]
        ),
        "stet_order": least(
            [*_ratios(_STET, LATENCY, ADAPTIVE), *_ratios(_STET, ADAPTIVE, QUALITY)]
        ),
        "jsd_falls": most(growths(_JSD, [at_alpha(QUALITY, alpha) for alpha in ALPHAS])),
        "jsd_larger": least(_ratios(_JSD, QUALITY, LATENCY)),
        "quality_wins_from_06": _jct_ratio(0.6),
        "latency_wins_at_07": _jct_ratio(0.7),
        "adaptive_follows_best": most(
            [*_ratios(_JCT, ADAPTIVE, LATENCY), *_ratios(_JCT, ADAPTIVE, QUALITY)]
        ),
    },
    table=_table1,
)


def _table2_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    """One phase of 60 s at a load of 100 %, on 1 to 4 times the cell, at both scan costs."""
    found: list[FigureRun] = []
    for times in TIMES:
        of_scale = arms_of_scale(scale, times)
        for scan_cost in SCAN_COSTS:
            given = {"scan_cost": scan_cost, "load_percent": (100,), "draws_series": False}
            two = (of_scale.latency_first(**given), of_scale.quality_first(**given))
            found.extend(replace(run, label=at_times(run.label, times)) for run in two)
    return tuple(found)


def _last_s(run: SeedFigures) -> float | None:
    """When the last task was committed; None if some never were."""
    return None if run.totals.censored else run.totals.last_commit_us / US_PER_S


def _table2(results: Results) -> Table:
    """The time until all tasks are committed, ours at both scan costs and the paper's."""
    rows = []
    for times, paper in zip(TIMES, TST_S, strict=True):
        row = [f"{times} x"]
        for label, paper_s in zip((LATENCY, QUALITY), paper, strict=True):
            for scan_cost in SCAN_COSTS:
                ours = of(_last_s, at_times(with_cost(label, scan_cost), times))
                row.append(median_text(results, ours, "{:.1f}".format))
            row.append(f"{paper_s:g}")
        rows.append(tuple(row))
    header = ["seconds"]
    for label in (LATENCY, QUALITY):
        header += [f"{label}, scan cost {cost:g}" for cost in SCAN_COSTS] + ["paper"]
    return Table(tuple(header), tuple(rows), "Until the last task is committed.")


def _table2_claims() -> Iterator[tuple[str, Like]]:
    """For each strategy and scan cost."""
    for scan_cost in SCAN_COSTS:
        ending = "_low_scan_cost" if scan_cost == LOW_SCAN_COST else ""
        for place, label in enumerate((LATENCY, QUALITY)):
            name = label.lower().replace("-", "_")
            title = with_cost(label, scan_cost)
            once, most_times = at_times(title, TIMES[0]), at_times(title, TIMES[-1])
            paper_s = [row[place] for row in TST_S]
            words = {"strategy": label, "least": paper_s[0], "most": paper_s[-1]}
            stable = ratio(_last_s, most_times, once)
            yield f"{name}_stable{ending}", like("stable", stable, **words)
            close = divided(of(_last_s, once), paper_s[0])
            yield f"{name}_close{ending}", like("close", close, lower=label.lower(), **words)


_TABLE2 = CHAPTER.figure("table2", _table2_runs, dict(_table2_claims()), table=_table2)

FIGURES = (_TABLE1, _TABLE2)
