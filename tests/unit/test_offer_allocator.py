"""The allocator of offers, rule by rule; random histories are in
tests/properties/test_offer_allocator_oracle.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from parsync.protocols._native import OfferAllocator
from tests.offer_oracle import Amount, Role, Settings

Offers = list[tuple[int, int, Amount]]  # framework, machine, amount
SECOND_US = 1_000_000


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def rows(*amounts: Amount) -> np.ndarray:
    return np.array(amounts, np.int64)


class Cell:
    """Machines of an allocator and what they have left, with frameworks "f0", "f1", ..."""

    def __init__(self, settings: Settings, *roles: str) -> None:
        self.allocator: OfferAllocator = settings.native()
        self.free = rows(*settings.capacity)
        for number, role in enumerate(roles):
            self.allocator.add_framework(number, f"f{number}", role)

    def run(self, now_s: float = 0, *candidates: int) -> Offers:
        chosen = int32(*(candidates or range(len(self.free))))
        now_us = int(now_s * SECOND_US)
        framework, machine, amount = self.allocator.allocate(now_us, chosen, self.free)
        np.subtract.at(self.free, machine, amount)
        columns = framework.tolist(), machine.tolist(), map(tuple, amount.tolist())
        return list(zip(*columns, strict=True))

    def end(self, offers: Offers, refused_until_s: float | None = None) -> None:
        for framework, machine, amount in offers:
            self.allocator.on_offers_ended(int32(framework), rows(amount))
            self.free[machine] += amount
            if refused_until_s is not None:
                until_us = int(refused_until_s * SECOND_US)
                self.allocator.refuse(framework, int32(machine), rows(amount), until_us)

    def tasks_end(self, framework: int, machine: int, amount: Amount) -> None:
        self.allocator.on_freed(int32(framework), rows(amount))
        self.free[machine] += amount

    def accept(self, offers: Offers) -> None:
        for framework, _, amount in offers:
            self.allocator.on_offers_ended(int32(framework), rows(amount))
            self.allocator.on_allocated(int32(framework), rows(amount))

    def shares(self) -> list[float]:
        return [ppm / 1e6 for ppm in self.allocator.shares()[1].tolist()]


def amounts_of(offers: Offers, width: int = 2) -> dict[int, Amount]:
    """The sum of the offers to each framework."""
    sums: dict[int, Amount] = {}
    for framework, _, amount in offers:
        before = sums.get(framework, (0,) * width)
        sums[framework] = tuple(a + b for a, b in zip(before, amount, strict=True))
    return sums


# Dominant resource fairness.


def test_the_papers_example() -> None:
    """Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, section 4.1."""
    cell = Cell(Settings([(9, 18)], task_sized=True), "a", "b")
    cell.allocator.want(0, rows((1, 4)), np.array([100]))
    cell.allocator.want(1, rows((3, 1)), np.array([100]))
    assert amounts_of(cell.run()) == {0: (3, 12), 1: (6, 2)}
    assert cell.shares() == [0.666666, 0.666666]


def test_with_whole_remainders_the_first_who_asks_gets_the_machine() -> None:
    cell = Cell(Settings([(9, 18)]), "a", "b")
    assert cell.run() == [(0, 0, (9, 18))]
    assert cell.run(1) == []


def test_dominant_shares_are_balanced_by_turnover() -> None:
    """Machine by machine, the share of each framework is that of the others."""
    machines, frameworks = 40, 4
    cell = Cell(Settings([(2, 8)] * machines), *["a"] * frameworks)
    offers = cell.run()
    assert len(offers) == machines
    assert cell.shares() == [1 / frameworks] * frameworks
    assert amounts_of(offers) == dict.fromkeys(range(frameworks), (20, 80))


def test_weights_divide_shares() -> None:
    roles = [Role("a", 3000), Role("b", 1000)]
    cell = Cell(Settings([(1, 1)] * 40, roles), "a", "b")
    cell.run()
    assert cell.shares() == [0.75, 0.25]


def test_frameworks_of_a_role_divide_its_share() -> None:
    cell = Cell(Settings([(1, 1)] * 40), "a", "a", "a", "a", "b")
    cell.run()
    assert cell.shares() == [0.125] * 4 + [0.5]


def test_roles_divide_the_share_of_the_role_above() -> None:
    """Frameworks of a role itself count as one of the roles below it."""
    cell = Cell(Settings([(1, 1)] * 60), "a/x", "a/y", "a", "b")
    cell.run()
    assert cell.shares() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2], abs=1e-6)


def test_weights_of_nested_roles_count_among_their_siblings() -> None:
    roles = [Role("a/x", 2000), Role("b", 1000)]
    cell = Cell(Settings([(1, 1)] * 60, roles), "a/x", "a/y", "b")
    cell.run()
    assert cell.shares() == pytest.approx([1 / 3, 1 / 6, 1 / 2], abs=1e-6)


def test_equal_shares_are_served_by_past_offers_then_by_name() -> None:
    cell = Cell(Settings([(1, 1)]), "a", "a", "a")
    served = []
    for _ in range(7):
        offers = cell.run()
        served += [framework for framework, _, _ in offers]
        cell.end(offers)
    assert served == [0, 1, 2, 0, 1, 2, 0]


def test_what_is_offered_counts_until_it_ends() -> None:
    cell = Cell(Settings([(4, 4), (4, 4)]), "a", "b")
    first, second = cell.run()
    assert (first[0], second[0]) == (0, 1)
    cell.end([first])
    assert cell.shares() == [0, 0.5]
    cell.accept([second])
    assert cell.shares() == [0, 0.5]
    cell.tasks_end(*second)
    assert cell.shares() == [0, 0]


def test_an_offer_ends_once() -> None:
    cell = Cell(Settings([(4, 4)]), "a")
    offers = cell.run()
    cell.end(offers)
    with pytest.raises(ValueError, match="ended offers: framework 0 has less than that"):
        cell.end(offers)
    with pytest.raises(ValueError, match="freed amounts: framework 0 has less than that"):
        cell.tasks_end(0, 0, (1, 0))


# Rivals.


@pytest.mark.parametrize(
    ("rivals_role", "shares"),
    [(None, [0.5, 0.5]), ("rivals", [0.25, 0.25]), ("a", [0.1, 0.4])],
)
def test_what_rivals_use(rivals_role: str | None, shares: list[float]) -> None:
    """It leaves the total, or counts as a role's."""
    cell = Cell(Settings([(1, 1)] * 80, rivals_role=rivals_role), "a", "b")
    used = 40 if rivals_role != "a" else 24
    cell.allocator.set_rivals_use(np.array([used, used]))
    cell.free[:used] = 0
    if rivals_role == "a":
        cell.free[used + 40 :] = 0
        shares = [8 / 80, 32 / 80]
    cell.run()
    assert cell.shares() == shares


