"""The optimistic protocol: agents plan on a view of their own that may be outdated, and commit
claims that the cell accepts or rejects (Omega, EuroSys 2013; ParSync, ATC 2021)."""

from __future__ import annotations

from collections.abc import Set

from parsync.core.participant import Agent
from parsync.protocols.optimistic.agent import OptimisticAgent
from parsync.protocols.optimistic.events import EVENTS, KIND
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.protocols.optimistic.shared_demand import TABLES, DemandLedger
from parsync.protocols.optimistic.sync import SyncContext, make_checked_policy, make_sync_policy
from parsync.protocols.pending_queue import LoserPolicy
from parsync.protocols.spec import (
    AgentEnvironment,
    GroupReach,
    Member,
    ProtocolCapability,
    ProtocolSpec,
)
from schedulers.interface import Capability
from shared_state.errors import AgoraError
from shared_state.random import stream_key
from shared_state.transaction import CommitMode


def make_agent(environment: AgentEnvironment) -> Agent:
    """An agent of a group, with its scheduler. AgoraError if the cell has so few machines that it
    lacks a partition that the group is given."""
    shared, options = environment.shared, environment.member.options
    _check_partitions(environment.member, shared.partitioning.count)
    context = sync_context(
        shared.members,
        environment.member,
        environment.index,
        shared.partitioning.count,
        stream_key(shared.seed, f"{environment.name}/sync"),
    )
    sync = make_checked_policy(
        make_sync_policy(options.sync, options.sync_options, context),
        options.sync,
        environment.name,
        context.partitions,
    )
    return OptimisticAgent(environment, options, options.make_strategy(), sync, context)


def sync_context(
    members: tuple[Member, ...], member: Member, agent: int, partitions: int, stream: int = 0
) -> SyncContext:
    """The agent's place among the N agents of its sync set: those of all groups that name the same
    set, in their order, or of its own group."""
    name = member.options.sync_set
    together = [
        other for other in members if other is member or (name and other.options.sync_set == name)
    ]
    before = sum(other.count for other in together[: together.index(member)])
    return SyncContext(
        member.options.gap_us,
        partitions,
        before + agent - member.first_agent,
        sum(other.count for other in together),
        stream,
    )


def check(members: tuple[Member, ...], partitions: int) -> None:
    """Check the groups of an arm.

    Raises:
        AgoraError: A group's sync policy cannot work with its gap and the partitions; a group is
            given partitions that the arm has not; a scheduler cannot keep its limit; or groups of
            one sync set have different gaps, although their synchronisations interlock.
    """
    gap_s: dict[str, float] = {}
    for member in members:
        own = member.options
        _check_partitions(member, partitions)
        if own.losers is LoserPolicy.REQUEUE and Capability.KEEPS_PENDING in member.capabilities:
            raise AgoraError(
                f"group '{member.name}': protocol.losers: expected 'block', got 'requeue': its kind"
                " of scheduler, with these options, keeps the tasks that wait, rejected ones among"
                " them, so the agent cannot make them pause"
            )
        if own.long_strategy is not None and Capability.KEEPS_PENDING in member.capabilities:
            raise AgoraError(
                f"group '{member.name}': long_strategy: not for a scheduler that keeps the tasks "
                "that wait, because it plans short and long ones together"
            )
        if own.hold_max is not None and Capability.KEEPS_PENDING in member.capabilities:
            raise AgoraError(
                f"group '{member.name}': hold_max: its kind of scheduler, with these options, "
                "keeps the tasks that wait, so it may place them above its limit"
            )
        if own.round_tasks is not None and Capability.PLANS_WHOLE_QUEUE in member.capabilities:
            raise AgoraError(
                f"group '{member.name}': round_tasks: not for a kind of scheduler that plans its "
                "whole queue in each round"
            )
        name, interval_s = own.interval
        if own.sync_set and gap_s.setdefault(own.sync_set, interval_s) != interval_s:
            raise AgoraError(
                f"group '{member.name}': {name}: expected {gap_s[own.sync_set]:g}, that of the sync"
                f" set '{own.sync_set}', got {interval_s:g}"
            )
        context = sync_context(members, member, member.first_agent, partitions)
        try:
            make_sync_policy(member.options.sync, member.options.sync_options, context)
        except AgoraError as error:
            raise AgoraError(f"group '{member.name}': {error}") from error


def _check_partitions(member: Member, partitions: int) -> None:
    """Raise AgoraError unless the partitions that a group is given are some of these."""
    only = member.options.only_partitions
    if only is None:
        return
    wrong = [number for number in only if number >= partitions]
    if wrong:
        raise AgoraError(
            f"group '{member.name}': only_partitions: expected numbers from 0 to {partitions - 1}, "
            f"got {wrong[0]}"
        )
    if len(set(only)) < len(only):
        raise AgoraError(f"group '{member.name}': only_partitions: a partition is named twice")


def capabilities(options: OptimisticOptions) -> Set[ProtocolCapability]:
    """The capabilities of a group. Agents that see the room of their ended tasks at once are sent
    every end, and so are those with limits of their own. The latter do not obey quotas. Gangs are
    torn where the options say so, and only there."""
    limited = options.limits.has_any
    wants_ends = {ProtocolCapability.WANTS_ENDS} if options.freed_at_once or limited else set()
    obeys = set() if limited else {ProtocolCapability.OBEYS_QUOTAS}
    tears = options.commit_mode is CommitMode.INCREMENTAL
    whole = set() if tears else {ProtocolCapability.COMMITS_GANGS_WHOLE}
    return {
        ProtocolCapability.RUNS_SCHEDULERS,
        ProtocolCapability.PASSES_DEMAND,
        ProtocolCapability.SHOWS_RUNNING,
        ProtocolCapability.SYNCHRONISES,
        *obeys,
        *wants_ends,
        *whole,
    }


def reach(options: OptimisticOptions) -> GroupReach:
    """What a scheduler of a group may use."""
    return GroupReach(options.only_partitions, limits=options.limits)


def shares_demand(members: tuple[Member, ...]) -> bool:
    """Whether the schedulers of some group share demand."""
    return any(Capability.SHARES_DEMAND in member.capabilities for member in members)


SPEC = ProtocolSpec(
    KIND,
    OptimisticOptions,
    make_agent,
    cell_side=DemandLedger,
    uses_cell_side=shares_demand,
    events=EVENTS,
    capabilities=capabilities,
    check=check,
    tables=TABLES,
    reach=reach,
    for_workload=OptimisticOptions.for_workload,
    describe=OptimisticOptions.described,
    gap_us=lambda options: options.gap_us,
    gap_options=OptimisticOptions.for_gap,
)
