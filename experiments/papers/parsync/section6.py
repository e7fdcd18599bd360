"""Figs. 5 to 16 of ParSync's section 6 and its supplement A, Figs. 5 to 8 live, and Tables 1 and 2
(section6.toml).

The claims on Figs. 5, 7 and 8 that depend on what looking at all partitions costs are made twice:
for a scan cost of 0.75, and for 0.4 (arms.py).

Live figures have the same arms on Ray, in real time, on the demo's cell. The demo has ParSync's
ratios at a tenth of its size (config/presets.py): 20,000 slots, 8 schedulers and partitions, tasks
of 2 s in place of 5 s, and five phases of 6 s. So two cores can run it undisturbed, and an
arm takes about 40 s by the clock. The paper's tau of 1, 2 and 3 s are 0.2, 0.4 and 0.6 mean run
times; so they are here. Each arm also runs in virtual time, on the same workload. Claims are about
the live runs only. Their limits are those of the figures in virtual time; claims about absolute
numbers are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.analysis.summary_model import SeedFigures
from experiments.config.presets import PARSYNC_SCAN_COST, demo_scale
from experiments.papers.chapter import Chapter, FigureRun, Like, PaperFigure, Results, Table, like
from experiments.papers.claims import Value
from experiments.papers.parsync.arms import (
    CENTRAL,
    LATENCY,
    LOW_SCAN_COST,
    QUALITY,
    SCAN_COSTS,
    SCHEDULERS,
    SETTLE_S,
    STATE,
    TAU_S,
    TAUS_S,
    Arms,
    adaptive,
    arms,
    arms_of_scale,
    with_cost,
)
from experiments.papers.plots import in_detail, over_time
from experiments.papers.statistics import (
    US_PER_S,
    Reader,
    divided,
    growths,
    in_phase,
    least,
    less,
    median_text,
    most,
    of,
    over,
    overall,
    quotient,
    quotient_of,
    ratio,
    size,
)
from experiments.studies.model_settings import ReproduceScale

CHAPTER = Chapter(Path(__file__).with_suffix(".toml"))
DELAY, SHARE, CONFLICTS = "delay_mean_us", "preferred_share", "conflict_rate"
PHASES = (0, 1, 2, 3, 4)
Runs = Callable[[ReproduceScale], tuple[FigureRun, ...]]
Stated = Mapping[str, Value | Like]


# Statistics over the phases of runs


def highest(label: str, key: str) -> Value:
    """The largest value of a figure over the phases."""
    return most([of(in_phase(phase, key), label) for phase in PHASES])


def least_ratio(
    label: str, others: Sequence[str], key: str, phases: Sequence[int] = PHASES
) -> Value:
    """The smallest ratio, over some phases and some other arms, of the others' figure to an arm's.

    Above 1: the arm's figure is lower than all others' in each of them.
    """
    return least(
        [ratio(in_phase(phase, key), other, label) for other in others for phase in phases]
    )


def least_difference(label: str, other: str, key: str, phases: Sequence[int] = PHASES) -> Value:
    """The smallest difference, over some phases, of an arm's figure less another arm's."""
    return least([less(in_phase(phase, key), label, other) for phase in phases])


def largest_gap(one: str, other: str, key: str) -> Value:
    """The largest difference, in either direction, of two arms' figure over the phases."""
    return most([size(less(in_phase(phase, key), one, other)) for phase in PHASES])


def phase_ratio(label: str, key: str, phase: int, other_phase: int) -> Value:
    """The ratio of a figure in one phase to that in another."""
    return ratio(in_phase(phase, key), label, label, in_phase(other_phase, key))


def least_growth(label: str, key: str, phases: Sequence[int]) -> Value:
    """The smallest ratio of a figure in a phase to the same in the phase before, over phases in
    order. Above 1: it grows from each to the next."""
    return least([phase_ratio(label, key, after, before) for before, after in pairwise(phases)])


def backlog(label: str, phase: int) -> Value:
    """Tasks that wait at the end of a phase, per scheduler."""
    return divided(of(in_phase(phase, "backlog_end"), label), SCHEDULERS)


