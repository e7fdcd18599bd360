"""The network-aware policy (Firmament, OSDI 2016, section 3.3 and figure 6c).

Every task has an arc of cost 0 to the aggregator of the bandwidth it requests, and one to its job's
unscheduled aggregator, at link + 200 + waiting time + time run, which no machine is as dear as. An
aggregator leads to a machine over as many parallel unit arcs as tasks of its request fit in the
spare bandwidth of the machine's link, at most 10; the k-th costs the request plus what is in use
then, that is request + used + (k - 1) * request. A running task's arc to its machine costs what the
machine's link carries, less the time the task has run.

The set of arcs to a machine changes whenever its use does: `request_arcs` gives the set for any
use. As in the paper, arcs of different aggregators share a machine's link without knowing of each
other; only its slots bind them together.
"""

from __future__ import annotations

import numpy as np

from flowsolver.arguments import Int64Array
from flowsolver.graphs.cell import (
    RUN_LIMIT_S,
    UNSCHEDULED_EXTRA,
    WAIT_LIMIT_S,
    add_arcs_to_sink,
    assign_slots,
    check_cell,
    check_size,
    choose_running,
    count_tasks,
    job_sizes,
    rank,
    task_network,
)
from flowsolver.graphs.draws import Draws
from flowsolver.graphs.graph import NetworkAwareGraph

LINK_MB_S = 1250  # 10 Gbit/s
REQUESTS_MB_S = np.array([25, 50, 100, 150, 300, 650])
_REQUEST_PERCENT = np.array([30, 25, 25, 12, 6, 2])
_PARALLEL_LIMIT = 10


def request_arcs(used: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Every arc from a request aggregator to a machine, as (aggregator, machine, cost).

    Aggregators are given by their index, machines by their index in `used`.
    """
    fitting = np.minimum(
        _PARALLEL_LIMIT, np.maximum(0, LINK_MB_S - used)[None, :] // REQUESTS_MB_S[:, None]
    )
    pair = np.repeat(np.arange(fitting.size), fitting.ravel())
    aggregator, machine = pair // used.size, pair % used.size
    return aggregator, machine, used[machine] + (rank(pair) + 1) * REQUESTS_MB_S[aggregator]


def network_aware_graph(
    machines: int,
    seed: int,
    percent_used: int = 90,
    percent_pending: int = 2,
    slots_per_machine: int = 12,
) -> NetworkAwareGraph:
    """A cell whose tasks run on random machines, and may request more than a link carries."""
    check_cell(machines, percent_used, percent_pending, slots_per_machine)
    draws = Draws(seed)
    tasks, running_count = count_tasks(machines, slots_per_machine, percent_used, percent_pending)
    check_size(tasks + machines, machines * slots_per_machine, 4, bytes_per_task=600)
    sizes = job_sizes(draws, tasks)
    running = choose_running(draws, tasks, running_count)
    kind = np.searchsorted(np.cumsum(_REQUEST_PERCENT), draws.below(100, tasks), side="right")
    run_s = np.where(running, draws.below(RUN_LIMIT_S, tasks), 0)
    wait_s = np.where(running, 0, draws.below(WAIT_LIMIT_S, tasks))
    place = np.full(tasks, -1, dtype=np.int64)
    place[running] = assign_slots(
        draws.below(machines, running_count), np.full(machines, slots_per_machine), draws
    )
    asked = np.zeros(machines, dtype=np.int64)
    np.add.at(asked, place[running], REQUESTS_MB_S[kind[running]])
    used = np.minimum(asked, LINK_MB_S)

    first_aggregator = NetworkAwareGraph.first_aggregator
    first_machine = first_aggregator + REQUESTS_MB_S.size
    first_unscheduled = first_machine + machines
    first_task = first_unscheduled + sizes.size
    ids = np.arange(tasks)
    task = np.concatenate([ids[running], ids, ids])
    head = np.concatenate(
        [
            first_machine + place[running],
            first_aggregator + kind,
            first_unscheduled + np.repeat(np.arange(sizes.size), sizes),
        ]
    )
    cost = np.concatenate(
        [
            np.maximum(0, used[place[running]] - run_s[running]),
            np.zeros(tasks, dtype=np.int64),
            LINK_MB_S + UNSCHEDULED_EXTRA + wait_s + run_s,
        ]
    )
    network = task_network(first_task, tasks, task, head, cost)
    aggregator, machine, arc_cost = request_arcs(used)
    network.add_arcs(first_aggregator + aggregator, first_machine + machine, 1, arc_cost)
    add_arcs_to_sink(network, first_machine, machines, slots_per_machine, sizes)
    return NetworkAwareGraph(
        network, REQUESTS_MB_S, machines, sizes.size, tasks, slots_per_machine, used
    )
