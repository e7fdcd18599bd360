"""The greedy kinds: distributions, fairness of spreading, work done, and bad input."""

import itertools

import numpy as np
import pytest
from scipy import stats

from schedulers.greedy.scheduler import PlacementKind
from schedulers.interface import PartitionQuality, PartitionRanking, PendingReason
from shared_state.transaction import PartitionDelta
from tests.greedy_world import Greedy, catalog_of, cell_of, tasks_of

KINDS = [kind.name.lower() for kind in PlacementKind]
QUALITY, LATENCY, OPTIMISTIC = (
    PartitionRanking.QUALITY_FIRST,
    PartitionRanking.LATENCY_FIRST,
    PartitionRanking.OPTIMISTIC,
)
MEAN_SCORE, MEAN_WEIGHT = PartitionQuality.MEAN_SCORE, PartitionQuality.MEAN_WEIGHT
SIGNIFICANCE = 1e-4  # seeds are fixed: a run passes always or never


def ordered_draws(weights, k):
    """P(sequence) of k draws without replacement with probability proportional to weight: the
    closed form."""
    total = sum(weights)
    for sequence in itertools.permutations(range(len(weights)), k):
        left, probability = total, 1.0
        for row in sequence:
            probability *= weights[row] / left
            left -= weights[row]
        yield sequence, probability


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_weighted_sampling_is_exact_without_replacement(partitions):
    weights = [1, 2, 3, 40, 500]
    greedy = Greedy("weighted_sampling", cell_of([1] * 5, weights), partitions)
    batch = tasks_of([1, 1, 1])
    expected = dict(ordered_draws(weights, 3))
    counts = dict.fromkeys(expected, 0)
    plans = 30_000
    for stream in range(plans):
        counts[tuple(greedy.plan(batch, stream=stream).machine.tolist())] += 1
    common = [s for s in expected if expected[s] * plans >= 5]
    observed = [counts[s] for s in common] + [plans - sum(counts[s] for s in common)]
    theory = [expected[s] * plans for s in common] + [
        plans * (1 - sum(expected[s] for s in common))
    ]
    assert stats.chisquare(observed, theory).pvalue > SIGNIFICANCE


def test_weighted_sampling_is_proportional_among_the_rows_that_fit():
    """Heavy rows that are open but too small do not bias the others."""
    capacity = [4, 1, 4, 1, 4, 4]
    weights = [10, 900, 20, 900, 30, 40]
    greedy = Greedy("weighted_sampling", cell_of(capacity, weights), 2)
    batch = tasks_of([3])
    machine = [int(greedy.plan(batch, stream=s).machine[0]) for s in range(10_000)]
    observed = np.bincount(machine, minlength=6)
    assert observed[[1, 3]].sum() == 0
    assert (
        stats.chisquare(observed[[0, 2, 4, 5]], np.array([10, 20, 30, 40]) * 100).pvalue
        > SIGNIFICANCE
    )


@pytest.mark.parametrize("kind", ["random", "randomized_first_fit"])
def test_random_kinds_are_uniform_among_the_rows_that_fit(kind):
    greedy = Greedy(kind, cell_of([4, 1, 4, 1, 4, 4], [9, 1, 1, 1, 200, 1]), 3)
    machine = [int(greedy.plan(tasks_of([3]), stream=s).machine[0]) for s in range(8_000)]
    observed = np.bincount(machine, minlength=6)
    assert observed[[1, 3]].sum() == 0
    assert stats.chisquare(observed[[0, 2, 4, 5]]).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("idle", [500, 20])