# Random order.


def test_random_order_follows_weights() -> None:
    """The first of each turn is of a role by weight, and of its frameworks each alike."""
    machines = 6000
    roles = [Role("a", 3000), Role("b", 1000)]
    cell = Cell(Settings([(1, 1)] * machines, roles, random=True), "a", "a", "b")
    counts = np.bincount([framework for framework, _, _ in cell.run()])
    for count, p in zip(counts.tolist(), (3 / 8, 3 / 8, 1 / 4), strict=True):
        assert abs(count - machines * p) < 4 * math.sqrt(machines * p * (1 - p))


def test_each_run_and_each_seed_draws_anew() -> None:
    def served(seed: int) -> list[list[int]]:
        cell = Cell(Settings([(1, 1)] * 30, random=True, seed=seed), "a", "b")
        runs = []
        for _ in range(2):
            offers = cell.run()
            runs.append([machine for framework, machine, _ in offers if framework == 0])
            cell.end(offers)
        return runs

    assert served(1) == served(1)
    assert served(1)[0] != served(1)[1]
    assert served(1) != served(2)


# Who gets offers.


def test_suppressed_and_inactive_frameworks_get_none() -> None:
    cell = Cell(Settings([(1, 1)] * 8), "a", "a", "a")
    cell.allocator.suppress(0)
    cell.allocator.deactivate(1)
    offers = cell.run()
    assert amounts_of(offers) == {2: (8, 8)}
    cell.end(offers)
    cell.allocator.revive(0)
    cell.allocator.activate(1)
    assert set(amounts_of(cell.run())) == {0, 1, 2}


