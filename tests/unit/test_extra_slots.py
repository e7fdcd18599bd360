"""The search for the least number of extra slots, also where more slots do not always help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parsync.model import extra_slots
from parsync.model.extra_slots import (
    ExtraSlotsSearch,
    find_extra_slots,
)
from parsync.model.slot_settings import SlotSettings
from parsync.model.slot_simulator import (
    ConflictsAndScores,
    Ending,
    FinishRule,
    SlotResults,
    simulate,
)
from shared_state.errors import AgoraError
from tests.unit.slot_cells import small_settings

SEARCH = ExtraSlotsSearch(largest=4_000, first_step=50, resolution=20)


class Finishes(SlotResults):
    """A run of which nothing is known but whether it finished."""

    __slots__ = ("finished",)

    def __init__(self, finished: bool) -> None:
        object.__setattr__(self, "finished", finished)
        object.__setattr__(self, "ending", Ending.COMMITTED if finished else Ending.HORIZON)
        object.__setattr__(self, "last_commit_s", 0.0)

    def finishes_by(self, time_s: float, rule: FinishRule = FinishRule.LAST_COMMIT) -> bool:
        return bool(self.finished)

    def conflicts_and_scores(
        self, bins: slice = slice(None), group: int | None = None
    ) -> ConflictsAndScores:
        return ConflictsAndScores(None, None, None, None, None, None, None)


def answers(monkeypatch: pytest.MonkeyPatch, keeps_up: set[range]) -> list[int]:
    """Lets simulations finish at the counts in these ranges; the counts that are probed."""
    probed: list[int] = []

    def instead(settings: SlotSettings) -> SlotResults:
        probed.append(settings.extra_slots)
        return Finishes(any(settings.extra_slots in counts for counts in keeps_up))

    monkeypatch.setattr(extra_slots, "simulate", instead)
    return probed


def test_the_answer_is_within_the_resolution_of_the_threshold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for threshold in (1, 49, 50, 51, 777, 3_999):
        answers(monkeypatch, {range(threshold, 10_000)})
        found = find_extra_slots(small_settings(), SEARCH)
        assert found.least is not None
        assert found.too_few is not None
        assert found.too_few < threshold <= found.least <= found.too_few + 20
        assert found.islands == ()


def test_no_extra_slots_may_be_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    probed = answers(monkeypatch, {range(10_000)})
    found = find_extra_slots(small_settings(), SEARCH)
    assert (found.least, found.too_few, found.bracket) == (0, None, None)
    assert probed == [0, 50, 100]


def test_an_island_at_zero_is_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {range(30), range(900, 10_000)})
    found = find_extra_slots(small_settings(), SEARCH)
    assert found.least is not None
    assert 900 <= found.least <= 920
    assert found.islands == (0,)


def test_an_island_on_the_way_is_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {range(100, 250), range(1_500, 10_000)})
    found = find_extra_slots(small_settings(), SEARCH)
    assert found.least is not None
    assert 1_500 <= found.least <= 1_520
    assert found.islands == (100, 200)


def test_without_an_answer_the_reason_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, set())
    found = find_extra_slots(small_settings(), SEARCH)
    assert found.least is None
    assert found.reason == "4000 extra slots, the most that were tried, are too few"


def test_what_no_slots_can_help_is_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    probed = answers(monkeypatch, set())
    found = find_extra_slots(small_settings(schedulers_factor=1, rate_per_s=500.0), SEARCH)
    assert found.least is None
    assert "4 schedulers decide at most 8800 tasks within the limit, but 10000 arrive" in (
        found.reason
    )
    assert probed == []


def test_a_bracket_replaces_the_scan_if_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    probed = answers(monkeypatch, {range(777, 10_000)})
    scanned = find_extra_slots(small_settings(), SEARCH)
    scan_runs = len(probed)
    probed.clear()
    again = find_extra_slots(small_settings(), SEARCH, bracket=(700, 800))
    assert again.least is not None
    assert scanned.least is not None
    assert abs(again.least - scanned.least) <= 20
    assert len(probed) < scan_runs / 1.5
    wrong = find_extra_slots(small_settings(), SEARCH, bracket=(100, 200))
    assert wrong.least is not None
    assert 777 <= wrong.least <= 797


def test_an_answer_above_a_wrong_bracket_is_within_the_resolution_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The scan takes 400, 800 and 1,600 for the answer's range; the bracket lies in a gap of it.
    answers(monkeypatch, {range(300, 900), range(1_100, 10_000)})
    found = find_extra_slots(small_settings(), SEARCH, bracket=(950, 1_050))
    assert found.least is not None
    assert found.too_few is not None
    assert 1_100 <= found.least <= found.too_few + 20
    assert found.islands


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_answer_keeps_up_and_the_count_below_does_not(seed: int) -> None:
    settings = small_settings(schedulers_factor=2, freed_at_once=True, seed=seed)
    answer = find_extra_slots(settings, SEARCH)
    assert answer.least is not None
    assert simulate(replace(settings, extra_slots=answer.least)).finishes_by(22.0)
    assert answer.too_few is not None
    assert not simulate(replace(settings, extra_slots=answer.too_few)).finishes_by(22.0)


def test_a_count_that_cannot_run_all_tasks_in_time_does_not_keep_up() -> None:
    found = find_extra_slots(small_settings(schedulers_factor=4, rate_per_s=600.0), SEARCH)
    assert found.too_few is not None
    assert found.least is not None
    assert not found.probes[0].keeps_up
    assert found.least > 400


def test_more_schedulers_need_fewer_extra_slots() -> None:
    """ParSync section 4.3, Fig. 2: with diminishing returns."""
    least = []
    for factor in (2, 4):
        settings = small_settings(schedulers_factor=factor, duration_s=30.0)
        least.append(find_extra_slots(settings, SEARCH).least)
    assert least[0] is not None
    assert least[1] is not None
    assert least[1] < least[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limit_factor": 1.0}, r"^limit_factor: expected more than 1, got 1.0"),
        ({"limit_factor": float("nan")}, r"^limit_factor: expected more than 1, got nan"),
        ({"resolution": 0}, r"^resolution: expected 1 or more, got 0"),
        ({"first_step": 0}, r"^first_step: expected 1 or more, got 0"),
    ],
)
def test_a_wrong_search_is_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(AgoraError, match=message):
        replace(SEARCH, **changes)


def test_wrong_brackets_are_refused() -> None:
    with pytest.raises(AgoraError, match=r"^bracket: expected two ascending counts"):
        find_extra_slots(small_settings(), SEARCH, bracket=(5, 5))


def test_the_answer_has_what_its_run_found() -> None:
    settings = small_settings(gap_s=1.0)
    found = find_extra_slots(settings, SEARCH)
    assert found.least
    alone = simulate(replace(settings, extra_slots=found.least, horizon_s=1.1 * 20.0))
    assert found.found == alone.conflicts_and_scores()
    assert replace(found, least=None).found is None
