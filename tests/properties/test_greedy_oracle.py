"""Greedy plans against an oracle that says, for each pick, which rows the ranking and the kind
allow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedulers.interface import PartitionQuality, PartitionRanking, PendingReason
from tests.fixtures.examples import examples
from tests.greedy_world import Greedy, catalog_of, cell_of, tasks_of

KINDS = [
    "random",
    "randomized_first_fit",
    "first_fit",
    "best_fit",
    "load_spreading",
    "weighted_sampling",
]


class Oracle:
    """The view's rows, recomputed from scratch at each pick. Partitions, order and sets are as the
    scheduler has them."""

    def __init__(self, kind, spec, offsets, order, ranking, quality, sets, free, up):
        self.kind, self.spec, self.offsets, self.order = kind, spec, offsets, order
        self.ranking, self.quality = ranking, quality
        self.sets = [({}, {}), *sets]
        self.free, self.up = free, up

    def open(self):
        return self.up & (self.free > 0).any(axis=1)

    def rows(self, partition):
        return set(range(self.offsets[partition], self.offsets[partition + 1]))

    def allowed(self, request, preference):
        fit = ((self.free >= request) | (request == 0)).all(axis=1)
        fitting = set(np.flatnonzero(self.open() & fit).tolist())
        everything = set(range(len(self.free)))
        if self.ranking is PartitionRanking.LATENCY_FIRST:
            pools = [self.rows(p) for p in self.order]
            return next(
                filter(
                    None,
                    (
                        self.preferred(preference, fitting & p) or self.by_kind(fitting & p)
                        for p in pools
                    ),
                ),
                set(),
            )
        if self.ranking is PartitionRanking.FRESHEST_PREFERRED:
            pools = [fitting & self.rows(p) for p in self.order]
            levels = [*self.levels(preference), None]
            found = (
                self.by_kind(pool) if level is None else self.of_level(level & pool)
                for level in levels
                for pool in pools
            )
            return next(filter(None, found), set())
        preferred = self.preferred(preference, fitting)
        if (
            preferred
            or self.ranking is PartitionRanking.OPTIMISTIC
            or len(set(self.weights())) == 1
        ):
            return preferred or self.by_kind(fitting & everything)
        return next(
            filter(None, (self.by_kind(fitting & self.rows(p)) for p in self.by_quality())),
            set(),
        )

    def levels(self, preference):
        machines, racks = self.sets[preference]
        for cost in sorted(set(machines.values())):
            yield {m for m, c in machines.items() if c == cost}
        for cost in sorted(set(racks.values())):
            rack_of = enumerate(self.spec.rack.tolist())
            yield {row for row, rack in rack_of if racks.get(rack) == cost}

    def preferred(self, preference, fitting):
        levels = (level & fitting for level in self.levels(preference))
        return self.of_level(next(filter(None, levels), set()))

    def of_level(self, level):
        return self.by_kind(level) if self.kind == "load_spreading" else level

    def weights(self):
        return np.maximum(self.spec.slot_score, 1).tolist()

    def by_quality(self):
        """The partitions with open rows, the best first, of equal ones the freshest."""
        opened, quality = set(np.flatnonzero(self.open()).tolist()), self.weights()
        if self.quality is PartitionQuality.MEAN_SCORE:
            quality = [round(math.log(weight) * 2**20) for weight in quality]
        of = {p: [quality[row] for row in opened & self.rows(p)] for p in self.order}
        return sorted(
            (p for p in self.order if of[p]), key=lambda p: -Fraction(sum(of[p]), len(of[p]))
        )

    def by_kind(self, fitting):
        if not fitting or self.kind in ("random", "randomized_first_fit", "weighted_sampling"):
            return fitting
        if self.kind == "first_fit":
            return {min(fitting)}
        largest = [int(x) for x in self.spec.limit.max(axis=0)]
        room = {
            row: sum(
                max(int(f), 0) * ((1 << 60) // top) >> 4
                for f, top in zip(self.free[row], largest, strict=True)
                if top
            )
            for row in fitting
        }
        if self.kind == "best_fit":
            return {min(fitting, key=lambda row: (room[row], row))}
        return {row for row in fitting if room[row] == max(room.values())}


@st.composite
def worlds(draw):
    machines, dimensions, partitions = (
        draw(st.integers(4, 16)),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 4)),
    )

    def amounts(most):
        return st.lists(
            st.lists(st.integers(0, most), min_size=dimensions, max_size=dimensions),
            min_size=machines,
            max_size=machines,
        )

    scored = draw(st.booleans())
    score = (
        draw(st.lists(st.integers(-3, 50), min_size=machines, max_size=machines))
        if scored
        else None
    )
    spec = cell_of(draw(amounts(5)), score)
    racks = int(spec.rack[-1])
    one_set = st.tuples(
        st.dictionaries(st.integers(0, machines - 1), st.integers(0, 2)),
        st.dictionaries(st.integers(0, racks), st.integers(3, 4)),
    )
    sets = draw(st.lists(one_set, max_size=3))
    up = draw(
        st.lists(st.sampled_from([True, True, True, False]), min_size=machines, max_size=machines)
    )
    task = st.tuples(
        st.lists(st.integers(0, 3), min_size=dimensions, max_size=dimensions),
        st.integers(0, len(sets)),
        st.sampled_from([-1, -1, -1, 5, 8]),
    )
    tasks = draw(st.lists(task, min_size=1, max_size=25))
    order = draw(st.permutations(range(partitions)))
    return spec, partitions, draw(amounts(3)), up, sets, tasks, order


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("ranking", "quality"),
    [
        *((ranking, PartitionQuality.MEAN_WEIGHT) for ranking in PartitionRanking),
        (PartitionRanking.QUALITY_FIRST, PartitionQuality.MEAN_SCORE),
    ],
)
@examples(60)
@given(world=worlds(), stream=st.integers(0, 1000))
def test_every_pick_is_one_the_oracle_allows(kind, ranking, quality, world, stream):
    spec, partitions, used, up, sets, tasks, order = world
    greedy = Greedy(kind, spec, partitions, used, up, catalog_of(*sets))
    batch = tasks_of([t[0] for t in tasks], [t[1] for t in tasks], [t[2] for t in tasks])
    plan = greedy.plan(batch, ranking, stream, order, quality)
    machine = np.full(len(tasks), -1)
    machine[plan.task] = plan.machine
    oracle = Oracle(
        kind,
        spec,
        greedy.partitioning.offsets,
        order,
        ranking,
        quality,
        sets,
        greedy.view.free.copy(),
        greedy.view.up,
    )

    done = set()
    for i in range(len(tasks)):
        gang = batch.gang[i]
        members = [i] if gang < 0 else np.flatnonzero(batch.gang == gang).tolist()
        if i in done:
            continue
        done.update(members)
        if len(members) > 1 and (machine[members] < 0).any():
            # whether another choice would have held it whole is not asked
            assert (machine[members] < 0).all()
            continue
        for member in members:
            allowed = oracle.allowed(batch.request[member], batch.preference[member])
            assert machine[member] in (allowed or {-1})
            if machine[member] >= 0:
                oracle.free[machine[member]] -= batch.request[member]

    assert (plan.pending_reason == PendingReason.NO_ROOM).all()
