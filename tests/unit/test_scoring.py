"""The scoring kinds: what each scores and remembers, how far it looks, and bad input."""

import numpy as np
import pytest
from scipy import stats

from schedulers import _native, registry
from schedulers.interface import ChangeKind
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass
from tests.fixtures.overloaded_cell import arm
from tests.fixtures.overloaded_cell import group as make_group
from tests.greedy_world import catalog_of, cell_of
from tests.scoring_world import FIVE_MINUTES_US, KINDS, Scoring, constrained, jobs_of

SIGNIFICANCE = 1e-4  # seeds are fixed: a run passes always or never
CPU_AND_MEMORY = [[10, 10]] * 4


@pytest.mark.parametrize(
    ("machines", "percentage", "enough"),
    [
        (1, 0, 1),
        (99, 0, 99),
        (99, 10, 99),
        (100, 0, 100),
        (250, 0, 120),
        (1_000, 0, 420),
        (5_000, 0, 500),
        (12_500, 0, 625),
        (1_000, 30, 300),
        (1_000, 5, 100),
        (1_000, 100, 1_000),
    ],
)
def test_kubernetes_scores_an_adaptive_share(machines, percentage, enough):
    assert _native.kubernetes_enough(machines, percentage) == enough


def test_kubernetes_begins_where_the_last_search_ended():
    scoring = Scoring("kubernetes", cell_of([4] * 1_000))
    taken = []
    for stream in range(200):
        [row] = scoring.plan(jobs_of([1]), stream)
        assert (row - 420 * stream) % 1_000 < 420
        assert scoring.scheduler.work == (1, 1, 420, 420)
        taken.append(row)
    assert len(set(np.array(taken) // 100)) == 10


@pytest.mark.parametrize("kind", ["kubernetes", "swarmkit", "stranded"])
def test_ties_are_broken_uniformly(kind):
    scoring = Scoring(kind, cell_of([4, 4, 1, 4, 4, 4]))
    taken = [int(scoring.plan(jobs_of([2], first=1), stream)[0]) for stream in range(4_000)]
    observed = np.bincount(taken, minlength=6)
    assert observed[2] == 0
    assert stats.chisquare(observed[[0, 1, 3, 4, 5]]).pvalue > SIGNIFICANCE


def test_kubernetes_weighs_room_balance_and_affinity():
    used = [[0, 0], [4, 4], [0, 6], [9, 9]]
    catalog = catalog_of(({1: 0}, {}), ({3: 0}, {}))
    scoring = Scoring("kubernetes", cell_of(CPU_AND_MEMORY), used, catalog=catalog)
    # least-allocated + balanced: 90 + 100, 50 + 100, 60 + 70, 0 + 100; affinity: 2 x 100
    assert scoring.plan(jobs_of([[1, 1]])).tolist() == [0]
    assert scoring.plan(jobs_of([[1, 1]], preference=1)).tolist() == [1]
    assert scoring.plan(jobs_of([[1, 1]], preference=2)).tolist() == [3]
    # beside them an unbalanced task straightens a machine: 60 + 95 against 75 + 75 and 35 + 75
    assert scoring.plan(jobs_of([[5, 0]])).tolist() == [0]
    assert Scoring("kubernetes", cell_of(CPU_AND_MEMORY[:2]), [[3, 3], [0, 6]]).plan(
        jobs_of([[5, 0]])
    ).tolist() == [1]


@pytest.mark.parametrize("kind", KINDS)
def test_constraints_are_kept_and_preferences_are_not_constraints(kind):
    catalog = constrained(catalog_of(({1: 0, 2: 5}, {}), ({1: 0}, {})), [1])
    cell = cell_of([2, 2, 2, 2, 2, 2], rack_size=2)
    scoring = Scoring(kind, cell, catalog=catalog)
    assert set(scoring.plan(jobs_of([1] * 6, preference=1)).tolist()) == {1, 2, -1}
    assert -1 not in scoring.plan(jobs_of([1] * 6, preference=2))


@pytest.mark.parametrize("kind", ["kubernetes", "nomad", "stranded"])
def test_preferred_machines_come_first(kind):
    cell = cell_of([4] * 40, rack_size=10)
    scoring = Scoring(kind, cell, catalog=catalog_of(({7: 0}, {3: 40})))
    machine = [int(scoring.plan(jobs_of([1], preference=1), stream)[0]) for stream in range(20)]
    assert set(machine) == {7}
    scoring.view.claim(np.array([7], np.int32), np.array([[4]]))
    machine = [int(scoring.plan(jobs_of([1], preference=1), stream)[0]) for stream in range(20)]
    assert {row // 10 for row in machine} == {3}


def test_swarmkit_spreads_jobs_then_tasks_and_has_no_preferences():
    catalog = catalog_of(({0: 0}, {}))
    scoring = Scoring("swarmkit", cell_of([9] * 5), catalog=catalog)
    first = scoring.plan(jobs_of([1] * 5, job=1, preference=1))
    assert sorted(first.tolist()) == [0, 1, 2, 3, 4]
    [loaded] = scoring.plan(jobs_of([1], job=2, first=5), 1)
    # of another job: on the machines with fewer tasks; of the same job: not where it is
    third = scoring.plan(jobs_of([1] * 4, job=3, first=6), 2)
    assert sorted([loaded, *third.tolist()]) == [0, 1, 2, 3, 4]
    [again] = scoring.plan(jobs_of([1], job=2, first=10), 3)
    assert again != loaded


def test_swarmkit_counts_tasks_that_were_adopted_until_they_end():
    scoring = Scoring("swarmkit", cell_of([9, 9]))
    running = jobs_of([1, 1], job=7, first=50)
    scoring.tell(ChangeKind.ADOPTED, running.task, [0, 0], adopted=running)
    assert scoring.plan(jobs_of([1, 1], job=7)).tolist() == [1, 1]
    for change, task in ((ChangeKind.FINISHED, 50), (ChangeKind.EVICTED, 51)):
        scoring.tell(change, task, 0)
    assert scoring.plan(jobs_of([1], job=7, first=9)).tolist() == [0]


def test_swarmkit_puts_a_machine_behind_after_five_failures_in_five_minutes():
    scoring = Scoring("swarmkit", cell_of([9, 9]))
    hour = 3_600_000_000

    def fail_at(us):
        scoring.plan(jobs_of([1], job=1, first=us))
        scoring.tell(ChangeKind.REJECTED, us, 0, hour + us)

    def chosen(after_us):
        scoring.tell(ChangeKind.FINISHED, [97, 98, 99], [0, 0, 0])
        plan = scoring.plan(jobs_of([1] * 3, job=1, first=97), now_us=hour + after_us)
        return np.count_nonzero(plan == 0)

    for us in range(4):
        fail_at(us)
    assert chosen(4) > 0
    fail_at(4)
    assert chosen(5) == 0
    assert chosen(FIVE_MINUTES_US) == 0
    assert chosen(FIVE_MINUTES_US + 1) > 0  # the first of the five is forgotten


def scored_by_nomad(machines, tasks, **more):
    scoring = Scoring("nomad", cell_of([[8, 8]] * machines), [[1, 1]] * machines, **more)
    scoring.plan(tasks)
    return scoring.scheduler.work[3]


def test_nomad_looks_at_few_machines_and_at_more_with_affinity():
    service = TaskClass.SERVICE
    catalog = catalog_of(({0: 0}, {}))
    assert scored_by_nomad(1_000, jobs_of([[1, 1]])) == 2
    assert scored_by_nomad(1_000, jobs_of([[1, 1]], task_class=service)) == 10
    assert scored_by_nomad(1_024, jobs_of([[1, 1]], task_class=service)) == 10
    assert scored_by_nomad(1_025, jobs_of([[1, 1]], task_class=service)) == 11
    assert scored_by_nomad(1_000, jobs_of([[1, 1]], preference=1), catalog=catalog) == 100
    job = jobs_of([[1, 1]] * 150, preference=1)
    assert scored_by_nomad(1_000, job, catalog=catalog) == 150 * 150
    # 8 jobs of the same number share nothing
    apart = jobs_of([[1, 1]] * 8, job=range(8), preference=1)
    assert scored_by_nomad(1_000, apart, catalog=catalog) == 8 * 100


def test_nomad_packs_or_spreads():
    used = [[1, 1], [6, 6]]
    for algorithm, row in (("binpack", 1), ("spread", 0)):
        scoring = Scoring("nomad", cell_of([[10, 10]] * 2), used, algorithm=algorithm)
        assert {int(scoring.plan(jobs_of([[1, 1]]), s)[0]) for s in range(20)} == {row}


def test_nomad_avoids_its_job_and_machines_that_turned_the_task_away():
    scoring = Scoring("nomad", cell_of([[10, 10]] * 2), [[1, 1], [6, 6]])
    scoring.tell(ChangeKind.REJECTED, 0, 1)
    assert {int(scoring.plan(jobs_of([[1, 1]]), s)[0]) for s in range(20)} == {0}
    other = jobs_of([[1, 1]], job=1, first=1)
    assert {int(scoring.plan(other, s)[0]) for s in range(20)} == {1}
    scoring.tell(ChangeKind.FINISHED, [0, 1], [0, 1])
    assert {int(scoring.plan(jobs_of([[1, 1]]), s)[0]) for s in range(20)} == {1}
    # the second task of the job would share the machine at -2/2
    assert set(scoring.plan(jobs_of([[1, 1]] * 2)).tolist()) == {0, 1}


def test_nomad_sets_three_machines_of_no_score_aside():
    """Its job runs on every machine, and all are nearly empty: no score is above 0."""
    scoring = Scoring("nomad", cell_of([1_000] * 20))
    running = jobs_of([1] * 20, job=4, first=100)
    scoring.tell(ChangeKind.ADOPTED, running.task, range(20), adopted=running)
    assert scoring.plan(jobs_of([1], job=4)) >= 0
    assert scoring.scheduler.work[3] == 3 + 2
    assert scoring.plan(jobs_of([1], job=5)) >= 0
    assert scoring.scheduler.work[3] == 2


def test_stranded_leaves_resources_that_go_together():
    # a third machine has memory left that nothing can use: a task of much memory strands less there
    used = [[0, 0], [4, 4], [8, 2]]
    scoring = Scoring("stranded", cell_of([[10, 10]] * 3), used)
    assert scoring.plan(jobs_of([[1, 5]])).tolist() == [2]
    assert scoring.plan(jobs_of([[1, 1]])).tolist() == [2]  # strands nothing anywhere: the fullest
    assert scoring.plan(jobs_of([[3, 1]])).tolist() == [1]


def test_stranded_scores_the_machines_of_a_class_once():
    scoring = Scoring("stranded", cell_of([[20, 20]] * 1_000), enough_machines=50)
    machine = scoring.plan(jobs_of([[1, 1]] * 100, job=range(100)))
    assert len(set(machine.tolist())) == 5  # filled one after the other
    _, _, _, scored = scoring.scheduler.work
    assert 50 + 95 <= scored <= 50 + 100 + 5
    scoring.plan(jobs_of([[1, 1], [1, 2]] * 10))
    assert scoring.scheduler.work[3] <= 2 * 50 + 2 * 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_gang_without_room_leaves_no_trace(kind):
    cell = cell_of([2, 2, 2])
    scoring = Scoring(kind, cell)
    machine = scoring.plan(jobs_of([1, 2, 2, 2, 2], gang=[-1, 5, 5, 5, -1]))
    assert (machine[1:4] == -1).all() and machine[0] >= 0 and machine[4] >= 0
    assert machine[0] != machine[4]
    alone = Scoring(kind, cell).plan(jobs_of([2, 2, 2], gang=5))
    assert sorted(alone.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_placed_where_nothing_is_known(kind):
    scoring = Scoring(kind, cell_of([4] * 3), up=[False, True, False])
    assert scoring.plan(jobs_of([5, 4, 1])).tolist() == [-1, 1, -1]
    scoring.view.reset()
    assert scoring.plan(jobs_of([1])).tolist() == [-1]
    assert scoring.plan(jobs_of([1]).take(slice(0))).tolist() == []


@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_a_function_of_what_was_seen(kind):
    rng = np.random.default_rng(3)
    cell, used = cell_of(rng.integers(4, 9, (200, 2))), rng.integers(0, 4, (200, 2))
    batches = [
        jobs_of(rng.integers(1, 3, (30, 2)), rng.integers(0, 4, 30), first=30 * k) for k in range(5)
    ]
    twins = [Scoring(kind, cell, used) for _ in range(2)]
    for stream, batch in enumerate(batches):
        one, other = (twin.plan(batch, stream).tolist() for twin in twins)
        assert one == other
        assert twins[0].scheduler.work == twins[1].scheduler.work


def test_rounds_of_some_tasks_are_not_for_kinds_that_plan_the_whole_queue():
    with pytest.raises(ValueError, match="'preferred_first': round_tasks: not for a kind"):
        arm("diff_block", make_group("preferred_first", round_tasks=1))
    arm("diff_block", make_group("kubernetes", round_tasks=1))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("kubernetes", {"percentage_of_nodes_to_score": 101}, "less than or equal to 100"),
        ("kubernetes", {"percentage_of_nodes_to_score": 2.5}, "percentage_of_nodes_to_score"),
        ("nomad", {"algorithm": "pack"}, "expected binpack or spread, got 'pack'"),
        ("stranded", {"enough_machines": 0}, "enough_machines"),
        ("swarmkit", {"spread": True}, "spread"),
    ],
)
def test_wrong_options_are_named(kind, options, message):
    with pytest.raises(AgoraError, match=message) as caught:
        registry.get(kind).parse_options(options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_columns_are_refused(kind):
    scoring = Scoring(kind, cell_of([4] * 3))
    before = scoring.view.free.copy()
    with pytest.raises(ValueError, match="there is no set 3"):
        scoring.plan(jobs_of([1, 1], preference=[0, 3]))
    with pytest.raises(ValueError, match="expected 0 to 2\\^50"):
        scoring.plan(jobs_of([1, -1]))
    assert np.array_equal(scoring.view.free, before)