def test_a_framework_that_comes_back_starts_anew() -> None:
    cell = Cell(Settings([(1, 1)]), "a")
    cell.end(cell.run(), refused_until_s=1e6)
    cell.allocator.suppress(0)
    cell.allocator.deactivate(0)
    assert cell.run(1) == []
    cell.allocator.activate(0)
    assert cell.run(2) == [(0, 0, (1, 1))]


def test_only_candidates_are_offered() -> None:
    cell = Cell(Settings([(1, 1)] * 8), "a")
    assert sorted(machine for _, machine, _ in cell.run(0, 5, 2, 5)) == [2, 5]


def test_smallest_offer() -> None:
    """Enough of one of the resources named is enough."""
    cell = Cell(Settings([(9, 31), (10, 0), (0, 32), (9, 9)], smallest=(10, 32)), "a")
    assert sorted(machine for _, machine, _ in cell.run()) == [1, 2]
    cell = Cell(Settings([(9, 99), (10, 0)], smallest=(10, 0)), "a")
    assert sorted(machine for _, machine, _ in cell.run()) == [1]


def test_machines_that_are_down_leave_the_total() -> None:
    cell = Cell(Settings([(1, 1)] * 4), "a")
    cell.allocator.on_machines_changed(int32(0, 1), np.array([False, False]))
    assert sorted(machine for _, machine, _ in cell.run()) == [2, 3]
    assert cell.shares() == [1]
    cell.allocator.on_machines_changed(int32(0), np.array([True]))
    assert cell.shares() == [0.666666]


# Filters.


def test_a_filter_hides_a_machine_until_it_ends() -> None:
    cell = Cell(Settings([(4, 4)]), "a", "b")
    cell.end(cell.run(0), refused_until_s=5)  # "f0" is the first
    first = cell.run(1)
    assert first == [(1, 0, (4, 4))]
    cell.end(first, refused_until_s=3)
    assert cell.run(3) == []
    assert cell.run(3.1) == [(1, 0, (4, 4))]


def test_a_filter_hides_no_more_than_was_refused() -> None:
    cell = Cell(Settings([(4, 4)]), "a")
    cell.free[0] = 2, 2
    cell.end(cell.run(0), refused_until_s=100)
    cell.free[0] = 2, 1
    assert cell.run(1) == []
    cell.free[0] = 1, 3
    assert cell.run(2) == [(0, 0, (1, 3))]


@pytest.mark.parametrize("ending", ["revive", "machine", "other machine"])
def test_what_ends_filters(ending: str) -> None:
    cell = Cell(Settings([(4, 4), (0, 0)]), "a")
    cell.end(cell.run(0), refused_until_s=100)
    assert cell.allocator.filters == 1
    if ending == "revive":
        cell.allocator.revive(0)
    else:
        changed = int32(0 if ending == "machine" else 1)
        cell.allocator.on_machines_changed(changed, np.array([True]))
    assert bool(cell.run(1)) == (ending != "other machine")


def test_filters_that_have_ended_take_no_room() -> None:
    cell = Cell(Settings([(4, 4)]), "a")
    for now_s in range(50):
        cell.end(cell.run(now_s), refused_until_s=now_s + 3)
    assert cell.allocator.filters <= 1


def test_without_filters_the_poorest_idle_framework_is_offered_all_again() -> None:
    """With them, the next one in order gets its turn."""
    served: dict[bool, set[int]] = {}
    for filters in (False, True):
        cell = Cell(Settings([(4, 4)] * 3), "a", "b")
        cell.allocator.on_allocated(int32(1), rows((12, 12)))
        of = served.setdefault(filters, set())
        for now_s in range(4):
            offers = cell.run(now_s)
            of |= set(amounts_of(offers))
            cell.end(offers, refused_until_s=now_s + 5 if filters else None)
    assert served == {False: {0}, True: {0, 1}}


# Quotas.


def test_guarantees_are_met_first() -> None:
    roles = [Role("z", guarantee=(3, 3))]
    cell = Cell(Settings([(1, 1)] * 4, roles), "a", "z")
    cell.allocator.on_allocated(int32(1), rows((0, 0)))
    assert amounts_of(cell.run()) == {0: (1, 1), 1: (3, 3)}


