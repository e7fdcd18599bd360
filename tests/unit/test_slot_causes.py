"""Why claims of the slot simulator conflict, and how good its slots in use are: whole cells whose
conflicts can be told by hand, and what holds in every cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.model.slot_results import ConflictsAndScores, SlotResults
from parsync.model.slot_settings import STRATEGIES, Phase, SchedulerGroup, SlotSettings
from parsync.model.slot_simulator import simulate
from parsync.protocols.optimistic.choices import SlotWeighting, SyncMode
from parsync.protocols.pending_queue import LoserPolicy
from tests.fixtures.examples import examples
from tests.unit.slot_cells import TASKS_PER_S, small_settings

HIGHEST_STEP = 65_535


def one_task_each(schedulers: int, within_s: float, decision_s: float) -> SlotSettings:
    """A single slot; each scheduler gets one task at some time within within_s, and looks at the
    cell once a second."""
    return SlotSettings(
        groups=(SchedulerGroup(schedulers=schedulers, batch_tasks=1, decision_s=decision_s),),
        phases=(Phase(duration_s=within_s, rate_per_s=(schedulers / within_s,)),),
        slots=1,
        score_variance=0.0,
        task_s=0.35,
        gap_s=1.0,
        horizon_s=30.0,
    )


def counts(found: SlotResults) -> tuple[int, int, int, int, int]:
    """Conflicts: all, in the same tick, over preferred slots, stale, visible."""
    columns = (
        found.conflicts,
        found.same_tick_conflicts,
        found.quality_conflicts,
        found.stale_conflicts,
        found.visible_conflicts,
    )
    all_, same_tick, quality, stale, visible = (int(column.sum()) for column in columns)
    return all_, same_tick, quality, stale, visible


@pytest.mark.parametrize("seed", range(5))
def test_who_decides_while_the_rival_does_has_a_hidden_conflict(seed: int) -> None:
    # both begin within 50 ms and take 100 ms: the slot is idle when the second one decides
    found = simulate(replace(one_task_each(2, 0.05, 0.1), seed=seed))
    assert counts(found) == (1, 0, 0, 1, 0)


@pytest.mark.parametrize("seed", range(5))
def test_who_decides_after_the_rival_s_commit_has_a_visible_conflict(seed: int) -> None:
    # decisions take a microsecond, so the first one has the slot when the second one begins
    found = simulate(replace(one_task_each(2, 0.3, 1e-6), seed=seed))
    assert counts(found) == (1, 0, 0, 1, 1)


def test_schedulers_that_wait_for_the_same_sync_conflict_in_the_same_tick() -> None:
    # Three want the slot: two lose it, and see it again at the sync after 1 s. Both take it then,
    # and one of them loses. It sees the slot after 2 s, when nobody else wants it.
    found = simulate(one_task_each(3, 0.05, 0.1))
    assert counts(found) == (3, 1, 0, 2, 0)
    assert found.last_commit_s == pytest.approx(2.1)


def test_a_conflict_over_the_better_slot_is_one_of_quality() -> None:
    # Of two slots one has practically all weight: both claim it, and the loser takes the other.
    settings = replace(one_task_each(2, 0.05, 0.1), slots=2, score_variance=10_000.0)
    found = simulate(settings)
    assert counts(found) == (1, 0, 1, 0, 0)
    # with equal weights the same choices would not be called so
    light = simulate(replace(settings, score_variance=0.0))
    assert light.quality_conflicts.sum() == 0


def test_scores_in_use_and_the_best_ones_by_hand() -> None:
    # A lone scheduler, two slots, and a task each second that runs for 1.5 s: the first takes the
    # good slot, the second the bad one, the third the good one again; with its commit all ends.
    found = simulate(
        SlotSettings(
            groups=(SchedulerGroup(schedulers=1, batch_tasks=1, decision_s=0.001),),
            phases=(Phase(duration_s=3.0, rate_per_s=(1.0,)),),
            slots=2,
            score_variance=10_000.0,
            task_s=1.5,
            gap_s=10.0,
            freed_at_once=True,
            horizon_s=30.0,
            bin_s=30.0,
        )
    )
    assert found.busy_ns.tolist() == [2_500_000_000]
    # good alone for 1 s, both for 0.5 s, bad alone for 0.5 s, in which the good one is idle
    assert found.in_use_score_ms.tolist() == [1_500 * HIGHEST_STEP]
    assert found.best_score_ms.tolist() == [2_000 * HIGHEST_STEP]
    whole = found.conflicts_and_scores()
    width = HIGHEST_STEP * found.score_step
    assert whole.score_in_use == pytest.approx(found.lowest_score + 0.6 * width)
    assert whole.best_score == pytest.approx(found.lowest_score + 0.8 * width)


@examples(60)
@given(
    st.sampled_from(list(SyncMode)),
    st.sampled_from(STRATEGIES),
    st.sampled_from(list(SlotWeighting)),
    st.sampled_from([0.0, 0.5, 2.0, 30.0]),
    st.sampled_from([0.1, 0.5, 2.0]),
    st.sampled_from([0.0, 0.004]),
    st.sampled_from(list(LoserPolicy)),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.integers(0, 1000),
)
def test_causes_add_up_to_the_conflicts_and_nothing_beats_the_best(
    sync: SyncMode,
    strategy: object,
    weighting: SlotWeighting,
    variance: float,
    gap_s: float,
    latency_s: float,
    losers: LoserPolicy,
    choices: tuple[bool, bool, bool],
    seed: int,
) -> None:
    cut_at_sync, freed_at_once, commit_pipelining = choices
    settings = small_settings(
        rate_per_s=0.9 * TASKS_PER_S,
        duration_s=8.0,
        partitions=9,
        sync=sync,
        weighting=weighting,
        score_variance=variance,
        gap_s=gap_s,
        latency_s=latency_s,
        losers=losers,
        cut_at_sync=cut_at_sync,
        freed_at_once=freed_at_once,
        commit_pipelining=commit_pipelining,
        seed=seed,
    )
    (group,) = settings.groups
    found = simulate(replace(settings, groups=(replace(group, strategy=strategy),)))
    causes = (found.same_tick_conflicts, found.quality_conflicts, found.stale_conflicts)
    assert all((column >= 0).all() for column in causes)
    assert (sum(causes) == found.conflicts).all()
    assert (found.visible_conflicts >= 0).all()
    assert (found.visible_conflicts <= found.conflicts).all()
    assert (found.in_use_score_ms <= found.best_score_ms).all()
    if variance == 0:
        assert not found.quality_conflicts.any()
        assert not found.best_score_ms.any()


def test_what_did_not_happen_is_not_known() -> None:
    found = simulate(small_settings())
    nothing = found.conflicts_and_scores(slice(0, 0))
    assert nothing == ConflictsAndScores(None, None, None, None, None, None, None)
