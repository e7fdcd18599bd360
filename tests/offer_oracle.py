"""The allocator of offers in plain Python, slow and simple: what tests and benchmarks hold the
native one against. Shares are fractions, orders are sorted anew, filters are lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from parsync.protocols._native import OfferAllocator
from shared_state.random import Stream, stream_key

Path = tuple[str, ...]
Amount = tuple[int, ...]


@dataclass
class Role:
    path: str
    weight_permille: int = 1000
    guarantee: Amount | None = None
    limit: tuple[int | None, ...] | None = None


@dataclass
class Settings:
    """As the arguments of the native allocator."""

    capacity: list[Amount]
    roles: list[Role] = field(default_factory=list)
    smallest: Amount | None = None
    random: bool = False
    task_sized: bool = False
    machines_per_turn: int = 1
    rivals_role: str | None = None
    seed: int = 1
    name: str = "offers"

    @property
    def width(self) -> int:
        return len(self.capacity[0])

    def native(self) -> OfferAllocator:
        def table(rows: list[Any]) -> Any:
            return np.array(rows, np.int64).reshape(len(rows), self.width)

        none = (None,) * self.width
        return OfferAllocator(
            seed=self.seed,
            name=self.name,
            capacity=np.array(self.capacity, np.int64),
            role=[role.path for role in self.roles],
            weight_permille=np.array([role.weight_permille for role in self.roles], np.int64),
            guarantee=table([role.guarantee or (0,) * self.width for role in self.roles]),
            limit=table(
                [[-1 if of is None else of for of in role.limit or none] for role in self.roles]
            ),
            smallest=np.array(self.smallest or [0] * self.width, np.int64),
            random=self.random,
            task_sized=self.task_sized,
            machines_per_turn=self.machines_per_turn,
            rivals_role=self.rivals_role,
        )


@dataclass
class Framework:
    name: str
    role: Path
    offered: list[int]
    allocated: list[int]
    active: bool = True
    suppressed: bool = False
    wanted: list[tuple[Amount, int]] = field(default_factory=list)  # sizes, tasks of each
    offers: int = 0
    filters: dict[int, list[tuple[Amount, int]]] = field(default_factory=dict)  # by machine


@dataclass
class Child:
    key: tuple[Fraction, int, str]
    weight: int
    visit: Callable[[Stream], Iterator[int]]


def path_of(role: str) -> Path:
    return tuple(role.split("/"))


class Oracle:
    """The native allocator's methods, with amounts as tuples."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.width = settings.width
        self.roles = {path_of(role.path): role for role in settings.roles}
        self.smallest = settings.smallest or (0,) * self.width
        self.frameworks: dict[int, Framework] = {}
        self.rivals: Amount = (0,) * self.width
        self.up = [True] * len(settings.capacity)
        self.runs = 0
        self.sum_total()

    def add_framework(self, framework: int, name: str, role: str) -> None:
        self.frameworks[framework] = Framework(
            name, path_of(role), [0] * self.width, [0] * self.width
        )

    def activate(self, framework: int) -> None:
        self.frameworks[framework].active = True

    def deactivate(self, framework: int) -> None:
        of = self.frameworks[framework]
        of.active = of.suppressed = False
        of.wanted = []
        of.filters.clear()

    def suppress(self, framework: int) -> None:
        self.frameworks[framework].suppressed = True

    def revive(self, framework: int) -> None:
        self.frameworks[framework].suppressed = False
        self.frameworks[framework].filters.clear()

    def want(self, framework: int, amount: Sequence[Amount], tasks: Sequence[int]) -> None:
        self.frameworks[framework].wanted = list(zip(amount, tasks, strict=True))

    def refuse(self, framework: int, machine: int, amount: Amount, until_us: int) -> None:
        filters = self.frameworks[framework].filters
        filters.setdefault(machine, []).append((amount, until_us))

    def on_offer_ended(self, framework: int, amount: Amount) -> None:
        self.add(self.frameworks[framework].offered, amount, -1)

    def on_allocated(self, framework: int, amount: Amount) -> None:
        self.add(self.frameworks[framework].allocated, amount, +1)

    def on_freed(self, framework: int, amount: Amount) -> None:
        self.add(self.frameworks[framework].allocated, amount, -1)

    def set_rivals_use(self, amount: Amount) -> None:
        self.rivals = amount
        self.sum_total()

    def on_machine_changed(self, machine: int, up: bool) -> None:
        self.up[machine] = up
        self.sum_total()
        for of in self.frameworks.values():
            of.filters.pop(machine, None)

    @staticmethod
    def add(charged: list[int], amount: Amount, sign: int) -> None:
        for r, of in enumerate(amount):
            charged[r] += sign * of
            assert charged[r] >= 0

    # Shares and order.

    def sum_total(self) -> None:
        of_machines = zip(self.settings.capacity, self.up, strict=True)
        up = [capacity for capacity, is_up in of_machines if is_up]
        self.total = [sum(of[r] for of in up) for r in range(self.width)]
        if self.settings.rivals_role is None:
            for r, of in enumerate(self.rivals):
                self.total[r] -= of

    def charged(self, path: Path, r: int) -> int:
        """What the frameworks of a role and of the roles below it have, and rivals in it."""
        below = [of for of in self.frameworks.values() if of.role[: len(path)] == path]
        charged = sum(of.offered[r] + of.allocated[r] for of in below)
        rivals = self.settings.rivals_role
        if rivals and path_of(rivals)[: len(path)] == path:
            charged += self.rivals[r]
        return charged

    def charged_here(self, path: Path, r: int) -> int:
        """The same without the roles below it."""
        here = [of for of in self.frameworks.values() if of.role == path]
        rivals = self.rivals[r] if path_of(self.settings.rivals_role or "") == path else 0
        return rivals + sum(of.offered[r] + of.allocated[r] for of in here)

    def dominant(self, charged: Callable[[int], int]) -> Fraction:
        shares = [
            Fraction(charged(r), self.total[r]) for r in range(self.width) if self.total[r] > 0
        ]
        return max(shares, default=Fraction(0))

    def share(self, framework: int) -> Fraction:
        of = self.frameworks[framework]
        return self.dominant(lambda r: of.offered[r] + of.allocated[r])

    def is_eligible(self, of: Framework) -> bool:
        wants = not self.settings.task_sized or any(tasks for _, tasks in of.wanted)
        return of.active and not of.suppressed and wants

    def order(self, sorter: Stream) -> Iterator[int]:
        """The frameworks that may get an offer, in order."""
        return self.below((), sorter)

    def below(self, path: Path, sorter: Stream) -> Iterator[int]:
        """The frameworks of a role and of the roles below it."""
        depth = len(path)
        in_roles = {n: of for n, of in self.frameworks.items() if of.role[:depth] == path}
        eligible = {n: of for n, of in in_roles.items() if self.is_eligible(of)}
        children: list[Child] = []
        for name in {of.role[depth] for of in eligible.values() if len(of.role) > depth}:
            child = (*path, name)
            weight = self.roles[child].weight_permille if child in self.roles else 1000
            share = self.dominant(partial(self.charged, child)) / weight
            offers = sum(of.offers for of in in_roles.values() if of.role[: depth + 1] == child)
            children.append(Child((share, offers, name), weight, partial(self.below, child)))
        if any(of.role == path for of in eligible.values()):
            share = self.dominant(partial(self.charged_here, path)) / 1000
            offers = sum(of.offers for of in in_roles.values() if of.role == path)
            children.append(Child((share, offers, "."), 1000, partial(self.members, path)))
        return self.visit(children, sorter)

    def members(self, path: Path, sorter: Stream) -> Iterator[int]:
        """The frameworks of a role itself."""
        children = [
            Child((self.share(n), of.offers, of.name), 1000, partial(self.only, n))
            for n, of in self.frameworks.items()
            if of.role == path and self.is_eligible(of)
        ]
        return self.visit(children, sorter)

    def only(self, framework: int, _: Stream) -> Iterator[int]:
        yield framework

    def visit(self, children: list[Child], sorter: Stream) -> Iterator[int]:
        if not self.settings.random:
            for child in sorted(children, key=lambda child: child.key):
                yield from child.visit(sorter)
            return
        left = sorted(children, key=lambda child: child.key[2])
        while left:
            rest = int(sorter.integers(1, sum(child.weight for child in left))[0])
            drawn = 0
            while rest >= left[drawn].weight:
                rest -= left[drawn].weight
                drawn += 1
            yield from left.pop(drawn).visit(sorter)

    # One run.

    def stream(self, purpose: int) -> Stream:
        settings = self.settings
        return Stream(stream_key(settings.seed, settings.name, 3 * self.runs + purpose))

    def is_offerable(self, amount: Amount | list[int]) -> bool:
        if not any(amount):
            return False
        if self.settings.task_sized or not any(self.smallest):
            return True
        bounds = zip(amount, self.smallest, strict=True)
        return any(least > 0 and of >= least for of, least in bounds)

    def unmet(self, role: Role | None, r: int) -> int:
        if role is None or role.guarantee is None:
            return 0
        return max(0, role.guarantee[r] - self.charged(path_of(role.path), r))

    def surplus(self, r: int) -> int:
        """What no guarantee may still need, of all that is left."""
        left = sum(of[r] for of, up in zip(self.left, self.up, strict=True) if up)
        return max(0, left - sum(self.unmet(role, r) for role in self.roles.values()))

    def allowed(self, stage: int, of: Framework, machine: int) -> list[int] | None:
        role = self.roles.get(of.role[:1])
        any_guarantee = any(any(role.guarantee or ()) for role in self.roles.values())
        amount = []
        meets = False
        for r in range(self.width):
            most = self.left[machine][r]
            limit = role.limit[r] if role and role.limit else None
            if limit is not None:
                most = min(most, max(0, limit - self.charged(of.role[:1], r)))
            missing = self.unmet(role, r) if stage == 0 else 0
            if missing:
                most = min(most, missing)
                meets |= most > 0
            elif any_guarantee:
                most = min(most, self.surplus(r))
            amount.append(most)
        return amount if stage == 1 or meets else None

    def is_filtered(self, of: Framework, machine: int, amount: Amount | list[int]) -> bool:
        return any(
            self.now_us <= until_us and all(a <= b for a, b in zip(amount, refused, strict=True))
            for refused, until_us in of.filters.get(machine, ())
        )

    def allocate(
        self, now_us: int, candidates: list[int], free: list[Amount]
    ) -> dict[tuple[int, int], Amount]:
        """Amounts by framework and machine, in the order of the first grants."""
        self.now_us = now_us
        self.left = [[max(0, of) for of in amount] for amount in free]
        self.made: dict[tuple[int, int], Amount] = {}
        machines = [
            m for m in sorted(set(candidates)) if self.up[m] and self.is_offerable(self.left[m])
        ]
        sorter = self.stream(2)
        for stage in (0, 1):
            short = any(
                self.unmet(role, r) for role in self.roles.values() for r in range(self.width)
            )
            if stage == 0 and not short:
                continue
            order, stream = list(machines), self.stream(stage)
            for i in range(len(order), 1, -1):
                j = int(stream.integers(1, i)[0])
                order[i - 1], order[j] = order[j], order[i - 1]
            if self.settings.task_sized:
                while self.grant_task(stage, order, sorter):
                    pass
            else:
                for first in range(0, len(order), self.settings.machines_per_turn):
                    turn = order[first : first + self.settings.machines_per_turn]
                    self.serve_turn(stage, turn, sorter)
        self.runs += 1
        return self.made

    def serve_turn(self, stage: int, turn: list[int], sorter: Stream) -> None:
        if not any(self.is_offerable(self.left[m]) for m in turn):
            return
        order = self.order(sorter)
        if not self.settings.random:
            order = iter(list(order))  # as shares are before the turn
        for n in order:
            of = self.frameworks[n]
            for m in turn:
                if not self.is_offerable(self.left[m]):
                    continue
                amount = self.allowed(stage, of, m)
                if amount and self.is_offerable(amount) and not self.is_filtered(of, m, amount):
                    self.grant(n, m, tuple(amount))
            if not any(self.is_offerable(self.left[m]) for m in turn):
                return

    def grant_task(self, stage: int, order: list[int], sorter: Stream) -> bool:
        for n in self.order(sorter):
            of = self.frameworks[n]
            role = self.roles.get(of.role[:1])
            for place, (size, tasks) in enumerate(of.wanted):
                for m in order if tasks else ():
                    most = self.allowed(stage, of, m)
                    if most is None or any(a > b for a, b in zip(size, most, strict=True)):
                        continue
                    meets = any(a and self.unmet(role, r) for r, a in enumerate(size))
                    if (stage == 0 and not meets) or self.is_filtered(of, m, size):
                        continue
                    self.grant(n, m, size)
                    of.wanted[place] = size, tasks - 1
                    return True
        return False

    def grant(self, n: int, machine: int, amount: Amount) -> None:
        of = self.frameworks[n]
        for r, part in enumerate(amount):
            self.left[machine][r] -= part
            of.offered[r] += part
        of.offers += 1
        before = self.made.get((n, machine), (0,) * self.width)
        self.made[n, machine] = tuple(a + b for a, b in zip(before, amount, strict=True))