def test_preferred_machines_of_equal_cost_are_drawn_uniformly(idle):
    """Whether most draws find an idle one, or so few are idle that they are gathered first: kinds
    alike, so schedulers spread."""
    machines = 600
    listed = np.arange(50, 550)
    used = np.ones(machines, np.int64)
    used[listed[:: len(listed) // idle]] = 0
    greedy = Greedy(
        "first_fit",
        cell_of([1] * machines),
        2,
        used=used,
        catalog=catalog_of((dict.fromkeys(listed.tolist(), 1), {})),
    )
    batch = tasks_of([1] * 4, preference=1)
    taken = np.concatenate([greedy.plan(batch, QUALITY, stream=s).machine for s in range(4_000)])
    observed = np.bincount(taken, minlength=machines)[used == 0]
    assert len(observed) == idle and observed.sum() == 16_000
    assert stats.chisquare(observed).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("listed", [60, 500])
def test_load_spreading_takes_the_emptiest_of_the_preferred_machines(listed):
    machines, slots = 600, 10
    rng = np.random.default_rng(4)
    used = rng.integers(1, slots, machines)
    preferred = np.sort(rng.choice(machines, listed, replace=False))
    greedy = Greedy(
        "load_spreading",
        cell_of([slots] * machines),
        used=used,
        catalog=catalog_of((dict.fromkeys(preferred.tolist(), 1), {})),
    )
    requests = [1, 2, 1, 1, 3, 1, 2, 1] * 12
    plan = greedy.plan(tasks_of(requests, preference=1), QUALITY)
    free = slots - used
    for request, machine in zip(requests, plan.machine.tolist(), strict=True):
        assert machine in preferred
        assert free[machine] == free[preferred].max() >= request
        free[machine] -= request


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranking", list(PartitionRanking))
def test_a_plan_is_a_function_of_its_stream(kind, ranking):
    greedy = Greedy(
        kind,
        cell_of([3] * 40, np.arange(40)),
        4,
        catalog=catalog_of((dict.fromkeys(range(0, 40, 2), 1), {1: 2})),
    )
    batch = tasks_of([1] * 30, preference=np.arange(30) % 2)
    one, again = greedy.plan(batch, ranking, stream=1), greedy.plan(batch, ranking, stream=1)
    assert np.array_equal(one.machine, again.machine)
    assert (one.operations, one.partitions_scanned) == (again.operations, again.partitions_scanned)
    others = [greedy.plan(batch, ranking, stream=s).machine.tolist() for s in range(2, 6)]
    # preferred machines are drawn, whatever the kind
    assert any(other != one.machine.tolist() for other in others)


def test_mean_scores_follow_a_view_that_changes():
    rng = np.random.default_rng(3)
    weight = rng.integers(1, 2_000, 60)
    spec = cell_of([2] * 60, weight)
    greedy = Greedy("weighted_sampling", spec, 6)
    tickets = []
    for turn in range(1, 60):
        if turn == 30:
            greedy.view.reset()
        snapshot = (
            np.arange(10, dtype=np.uint32),
            rng.integers(0, 3, (10, 1)),
            rng.random(10) < 0.9,
        )
        greedy.view.apply(PartitionDelta(int(rng.integers(6)), 0, turn + 1, 9, *snapshot, None))
        plan = greedy.plan(tasks_of([1] * 8), QUALITY, stream=turn, quality=MEAN_SCORE)
        tickets.append(greedy.view.claim(plan.machine, plan.request))
        if len(tickets) > 2:
            greedy.view.withdraw(tickets.pop(0))
        once = greedy.plan(tasks_of([1]), QUALITY, stream=turn, quality=MEAN_SCORE)
        opened = (greedy.view.free[:, 0] > 0) & greedy.view.up
        means = [
            np.log(weight[q][opened[q]]).mean() if opened[q].any() else -np.inf
            for q in map(greedy.partitioning.rows, range(6))
        ]
        if opened.any():
            assert greedy.partitioning.of(once.machine).tolist() == [int(np.argmax(means))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranking", list(PartitionRanking))
def test_a_full_view_costs_nothing(kind, ranking):
    greedy = Greedy(
        kind,
        cell_of([1] * 50),
        5,
        used=[1] * 50,
        catalog=catalog_of((dict.fromkeys(range(50), 1), {3: 2})),
    )
    plan = greedy.plan(tasks_of([1] * 100, preference=1), ranking)
    assert len(plan.task) == 0 and len(plan.pending) == 100
    plans, tasks, looked_at, ranked = greedy.scheduler.work
    assert (plans, tasks, looked_at, ranked, plan.partitions_scanned) == (1, 100, 0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranking", list(PartitionRanking))
@pytest.mark.parametrize("preference", [0, 1])
def test_that_nothing_fits_is_found_once_per_plan(kind, ranking, preference):
    machines, tasks = 300, 500
    catalog = catalog_of((dict.fromkeys(range(0, machines, 2), 1), {3: 2}))
    used = [3] * machines
    greedy = Greedy(kind, cell_of([5] * machines), 5, used=used, catalog=catalog)
    plan = greedy.plan(tasks_of([3] * tasks, preference=preference), ranking)
    assert len(plan.pending) == tasks and (plan.pending_reason == PendingReason.NO_ROOM).all()
    assert sum(greedy.scheduler.work[2:]) <= 3 * machines + tasks
    mixed = greedy.plan(tasks_of([3, 2] * 10, preference=preference), ranking)
    # what is too small for one task is there for the next
    assert mixed.task.tolist() == list(range(1, 20, 2))


@pytest.mark.parametrize(
    ("tasks", "order", "message"),
    [
        (tasks_of([1], preference=1), [0, 1], r"preference\[0\]"),
        (tasks_of([1, -1]), [0, 1], r"request\[1\]"),
        (tasks_of([1 << 51]), [0, 1], r"request\[0\]"),
        (tasks_of([[1, 1]]), [0, 1], "column of request per dimension"),
        (tasks_of([1]), [0], "partition_order"),
        (tasks_of([1]), [0, 0], "partition_order"),
        (tasks_of([1]), [0, 2], "partition_order"),
    ],
)
def test_bad_input_is_refused(tasks, order, message):
    greedy = Greedy("random", cell_of([1] * 4), 2)
    with pytest.raises(ValueError, match=message):
        greedy.plan(tasks, order=order)


def test_the_catalog_must_be_of_the_views_cell():
    here, elsewhere = Greedy("random", cell_of([1] * 4)), Greedy("random", cell_of([1] * 5))
    here.view = elsewhere.view
    with pytest.raises(ValueError, match="another cell"):
        here.plan(tasks_of([1]))


@pytest.mark.parametrize("empty", [4, 150])
def test_load_spreading_takes_each_empty_machine_equally_often(empty):
    """Few are found by ranking all machines, many by a draw."""
    used = [0] * empty + [1] * (200 - empty)
    greedy = Greedy("load_spreading", cell_of([4] * 200), partitions=2, used=used)
    batch = tasks_of([1])
    counts = np.zeros(200, np.int64)
    for stream in range(6000):
        counts[greedy.plan(batch, stream=stream).machine] += 1
    assert counts[empty:].sum() == 0
    assert stats.chisquare(counts[:empty]).pvalue > SIGNIFICANCE
