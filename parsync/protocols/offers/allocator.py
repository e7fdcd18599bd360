"""The allocator of the protocol of offers, a participant beside the master.

It is native: parsync/protocols/native/offers_cell_side.hpp has the triggers of its runs, and keeps
the offers from when they are made to their end; offer_allocator.hpp decides what is offered. Here
they are put together.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from parsync.metrics.kinds.offers import TABLES
from parsync.metrics.record import Measurements, Record
from parsync.protocols import _native
from parsync.protocols.offers.options import RIVALS, OffersSharedOptions
from parsync.protocols.spec import Environment
from shared_state.cell import Cell
from shared_state.random import WORD
from shared_state.tasks import Int64


class Allocator(_native.OffersCellSide):
    """Offers free room to the protocol's agents: a CellSide (parsync.core.participant)."""

    def __init__(self, environment: Environment, cell: Cell) -> None:
        options: OffersSharedOptions = environment.options
        members = environment.members
        agents = max(member.first_agent + member.count for member in members)
        interval_us = round(options.interval_s * 1e6)
        timeout_s = options.offer_timeout_s
        refuse_us, is_own = np.zeros(agents, np.int64), np.zeros(agents, np.bool_)
        self._allocator = _make_allocator(environment, cell.spec.limit)
        for member in members:
            own_us = round(member.options.refuse_s * 1e6)
            for agent in range(member.first_agent, member.first_agent + member.count):
                name = f"{member.name}-{agent - member.first_agent}"
                self._allocator.add_framework(agent, name, member.options.role)
                self._allocator.deactivate(agent)
                is_own[agent] = True
                refuse_us[agent] = max(own_us, interval_us) if own_us else 0
        settings = SimpleNamespace(
            address=environment.cell_side,
            sample_us=environment.sample_us,
            interval_us=interval_us,
            allocation_us=round(options.allocation_s * 1e6),
            timeout_us=None if timeout_s is None else round(timeout_s * 1e6),
            locks=options.lock,
            freed_triggers=options.freed_room_triggers,
            request=np.ascontiguousarray(environment.table.request, np.int64),
            refuse_us=refuse_us,
            is_own=is_own,
        )
        self._records = Measurements(TABLES)
        super().__init__(self._records, settings, self._allocator, cell.native)

    def finish(self, now_us: int) -> list[Record]:
        """Return the measurements that were not handed out yet."""
        self.record(now_us)
        return self._records.flush()

    def checkpoint(self) -> Any:
        """The whole state."""
        return self._allocator.state(), self._records.held(), *self.state()

    def restore(self, state: Any) -> None:
        """Take the state that checkpoint() returned."""
        allocator, records, *rest = state
        self._allocator.restore(allocator)
        self._records.restore(records)
        self.load_state(tuple(rest))


def _make_allocator(environment: Environment, limit: Int64) -> _native.OfferAllocator:
    """The native allocator of an arm, without frameworks."""
    options: OffersSharedOptions = environment.options
    machines, resources = limit.shape
    total = limit.sum(axis=0)
    roles = list(options.roles.items())
    weight = np.array([round(role.weight * 1000) for _, role in roles], np.int64)
    guarantee = np.zeros((len(roles), resources), np.int64)
    most = np.full((len(roles), resources), -1, np.int64)
    for row, (_, role) in enumerate(roles):
        guarantee[row] = [int(one) * round(role.guarantee * 1000) // 1000 for one in total]
        if role.limit < 1:
            most[row] = [int(one) * round(role.limit * 1000) // 1000 for one in total]
    turn = {"cell": machines, "machines": options.machines_per_offer}.get(options.granularity)
    return _native.OfferAllocator(
        seed=environment.seed & WORD,
        name="offers",
        capacity=np.ascontiguousarray(limit),
        role=[name for name, _ in roles],
        weight_permille=weight,
        guarantee=guarantee,
        limit=most,
        # Mesos: 0.01 cpus or 32 MB. Units differ here, so a thousandth of the largest machine
        smallest=np.maximum(1, limit.max(axis=0) // 1000),
        random=options.sorter == "random",
        task_sized=options.granularity == "task",
        machines_per_turn=1 if turn is None else turn,
        rivals_role=RIVALS if options.rivals == "role" else None,
    )
