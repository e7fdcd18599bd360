"""The allocator of offers against one in plain Python, over random histories: the same offers, the
same charges, whatever is declined, suppressed, limited, lost or restored in between. Task-sized
grants also against progressive filling, written apart."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.examples import examples
from tests.offer_oracle import Amount, Oracle, Role, Settings

SECOND_US = 1_000_000
ROLES = ("a", "b", "a/x", "a/y", "c/z")


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def rows(*amounts: Amount) -> np.ndarray:
    return np.array(amounts, np.int64)


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    width = draw(st.integers(1, 3))
    amounts = st.tuples(*[st.integers(0, 12)] * width)
    capacity = draw(st.lists(amounts, min_size=1, max_size=7))
    roles = []
    for path in ROLES:
        role = Role(path, draw(st.sampled_from([1000, 1000, 500, 3000])))
        if "/" not in path and draw(st.booleans()):
            role.guarantee = draw(st.one_of(st.none(), amounts))
            room = draw(st.tuples(*[st.one_of(st.none(), st.integers(0, 20))] * width))
            floor = role.guarantee or (0,) * width
            role.limit = tuple(
                None if more is None else least + more
                for least, more in zip(floor, room, strict=True)
            )
        if draw(st.booleans()):
            roles.append(role)
    return Settings(
        capacity=capacity,
        roles=roles,
        smallest=draw(st.one_of(st.none(), st.tuples(*[st.integers(0, 4)] * width))),
        random=draw(st.booleans()),
        task_sized=draw(st.booleans()),
        machines_per_turn=draw(st.sampled_from([1, 1, 2, 3, len(capacity)])),
        rivals_role=draw(st.sampled_from([None, None, "a", "a/y", "rivals"])),
        seed=draw(st.integers(0, 3)),
    )


class History:
    """Random calls to both allocators, of a cell whose machines are never taken twice."""

    def __init__(self, drawn: Settings, draw: Random) -> None:
        self.settings, self.draw, self.now_us = drawn, draw, 0
        self.native, self.oracle = drawn.native(), Oracle(drawn)
        self.numbers = draw.sample(range(9), draw.randint(1, 5))
        self.descriptions = [(number, f"f{number}", draw.choice(ROLES)) for number in self.numbers]
        self.add_frameworks()
        for description in self.descriptions:
            self.oracle.add_framework(*description)
        self.offers: list[tuple[int, int, Amount]] = []  # framework, machine, amount
        self.tasks: list[tuple[int, int, Amount]] = []
        self.rivals = [(0,) * drawn.width for _ in drawn.capacity]

    def add_frameworks(self) -> None:
        for description in self.descriptions:
            self.native.add_framework(*description)

    def part_of(self, amount: Amount) -> Amount:
        return tuple(self.draw.randint(0, of) for of in amount)

    def free(self) -> list[Amount]:
        left = [list(of) for of in self.settings.capacity]
        for _, machine, amount in self.offers + self.tasks:
            Oracle.add(left[machine], amount, -1)
        for machine, amount in enumerate(self.rivals):
            Oracle.add(left[machine], amount, -1)
        return [tuple(of) for of in left]

    def step(self) -> None:
        number = self.draw.choice(self.numbers)
        kind = self.draw.randrange(14)
        if kind <= 3:
            self.allocate()
        elif kind <= 6 and self.offers:
            self.end_offer()
        elif kind == 7 and self.tasks:
            framework, _, amount = self.tasks.pop(self.draw.randrange(len(self.tasks)))
            self.native.on_freed(int32(framework), rows(amount))
            self.oracle.on_freed(framework, amount)
        elif kind <= 8:
            name = self.draw.choice(["suppress", "revive", "revive", "activate", "deactivate"])
            getattr(self.native, name)(number)
            getattr(self.oracle, name)(number)
        elif kind == 9:
            width = self.settings.width
            wanted = [
                tuple(self.draw.randint(0, 4) for _ in range(width))
                for _ in range(self.draw.randint(0, 3))
            ]
            tasks = [self.draw.randint(0, 6) if any(size) else 0 for size in wanted]
            amounts = np.array(wanted, np.int64).reshape(len(wanted), width)
            self.native.want(number, amounts, np.array(tasks, np.int64))
            self.oracle.want(number, wanted, tasks)
        elif kind == 10:
            machine = self.draw.randrange(len(self.rivals))
            self.rivals[machine] = (0,) * self.settings.width
            self.rivals[machine] = self.part_of(self.free()[machine])
            use = tuple(sum(of) for of in zip(*self.rivals, strict=True))
            self.native.set_rivals_use(np.array(use, np.int64))
            self.oracle.set_rivals_use(use)
        elif kind == 11:
            machine, up = self.draw.randrange(len(self.rivals)), self.draw.random() < 0.6
            self.native.on_machines_changed(int32(machine), np.array([up]))
            self.oracle.on_machine_changed(machine, up)
        elif kind == 12:
            state = self.native.state()
            self.native = self.settings.native()
            self.add_frameworks()
            self.native.restore(state)
            for one, other in zip(state, self.native.state(), strict=True):
                np.testing.assert_array_equal(one, other)

    def allocate(self) -> None:
        self.now_us += self.draw.choice([0, 1, 1, 5]) * SECOND_US
        machines = len(self.rivals)
        candidates = [m for m in range(machines) if self.draw.random() < 0.9]
        shuffled = self.draw.sample(candidates, len(candidates))
        free = self.free()
        framework, machine, amount = self.native.allocate(
            self.now_us, int32(*shuffled, *shuffled[:1]), rows(*free)
        )
        made = self.oracle.allocate(self.now_us, candidates, free)
        pairs = zip(framework.tolist(), machine.tolist(), strict=True)
        rows_made = [tuple(row) for row in amount.tolist()]
        assert list(zip(pairs, rows_made, strict=True)) == list(made.items())
        self.offers += [(n, m, amount) for (n, m), amount in made.items()]
        assert all(of >= 0 for row in self.free() for of in row)

    def end_offer(self) -> None:
        """It is declined, or a part of it is accepted; the rest may be refused for a while."""
        framework, machine, amount = self.offers.pop(self.draw.randrange(len(self.offers)))
        self.native.on_offers_ended(int32(framework), rows(amount))
        self.oracle.on_offer_ended(framework, amount)
        rest = amount
        if self.draw.random() < 0.5:
            used = self.part_of(amount)
            self.tasks.append((framework, machine, used))
            self.native.on_allocated(int32(framework), rows(used))
            self.oracle.on_allocated(framework, used)
            rest = tuple(of - part for of, part in zip(amount, used, strict=True))
        if self.draw.random() < 0.7:
            until_us = self.now_us + self.draw.choice([0, 1, 5]) * SECOND_US
            self.native.refuse(framework, int32(machine), rows(rest), until_us)
            self.oracle.refuse(framework, machine, rest, until_us)

    def check_charges(self) -> None:
        numbers, shares = self.native.shares()
        assert numbers.tolist() == self.numbers
        for number, share in zip(self.numbers, shares.tolist(), strict=True):
            of = self.oracle.frameworks[number]
            assert self.native.offered(number).tolist() == of.offered
            assert self.native.allocated(number).tolist() == of.allocated
            assert share == int(self.oracle.share(number) * 1_000_000)


@given(settings(), st.randoms(use_true_random=False))
@examples(150)
def test_both_make_the_same_offers(drawn: Settings, draw: Random) -> None:
    history = History(drawn, draw)
    for _ in range(40):
        history.step()
        history.check_charges()


@st.composite
def demands(draw: st.DrawFn) -> tuple[Amount, list[tuple[Amount, int, int]]]:
    """A machine, and of each framework the amount of a task, tasks and weight."""
    width = draw(st.integers(1, 3))
    capacity = draw(st.tuples(*[st.integers(1, 60)] * width))
    amounts = st.tuples(*[st.integers(0, 6)] * width).filter(any)
    one = st.tuples(amounts, st.integers(0, 40), st.sampled_from([1, 1, 2, 3]))
    return capacity, draw(st.lists(one, min_size=1, max_size=5))


def progressive_filling(capacity: Amount, demand: list[tuple[Amount, int, int]]) -> list[int]:
    """Tasks of each: one after the other for the least weighted dominant share among those that
    still fit (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, algorithm 1, where filling
    ends with the first that does not fit)."""
    placed = [0] * len(demand)
    while True:
        used = [
            sum(n * amount[r] for n, (amount, _, _) in zip(placed, demand, strict=True))
            for r in range(len(capacity))
        ]
        fitting = [
            i
            for i, (amount, tasks, _) in enumerate(demand)
            if placed[i] < tasks
            and all(u + a <= c for u, a, c in zip(used, amount, capacity, strict=True))
        ]
        if not fitting:
            return placed
        placed[
            min(
                fitting,
                key=lambda i: (
                    max(
                        Fraction(placed[i] * a, c * demand[i][2])
                        for a, c in zip(demand[i][0], capacity, strict=True)
                    ),
                    placed[i],
                    i,
                ),
            )
        ] += 1


@given(demands())
@examples(200)
def test_task_sized_grants_are_progressive_filling(
    drawn: tuple[Amount, list[tuple[Amount, int, int]]],
) -> None:
    capacity, demand = drawn
    roles = [Role(f"r{i}", 1000 * weight) for i, (_, _, weight) in enumerate(demand)]
    allocator = Settings([capacity], roles, task_sized=True).native()
    for i, (task, tasks, _) in enumerate(demand):
        allocator.add_framework(i, f"f{i}", f"r{i}")
        allocator.want(i, rows(task), np.array([tasks]))
    framework, machine, amount = allocator.allocate(0, int32(0), rows(capacity))
    assert set(machine.tolist()) <= {0}
    granted = dict(zip(framework.tolist(), amount.tolist(), strict=True))
    for i, placed in enumerate(progressive_filling(capacity, demand)):
        assert granted.get(i, [0] * len(capacity)) == [placed * of for of in demand[i][0]]
