"""Papers as chapters: what a file of claims may say, and that a further paper needs no more than
its chapters and a place among the papers."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from experiments.analysis.model_files import read_model
from experiments.papers import execution
from experiments.papers.chapter import Chapter, Paper
from experiments.papers.claims import Limits
from experiments.papers.omega import figures as omega_figures
from experiments.papers.omega import mapreduce
from experiments.papers.page import CLAIMS, PAGE, Reproduction
from experiments.papers.parsync import controls, models, section6
from experiments.papers.registry import OMEGA, PAPERS, PARSYNC
from experiments.studies.model_settings import ReproduceScale
from tests.documents import ROOT
from tests.fixtures.papers import tiny
from tests.unit.test_claim_bounds import KEY, arm


@pytest.mark.usefixtures("one_process")
def test_a_further_paper_is_its_chapters_and_a_place_among_the_papers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(PAPERS, "tiny", tiny.PAPER)
    options = execution.ReproduceOptions("tiny", [], ReproduceScale.SMOKE, 2, tmp_path)
    assert execution.start(options) == 0
    found = read_model(tmp_path / CLAIMS, Reproduction)
    assert {claim.id: claim.verdict for claim in found.claims} == {
        "fig1.flow_places_all": "holds",
        "fig1.locks_places_all": "holds",
        "fig1.longer_at_load": "not_comparable",
        "fig2.linear": "holds",
        "fig2.seconds": "not_comparable",
    }
    page = (tmp_path / PAGE).read_text("utf-8")
    assert page.count("<svg") == 1
    assert "These runs have a tiny cell." in page
    assert "The cell has 10 machines." in page
    assert "10.01" in page
    assert (tmp_path / "figures" / "fig1.png").is_file()


def test_a_claim_is_what_its_file_and_its_module_say() -> None:
    flow, locks, longer = tiny.PAPER.figures[0].claims
    assert (flow.source, longer.source) == ("Fig. 1, section 3", "section 3.1")
    assert (flow.statement, locks.statement) == (
        *("Flow places every task.", "Locks places every task."),
    )
    assert (flow.paper_value, longer.paper_value) == ("all", "")
    assert (flow.limits, longer.limits) == (Limits(low=1.0), Limits(low=0.0, strict=True))
    assert (flow.only_at_paper_scale, longer.only_at_paper_scale) == (False, True)
    linear, seconds = tiny.PAPER.figures[1].claims
    assert linear.limits == Limits(3.9, 4.1)
    assert seconds.limits == Limits(high=1.0, strict=True)
    assert seconds.incomparable.endswith("10 machines stand in for it.")
    first, second = (figure.notes for figure in tiny.PAPER.figures)
    assert first == ("The cell has 10 machines.", "Tasks have no preferences.")
    assert second == (seconds.incomparable,)


WHOLE = 'source = "B"\nclaims.one = {{statement = "C", {}}}'


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("", "source"),
        ('source = "B"\nclaims = {}\nnote = ["C"]', "note"),
        (WHOLE.format("at_most = 1"), "statistic"),
        (WHOLE.format('statistic = "D", most = 1'), "most"),
        (WHOLE.format('statistic = "D"'), "one of above and below"),
        (WHOLE.format('statistic = "D", above = 1, at_most = 2'), "one of above and below"),
        (WHOLE.format('statistic = "D", above = 1, below = 2'), "one of above and below"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, wrong: str, error: str) -> None:
    path = tmp_path / "chapter.toml"
    path.write_text(f'[fig1]\ntitle = "A"\n{wrong}\n')
    with pytest.raises(ValueError, match=error):
        Chapter(path)


def test_claims_and_words_that_nobody_states_are_refused() -> None:
    runs = tiny.fig1_runs
    with pytest.raises(KeyError, match="fastest"):
        tiny.CHAPTER.figure("fig2", runs, {"fastest": lambda runs: 1.0})
    with pytest.raises(KeyError, match="machines"):
        tiny.CHAPTER.figure("fig2", runs, {"seconds": lambda runs: 1.0})


@pytest.mark.parametrize(
    ("paper", "chapters"),
    [
        (PARSYNC, (models, section6, controls)),
        (OMEGA, (omega_figures, mapreduce)),
        (tiny.PAPER, (tiny,)),
    ],
    ids=lambda value: value.id if isinstance(value, Paper) else "",
)
def test_every_claim_of_a_file_is_judged(paper: Paper, chapters: tuple[ModuleType, ...]) -> None:
    claims = [claim for figure in paper.figures for claim in figure.claims]
    judged = [f"{claim.statement} {claim.statistic}" for claim in claims]
    for chapter in chapters:
        for figure in chapter.CHAPTER.figures.values():
            for text in figure.claims.values():
                words = re.escape(" ".join(f"{text.statement} {text.statistic}".split()))
                pattern = re.sub(r"\\{.*?\\}", ".*", words)
                assert any(re.fullmatch(pattern, one) for one in judged), text.statement


def test_the_chapter_of_the_guide_is_one(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    block = guide.partition("## Add a figure")[2].partition("```text\n")[2].partition("```")[0]
    (tmp_path / "chapter.toml").write_text(block, encoding="utf-8")
    figure = Chapter(tmp_path / "chapter.toml").figure(
        "fig7", tiny.fig1_runs, {"batch_waits_longer": lambda runs: 2.0}
    )
    (claim,) = figure.claims
    assert (claim.id, claim.limits) == ("fig7.batch_waits_longer", Limits(low=2.0))


def test_statistics_over_the_phases_of_runs() -> None:
    runs = {"A": arm(1.0, 2.0, 4.0, 2.0, 1.0), "B": arm(2.0, 6.0, 4.0, 8.0, 1.5)}
    assert section6.highest("B", KEY)(runs) == 8
    assert section6.least_ratio("A", ("B",), KEY)(runs) == 1
    assert section6.least_ratio("A", ("B",), KEY, (0, 1))(runs) == 2
    assert section6.least_ratio("A", ("B", "A"), KEY, (0, 1))(runs) == 1
    assert section6.least_difference("B", "A", KEY)(runs) == 0
    assert section6.least_difference("A", "B", KEY)(runs) == -6
    assert section6.largest_gap("A", "B", KEY)(runs) == 6
    assert section6.phase_ratio("A", KEY, 2, 1)(runs) == 2
    assert section6.least_growth("A", KEY, (0, 1, 2))(runs) == 2
    assert section6.least_growth("B", KEY, (0, 1, 2))(runs) == pytest.approx(2 / 3)
