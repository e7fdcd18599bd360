"""What a kind of scheduler can do and what it needs.

Each capability is declared by the kind, means one thing, and follows from no other.
"""

from __future__ import annotations

from collections.abc import Set
from enum import StrEnum


class Capability(StrEnum):
    """A property of a kind that agents, runtimes and checks ask for by name."""

    # Remembers the tasks that it left waiting and may claim them in later plans. Its agent offers
    # each task once, and again only if its claim was rejected or the task has to run again.
    KEEPS_PENDING = "keeps_pending"

    # Plans may end running tasks of its own (Plan.evict).
    EVICTS = "evicts"

    # Plans may end running tasks of any scheduler that are of lower priority than their claims
    # (PlanContext.running). The arm's eviction policy has to permit it.
    PREEMPTS = "preempts"

    # observe() is told of tasks that have finished (ChangeKind.FINISHED): with the agent's next
    # synchronisation, if its protocol synchronises. Without it, an agent reports the ends of tasks
    # only if it needs them itself.
    WANTS_ENDS = "wants_ends"

    # Its plans rest on the view and on the tasks that they are offered, and on nothing else: its
    # observe() is never called. Without effect beside KEEPS_PENDING or EVICTS.
    IGNORES_CHANGES = "ignores_changes"

    # Its next plan needs the outcome of the last transaction: the agent commits nothing while it
    # decides.
    WAITS_FOR_OUTCOME = "waits_for_outcome"

    # A round offers it all new tasks at once, and is not cut at the agent's next sync. Without it,
    # a round is about one batch of submitted tasks, or the part that there is time for.
    PLANS_WHOLE_QUEUE = "plans_whole_queue"

    # Starts no reduce of a MapReduce job before all maps of the job have ended
    # (SchedulerEnvironment.mapreduce). Other kinds are given no MapReduce jobs.
    ORDERS_MAPREDUCE = "orders_mapreduce"

    # Its slot prices rest on the tasks of all schedulers that have this capability
    # (interface.SharingScheduler). It needs a protocol that passes demand on.
    SHARES_DEMAND = "shares_demand"

    # In a live run, schedulers that have it run in a process apart from those that do not.
    OWN_PROCESS = "own_process"

    # In a live run, its decision time is measured unless the configuration sets another.
    MEASURED_WHEN_LIVE = "measured_when_live"


def observes_changes(capabilities: Set[Capability]) -> bool:
    """Whether the observe() of a scheduler with these capabilities is called. The plans of those
    that keep tasks or evict are checked against what it was told."""
    needed = Capability.KEEPS_PENDING in capabilities or Capability.EVICTS in capabilities
    return needed or Capability.IGNORES_CHANGES not in capabilities
