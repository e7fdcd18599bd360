"""Runs in virtual time and live runs, and arms of different clock classes, share no axis, no row,
no list and no sentence, wherever a reader may look."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from rich.console import Console

from experiments.analysis.run_directory import Run, read_run
from experiments.analysis.summary_model import ArmSummary, RunSummary
from experiments.figures import FIGURES, FigureSpec, live_figures, style
from experiments.figures.drawings import AT_LEAST
from experiments.report.answer import answer
from experiments.report.bound import bound_sentences
from experiments.report.page import write_report
from experiments.report.terminal import comparison_table
from experiments.report.verdict import verdict
from experiments.results.loaded_run import load_run
from experiments.studies.compare import combine, csv_text, markdown_text
from shared_state.errors import AgoraError
from tests.fixtures.commands import without_figures
from tests.unit.figure_checks import repeated_labels
from tests.unit.run_factory import write_synthetic_run

EQUAL = ("ParSync adaptive", "StateSync aligned quality-first")
OWN_SPEED = ("Flow", "Mix")
LIVE = ("ParSync adaptive", "Flow")


@pytest.fixture(scope="module", params=[(), (1, 2, 3)], ids=["one run", "paired seeds"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_synthetic_run(
        tmp_path_factory.mktemp("runs") / "run",
        (*EQUAL, *OWN_SPEED),
        seeds=request.param,
        own_speed=OWN_SPEED,
        live=LIVE,
    )
    with without_figures():  # of the page, these tests read the words
        write_report(run)
    return run


@pytest.fixture(scope="module")
def run(directory: Path) -> Run:
    return read_run(directory)


def classes_of(names: Iterator[str] | list[str]) -> set[str]:
    """The clock classes of the arms that are named in these texts."""
    found = set()
    for text in names:
        found |= {"equal" for name in EQUAL if name in text}
        found |= {"own speed" for name in OWN_SPEED if re.search(rf"\b{name}\b", text)}
    return found


def told(summary: RunSummary, of: list[ArmSummary]) -> set[str]:
    """The delays of some runs as they are written, as far as no other run has them."""
    quantity = summary.quantity("delay_mean_us")
    assert quantity is not None
    texts = {
        quantity.text(figures.value("delay_mean_us"), figures.is_bound("delay_mean_us"))
        for arm in of
        for figures in (arm.overall, *arm.phases)
    }
    return texts - {quantity.text(None)}


@pytest.fixture(scope="module")
def only_live(run: Run) -> set[str]:
    """Delays that stand in live runs alone."""
    found = told(run.summary, run.summary.live_runs) - told(run.summary, run.summary.arms)
    assert len(found) > 5
    return found


def drawn_arms(axes: Axes) -> list[str]:
    """The arms of an axis: those of its legend, or its title."""
    _, labels = axes.get_legend_handles_labels()
    return [str(label).removesuffix(AT_LEAST) for label in labels] + [axes.get_title()]


@pytest.mark.parametrize("spec", FIGURES, ids=lambda spec: str(spec.name))
def test_no_axis_has_two_clock_classes(run: Run, spec: FigureSpec) -> None:
    figure = spec.draw(run)
    assert figure is not None
    known = [found for axes in figure.axes if (found := classes_of(drawn_arms(axes)))]
    assert all(len(found) == 1 for found in known)
    # of the flow arms, the first two; named by texts
    if spec.name not in ("solver_time", "evictions_over_time", "quota_shares"):
        assert {"equal", "own speed"} == set().union(*known)


@pytest.mark.parametrize("spec", live_figures(FIGURES), ids=lambda spec: str(spec.name))
def test_figures_of_live_runs_have_no_other_runs(run: Run, spec: FigureSpec) -> None:
    live = run.live()
    assert live is not None
    assert {arm.runtime for arm in live.summary.arms} == {"ray"}
    assert {arm.runtime for arm in run.summary.arms} == {"virtual"}
    figure = spec.draw(live)
    assert figure is not None
    for axes in figure.axes:
        names = {name for name in drawn_arms(axes) if name in (*EQUAL, *OWN_SPEED)}
        assert names <= set(LIVE) and len(classes_of(list(names))) <= 1


def test_panels_of_a_figure_have_equal_axes(run: Run) -> None:
    for spec in FIGURES:
        figure = spec.draw(run)
        assert figure is not None
        if spec.name == "rivals":  # matrices, on one scale
            continue
        assert len({axes.get_ylim() for axes in figure.axes}) == 1, spec.name
        assert len({axes.get_xlim() for axes in figure.axes}) == 1, spec.name


def test_no_tick_label_stands_twice_on_an_axis(run: Run) -> None:
    for spec in FIGURES:
        figure = spec.draw(run)
        assert figure is not None
        assert not repeated_labels(figure), spec.name


def test_ticks_that_are_close_together_have_labels_of_their_own() -> None:
    with style.drawing() as (figure, axes):
        axes.plot([0, 1], [1.5301e6, 1.5499e6])
        style.duration_axis(axes, "y", log=False)
        assert not repeated_labels(figure)
        labels = axes.yaxis.get_major_formatter().format_ticks([1.535e6, 1.540e6, 1.545e6])
    assert labels == ["1.535 s", "1.540 s", "1.545 s"]


def test_arms_are_told_apart_by_their_marks_alone() -> None:
    count = len(style.COLOURS)
    assert len({style.marker(index) for index in range(count)}) == count
    looks = {(style.marker(index), style.colour(index)) for index in range(count * count)}
    assert len(looks) == count * count
    with style.drawing() as (_, axes):
        for index in range(15):
            axes.plot(range(60), range(60), **style.marked_line(index, 60))
        assert len({line.get_marker() for line in axes.lines}) == 15


class Groups(HTMLParser):
    """The texts of each <tbody>, <ul> and <p>, with its section. Tables of words (settings, notes)
    compare nothing and are left out."""

    PARTS = frozenset({"tbody", "ul", "p"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.section = ""
        self.parts: list[tuple[str, str, list[str]]] = []
        self._open: list[tuple[str, list[str]]] = []
        self._is_words = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self.section = dict(attributes).get("id") or ""
        if tag == "table":
            self._is_words = "words" in (dict(attributes).get("class") or "")
        if tag in self.PARTS:
            self._open.append((tag, []))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.PARTS and self._open and self._open[-1][0] == tag:
            part = (self.section, *self._open.pop())
            if tag != "tbody" or not self._is_words:
                self.parts.append(part)

    def handle_data(self, data: str) -> None:
        for _, texts in self._open:
            texts.append(data)


def test_no_table_list_or_paragraph_of_the_page_mixes_clock_classes(directory: Path) -> None:
    text = (directory / "report.html").read_text("utf-8")
    checked = 0
    for section, tag, texts in Groups(text).parts:
        if tag == "p" and section != "answer":
            continue  # sentences: below
        assert len(classes_of(texts)) <= 1, (section, tag, texts)
        checked += bool(classes_of(texts))
    assert checked > 20


def test_live_figures_stand_in_their_section_only(directory: Path, only_live: set[str]) -> None:
    text = (directory / "report.html").read_text("utf-8")
    start = text.index('<section id="live">')
    end = text.index("</section>", start)
    inside, outside = text[start:end], text[:start] + text[end:]
    figures = re.compile(r"<svg.*?</svg>", re.DOTALL)
    inside, outside = (figures.sub("", part) for part in (inside, outside))
    shown = {found for found in only_live if f">{found}<" in inside}
    assert len(shown) > 5
    assert not {found for found in only_live if f">{found}<" in outside or f" {found} " in outside}


def test_sentences_are_of_one_clock_class_and_of_no_live_run(run: Run, only_live: set[str]) -> None:
    summary = run.summary
    said = [*answer(summary), *bound_sentences(summary)]
    for row in verdict(summary, summary.quantities):
        said += re.split(r"(?=Own speed, 8 cores: )", row.sentence)
    assert sum(bool(classes_of([sentence])) for sentence in said) > 10
    for sentence in said:
        assert len(classes_of([sentence])) <= 1, sentence
        assert "live" not in sentence
        assert not any(f" {found}" in sentence for found in only_live), sentence


def test_the_terminal_has_tables_of_their_own_for_live_runs(run: Run, only_live: set[str]) -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(comparison_table(run.summary))
    text = console.export_text()
    compared, _, live = text.partition("Live runs, seed 1: one run each, in real time")
    shown = {found.replace("≥ ", "≥") for found in only_live}
    assert any(found in live for found in shown)
    assert not any(f" {found} " in compared for found in shown)
    for table in re.split(r"\n(?=Equal capacity|Own speed)", compared.partition("★ best")[0]):
        assert len(classes_of([table])) <= 1, table


def test_comparisons_of_runs_keep_live_runs_and_clock_classes_apart(
    directory: Path, only_live: set[str]
) -> None:
    compared = combine([directory])
    rows = verdict(compared, compared.headline)
    text = markdown_text(compared, rows)
    in_virtual_time, _, live = text.partition("Live runs, one run each:")
    assert any(found in live for found in only_live)
    assert not any(f"| {found} " in in_virtual_time for found in only_live)
    for table in text.split("\n\n"):
        if table.startswith("| Arm |"):
            assert len(classes_of([table])) == 1, table
    lines = list(csv.DictReader(io.StringIO(csv_text(compared, rows))))
    runtimes = {(line["arm"], line["runtime"]) for line in lines}
    expected = {(name, "virtual") for name in (*EQUAL, *OWN_SPEED)}
    assert runtimes == expected | {(name, "ray") for name in LIVE}


def test_a_loaded_run_has_its_live_runs_apart(directory: Path) -> None:
    loaded = load_run(directory)
    assert loaded.live is not None
    assert {row["runtime"] for row in loaded.metrics().to_pylist()} == {"virtual"}
    assert {row["runtime"] for row in loaded.live.metrics().to_pylist()} == {"ray"}
    assert [arm.name for arm in loaded.live.arms] == list(LIVE)
    assert loaded.arm("Flow").summary.runtime == "virtual"
    assert loaded.arm("flow-live").summary.runtime == "ray"
    assert {row["arm"] for row in loaded.live.phases().to_pylist()} == set(LIVE)
    with pytest.raises(AgoraError, match=r"expected one of .*'Flow'.*'flow-live'"):
        loaded.arm("Flo")