def test_a_guarantee_is_served_up_to_it() -> None:
    """The rest of the machine is anyone's."""
    cell = Cell(Settings([(10, 10)], [Role("z", guarantee=(3, 3))]), "a", "z")
    assert amounts_of(cell.run()) == {1: (3, 3), 0: (7, 7)}


def test_a_guarantee_of_one_resource_brings_the_others_along() -> None:
    cell = Cell(Settings([(10, 8)], [Role("z", guarantee=(3, 0))]), "a", "z")
    assert cell.run() == [(1, 0, (3, 8)), (0, 0, (7, 0))]


def test_headroom_is_kept_for_guarantees_that_nobody_asks_for() -> None:
    cell = Cell(Settings([(2, 2)] * 3, [Role("z", guarantee=(3, 0))]), "a", "z")
    cell.allocator.suppress(1)
    assert amounts_of(cell.run()) == {0: (3, 6)}
    cell.allocator.revive(1)
    assert amounts_of(cell.run(1)) == {1: (3, 0)}


def test_what_a_role_gets_above_its_guarantee_meets_no_other() -> None:
    roles = [Role("y", guarantee=(3, 3)), Role("z", guarantee=(1, 1))]
    cell = Cell(Settings([(1, 1)] * 10, roles), "y", "z")
    cell.allocator.suppress(0)
    assert amounts_of(cell.run()) == {1: (7, 7)}


def test_headroom_on_machines_that_are_no_candidates_counts() -> None:
    cell = Cell(Settings([(2, 2)] * 3, [Role("z", guarantee=(4, 4))]), "a", "z")
    cell.allocator.suppress(1)
    assert cell.run(0, 0) == [(0, 0, (2, 2))]
    assert cell.run(1, 1) == []


def test_limits() -> None:
    """A limit of the role holds for all below it; others get the rest."""
    roles = [Role("a", limit=(3, None))]
    cell = Cell(Settings([(2, 2)] * 4, roles), "a", "a/x", "b")
    sums = amounts_of(cell.run())
    assert sums[0][0] + sums[1][0] == 3
    assert sums[2][0] == 5


# Granularity.


def test_the_whole_cell_goes_to_one_framework() -> None:
    """While a slow framework holds it, nobody else gets anything; then the poorest is next."""
    cell = Cell(Settings([(1, 1)] * 6, machines_per_turn=6), "slow", "quick")
    cell.allocator.on_allocated(int32(1), rows((1, 1)))
    held = cell.run(0)
    assert amounts_of(held) == {0: (6, 6)}
    assert cell.run(1) == []
    cell.accept(held[:3])
    cell.end(held[3:])
    assert amounts_of(cell.run(2)) == {1: (3, 3)}


def test_what_the_first_refused_of_the_cell_goes_to_the_next() -> None:
    cell = Cell(Settings([(1, 1)] * 4, machines_per_turn=4), "a", "b")
    cell.end(cell.run(0, 2), refused_until_s=9)
    cell.allocator.on_allocated(int32(1), rows((4, 4)))
    assert sorted(cell.run(1))[-1] == (1, 2, (1, 1))


def test_machines_per_turn() -> None:
    cell = Cell(Settings([(1, 1)] * 9, machines_per_turn=4), "a", "b")
    counts = [framework for framework, _, _ in cell.run()]
    assert counts == [0] * 4 + [1] * 4 + [0]


def test_task_sized_grants_are_used_up() -> None:
    cell = Cell(Settings([(4, 4)] * 3, task_sized=True), "a", "b")
    cell.allocator.want(0, rows((3, 1)), np.array([2]))
    offers = cell.run()
    assert [(framework, amount) for framework, _, amount in offers] == [(0, (3, 1))] * 2
    cell.end(offers)
    assert cell.run(1) == []
    cell.allocator.want(0, rows((3, 1)), np.array([9]))
    assert amounts_of(cell.run(2)) == {0: (9, 3)}


