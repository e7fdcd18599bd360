"""The report: says who wins only when the seeds do, holds every part, loads nothing, prints no
NaN."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from experiments.analysis.run_directory import read_summary, write_run
from experiments.analysis.summary import build_summary
from experiments.analysis.summary_model import Restart, RunSummary
from experiments.figures import FIGURES
from experiments.report.answer import transient_phases
from experiments.report.page import write_report
from experiments.report.terminal import arms_table, comparison_table
from experiments.report.verdict import verdict
from experiments.workloads import google2011
from parsync.metrics.quantity import from_to
from tests.unit.known_quantities import QUANTITIES
from tests.unit.record_factory import CHARACTERS
from tests.unit.run_factory import with_overall, workload, write_synthetic_run
from tests.unit.test_summary import FACTS, bare_arm

SEEDS = (10, 11, 12)
NAMES = ("StateSync aligned quality-first", "ParSync adaptive", "Mix")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_synthetic_run(
        tmp_path_factory.mktemp("runs") / "run", NAMES, seeds=SEEDS, partial="stopped by Ctrl-C"
    )
    write_report(directory)
    return directory


class Page(HTMLParser):
    """Collects what a browser would fetch, the text it would show, and whether tags are
    balanced."""

    VOID = frozenset({"meta", "br", "img", "link", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.shown: list[str] = []
        self.sections: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        values = dict(attributes)
        if tag == "section":
            self.sections.append(values.get("id") or "")
        for name in ("src", "href", "data", "poster", "srcset"):
            value = values.get(name)
            if value and not value.startswith(("#", "data:")):
                self.fetched.append(value)
        if tag in ("script", "link", "iframe", "base"):
            self.fetched.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        self.open.remove(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.shown.append(data)


def shown_in(path: Path) -> str:
    """The text of a page, without line breaks."""
    return " ".join(" ".join(Page(path.read_text("utf-8")).shown).split())


def printed(table: RenderableType, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_the_page_holds_every_arm_section_and_figure_and_loads_nothing(run: Path) -> None:
    text = (run / "report.html").read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert page.fetched == []
    assert not re.search(r"url\((?!#|data:|\"#)|@import", text)
    assert page.sections == [
        "answer",
        "glance",
        "figures",
        "phases",
        "details",
        "schedulers",
        "arms",
        "workload",
        "method",
        "dictionary",
        "config",
    ]
    shown = " ".join(" ".join(page.shown).split())
    for name in NAMES:
        assert shown.count(name) > 5
    for figure in FIGURES:
        assert f'<figure id="{figure.name}">' in text, figure.name
        assert figure.title in shown
    # the mix has seven greedy schedulers and one flow scheduler
    for scheduler in ("greedy-6", "flow-0"):
        assert scheduler in shown
    assert "This run is partial: stopped by Ctrl-C" in shown
    assert "parsync" in shown and "[cell]" in shown
    assert not re.search(r"\b(nan|NaN|inf|None|Undefined)\b", shown)


@pytest.mark.usefixtures("no_figures")
def test_many_arms_are_listed_and_not_put_side_by_side(tmp_path: Path) -> None:
    """Thirteen columns have no room on a page."""
    directory = write_synthetic_run(tmp_path / "run", step_us=2_000_000, seeds=(1, 2))
    text = write_report(directory).read_text("utf-8")
    assert Page(text).open == []
    details = text[text.index('<section id="details">') : text.index('<section id="schedulers">')]
    assert "<table" not in details
    lists = re.findall(r'<ul class="verdict">(.*?)</ul>', details, re.DOTALL)
    assert len(lists) > 5
    for one in lists:
        assert [one.count(f"</span>{name}</span>") for name in CHARACTERS] == [1] * len(CHARACTERS)


def test_the_page_scales_down_and_knows_dark_pages(run: Path) -> None:
    text = (run / "report.html").read_text("utf-8")
    assert 'name="viewport"' in text and "prefers-color-scheme: dark" in text
    for head in re.findall(r"<svg[^>]*>", text):
        assert "viewBox" in head and " width=" not in head
    assert "#22252b" not in text  # ink comes from the page


def test_a_run_of_one_arm_without_seeds_or_flow_schedulers_has_a_report_and_always_the_same(
    tmp_path: Path,
) -> None:
    directory = write_synthetic_run(tmp_path / "run", ["ParSync adaptive"])
    text = write_report(directory).read_text("utf-8")
    drawings = {path.name: path.read_bytes() for path in (directory / "figures").iterdir()}
    assert write_report(directory).read_text("utf-8") == text
    assert {path.name: path.read_bytes() for path in (directory / "figures").iterdir()} == drawings
    assert "partial" not in " ".join(Page(text).shown)
    assert "<h1>How well does ParSync adaptive schedule this cell?</h1>" in text
    assert 'id="solver_time"' not in text
    assert 'id="delay_over_time"' in text


def test_runs_in_which_nothing_happened_have_a_report(tmp_path: Path) -> None:
    for number, arms in enumerate(
        ([], [bare_arm("idle")], [bare_arm("idle"), bare_arm("idler", seeds={1: 1.0})])
    ):
        directory = tmp_path / str(number)
        directory.mkdir()
        write_run(directory, build_summary(FACTS, workload(), arms), arms)
        shown = shown_in(write_report(directory))
        assert all(arm.name in shown for arm in arms)
        assert not re.search(r"\b(nan|NaN|None)\b", shown)
        assert not re.search(r"(?<![\d,.])1 (ways|tasks|machines|seeds|paired seeds)\b", shown)


def test_names_cannot_smuggle_markup_into_the_page(tmp_path: Path) -> None:
    arms = [bare_arm("<script>alert(1)</script>")]
    write_run(tmp_path, build_summary(FACTS, workload(), arms), arms)
    text = write_report(tmp_path).read_text("utf-8")
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_data_are_attributed_beside_the_figures_and_not_among_them(tmp_path: Path) -> None:
    arms = [bare_arm("A")]
    traced = workload()
    traced.facts["attribution"] = google2011.SPEC.attribution
    write_run(tmp_path, build_summary(FACTS, traced, arms), arms)
    text = write_report(tmp_path).read_text("utf-8")
    assert text.count("CC-BY 4.0") == 1 and "<dt>Attribution" not in text


def rows_for(delays: dict[str, list[float | None]]) -> dict[str, str]:
    """Best arm, tied arms and the sentence for mean delays by arm and seed."""
    arms = [
        bare_arm(name, seeds=dict(enumerate(values)))  # type: ignore[arg-type]
        for name, values in delays.items()
    ]
    summary = build_summary(FACTS, workload(), arms)
    row = next(row for row in verdict(with_own_figures(summary), [QUANTITIES["delay_mean_us"]]))
    return {
        "best": " ".join(cell.arm for cell in row.cells if cell.best),
        "tied": " ".join(cell.arm for cell in row.cells if cell.tied),
        "sentence": row.sentence,
        "certain": " ".join(cell.arm for cell in row.cells if cell.certain),
        "good": " ".join(cell.arm for cell in row.cells if cell.good),
    }


def with_own_figures(summary: RunSummary) -> RunSummary:
    return with_overall(summary, delay_mean_us={arm.name: 1.0 for arm in summary.arms})


CLEAR = {
    "A": [100.0, 102.0, 101.0, 103.0, 99.0],
    "B": [50.0, 52.0, 51.0, 53.0, 48.0],
    "C": [200.0, 205.0, 199.0, 201.0, 202.0],
}
TIED = {"A": [100.0, 40.0, 70.0, 71.0, 60.0], "B": [50.0, 90.0, 69.0, 72.0, 80.0]}
BEHIND_A_TIE = {
    "A": [10.0, 12.0, 11.0, 11.2, 10.8],
    "B": [11.0, 11.5, 10.9, 11.3, 11.4],
    "C": [500.0, 510.0, 505.0, 501.0, 502.0],
}
LOWER_BOUND = {
    "A": [1.0, None, 1.0, 1.0, 1.0],  # it never got there in some seed
    "B": [5.0, 5.1, 5.2, 5.3, 5.4],
    "C": [6.0, 6.1, 6.2, 6.3, 6.5],
}
ONE = [1.0, 2.0, 3.0, 4.0, 5.0]
TWO_EQUAL = {"A": ONE, "B": ONE, "C": [9.0, 8.0, 9.5, 8.1, 7.0]}


@pytest.mark.parametrize(
    ("delays", "expected", "says"),
    [
        (
            CLEAR,
            {"best": "B", "tied": "", "certain": "B C", "good": "B"},  # against the baseline A
            r"B is lowest at 51 µs. A is next: \+98 %, \+50 µs.*worse in 5 of 5 seeds",
        ),
        (TIED, {"certain": ""}, "the difference is not certain"),
        (BEHIND_A_TIE, {}, "the difference to B is not certain. C is next"),
        ({"A": [1.0, 2.0], "B": [1.0, 2.0]}, {"best": ""}, "^All arms alike.$"),
        (LOWER_BOUND, {"best": "B", "tied": ""}, ""),
        (TWO_EQUAL, {}, "^A and B are lowest at 3 µs, the same under every seed. C is"),
        (
            {"A": [5.0] * 5, "B": [7.0] * 5},
            {},
            r"^A is lowest at 5 µs. B is next: \+40 %, \+2 µs, the same under every seed.$",
        ),
        (
            {"A": [5.0, 6.0], "B": [7.0, 9.0]},
            {"certain": ""},
            r"A is lowest at 5.50 µs, before B at 8 µs: not enough seeds to tell \(2",
        ),
    ],
    ids=["clear", "tied", "behind a tie", "alike", "lower bound", "two equal", "no spread", "few"],
)
def test_the_verdict_is_what_the_seeds_tell(
    delays: dict[str, list[float | None]], expected: dict[str, str], says: str
) -> None:
    row = rows_for(delays)
    assert expected.items() <= row.items()
    assert re.search(says, row["sentence"]), row["sentence"]
    if delays is TIED:
        assert row["tied"] == "AB".replace(row["best"], "")


def test_what_is_unsure_has_an_interval_that_includes_zero() -> None:
    """Differences whose mean is unsure and whose ratios are not: both are judged as printed."""
    row_a = [100.0, 10.0, 10.0, 10.0, 10.0]
    row_b = [101.0, 13.0, 12.0, 12.5, 11.0]
    arms = [
        bare_arm(name, seeds=dict(enumerate(its))) for name, its in (("A", row_a), ("B", row_b))
    ]
    summary = with_own_figures(build_summary(FACTS, workload(), arms))
    cell = verdict(summary, [QUANTITIES["delay_mean_us"]])[0].cells[1]
    assert cell.certain and cell.change_interval == "+1.0 to +30 %"


def test_one_run_claims_no_certainty() -> None:
    summary = build_summary(FACTS, workload(), [bare_arm("A"), bare_arm("B")])
    summary = with_overall(summary, delay_mean_us={"A": 5.0, "B": 6.0})
    sentence = verdict(summary, [QUANTITIES["delay_mean_us"]])[0].sentence
    assert "A is lowest at 5 µs" in sentence and "one run gives no confidence interval" in sentence


def test_the_terminal_table_fits_eighty_columns_and_marks_the_best(run: Path) -> None:
    text = printed(comparison_table(read_summary(run)))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "PARTIAL" in text and "★" in text
    for name in NAMES:
        assert all(word in text for word in name.split())


def test_wide_intervals_leave_the_capacity_in_the_first_table(run: Path) -> None:
    summary = read_summary(run)
    keys = ("delay_mean_us", "delay_p99_us", "conflict_rate", "preferred_share", "jct_mean_us")
    lows = (441_000.0, 2e6, 0.063, 0.68, 5e6, 160_714.0)
    rows = []
    for key, low in zip((*keys, "decisions_per_s"), lows, strict=True):
        its = QUANTITIES[key]
        assert its.column_label
        spread = from_to(its.text(low), its.text(1.3 * low))
        [row] = verdict(summary, [its]) if key != "decisions_per_s" else rows[:1]
        value = its.text(225_714.0) if key == "decisions_per_s" else row.cells[0].value
        cells = tuple(replace(cell, value=value, spread=spread) for cell in row.cells)
        rows.append(replace(row, quantity=its, cells=cells))
    text = printed(arms_table(summary, rows))
    assert max(map(len, text.splitlines())) <= 80
    [heads] = [line for line in text.splitlines() if line.startswith(" Arm ")]
    assert "Delay" in heads and "Capacity" in heads
    assert "226 k/s" in text and "161–209" in text


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_columns_that_do_not_fit_go_into_a_table_below(run: Path, width: int) -> None:
    summary = read_summary(run)
    rows = verdict(summary, [quantity for quantity in summary.headline if quantity.column_label])
    lines = printed(arms_table(summary, [*rows, *rows]), width).splitlines()
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width and "…" not in text
    tables = sum(line.startswith(" Arm ") for line in lines)
    assert (tables > 1) == (width < 200)
    assert text.count("PARTIAL") == text.count("green: no certain difference") == 1
    words = text.split()
    for row in rows:
        for word in (row.quantity.column_label or "").split():
            assert words.count(word) >= 2, word
        for cell in row.cells:
            for word in cell.value.replace("≥ ", "≥").split():
                assert words.count(word) >= 2, word
    stars = sum(cell.best for row in rows for cell in row.cells)
    assert sum(line.count("★") for line in lines) == 2 * stars + 1, "and that of the legend"


def test_restarts_are_named_in_summary_report_and_terminal(tmp_path: Path) -> None:
    back = Restart(actor="schedulers-1", at_us=3_200_000, away_us=1_450_000)
    gone = Restart(actor="source", at_us=5_000_000, away_us=None)
    arms = [
        replace(bare_arm("ParSync"), runtime="ray", restarts=[back]),
        replace(bare_arm("Omega"), runtime="ray", restarts=[gone]),
        replace(bare_arm("untouched"), runtime="ray"),
    ]
    summary = build_summary(replace(FACTS, runtime="ray"), workload(), arms)
    assert [arm.restarts for arm in summary.arms] == [[back], [gone], []]
    write_run(tmp_path, summary, arms)
    shown = shown_in(write_report(tmp_path))
    assert "ParSync: schedulers-1 was lost 3.20 s into the run and was back 1.45 s later." in shown
    assert "Omega: source was lost 5 s into the run and did not come back." in shown
    assert shown.count("1 restart") == shown.count("1 actor lost") == 1
    text = printed(comparison_table(read_summary(tmp_path)))
    assert text.count("1 restart") == text.count("1 actor lost") == 1


def test_every_character_of_the_factory_is_drawn_in_its_own_colour() -> None:
    from experiments.figures.style import COLOURS

    assert len(set(COLOURS)) >= len(CHARACTERS)


def test_a_warm_up_shorter_than_a_task_is_warned_of_unless_the_cell_began_loaded(
    tmp_path: Path,
) -> None:
    for settle_us, initial, warned in (
        (1_000_000, 0, True),
        (2_000_000, 0, False),
        (1_000_000, 5, False),
    ):
        directory = tmp_path / f"{settle_us}-{initial}"
        directory.mkdir()
        arms = [bare_arm("A")]
        summary = build_summary(replace(FACTS, settle_us=settle_us), workload(), arms)
        update = {"mean_duration_us": 2_000_000, "initial_tasks": initial}
        changed = summary.workload.model_copy(update=update)
        summary = summary.model_copy(update={"workload": changed})
        write_run(directory, summary, arms)
        page = " ".join(write_report(directory).read_text("utf-8").split())
        assert f"({settle_us / 2e6:g} mean task lengths), and the drain" in page
        assert ("Short warm-up" in page) == warned
        assert not warned or "0.5 of a mean task length (2 s)" in page


def test_a_steady_start_is_said_and_not_warned_of(tmp_path: Path) -> None:
    arms = [bare_arm("A")]
    summary = build_summary(replace(FACTS, settle_us=1_000_000), workload(), arms)
    update = {"mean_duration_us": 2_000_000, "facts": {"warm_up_s": 10.0}}
    summary = summary.model_copy(update={"workload": summary.workload.model_copy(update=update)})
    write_run(tmp_path, summary, arms)
    page = " ".join(write_report(tmp_path).read_text("utf-8").split())
    assert "Short warm-up" not in page
    assert "each arm ran for 10 s (5 mean task lengths) in virtual time before" in page
    assert "arriving, and each arm" in page and "<dt>Warm-up of each arm</dt><dd>10 s</dd>" in page


def test_transient_phases_are_named_in_report_and_terminal(tmp_path: Path) -> None:
    arms = [bare_arm("A"), bare_arm("B")]
    summary = build_summary(FACTS, workload(), arms)
    assert transient_phases(summary) == ""
    drifting = summary.arms[1].phases[0].model_copy(update={"transient": True})
    phases = [drifting, *summary.arms[1].phases[1:]]
    second = summary.arms[1].model_copy(update={"phases": phases})
    summary = summary.model_copy(update={"arms": [summary.arms[0], second]})
    says = "Transient phase, in which backlog or utilisation drifted: 1 (B)."
    assert transient_phases(summary) == says
    write_run(tmp_path, summary, arms)
    page = " ".join(write_report(tmp_path).read_text("utf-8").split())
    assert says in page and page.count("<small>transient</small>") == 1
    assert says in printed(comparison_table(read_summary(tmp_path)), 200)
    first = summary.arms[0].model_copy(update={"phases": phases})
    both = summary.model_copy(update={"arms": [first, second]})
    assert transient_phases(both).endswith("drifted: 1 (all arms).")


def test_the_report_says_how_long_tasks_waited_for_steps_and_never_more_than_they_waited_in_all(
    run: Path,
) -> None:
    shown = " ".join((run / "report.html").read_text("utf-8").split())
    assert "step wait mean 900 µs; step wait 8.0 % of the delay" in shown
