"""Min-cost flow graphs for tests and benchmarks: the same for a seed on every machine.

Scheduling graphs show a cell at one moment. Every task (supply 1) may go to machines, directly or
over aggregators, or wait at its job's unscheduled aggregator. Machines and unscheduled aggregators
lead to the sink.
"""

from flowsolver.graphs.draws import Draws
from flowsolver.graphs.graph import NetworkAwareGraph, SchedulingGraph
from flowsolver.graphs.load_spreading import load_spreading_graph
from flowsolver.graphs.netgen import NetgenOptions, netgen_network
from flowsolver.graphs.network_aware import network_aware_graph, request_arcs
from flowsolver.graphs.quincy import GraphOptions, contended_options, quincy_graph

__all__ = [
    "Draws",
    "GraphOptions",
    "NetgenOptions",
    "NetworkAwareGraph",
    "SchedulingGraph",
    "contended_options",
    "load_spreading_graph",
    "netgen_network",
    "network_aware_graph",
    "quincy_graph",
    "request_arcs",
]