def test_a_size_that_no_machine_has_room_for_keeps_no_other_waiting() -> None:
    cell = Cell(Settings([(4, 4)] * 3, task_sized=True), "a", "b")
    cell.allocator.want(0, rows((5, 1), (3, 1), (1, 1)), np.array([1, 2, 9]))
    assert amounts_of(cell.run()) == {0: (3 + 3 + 6, 1 + 1 + 6)}


# Starvation.


@pytest.mark.parametrize("machines_per_turn", [1, 3])
@pytest.mark.parametrize("random", [False, True])
def test_nobody_who_asks_starves(machines_per_turn: int, random: bool) -> None:
    """Frameworks keep half of each offer for a while, and refuse the rest for 5 s."""
    frameworks, machines, kept_s = 5, 10, 7
    settings = Settings([(4, 4)] * machines, random=random, machines_per_turn=machines_per_turn)
    cell = Cell(settings, *[f"r{number}" for number in range(frameworks)])
    latest = [0] * frameworks
    kept: list[Offers] = []
    for now_s in range(400):
        offers = cell.run(now_s)
        used = []
        for framework, machine, (cpu, memory) in offers:
            latest[framework] = now_s
            cell.accept([(framework, machine, (cpu - cpu // 2, memory))])
            used.append((framework, machine, (cpu - cpu // 2, memory)))
            cell.end([(framework, machine, (cpu // 2, 0))], refused_until_s=now_s + 5)
        kept.append(used)
        if len(kept) == kept_s:
            for one in kept.pop(0):
                cell.tasks_end(*one)
        assert now_s - min(latest) <= 4 * kept_s


# Arguments.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": [Role("a//b")]}, 'role "a//b": expected names joined by slashes'),
        ({"roles": [Role("a/.")]}, 'role "a/.": expected names joined by slashes'),
        ({"roles": [Role("a", 0)]}, "weight_permille: expected 1 or more"),
        ({"roles": [Role("a", guarantee=(5, 0), limit=(4, None))]}, "role a: exceeds its limit"),
        ({"roles": [Role("a", limit=(-2, 0))]}, "limit: expected 0 or more, or -1 for none"),
        ({"roles": [Role("a/b", limit=(1, 1))]}, "only roles of the first level have a quota"),
        ({"roles": [Role("a", limit=(1, 1))] * 2}, "role a: has two quotas"),
        ({"machines_per_turn": 0}, "machines_per_turn: expected 1 or more"),
        ({"smallest": (-1, 0)}, "smallest: expected 0 or more"),
        ({"smallest": (1,)}, r"smallest: expected an array int64\[2\]"),
        ({"capacity": [(2**62, 0), (2**62, 0)]}, "capacity: the sum exceeds 64 bits"),
    ],
)
def test_settings_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**{"capacity": [(1, 1)], **changes}).native()


def test_calls_that_are_refused() -> None:
    allocator = Cell(Settings([(1, 1)]), "a").allocator
    with pytest.raises(ValueError, match="framework 7: there is none"):
        allocator.revive(7)
    with pytest.raises(ValueError, match="framework 0: added twice"):
        allocator.add_framework(0, "other", "a")
    with pytest.raises(ValueError, match='framework "f0": its role has one of that name'):
        allocator.add_framework(1, "f0", "a")
    with pytest.raises(ValueError, match="machine 1: there is none"):
        allocator.refuse(0, int32(1), rows((1, 1)), 5)
    with pytest.raises(ValueError, match=r"free: expected an array int64\[1, 2\]"):
        allocator.allocate(0, int32(0), rows((1, 1), (1, 1)))
    with pytest.raises(ValueError, match="amount: expected more than 0 of a resource"):
        allocator.want(0, rows((1, 1), (0, 0)), np.array([1, 1]))
    with pytest.raises(ValueError, match="restore: expected the frameworks that the state has"):
        Settings([(1, 1)]).native().restore(allocator.state())


def test_a_refused_framework_leaves_no_trace() -> None:
    cell = Cell(Settings([(1, 1)]), "a")
    for number in (1, 2):
        with pytest.raises(ValueError, match="its role has one of that name"):
            cell.allocator.add_framework(number, "f0", "a")
    assert cell.run() == [(0, 0, (1, 1))]
    assert cell.allocator.shares()[0].tolist() == [0]
