"""Figs. 15 and 16 of `agora reproduce omega`: their cells, their statistics on made-up jobs, their
claims, and their drawings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.campaign.task import Arrays
from experiments.papers.chapter import PaperFigure, Results
from experiments.papers.claims import judge
from experiments.papers.omega import mapreduce as statistic
from experiments.papers.omega.mapreduce import (
    BUSY,
    CELLS,
    FIGURES,
    GLOBAL_CAP,
    LIGHT,
    MAX_PARALLELISM,
    POLICIES,
    RELATIVE,
    REQUESTED,
    at_policy,
    cells,
    mapreduce_runs,
)
from experiments.papers.page import show
from experiments.papers.runs import PlatformRuns
from experiments.results.mapreduce import NOT_FINISHED
from experiments.studies.model_settings import ReproduceScale

BEFORE_US = np.full(10, 60_000_000)
STEADY = (690, 710) * 10
VARIED = (500, 900) * 10


def kept(run_us: object, used: tuple[int, ...] = STEADY) -> Arrays:
    """What a run keeps, with a sample of the use of the cell each second."""
    return {
        "run_us": np.asarray(run_us, np.int64),
        "used_at_us": np.arange(len(used)) * 1_000_000,
        "used_permille": np.array(used, np.int64),
    }


def runs(times: dict[tuple[str, str], float], extra: tuple[int, ...] = VARIED) -> dict[str, Arrays]:
    """Runs in which all jobs are so many times as fast with a policy on a cell, or as fast."""
    return {
        at_policy(cell, policy): kept(
            BEFORE_US / times.get((cell, policy), 1.0),
            extra if policy == MAX_PARALLELISM else STEADY,
        )
        for cell in CELLS
        for policy in POLICIES
    }


def verdicts(found: dict[str, Arrays]) -> dict[str, str]:
    """The verdicts on all claims, by their names."""
    return {
        claim.id.partition(".")[2]: judge(claim, [found], True).verdict
        for figure in FIGURES
        for claim in figure.claims
    }


AS_IN_THE_PAPER = {
    (BUSY, MAX_PARALLELISM): 3.5,
    (BUSY, RELATIVE): 3.0,
    (LIGHT, MAX_PARALLELISM): 3.5,
    (LIGHT, RELATIVE): 3.0,
    (LIGHT, GLOBAL_CAP): 3.4,
}


def test_the_claims_hold_of_what_the_paper_describes() -> None:
    found = verdicts(runs(AS_IN_THE_PAPER))
    assert {found.pop(name) for name in ("jobs_gain", "speedup")} == {"not_comparable"}
    assert len(found) == 7
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("cell", "policy", "times", "claim"),
    [
        (BUSY, RELATIVE, 3.6, "max_parallelism_most"),
        (LIGHT, RELATIVE, 1.6, "relative_size_well"),
        (LIGHT, GLOBAL_CAP, 2.7, "cap_on_light_cell"),
        (BUSY, GLOBAL_CAP, 1.3, "cap_on_busy_cell"),
    ],
)
def test_a_claim_does_not_hold_of_other_speed_ups(
    cell: str, policy: str, times: float, claim: str
) -> None:
    found = verdicts(runs({**AS_IN_THE_PAPER, (cell, policy): times}))
    assert [name for name in found if found[name] == "does_not_hold"] == [claim]


def test_claims_on_the_use_of_the_cell_do_not_hold_where_it_stays_the_same() -> None:
    found = verdicts(runs(AS_IN_THE_PAPER, STEADY))
    assert found["use_higher"] == found["use_more_variable"] == "does_not_hold"
    idle = runs(AS_IN_THE_PAPER)
    idle[at_policy(BUSY, REQUESTED)] = kept(BEFORE_US, (590,) * 10 + (610,) * 10)
    assert verdicts(idle)["use_above_cap"] == "does_not_hold"


def test_speed_ups_are_of_the_jobs_that_ended_both_times() -> None:
    found = {
        at_policy(BUSY, REQUESTED): kept([100, 100, 100, NOT_FINISHED, 100]),
        at_policy(BUSY, MAX_PARALLELISM): kept([25, 96, 50, 10, NOT_FINISHED]),
    }
    speedups = statistic.speedups(found, BUSY, MAX_PARALLELISM)
    assert speedups.tolist() == [4, 100 / 96, 2]
    assert statistic.gaining_share(BUSY, MAX_PARALLELISM)(found) == pytest.approx(2 / 3)
    assert statistic.speedup_at(BUSY, MAX_PARALLELISM, 0.5)(found) == 2


def test_without_a_job_nothing_is_known() -> None:
    found = {at_policy(BUSY, policy): kept([NOT_FINISHED], ()) for policy in POLICIES}
    label = at_policy(BUSY, REQUESTED)
    for value in (
        statistic.gaining_share(BUSY, MAX_PARALLELISM),
        statistic.speedup_at(BUSY, MAX_PARALLELISM, 0.5),
        statistic.use_above(label, 0.5),
        statistic.use_at(label, 0.5),
        statistic.use_mean(label),
        statistic.use_deviation(label),
    ):
        assert value(found) is None


def test_the_time_in_which_a_cell_fills_up_is_left_out() -> None:
    filling = kept([1], (0, 100, *(600, 800) * 10))
    assert statistic.use(filling).tolist() == [0.8, *(0.6, 0.8) * 9], "from 2.1 s on"
    found = {"run": filling}
    assert statistic.use_above("run", 0.6)(found) == pytest.approx(10 / 19)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_a_figure_is_drawn_with_its_numbers(figure: PaperFigure, tmp_path: Path) -> None:
    seeds = (runs(AS_IN_THE_PAPER), runs({}))
    results = Results(mapreduce_runs(ReproduceScale.SMOKE), seeds, {})
    claims = [judge(claim, results.seeds, True) for claim in figure.claims]
    assert all(claim.id.startswith(f"{figure.id}.") for claim in claims)
    shown = show(figure, results, claims, tmp_path)
    assert "<svg" in (shown.svg or "")
    assert shown.table is not None
    rows = {row[0]: row[1:] for row in shown.table.rows}
    assert all(len(row) + 1 == len(shown.table.header) for row in rows.values())
    label = at_policy(BUSY, MAX_PARALLELISM)
    expected = {
        "fig15": ("10", "50.0 %", "2.25 x", "2.25 x"),  # half-way between both seeds
        "fig16": ("70.0 %", "20.0 %", "90.0 %"),
    }
    assert rows[label][: len(expected[figure.id])] == expected[figure.id]


@pytest.mark.parametrize("scale", ReproduceScale)
def test_a_busy_cell_and_a_lightly_used_one_of_a_quarter_its_size(scale: ReproduceScale) -> None:
    busy, light = cells(scale).values()
    assert busy.machines == 4 * light.machines
    assert (busy.load_percent, light.load_percent) == pytest.approx((74, 38), abs=1)
    for cell in (busy, light):
        assert cell.mapreduce is not None
        share = cell.outline().mapreduce_share
        assert 0.1 < share < 0.25, "about 20 % of Google's jobs, section 6"


@pytest.mark.parametrize("scale", ReproduceScale)
def test_the_figures_share_their_runs_and_keep_jobs_under_every_seed(
    scale: ReproduceScale, tmp_path: Path
) -> None:
    needed = [run for figure in FIGURES for run in figure.runs(scale)]
    work = PlatformRuns(tmp_path).missing(needed, (1, 2))
    assert len(work) == 2 * len(CELLS) * len(POLICIES)
    assert all(set(one.keeps) == {"mapreduce"} for one in work)
    policies = {run.arm.groups[-1].options["policy"] for run in needed}
    assert policies == {"requested", "max_parallelism", "global_cap", "relative_job_size"}
