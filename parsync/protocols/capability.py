"""What a protocol needs of the runtimes: each capability is declared by the protocol, means one
thing, and follows from no other."""

from __future__ import annotations

from enum import StrEnum


class ProtocolCapability(StrEnum):
    """A property of a group's protocol that runtimes ask for by name."""

    # Its agents drive schedulers of the registry: every group names a kind. Without it, agents
    # place tasks by themselves, and a group names none.
    RUNS_SCHEDULERS = "runs_schedulers"

    # Its agents pass on what their schedulers were offered, and learn what others were
    # (schedulers.interface.Capability.SHARES_DEMAND). Without it, schedulers share no demand.
    PASSES_DEMAND = "passes_demand"

    # Its agents obey quotas: they answer QuotaRequest, and hold the tasks of a quota group back
    # while these would exceed their last QuotaGrant (agent_quota.py). Arms with quotas have no
    # other protocols.
    OBEYS_QUOTAS = "obeys_quotas"

    # Its agents know which tasks of lower priority run (PlanContext.running). Without it,
    # schedulers cannot preempt.
    SHOWS_RUNNING = "shows_running"

    # The master tells its agents whenever their tasks finish (TasksEnded). Agents of schedulers
    # that want to know of ends are told without it, too; see SYNCHRONISES.
    WANTS_ENDS = "wants_ends"

    # Its agents plan on what the master told them when they last synchronised (SyncRequest). So an
    # agent whose scheduler wants to know of ends is told of them then, all at once, and not
    # whenever tasks finish.
    SYNCHRONISES = "synchronises"

    # With a group's options, the tasks of a gang are committed together or not at all. Without it,
    # gangs may be torn; a run that has gangs says so.
    COMMITS_GANGS_WHOLE = "commits_gangs_whole"

    # The master notifies the protocol's participant beside it of every start, end and machine
    # change (TasksStarted, AllocationsEnded, MachinesChanged), at the same instant.
    WATCHES_CELL = "watches_cell"
