"""The agent of the protocol of offers: it drives one scheduler on the room that it was offered.

It is native (parsync/protocols/native/offers_agent.hpp, with what a round is). Here it is put
together: from native parts, and from those in Python that only some agents have.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from parsync.core.queued_tasks import UnitSizes
from parsync.metrics.kinds.offers import TABLES
from parsync.metrics.tables import SCHEMAS
from parsync.protocols import _native
from parsync.protocols.agent_view import AgentView
from parsync.protocols.base import SortingOut
from parsync.protocols.offers.delay import DelayScheduling
from parsync.protocols.pending_queue import AgentQueue, LoserPolicy, SchedulerQueue
from parsync.protocols.rounds import ClaimUnit, ScheduledRounds, native_planner
from parsync.protocols.scheduler_agent import NativeSchedulerAgent, TaskObserver
from parsync.protocols.spec import AgentEnvironment
from schedulers.decision_clock import native_clock
from schedulers.interface import Capability, PartitionQuality, observes_changes
from shared_state.tasks import NO_GANG

_NEVER = 1 << 40  # attempts after which a job is given up


class OffersAgent(_native.OffersAgent, NativeSchedulerAgent):
    """Drives one scheduler: an Agent (parsync.core.participant).

    Args:
        environment: Where it lives, and its scheduler.
    """

    def __init__(self, environment: AgentEnvironment) -> None:
        shared, member = environment.shared, environment.member
        options, capabilities = member.options, member.capabilities
        gangs = shared.table.gang if (shared.table.gang != NO_GANG).any() else None
        queue: AgentQueue | SchedulerQueue
        if Capability.KEEPS_PENDING in capabilities:
            queue = SchedulerQueue(True, gangs)
        else:
            queue = AgentQueue(LoserPolicy.BLOCK, _NEVER, _NEVER, gangs, True)
            if options.gives_up:
                most, most_unplaced = options.attempts_max, options.attempts_max_unplaced
                queue.give_up_jobs(shared.table.job, most or _NEVER, most_unplaced or _NEVER)
        view = AgentView(environment)  # shows what it was offered; it is never synchronised
        log = self.take_parts(environment, view, queue, {**SCHEMAS, **TABLES})
        delay: DelayScheduling | None = None
        if options.node_wait_s + options.rack_wait_s > 0:
            waits_us = (round(wait * 1e6) for wait in (options.node_wait_s, options.rack_wait_s))
            delay = DelayScheduling(shared, *waits_us)
        plans_whole = {Capability.KEEPS_PENDING, Capability.PLANS_WHOLE_QUEUE}
        observes = observes_changes(capabilities)
        quality = PartitionQuality.MEAN_WEIGHT
        super().__init__(
            log.records,
            _settings(environment, gangs is not None),
            view,
            queue,
            log,
            SortingOut(environment, log),
            native_planner(environment, view, quality)
            or ScheduledRounds(environment, view, quality),
            TaskObserver(self.scheduler, observes, shared.table) if observes else None,
            None if plans_whole & capabilities else native_clock(environment.clock),
            delay,
        )


def _settings(environment: AgentEnvironment, has_gangs: bool) -> SimpleNamespace:
    """OffersAgent::Settings."""
    shared, options = environment.shared, environment.member.options
    table = shared.table
    return SimpleNamespace(
        index=environment.index,
        sample_us=shared.sample_us,
        pipelines=False,
        checks_seqnum=False,
        unit=ClaimUnit.GANG if has_gangs else ClaimUnit.CLAIM,
        # where all units are alike, none that waits behind another would fit
        records_holds=not UnitSizes(table, shared.catalog).are_alike,
        job=table.job,
        cell_side=shared.cell_side,
        locks=shared.options.lock,
        says_wants=shared.options.granularity == "task",
        suppresses=options.suppress,
        hoards=options.gangs == "hoard",
        gives_up=options.gives_up,
        task_class=np.ascontiguousarray(table.task_class, np.int8),
        gang=np.ascontiguousarray(table.gang, np.int64),
        request=np.ascontiguousarray(table.request, np.int64),
    )