def _committed_share(phase: int, settle_s: float) -> Reader:
    """Tasks committed per second over tasks submitted per second, in the part of a phase that
    counts."""

    def read(run: SeedFigures) -> float | None:
        one = run.phases[phase]
        submitted = (one.submitted or 0) / ((one.end_us - one.start_us) / 1e6 - settle_s)
        return quotient(one.throughput_per_s, submitted)

    return read


def _edge_conflicts(label: str) -> Value:
    """The lower of the conflict rates of the first and the last phase, over the highest of those
    between."""
    rates = [of(in_phase(phase, CONFLICTS), label) for phase in PHASES]
    return quotient_of(least([rates[0], rates[-1]]), most(rates[1:-1]))


# Figs. 5 to 8: their claims are also made of other runs


@dataclass(frozen=True, slots=True)
class Setting:
    """The runs that claims on Figs. 5 to 8 are about.

    Attributes:
        scan_cost: What looking at all partitions costs.
        taus_s: What stands for the paper's tau of 1, 2 and 3 s.
        settle_s: Left out at the start of each phase.
    """

    scan_cost: float = PARSYNC_SCAN_COST
    taus_s: tuple[float, float, float] = TAUS_S
    settle_s: float = SETTLE_S

    def label(self, label: str) -> str:
        """The label of an arm."""
        return with_cost(label, self.scan_cost)

    def name(self, name: str) -> str:
        """The name of a claim."""
        return name if self.scan_cost == PARSYNC_SCAN_COST else f"{name}_low_scan_cost"

    def claims(self, values: Mapping[str, Value], **words: Any) -> Stated:
        """Claims on these runs. words: for their texts."""
        return {self.name(name): like(name, value, **words) for name, value in values.items()}


PAPER = Setting()
LOW_COST = Setting(scan_cost=LOW_SCAN_COST)


def _fig5_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of_scale = arms(scale)
    both = [
        run
        for cost in SCAN_COSTS
        for run in (
            of_scale.latency_first(scan_cost=cost),
            of_scale.quality_first(scan_cost=cost),
            of_scale.adaptive(TAU_S, scan_cost=cost),
            of_scale.state_sync(scan_cost=cost),
        )
    ]
    return (*both, of_scale.central())


def _fig5(setting: Setting) -> Stated:
    tau_s = setting.taus_s[TAUS_S.index(TAU_S)]
    latency, quality = setting.label(LATENCY), setting.label(QUALITY)
    state, bounded = setting.label(STATE), setting.label(adaptive(tau_s))
    values = {
        "latency_first_smallest": least_ratio(latency, (quality, bounded, state), DELAY),
        "adaptive_bounded": highest(bounded, DELAY),
        "quality_first_grows": phase_ratio(quality, DELAY, 2, 1),
        "quality_first_below_statesync": ratio(in_phase(2, DELAY), state, quality),
        "statesync_grows": least_growth(state, DELAY, (0, 1, 2)),
        "statesync_drops_last": phase_ratio(state, DELAY, 4, 3),
        "statesync_quality": least_difference(state, latency, SHARE),
    }
    return setting.claims(values, tau_us=tau_s * US_PER_S)


def _fig6(setting: Setting) -> Stated:
    latency = setting.label(LATENCY)
    committed = [of(_committed_share(phase, setting.settle_s), latency) for phase in PHASES]
    values = {
        "handles_load": least(committed),
        "delay_follows_rate": least_growth(latency, DELAY, (0, 1, 2)),
        "few_conflicts_in_phase_1": of(in_phase(0, CONFLICTS), latency),
        "conflicts_grow": phase_ratio(latency, CONFLICTS, 2, 0),
    }
    return setting.claims(values)


def _fig7_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of_scale = arms(scale)
    return tuple(
        run
        for cost in SCAN_COSTS
        for run in (of_scale.quality_first(scan_cost=cost), of_scale.latency_first(scan_cost=cost))
    )


def _fig7(setting: Setting) -> Stated:
    quality = setting.label(QUALITY)
    values = {
        "falls_behind_in_phase_3": of(_committed_share(2, setting.settle_s), quality),
        "delay_grows": least_growth(quality, DELAY, (0, 1, 2)),
        "waiting_in_phase_2": backlog(quality, 1),
        "waiting_in_phase_3": backlog(quality, 2),
        "most_conflicts_at_low_load": _edge_conflicts(quality),
        "better_quality": least_difference(quality, setting.label(LATENCY), SHARE),
    }
    return setting.claims(values)


