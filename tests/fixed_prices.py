"""An estimator with prices that a test sets, and flow schedulers that use it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pydantic import PrivateAttr

from schedulers.flow.scheduler import FlowScheduler
from schedulers.interface import SchedulerEnvironment
from schedulers.prices.interface import SlotPriceEstimator, SlotPrices
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog
from shared_state.view import ClusterView
from tests.flow_world import LoadSpreadingOptions, QuincyOptions, build_load_spreading, build_quincy


@dataclass
class FixedPrices:
    """Prices for slots of so much of the first resource; `seen` are the tasks it was offered."""

    price: list[list[int]]  # [machine][level]
    slots: list[int]
    dimensions: int = 1
    operations: int = 0
    slot: int = 1  # of the first resource
    seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.set(self.price)

    def set(self, price: list[list[int]]) -> None:
        unit = np.zeros(self.dimensions, np.int64)
        unit[0] = self.slot
        self.prices = SlotPrices(np.array(price, np.int64), np.array(self.slots, np.int64), unit)

    def offered(self, task: Int64, preference: Int32, request: Int64) -> None:
        self.seen += task.tolist()

    def update(self, view: ClusterView, now_us: int) -> SlotPrices:
        return self.prices


@dataclass
class LearningPrices(FixedPrices):
    """`learnt` are the worths of machines' slots that it was told, with the times."""

    learnt: list[tuple[Int64, int]] = field(default_factory=list)

    def learn_potentials(self, machine: Int64, sink: int, now_us: int) -> None:
        self.learnt.append((machine - sink, now_us))


class PricedQuincyOptions(QuincyOptions):
    _estimator: SlotPriceEstimator = PrivateAttr()

    def estimator(self, environment: SchedulerEnvironment) -> SlotPriceEstimator:
        return self._estimator


class PricedSpreadingOptions(LoadSpreadingOptions):
    _estimator: SlotPriceEstimator = PrivateAttr()

    def estimator(self, environment: SchedulerEnvironment) -> SlotPriceEstimator:
        return self._estimator


def priced_quincy(
    spec: CellSpec,
    prices: SlotPriceEstimator,
    catalog: PreferenceCatalog | None = None,
    **options: object,
) -> FlowScheduler:
    given = PricedQuincyOptions(**{"certify_every": 1, "prices": "occupancy", **options})
    given._estimator = prices
    return build_quincy(given, _environment(spec, catalog))


def priced_spreading(
    spec: CellSpec, prices: SlotPriceEstimator, **options: object
) -> FlowScheduler:
    given = PricedSpreadingOptions(**{"certify_every": 1, "prices": "occupancy", **options})
    given._estimator = prices
    return build_load_spreading(given, _environment(spec, None))


def _environment(spec: CellSpec, catalog: PreferenceCatalog | None) -> SchedulerEnvironment:
    offsets = Partitioning.by_topology(spec, 1).offsets
    return SchedulerEnvironment("flow", spec, offsets, catalog or PreferenceCatalog.empty())
