"""A small cell for tests of slot prices: machines of given slots, sets of given machines, and a
view that shows how many slots are busy."""

from __future__ import annotations

import numpy as np

from schedulers.interface import SchedulerEnvironment
from schedulers.prices import registry
from shared_state.cell import Cell
from shared_state.partition import Partitioning
from shared_state.tasks import CellSpec, PreferenceCatalog
from shared_state.view import ClusterView

SECOND_US = 1_000_000


def cell_of(capacity):
    """A cell whose machines have the capacities given: int per machine, or a row of them."""
    capacity = np.array(capacity, np.int64)
    if capacity.ndim == 1:
        capacity = capacity[:, None]
    machines, dimensions = capacity.shape
    return CellSpec(
        ("cpu", "memory")[:dimensions],
        capacity,
        np.arange(machines, dtype=np.int32),
        np.ones(machines, np.int64),
        np.full(dimensions, 1000, np.int64),
    )


def catalog_of(sets):
    """A catalog of sets (elsewhere_cost, {machine: cost}), after set 0."""
    listed = [{}, *(machines for _, machines in sets)]
    offsets = np.cumsum([0, *(len(machines) for machines in listed)]).astype(np.int64)
    nothing = np.zeros(len(listed) + 1, np.int64)
    elsewhere = np.array([0, *(cost for cost, _ in sets)], np.int64)
    return PreferenceCatalog(
        offsets,
        np.array([m for one in listed for m in sorted(one)], np.int32),
        np.array([one[m] for one in listed for m in sorted(one)], np.int64),
        nothing,
        np.zeros(0, np.int32),
        np.zeros(0, np.int64),
        elsewhere,
        elsewhere * 2,
    )


class PriceWorld:
    """An estimator, the view that it is shown, and tasks with ids in the order they are offered."""

    def __init__(self, kind, capacity, sets, **options):
        self.spec = cell_of(capacity)
        self.partitioning = Partitioning.by_topology(self.spec, 1)
        environment = SchedulerEnvironment(
            "tested", self.spec, self.partitioning.offsets, catalog_of(sets)
        )
        spec = registry.get(kind)
        self.estimator = spec.build(spec.parse_options(options), environment)
        self.cell = Cell(self.spec, self.partitioning)
        self.view = ClusterView(self.spec, self.partitioning)
        self.view.apply(self.cell.delta_since(0, 0, 0, False))
        self.tasks = 0

    def offer(self, preference, request=None):
        """Offer one new task per entry of `preference`; each asks for 1 of everything, or for its
        row of `request`."""
        n, dimensions = len(preference), self.spec.capacity.shape[1]
        task = np.arange(self.tasks, self.tasks + n)
        self.tasks += n
        if request is None:
            request = np.ones((n, dimensions), np.int64)
        self.offer_again(task, preference, request)

    def offer_again(self, task, preference, request):
        self.estimator.offered(
            np.array(task, np.int64),
            np.array(preference, np.int32),
            np.array(request, np.int64).reshape(len(preference), self.spec.capacity.shape[1]),
        )

    def occupy(self, machine, request):
        """Show claims of `request`, one row per machine."""
        request = np.array(request, np.int64).reshape(len(machine), self.spec.capacity.shape[1])
        self.view.claim(np.array(machine, np.int32), request)

    def prices(self, at_s=0.0):
        return self.estimator.update(self.view, round(at_s * SECOND_US))

    def price(self, at_s=0.0):
        return self.prices(at_s).price.tolist()