def _fig8_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of_scale = arms(scale)
    return tuple(
        run
        for cost in SCAN_COSTS
        for run in (
            *(of_scale.adaptive(tau_s, scan_cost=cost) for tau_s in TAUS_S),
            of_scale.latency_first(scan_cost=cost),
        )
    )


def _fig8(setting: Setting) -> Stated:
    labels = [setting.label(adaptive(tau_s)) for tau_s in setting.taus_s]
    bounded: dict[str, Like] = {}
    for paper_s, tau_s, label in zip(TAUS_S, setting.taus_s, labels, strict=True):
        tau = {"tau": paper_s, "tau_us": tau_s * US_PER_S}
        name = setting.name(f"bounded_at_{paper_s:g}_s")
        bounded[name] = like("bounded", highest(label, DELAY), **tau)
    least_s, _, most_s = setting.taus_s
    values = {
        "switches": of(in_phase(2, "latency_first_share"), labels[0]),
        "quality_above_latency_first": least_difference(labels[0], setting.label(LATENCY), SHARE),
        "larger_tau_better_quality": least_difference(labels[-1], labels[0], SHARE, (2,)),
    }
    return {**bounded, **setting.claims(values, least=least_s, most=most_s)}


_FIG5 = CHAPTER.figure(
    "fig5",
    _fig5_runs,
    {
        **_fig5(PAPER),
        **_fig5(LOW_COST),
        "one_scheduler": ratio(overall(DELAY), CENTRAL, STATE),
    },
    partial(
        over_time, labels=(LATENCY, QUALITY, adaptive(TAU_S), STATE), panels=("log_delay", "share")
    ),
)
_FIG6 = CHAPTER.figure(
    "fig6",
    lambda scale: (arms(scale).latency_first(),),
    _fig6(PAPER),
    partial(in_detail, label=LATENCY),
)
_FIG7 = CHAPTER.figure(
    "fig7", _fig7_runs, {**_fig7(PAPER), **_fig7(LOW_COST)}, partial(in_detail, label=QUALITY)
)
_FIG8 = CHAPTER.figure(
    "fig8",
    _fig8_runs,
    {**_fig8(PAPER), **_fig8(LOW_COST)},
    partial(over_time, labels=tuple(map(adaptive, TAUS_S)), panels=("delay", "share")),
)


# Figs. 9 to 12: uncommitted tasks, and adaptive in detail


def _fig9_runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
    of_scale = arms(scale)
    return (
        of_scale.latency_first(),
        of_scale.quality_first(),
        *(of_scale.adaptive(tau_s) for tau_s in TAUS_S),
    )


_FIG9 = CHAPTER.figure(
    "fig9",
    _fig9_runs,
    {
        "latency_first_smallest": least_ratio(
            LATENCY, (QUALITY, *map(adaptive, TAUS_S)), "backlog_mean", (2,)
        ),
        "latency_first_sustains": backlog(LATENCY, 2),
        "adaptive_bounded": ratio(in_phase(2, "backlog_end"), adaptive(1.0), QUALITY),
    },
    partial(over_time, labels=(LATENCY, QUALITY, *map(adaptive, TAUS_S)), panels=("waiting",)),
)


def _of_tau(number: int, tau_s: float) -> PaperFigure:
    label = adaptive(tau_s)
    return CHAPTER.figure(
        "of_tau",
        lambda scale: (arms(scale).adaptive(tau_s),),
        {"median_bounded": highest(label, "delay_p50_us")},
        partial(in_detail, label=label),
        id=f"fig{number}",
        number=number,
        tau=tau_s,
        tau_us=tau_s * US_PER_S,
    )


# Figs. 13 to 16: more partitions


