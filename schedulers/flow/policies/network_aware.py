"""Network-aware placement: a machine costs what its link carries already."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.flow.options import FlowOptions, wait_price
from schedulers.flow.policies.interface import (
    AggregatorArcs,
    MachineLoad,
    ObservedCell,
    Policy,
    TaskArcs,
    TimePrice,
    to_aggregator,
)
from schedulers.flow.policies.registry import PolicySpec
from schedulers.interface import SchedulerEnvironment
from schedulers.objective import refuse_constraints
from shared_state.errors import AgoraError
from shared_state.tasks import CellSpec, Int64, TaskBatch

MULTI_ARCS = 10  # from a request aggregator to a machine, at most (net cost model of the code)
HYSTERESIS = 1  # a running task moves only if that saves more
_BITS = 3  # significant bits of requests that are rounded up: at most a quarter more


class NetworkAware(Policy):
    """Tasks go where the link has the most bandwidth to spare, and never where it has too little
    (Firmament section 3.3, Fig. 6c; its code's net cost model has at most 10 arcs to a machine).

        T --0--> RA_r ==used + k * r==> M --0--> S     k = 1, 2, ... while k tasks that request r
                                                       fit into the spare bandwidth of M; k <= 10
        T --link + 1--> U_j --waiting--> S             link: the largest of the cell
        running T --used - 1--> M                      under preemption

    RA_r is the request aggregator of all tasks that request the bandwidth r. Each adds arcs to all
    machines, so only the first `request_sizes` sizes have one of their own; other requests are
    rounded up to three significant bits, and no further than the largest link. A task whose
    request is rounded up is placed, and pays, as if it requested that. The k-th task of a
    round that it sends to a machine pays the request and what is in use then. Bandwidth in use is
    observed: the sum of what the running tasks of all schedulers request. Arcs follow it from round
    to round: their costs change, and they open and close. Tasks without a request of bandwidth
    have one arc, of cost `used`, for all of a machine's room.

    What the flow cannot express: request aggregators do not know of each other, so tasks of two
    sizes may be sent to one machine where they do not fit together. They are not claimed, and
    counted apart as oversubscribed.

    A task waits only where there is no room for it. No machine is preferred.
    """

    grows = True

    def __init__(
        self,
        cell: CellSpec,
        dimension: int,
        wait_price: TimePrice,
        preemption: bool,
        request_sizes: int,
    ) -> None:
        self.wait_price = wait_price
        self._request_sizes = request_sizes
        self._dimension = dimension
        self._link = cell.limit[:, dimension].astype(np.int64)
        self._dearest = int(self._link.max(initial=0))
        self.observes_running = preemption
        self._spare = self._link.copy()
        self._used = np.zeros_like(self._link)
        self._exact = np.zeros(0, np.int64)  # the sizes that are not rounded up
        self._requests = np.zeros(0, np.int64)  # by aggregator, in the order of their first tasks
        self._stale = np.zeros(0, np.int64)

    @property
    def aggregators(self) -> int:
        return len(self._requests)

    def aggregator_name(self, aggregator: int) -> str:
        return f"RA{int(self._requests[aggregator])}"

    def observe(self, cell: ObservedCell, now_us: int) -> None:
        spare = np.maximum(cell.free[:, self._dimension], 0)
        if self.observes_running:
            changed = spare != self._spare
            self._stale = cell.running.task[changed[cell.machine]]
        self._spare = spare
        self._used = np.maximum(self._link - spare, 0)

    def stale_tasks(self) -> Int64:
        """Running tasks where the use of the link has changed."""
        return self._stale

    def task_arcs(self, tasks: TaskBatch) -> TaskArcs:
        request = self._class_of(tasks.request[:, self._dimension])
        self._requests = np.append(self._requests, np.setdiff1d(request, self._requests))
        order = np.argsort(self._requests)
        aggregator = order[np.searchsorted(self._requests[order], request)]
        row = np.arange(len(tasks))
        return TaskArcs(row, to_aggregator(aggregator), np.zeros(len(row), np.int64))

    def aggregator_arcs(self, aggregator: Int64, load: MachineLoad) -> AggregatorArcs:
        request = self._requests[aggregator]
        fit = np.minimum(self._link // np.maximum(request, 1)[:, None], MULTI_ARCS)
        fit[request == 0] = 1
        of, machine = np.nonzero(fit)
        arcs = fit[of, machine]
        k = np.arange(int(arcs.sum())) - np.repeat(np.cumsum(arcs) - arcs, arcs)
        tail, head = aggregator[np.repeat(of, arcs)], np.repeat(machine, arcs)
        level = tail * MULTI_ARCS + k
        return AggregatorArcs(tail, head, self._cost(level, head), level)

    def machine_arc_cost(
        self, tail: Int64, level: Int64, machine: Int64, load: MachineLoad
    ) -> Int64:
        return self._cost(level, machine)

    def machine_arc_capacity(self, level: Int64, machine: Int64, load: MachineLoad) -> Int64:
        request, k = self._request_and_number(level)
        capacity = (k * request <= self._spare[machine]).astype(np.int64)
        return np.where(request == 0, load.room[machine], capacity)

    def unscheduled_cost(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._dearest + 1)

    def running_arc_cost(self, tasks: TaskBatch, machine: Int64) -> Int64:
        return self._used[machine] - HYSTERESIS

    def cost_anywhere(self, tasks: TaskBatch) -> Int64:
        return np.full(len(tasks), self._dearest)

    def largest_cost(self) -> int:
        return self._dearest + 1

    def _class_of(self, request: Int64) -> Int64:
        """The sizes as which these requests count, none of them smaller than the request. A size
        keeps its class for ever, so that running tasks are asked about as when they came."""
        new = np.setdiff1d(request, self._exact)
        room = self._request_sizes - len(self._exact)
        self._exact = np.append(self._exact, new[:room])
        return np.where(np.isin(request, self._exact), request, self._rounded_up(request))

    def _rounded_up(self, request: Int64) -> Int64:
        _, bits = np.frexp(request.astype(np.float64))
        step = np.int64(1) << np.maximum(bits - _BITS, 0).astype(np.int64)
        rounded = -(-request // step) * step
        most = np.where(request <= self._dearest, self._dearest, rounded)
        up: Int64 = np.minimum(rounded, most)
        return up

    def _cost(self, level: Int64, machine: Int64) -> Int64:
        request, k = self._request_and_number(level)
        cost: Int64 = self._used[machine] + k * request
        return cost

    def _request_and_number(self, level: Int64) -> tuple[Int64, Int64]:
        """What tasks request that take arcs of these levels, and the how many-th each is."""
        return self._requests[level // MULTI_ARCS], level % MULTI_ARCS + 1


class NetworkAwareOptions(BaseModel):
    """Options of network-aware placement.

    Attributes:
        bandwidth: The resource of the cell that is the bandwidth of machines' links.
        request_sizes: How many sizes of requests have an aggregator of their own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    bandwidth: str = Field(
        "net_mbps",
        min_length=1,
        description="the resource of the cell that is the bandwidth of each machine's link",
    )
    request_sizes: int = Field(
        16,
        ge=0,
        description="how many sizes of requests are told apart, the first ones that come; others"
        " are rounded up by at most a quarter, so that the graph has a bound",
    )


class _Options(NetworkAwareOptions, FlowOptions):
    """What build() gets."""


def build(options: _Options, environment: SchedulerEnvironment) -> NetworkAware:
    refuse_constraints(environment.catalog, "network_aware")
    cell = environment.cell
    if options.bandwidth not in cell.dimensions:
        raise AgoraError(
            f'network_aware: bandwidth = "{options.bandwidth}": the cell has no such resource; '
            f"it has {', '.join(cell.dimensions)}"
        )
    dimension = cell.dimensions.index(options.bandwidth)
    price = wait_price(options, Policy.wait_price)
    return NetworkAware(cell, dimension, price, options.preemption, options.request_sizes)


# Tasks do not run longer on a full link, so no run shows what the policy is for.
SPEC = PolicySpec("network_aware", NetworkAwareOptions, build, ranked=False)
