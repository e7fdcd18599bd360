"""A check of estimators of slot prices, check_estimator(SPEC): does a kind keep the contract of
interface.py?

The function drives equal estimators of the kind through rounds on small cells, with rejections,
machines that fail, and partitions that were never synced. All prices are checked as in a run
(registry.CheckedEstimator). Besides, the estimators must give the same prices although one is
offered some tasks again, one is given arrays that are overwritten after the call, one has a catalog
whose sets of tasks to come differ, and one, if the kind can, shares its demand with nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from schedulers.conformance import located, require
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import DemandCounts, SlotPrices
from schedulers.prices.registry import CheckedEstimator, CheckedLearner, SlotPriceSpec, checked
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.random import Stream, stream_key
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog
from shared_state.view import ClusterView

MACHINES = 24
PARTITIONS = 3
SETS = 12  # besides set 0; those after TO_COME are never offered
TO_COME = 8
ROUNDS = 12
PER_ROUND = 30
ROUND_US = 400_000


def check_estimator(
    spec: SlotPriceSpec, options: Mapping[str, Any] | None = None, seed: int = 1
) -> None:
    """Check that estimators of a kind, with these options, keep the contract; takes less than a
    second. seed: of the worlds that are made. NonConformance says what is broken, and how."""
    parsed = spec.parse_options(options or {})
    for dimensions in (1, 2):
        world = _World.make(dimensions, seed)
        for number in range(ROUNDS):
            with located(f"{dimensions} dimension{'s' * (dimensions > 1)}, round {number}"):
                if number == 0:
                    estimators = _Estimators.build(spec, parsed, world)
                _round(world, estimators, number)


@dataclass
class _World:
    """A cell, its view, and who is offered what: rows of the columns, in order."""

    cell: Cell
    view: ClusterView
    environment: SchedulerEnvironment
    preference: Int32
    request: Int64
    stream: Stream

    @staticmethod
    def make(dimensions: int, seed: int) -> _World:
        stream = Stream(stream_key(seed, "slot prices", dimensions))
        capacity = stream.integers(MACHINES * dimensions, 9).reshape(MACHINES, dimensions) + 1
        spec = CellSpec(
            ("cpu", "memory")[:dimensions],
            capacity,
            np.arange(MACHINES, dtype=np.int32) // 4,
            stream.integers(MACHINES, 1000),
            np.full(dimensions, 1000, np.int64),
        )
        partitioning = Partitioning.by_topology(spec, PARTITIONS)
        environment = SchedulerEnvironment(
            "conformance", spec, partitioning.offsets, _catalog(stream)
        )
        n = ROUNDS * PER_ROUND
        return _World(
            Cell(spec, partitioning),
            ClusterView(spec, partitioning),
            environment,
            stream.integers(n, 1 + TO_COME).astype(np.int32),
            stream.integers(n * dimensions, 3).reshape(n, dimensions) + 1,
            stream,
        )

    def with_other_sets_to_come(self) -> SchedulerEnvironment:
        """The environment with other machines and costs in the sets that nobody was offered yet."""
        catalog = self.environment.catalog
        kept = int(catalog.machine_offsets[1 + TO_COME])
        other = _catalog(self.stream)
        sets = slice(1 + TO_COME, None)
        entries = slice(int(other.machine_offsets[1 + TO_COME]), None)
        shift = kept - other.machine_offsets[1 + TO_COME]
        first = slice(0, 1 + TO_COME)
        return replace(
            self.environment,
            catalog=replace(
                catalog,
                machine_offsets=np.concatenate(
                    [catalog.machine_offsets[first], other.machine_offsets[sets] + shift]
                ),
                machine=np.concatenate([catalog.machine[:kept], other.machine[entries]]),
                machine_cost=np.concatenate(
                    [catalog.machine_cost[:kept], other.machine_cost[entries]]
                ),
                elsewhere_cost=np.concatenate(
                    [catalog.elsewhere_cost[first], other.elsewhere_cost[sets]]
                ),
            ),
        )

    def change(self, number: int) -> None:
        """Claims by somebody, then what of the cell the view is shown; every third machine is down
        for three rounds."""
        room = np.flatnonzero((self.view.free > 0).all(axis=1))
        if len(room):
            chosen = room[self.stream.integers(6, len(room))].astype(np.int32)
            chosen = np.unique(chosen)
            ticket = self.view.claim(
                chosen, np.ones((len(chosen), self.request.shape[1]), np.int64)
            )
            if number % 4 == 3:
                self.view.withdraw(ticket)
        if number in (6, 9):
            down = np.arange(0, MACHINES, 3, dtype=np.int32)
            self.cell.set_machines(down, np.full(len(down), number == 9), number * ROUND_US)
        for p in range(min(number, PARTITIONS)):
            version = int(self.view.versions[p])
            self.view.apply(self.cell.delta_since(p, version, number * ROUND_US, False))


def _catalog(stream: Stream) -> PreferenceCatalog:
    """Sets of one to six machines, some of one machine each."""
    listed = [np.zeros(0, np.int64)]
    for _ in range(SETS):
        size = 1 + int(stream.integers(1, 6)[0])
        listed.append(np.unique(stream.integers(size, MACHINES)))
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in listed])]).astype(np.int64)
    machine = np.concatenate(listed).astype(np.int32)
    nothing = np.zeros(SETS + 2, np.int64)
    elsewhere = np.concatenate([[0], 200 + stream.integers(SETS, 500)]).astype(np.int64)
    return PreferenceCatalog(
        offsets,
        machine,
        stream.integers(len(machine), 100),
        nothing,
        np.zeros(0, np.int32),
        np.zeros(0, np.int64),
        elsewhere,
        np.where(elsewhere > 0, 1000, 0),
    )


@dataclass
class _Estimators:
    """Estimators that must agree."""

    plain: CheckedEstimator
    retried: CheckedEstimator  # is offered some tasks again
    overwritten: CheckedEstimator  # the arrays that it is given are overwritten
    other_to_come: CheckedEstimator  # has other sets of tasks to come
    sharing: CheckedEstimator | None  # shares demand, if the kind can
    last: SlotPrices | None = None

    @staticmethod
    def build(spec: SlotPriceSpec, options: BaseModel, world: _World) -> _Estimators:
        environment = world.environment

        def one(where: SchedulerEnvironment) -> CheckedEstimator:
            return checked(spec.kind, spec.build(options, where), *where.cell.capacity.shape)

        other = world.with_other_sets_to_come()
        sharing = None
        if spec.shares_demand:
            sharing = one(environment)
            sharing.share_demand()
        return _Estimators(
            one(environment), one(environment), one(environment), one(other), sharing
        )

    def learn(self, machine: Int64, sink: int, now_us: int) -> None:
        """Tell those that learn potentials of a round. Arrays are overwritten after the call."""
        for one in (self.plain, self.retried, self.overwritten, self.other_to_come):
            if isinstance(one, CheckedLearner):
                given = machine.copy()
                one.learn_potentials(given, sink, now_us)
                given[:] = 0


def _round(world: _World, estimators: _Estimators, number: int) -> None:
    world.change(number)
    now_us = number * ROUND_US
    rows = np.arange(number * PER_ROUND, (number + 1) * PER_ROUND)
    if number == 4:
        rows = rows[:0]
    again = np.arange(PER_ROUND // 2) + (PER_ROUND if number > 1 else 0)  # offered before
    free = world.view.free.copy()

    def offer(to: CheckedEstimator, which: Int64, spoil: bool = False) -> None:
        columns = which.copy(), world.preference[which], world.request[which]
        to.offered(*columns)
        if spoil:
            for column in columns:
                column[...] = 0

    offer(estimators.plain, rows)
    offer(estimators.retried, rows)
    offer(estimators.retried, again)
    offer(estimators.overwritten, rows, spoil=True)
    offer(estimators.other_to_come, rows)
    prices = estimators.plain.update(world.view, now_us)
    operations = estimators.plain.operations
    if estimators.last is not None and prices is not estimators.last:
        require(
            not _equal(prices, estimators.last),
            "update() returns the object that it returned before unless the prices changed",
        )
    estimators.last = prices
    for other, promise in (
        (estimators.retried, "a task that is offered again counts once"),
        (estimators.overwritten, "the arrays given to offered() may change after the call"),
        (estimators.other_to_come, "prices do not depend on the sets of tasks to come"),
    ):
        require(_equal(prices, other.update(world.view, now_us)), promise)
    twin = estimators.other_to_come.operations
    require(twin == operations, "counted work is a function of what the estimator was shown")
    require(np.array_equal(world.view.free, free), "update() leaves the view as it found it")
    require(
        estimators.plain.update(world.view, now_us) is prices,
        "a second update() at the same time returns the same object",
    )
    if estimators.sharing is not None:
        offer(estimators.sharing, rows)
        offer(estimators.sharing, again)
        _share(estimators.sharing, rows)
        require(
            _equal(prices, estimators.sharing.update(world.view, now_us)),
            "prices do not depend on share_demand() where others were offered nothing",
        )
    estimators.learn(world.stream.integers(MACHINES, 2000), 1000, now_us + ROUND_US // 2)


def _share(estimator: CheckedEstimator, offered: Int64) -> None:
    """What an estimator was offered for the first time is to be reported, once."""
    demand = estimator.shared_demand
    assert demand is not None
    new = demand.take_new()
    require(
        np.array_equal(np.sort(new), offered) and not len(demand.take_new()),
        "take_new() returns the tasks that were offered for the first time since it was called",
    )
    nothing = np.zeros(0, np.int64)
    demand.learn_demand(DemandCounts(np.zeros(0, np.int32), nothing, nothing), 0)


def _equal(a: SlotPrices, b: SlotPrices) -> bool:
    return all(
        np.array_equal(getattr(a, field), getattr(b, field)) for field in ("price", "slots", "unit")
    )