def _of_partitions(number: int, strategy: str, count: int) -> PaperFigure:
    """A strategy with this many partitions, synchronised one at a time and in blocks, and with
    20."""
    label = f"{strategy}, {count} partitions"
    blocks = f"{label} in blocks"

    def runs(scale: ReproduceScale) -> tuple[FigureRun, ...]:
        def run(partitions: int, label: str, sync: str) -> FigureRun:
            of_scale = arms(scale, partitions)
            make = of_scale.latency_first if strategy == LATENCY else of_scale.quality_first
            return replace(make(sync=sync), label=label)

        return (
            run(count, label, "diff_single"),
            run(count, blocks, "diff_block"),
            run(SCHEDULERS, strategy, "diff_block"),
        )

    claims: dict[str, Like] = {}
    for many, ending in ((label, ""), (blocks, "_in_blocks")):
        same_delay = ratio(overall(DELAY), many, strategy)
        same_quality = largest_gap(many, strategy, SHARE)
        claims[f"same_delay{ending}"] = like("same_delay", same_delay)
        claims[f"same_quality{ending}"] = like("same_quality", same_quality)
    return CHAPTER.figure(
        "partitions",
        runs,
        claims,
        partial(in_detail, label=label, beside=blocks),
        id=f"fig{number}",
        notes=("{both_ways}", "{quality}") if strategy == QUALITY else (),
        number=number,
        strategy=strategy,
        lower=strategy.lower(),
        count=count,
    )


# Live figures

_DEMO = demo_scale(quick=False)
_LIVE_ARMS = Arms(_DEMO, _DEMO.partitions)
_LEAST_S, _MIDDLE_S, _MOST_S = (
    round(tau_s / SETTLE_S * _DEMO.synthetic.mean_duration_s, 3) for tau_s in TAUS_S
)
SETTING = Setting(taus_s=(_LEAST_S, _MIDDLE_S, _MOST_S), settle_s=_DEMO.settle_s)


def _in_virtual_time(label: str) -> str:
    """The label of an arm's run in virtual time."""
    return f"{label}, virtual time"


def _both(*runs: FigureRun) -> Runs:
    """Runs on Ray, and the same in virtual time."""
    live = tuple(replace(run, live=True) for run in runs)
    virtual = tuple(replace(run, label=_in_virtual_time(run.label)) for run in runs)
    return lambda _: (*live, *virtual)


def _over_time(labels: Sequence[str], delay: str) -> Callable[[Results], Figure]:
    beside = {label: _in_virtual_time(label) for label in labels}
    return partial(over_time, labels=labels, panels=(delay, "share"), beside=beside)


def _detail(label: str) -> Callable[[Results], Figure]:
    return partial(in_detail, label=label, beside=_in_virtual_time(label))


def _live(name: str, runs: Runs, claims: Stated, draw: Callable[[Results], Figure]) -> PaperFigure:
    """A figure of live runs, with the texts of that in virtual time."""
    notes = ("{live_time}", "{live_setting}")
    figure = CHAPTER.figure(name, runs, claims, draw, id=f"{name}_live", notes=notes)
    return replace(
        figure,
        title=f"{figure.title}, live",
        claims=tuple(claim for claim in figure.claims if not claim.only_at_paper_scale),
        only_by_name=True,
    )


LIVE = (
    _live(
        "fig5",
        _both(
            _LIVE_ARMS.latency_first(),
            _LIVE_ARMS.quality_first(),
            _LIVE_ARMS.adaptive(_MIDDLE_S),
            _LIVE_ARMS.state_sync(),
        ),
        _fig5(SETTING),
        _over_time((LATENCY, QUALITY, adaptive(_MIDDLE_S), STATE), "log_delay"),
    ),
    _live("fig6", _both(_LIVE_ARMS.latency_first()), _fig6(SETTING), _detail(LATENCY)),
    _live(
        "fig7",
        _both(_LIVE_ARMS.quality_first(), _LIVE_ARMS.latency_first()),
        _fig7(SETTING),
        _detail(QUALITY),
    ),
    _live(
        "fig8",
        _both(*map(_LIVE_ARMS.adaptive, SETTING.taus_s), _LIVE_ARMS.latency_first()),
        _fig8(SETTING),
        _over_time([*map(adaptive, SETTING.taus_s)], "delay"),
    ),
)


# Tables 1 and 2, ours beside the paper's

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

FIGURES = (
    *(_FIG5, _FIG6, _FIG7, _FIG8, _FIG9),
    *(_of_tau(10 + place, tau_s) for place, tau_s in enumerate(TAUS_S)),
    _of_partitions(13, LATENCY, 40),
    _of_partitions(14, LATENCY, 80),
    _of_partitions(15, QUALITY, 40),
    _of_partitions(16, QUALITY, 80),
    *(_TABLE1, _TABLE2),
    *LIVE,
)
