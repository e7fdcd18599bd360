"""The protocol of offers (Hindman et al., "Mesos", NSDI 2011), as a ProtocolSpec."""

from __future__ import annotations

from collections.abc import Mapping

from parsync.metrics.kinds.offers import TABLES
from parsync.protocols.offers.agent import OffersAgent
from parsync.protocols.offers.allocator import Allocator
from parsync.protocols.offers.events import EVENTS, KIND
from parsync.protocols.offers.options import RIVALS, OffersOptions, OffersSharedOptions
from parsync.protocols.spec import Member, ProtocolCapability, ProtocolSpec
from schedulers.interface import Capability
from shared_state.errors import AgoraError

_REFUSED = {
    Capability.EVICTS: "ends running tasks: an offer is room for new ones",
}


def check(members: tuple[Member, ...], partitions: int) -> None:
    """Raise AgoraError if a group has schedulers that cannot take offers, or cannot keep its
    options."""
    for member in members:
        for capability, what in _REFUSED.items():
            if capability in member.capabilities:
                raise AgoraError(
                    f"group '{member.name}': protocol '{KIND}' cannot drive a scheduler that {what}"
                )
        options = member.options
        keeps = Capability.KEEPS_PENDING in member.capabilities
        for name in ("node_wait_s", "rack_wait_s"):
            if keeps and getattr(options, name) > 0:
                raise AgoraError(
                    f"group '{member.name}': {name}: not for a kind of scheduler that keeps the "
                    "tasks that wait, because it decides by itself how long they wait for "
                    "preferred machines"
                )
        if keeps and options.gives_up:
            raise AgoraError(
                f"group '{member.name}': attempts_max, attempts_max_unplaced: not for a kind of "
                "scheduler that keeps the tasks that wait"
            )
        if keeps and options.gangs == "hoard":
            raise AgoraError(
                f"group '{member.name}': gangs: expected 'wait', got 'hoard': its kind of "
                "scheduler, with these options, keeps the tasks that wait"
            )


def check_shared(members: tuple[Member, ...], options: OffersSharedOptions) -> None:
    """Raise AgoraError if the options of the arm do not go with those of its groups."""
    for member in members:
        _check_member(member, options)
    _check_roles(members, options)


def _check_member(member: Member, options: OffersSharedOptions) -> None:
    """Raise AgoraError if a group's options do not go with those of the arm."""
    own = member.options
    if options.rivals == "role" and own.role.split("/")[0] == RIVALS:
        raise AgoraError(
            f"group '{member.name}': role: '{RIVALS}' is that of other schedulers, as rivals ="
            " 'role' says"
        )
    at_once = options.freed_room_triggers and round(options.allocation_s * 1e6) == 0
    if at_once and own.refuse_s == 0:
        raise AgoraError(
            f"group '{member.name}': refuse_s: expected more than 0 with freed_room_triggers unless"
            " allocation_s is: what is declined would be offered again at once, for ever"
        )


def _check_roles(members: tuple[Member, ...], options: OffersSharedOptions) -> None:
    """Raise AgoraError if a role that has options is that of no group, nor above one."""
    used = {RIVALS} if options.rivals == "role" else set[str]()
    for member in members:
        parts = member.options.role.split("/")
        used |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    for name in options.roles:
        if name not in used:
            raise AgoraError(
                f"protocol '{KIND}', shared option 'roles': no group has the role '{name}'; the "
                f"groups' roles: {', '.join(sorted(used))}"
            )


def describe(options: OffersOptions) -> Mapping[str, str]:
    """What summaries and reports say of a group with these options."""
    waits = options.node_wait_s + options.rack_wait_s
    delay = f", delay scheduling for {waits:g} s" if waits else ""
    hoards = ", hoards for gangs" if options.gangs == "hoard" else ""
    return {"sync": f"offers{delay}{hoards}"}


SPEC = ProtocolSpec(
    KIND,
    OffersOptions,
    OffersAgent,
    cell_side=Allocator,
    events=EVENTS,
    capabilities=frozenset(
        {
            ProtocolCapability.RUNS_SCHEDULERS,
            ProtocolCapability.WATCHES_CELL,
            ProtocolCapability.COMMITS_GANGS_WHOLE,
        }
    ),
    check=check,
    check_shared=check_shared,
    tables=TABLES,
    shared_options=OffersSharedOptions,
    describe=describe,
)
