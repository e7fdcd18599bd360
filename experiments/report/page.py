"""The report of a run, report.html: one file that loads nothing, readable on a desk and on a
telephone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from experiments import figures as figures_of_runs
from experiments.analysis.run_directory import Run, read_run
from experiments.analysis.statistics import interval_in_words
from experiments.analysis.summary_model import (
    ComparedArms,
    RunSummary,
    WorkloadFacts,
    restart_count,
)
from experiments.config.decision_basis import basis_explained, basis_text, basis_titles
from experiments.figures import (
    NOTHING_DRAWN,
    Drawn,
    FigureSpec,
    RenderedFigure,
    ShownFigure,
    draw_all,
    draw_for_page,
    live_figures,
    style,
)
from experiments.report.answer import answer, question, rests_on, seeds_text, sensitivity_tables
from experiments.report.arms import (
    capacity_text,
    cell_rules,
    clock_text,
    described,
    differs,
    settings,
)
from experiments.report.bound import bound_sentences, bound_table
from experiments.report.data_dictionary import data_dictionary
from experiments.report.gangs import gang_tables, tears
from experiments.report.html import filled, save_page
from experiments.report.live_runs import (
    disturbed_runs,
    live_cells,
    live_disagreement,
    live_note,
    prediction_basis,
    predictions,
    validity_text,
)
from experiments.report.verdict import SAME, Row, is_ranked, unplaced_share, verdict
from experiments.toml_text import toml_text
from experiments.workloads.registry import ATTRIBUTION, SEEDS_VARY, WARM_UP_S
from parsync.metrics.quantity import Quantity, counted, duration, share
from parsync.metrics.summary import ScopeFigures, StartFigures
from shared_state.errors import AgoraError

REPORT = "report.html"
FIGURES_FOLDER = "figures"
EARLY_FIGURES = 3  # of a run that goes on
_Shown = TypeVar("_Shown", bound=ShownFigure)
_Draw = Callable[
    [Run, Path, Callable[[], None], Sequence[FigureSpec], Drawn], Sequence[_Shown]
]  # draw_all, or like it
_LEAD = ("frontier", "trade_off")  # the figure of the first screen: the first that there is


def never_stop() -> None:
    """Check for nothing: drawing is never stopped."""


def write_report(
    directory: Path, check: Callable[[], None] = never_stop, known: Drawn = NOTHING_DRAWN
) -> Path:
    """Draw the figures of a finished run directory and write its report.

    Only what is in the directory is read, so a report can be made again.

    Args:
        check: Called before each figure; what it raises ends the drawing.
        known: What draw_arms has drawn of this run.

    Returns:
        The path of report.html.

    Raises:
        AgoraError: The directory holds no run, or the report cannot be written.
    """
    return _write(read_run(directory), figures_of_runs.all_figures(), (), check, draw_all, known)


def draw_arms(run: Run, check: Callable[[], None]) -> dict[str, RenderedFigure]:
    """Draw what a run's report shows of its arms and live runs, which have ended, and nothing of
    paired seeds. Arguments and errors as of write_report; the figures by name."""
    specs = [spec for spec in figures_of_runs.all_figures() if not spec.of_seeds]
    with _naming_report(run.directory / REPORT):
        both = _draw(run, specs, check, draw_all, NOTHING_DRAWN)
    return {figure.spec.name: figure for those in both for figure in those}


def write_report_so_far(run: Run, to_come: Sequence[str], known: Drawn = NOTHING_DRAWN) -> Path:
    """Write the report of a run that goes on, with its first figures.

    Args:
        to_come: What the run has still to do, in words.
        known: As of write_report.

    Returns, Raises: As write_report.
    """
    early = figures_of_runs.FIGURES[:EARLY_FIGURES]
    return _write(run, early, to_come, never_stop, draw_for_page, known)


def _write(
    run: Run,
    specs: Sequence[FigureSpec],
    to_come: Sequence[str],
    check: Callable[[], None],
    draw: _Draw[ShownFigure],
    known: Drawn,
) -> Path:
    path = run.directory / REPORT
    with _naming_report(path):
        drawn, drawn_live = _draw(run, specs, check, draw, known)
        text = render(run, drawn, drawn_live, to_come)
        save_page(path, text)
    return path


def _draw(
    run: Run,
    specs: Sequence[FigureSpec],
    check: Callable[[], None],
    draw: _Draw[_Shown],
    known: Drawn,
) -> tuple[Sequence[_Shown], Sequence[_Shown]]:
    """Draw figures of the arms, and of the live runs besides."""
    figures = run.directory / FIGURES_FOLDER
    figures.mkdir(exist_ok=True)
    live = run.live()
    drawn = draw(run, figures, check, specs, known)
    return drawn, [] if live is None else draw(live, figures, check, live_figures(specs), known)


@contextlib.contextmanager
def _naming_report(path: Path) -> Iterator[None]:
    """Raise AgoraError for a report, or one of its figures, that cannot be written."""
    try:
        yield
    except OSError as error:
        place = error.filename2 or error.filename or path
        raise AgoraError(f"{place}: cannot write the report: {error.strerror}") from error


def render(
    run: Run,
    drawn: Sequence[ShownFigure],
    drawn_live: Sequence[ShownFigure] = (),
    to_come: Sequence[str] = (),
) -> str:
    """The page's text.

    Args:
        drawn, drawn_live: The figures of the arms, and of the live runs besides.
        to_come: What a run that goes on has still to do.
    """
    summary = run.summary
    live = summary.live()
    headline = verdict(summary, summary.headline)
    phases = summary.workload.phases

    baseline = next((arm for arm in summary.arms if arm.slug == summary.paired.baseline), None)
    by_key = {quantity.key: quantity for quantity in summary.quantities}

    def text(key: str, figures: ScopeFigures | StartFigures) -> str:
        if isinstance(figures, StartFigures):
            value = figures.at_least.get(key, getattr(figures, key))
            return _text(by_key.get(key), value, key in figures.at_least)
        return _text(by_key.get(key), figures.value(key), figures.is_bound(key))

    def phase_name(index: int) -> str:
        phase = phases[index]
        load = f", {phase.load_percent} %" if phase.load_percent else ""
        return f"Phase {index + 1}{load}"

    figures, figures_live = (
        [
            {
                "name": figure.spec.name,
                "title": figure.spec.title,
                "caption": figure.spec.caption,
                "svg": style.inline_svg(figure.svg, figure.spec.title),
            }
            for figure in those
        ]
        for those in (drawn, drawn_live)
    )

    return _fill(
        "report.html.j2",
        summary=summary,
        to_come=to_come,
        headline=headline,
        detail=[
            row
            for row in verdict(summary, summary.details)
            if _any_nonzero(summary, row.quantity.key)
        ],
        question=question(summary),
        answer=answer(summary),
        rests_on=rests_on(summary),
        bound=bound_table(summary),
        bound_sentences=bound_sentences(summary),
        sensitivity=sensitivity_tables(summary),
        seeds_text=seeds_text,
        baseline="" if baseline is None else baseline.name,
        lead=next((one for name in _LEAD for one in figures if one["name"] == name), None),
        figures=figures,
        per_scheduler=[
            quantity
            for quantity in summary.quantities
            if quantity.per_scheduler and _anywhere(summary, quantity.key)
        ],
        dictionary=data_dictionary(summary),
        workload_facts=workload_facts(summary),
        settled=settled(summary),
        short_settling=short_settling(summary),
        warm_up=warm_up(summary),
        start=start_of(summary),
        attribution=summary.workload.facts.get(ATTRIBUTION, ""),
        config=toml_text(summary.config),
        rules_of=lambda arm: cell_rules(summary.config, arm.name) + tears(arm),
        gangs=gang_tables(summary),
        live_gangs=[] if live is None else gang_tables(live),
        duration=duration,
        text=text,
        phase_name=phase_name,
        describe=described,
        settings=settings,
        where=_where(summary),
        basis=basis_text,
        differs=lambda arm: differs(arm, baseline),
        restarts=[
            (arm.name, restart.sentence) for arm in summary.ran_live for restart in arm.restarts
        ],
        restart_count=restart_count,
        interval=interval_in_words(len(summary.paired.seeds)),
        sets=summary.sets(),
        live=live,
        live_note=live_note(summary),
        live_headline=[] if live is None else verdict(live, live.headline),
        live_figures=figures_live,
        live_cells=live_cells(summary),
        live_disagreement=live_disagreement(summary),
        disturbed=disturbed_runs(summary),
        predictions=predictions(summary),
        prediction_basis=prediction_basis(summary),
        validity_text=validity_text,
        clock=clock_text,
        capacity=capacity_text,
    )


def verdict_page(summary: ComparedArms, rows: Sequence[Row], title: str, caption: str) -> str:
    """A page with nothing but a verdict table, and another one of the live runs besides."""
    live = summary.live()
    return _fill(
        "compare.html.j2",
        summary=summary,
        rows=rows,
        live=live,
        live_rows=[] if live is None else verdict(live, [row.quantity for row in rows]),
        title=title,
        caption=caption,
        rules_of=lambda arm: (),  # arms of several runs, whose rules their own reports state
    )


def _fill(template: str, **values: Any) -> str:
    """A page about runs."""
    summary = values["summary"]
    names = list(dict.fromkeys(arm.name for arm in (*summary.arms, *summary.live_runs)))
    functions = {
        "unplaced_share": unplaced_share,
        "share": share,
        "is_ranked": is_ranked,
        "titles_of": lambda sets: basis_titles([one.arms[0].basis for one in sets]),
        "basis_explained": basis_explained,
        "place_of": lambda arm: names.index(arm.name),
    }
    return filled(template, same=SAME, **functions, **values)


def _text(quantity: Quantity | None, value: float | None, at_least: bool) -> str:
    """A figure as people read it; a plain count where it is no quantity."""
    if quantity is None:
        return "–" if value is None else f"{value:,}"
    return quantity.text(value, at_least)


def _where(summary: RunSummary) -> str:
    """Where the arms ran, in words."""
    if summary.runtime == "ray":
        return "on Ray in real time"
    live = len(summary.live_runs)
    return "in virtual time" + (
        f", {counted(live, 'arm')} also on Ray in real time" if live else ""
    )


def _any_nonzero(summary: RunSummary, key: str) -> bool:
    """Whether any arm has a figure other than 0 under this name."""
    return any(arm.overall.plain_value(key) for arm in summary.arms)


def _anywhere(summary: RunSummary, key: str) -> bool:
    return any(agent.plain_value(key) is not None for arm in summary.arms for agent in arm.agents)


def _running_at_start(workload: WorkloadFacts) -> str:
    if workload.warm_up_us:
        return "and each arm's own running at the start"
    return f"{workload.initial_tasks:,} running at the start"


def workload_facts(summary: RunSummary) -> list[tuple[str, str]]:
    """Rows of the table of the workload: (name, value)."""
    workload = summary.workload
    rows = [
        ("Machines", f"{workload.machines:,}"),
        (
            "Capacity",
            ", ".join(
                f"{c:,} {d}" for d, c in zip(workload.dimensions, workload.capacity, strict=True)
            ),
        ),
        (
            "Tasks",
            f"{workload.tasks:,} ({workload.arrivals:,} arriving, {_running_at_start(workload)})",
        ),
        (
            "Run time on a preferred machine",
            f"{workload.preferred_permille / 10:g} % of that elsewhere",
        ),
        ("Length", duration(workload.end_us)),
    ]
    if workload.warm_up_us:
        rows.append(("Warm-up of each arm", duration(workload.warm_up_us)))
    for name, value in workload.facts.items():
        if name in (ATTRIBUTION, SEEDS_VARY, WARM_UP_S):
            continue
        shown = (
            f"{value:,}"
            if isinstance(value, int)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )
        rows.append((name.replace("_", " ").capitalize(), shown))
    return rows


def settled(summary: RunSummary) -> str:
    """What is left out at the start of each phase, in time and task lengths."""
    settle_us, length_us = summary.settle_us, summary.workload.mean_duration_us
    stretch = "of each phase" if len(summary.workload.phases) > 1 else "of the run"
    lengths = f" ({settle_us / length_us:.2g} mean task lengths)" if length_us else ""
    return f"the first {duration(settle_us)} {stretch}{lengths}"


def warm_up(summary: RunSummary) -> str:
    """How long each arm ran before time 0; "" if it did not."""
    length_us, mean_us = summary.workload.warm_up_us, summary.workload.mean_duration_us
    if not length_us:
        return ""
    lengths = f" ({length_us / mean_us:.2g} mean task lengths)" if mean_us else ""
    return f"{duration(length_us)}{lengths}"


def short_settling(summary: RunSummary) -> str:
    """A warning, if a cell that began empty, or with another load, was still filling when counting
    began. After a warm-up, transient phases show it instead."""
    settle_us, workload = summary.settle_us, summary.workload
    length_us = workload.mean_duration_us or 0
    if workload.initial_tasks or workload.warm_up_us or settle_us >= length_us:
        return ""
    return (
        f"Short warm-up: only {duration(settle_us)} of each phase are left out, "
        f"{settle_us / length_us:.2g} of a mean task length ({duration(length_us)}), so the "
        "cell was still filling when counting began: delays and conflicts are lower than in a "
        "cell that is full."
    )


@dataclass(frozen=True, slots=True)
class Start:
    """The tasks that wait as a trace begins.

    Attributes:
        is_left_out: Whether all other figures leave them out.
        left_out: Tasks submitted before counting begins, them included.
        counted: Those submitted later.
    """

    tasks: int
    is_left_out: bool
    left_out: int
    counted: int


def start_of(summary: RunSummary) -> Start | None:
    """The tasks that wait as the trace begins; None if there are none."""
    tasks = summary.workload.pending_at_start
    if not tasks or not summary.arms:
        return None
    first = summary.arms[0]
    counted = first.overall.submitted or 0
    is_left_out = any(arm.start is not None for arm in summary.arms)
    return Start(tasks, is_left_out, (first.totals.submitted or 0) - counted, counted)
