"""Preferred machines of generated jobs: groups of machines, some more popular than others (ParSync
section 6).

A group is a set of `preferred_fraction` of the cell's machines, one drawn from each of as many
equal stretches of the cell, so that every group is spread over all racks and partitions; groups
overlap. Contention for them is tuned by the popularity of groups (Zipf) and by their size. Set 0 of
the catalog is "no preference", set g + 1 is group g.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from experiments.workloads.draws import draw_below
from shared_state.random import Stream
from shared_state.tasks import Int32, Int64, PreferenceCatalog


def spread_machines(stream: Stream, machines: int, chosen: int) -> Int32:
    """Draw one machine from each of `chosen` equal stretches of [0, machines): int32[chosen],
    ascending and distinct."""
    edges = np.arange(chosen + 1, dtype=np.int64) * machines // chosen
    return (edges[:-1] + draw_below(stream, np.diff(edges))).astype(np.int32)


def disjoint_groups(stream: Stream, machines: int, chosen: int, groups: int) -> list[Int32]:
    """Draw groups that share no machine, each with one machine from each of `chosen` equal
    stretches of [0, machines): int32[chosen] each, ascending.

    Raises:
        ValueError: A stretch has fewer machines than there are groups.
    """
    edges = np.arange(chosen + 1, dtype=np.int64) * machines // chosen
    if int(np.diff(edges).min()) < groups:
        raise ValueError(f"{groups} groups of {chosen} out of {machines} machines are not disjoint")
    drawn = np.array(
        [
            first + stream.permutation(end - first)[:groups]
            for first, end in pairwise(edges.tolist())
        ]
    )
    return [np.ascontiguousarray(drawn[:, group], np.int32) for group in range(groups)]


def mixed_group(stream: Stream, own: Int32, drawn: Int32, percent: int) -> Int32:
    """The group int32[chosen] that takes, in `percent` of its stretches at random, the machine of
    `drawn`, and else that of `own`, int32[chosen] each."""
    return np.where(stream.integers(len(own), 100) < percent, drawn, own)


def group_catalog(
    groups: list[Int32],
    rack: Int32,
    rack_cost: int | None,
    elsewhere_cost: int,
    unscheduled_cost: int,
) -> PreferenceCatalog:
    """The catalog of groups of preferred machines.

    Args:
        groups: the preferred machines of each group, ascending. They cost 0.
        rack: int32[M], the rack of each machine.
        rack_cost: of the other machines of racks that hold preferred ones; None: elsewhere_cost.
        elsewhere_cost: of all other machines.
        unscheduled_cost: of waiting, with preferences or without.
    """
    racks = [
        np.unique(rack[group]) if rack_cost is not None else np.zeros(0, np.int32)
        for group in groups
    ]
    machine, listed_rack = _joined(groups), _joined(racks)
    prefers = np.ones(len(groups) + 1, np.int64)
    prefers[0] = 0
    return PreferenceCatalog(
        machine_offsets=_offsets(groups),
        machine=machine,
        machine_cost=np.zeros(len(machine), np.int64),
        rack_offsets=_offsets(racks),
        rack=listed_rack,
        rack_cost=np.full(len(listed_rack), rack_cost or 0, np.int64),
        elsewhere_cost=prefers * elsewhere_cost,
        unscheduled_cost=np.full(len(groups) + 1, unscheduled_cost, np.int64),
    )


def _joined(sets: list[Int32]) -> Int32:
    return np.concatenate([np.zeros(0, np.int32), *sets])


def _offsets(sets: list[Int32]) -> Int64:
    return np.cumsum(np.array([0, 0, *map(len, sets)], np.int64))
