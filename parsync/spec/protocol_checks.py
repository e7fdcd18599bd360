"""Whether the groups of an arm can share it, as far as their protocols have a say."""

from __future__ import annotations

from collections.abc import Set

from parsync.core.quotas import QuotaSpec
from parsync.protocols import registry as protocols
from parsync.protocols.capability import ProtocolCapability
from parsync.protocols.tables import tables_of
from parsync.runtime.arm_spec import ArmSpec, GroupSpec, capabilities_of, members_of
from schedulers.capability import Capability
from shared_state.errors import AgoraError
from shared_state.transaction import EvictionPolicy


def check_protocols(arm: ArmSpec) -> None:
    """Raise AgoraError if the groups of an arm cannot share it, as their protocols say, if there
    are options of a protocol that no group uses, or if a protocol asks for what is unknown or what
    it cannot have."""
    for kind in arm.shared_options:
        if kind not in arm.protocols:
            raise AgoraError(f"options of protocol {kind!r}, which no group of the arm uses")
    for group in arm.groups:
        capabilities = capabilities_of(group)
        if (
            Capability.SHARES_DEMAND in group.capabilities
            and ProtocolCapability.PASSES_DEMAND not in capabilities
        ):
            raise AgoraError(
                f"group '{group.name}': share_demand: protocol {group.protocol.kind!r} does not "
                "pass demand on"
            )
        if Capability.PREEMPTS in group.capabilities:
            _check_preemption(arm, group, capabilities)
        watches = ProtocolCapability.WATCHES_CELL in capabilities
        spec, members = protocols.get(group.protocol.kind), members_of(arm, group.protocol.kind)
        if not spec.has_cell_side(members) and watches:
            raise AgoraError(
                f"protocol {group.protocol.kind!r}: {ProtocolCapability.WATCHES_CELL}: needs a "
                "participant beside the master (cell_side)"
            )
    if arm.quotas is not None:
        _check_quotas(arm, arm.quotas)
    for kind in arm.protocols:
        arm.options_of(kind)
        protocols.get(kind).check(members_of(arm, kind), arm.partitions)
    tables_of(arm.protocols)


def _check_preemption(
    arm: ArmSpec, group: GroupSpec, capabilities: Set[ProtocolCapability]
) -> None:
    """Raise AgoraError if a group of schedulers that preempt cannot do so."""
    if arm.evictions is not EvictionPolicy.LOWER_PRIORITY:
        raise AgoraError(
            f"group '{group.name}': a scheduler of kind {group.kind!r} preempts tasks of other "
            'schedulers: expected evictions = "lower_priority" in the arm'
        )
    if ProtocolCapability.SHOWS_RUNNING not in capabilities:
        raise AgoraError(
            f"group '{group.name}': a scheduler of kind {group.kind!r} preempts, and protocol "
            f"{group.protocol.kind!r} does not show it the running tasks"
        )


def _check_quotas(arm: ArmSpec, quotas: QuotaSpec) -> None:
    """Raise AgoraError if the quota groups make no sense, or a group of schedulers cannot obey."""
    quotas.check()
    for group in arm.groups:
        if ProtocolCapability.OBEYS_QUOTAS not in capabilities_of(group):
            raise AgoraError(
                f"group '{group.name}': quotas: protocol {group.protocol.kind!r} with these "
                "options does not obey them"
            )
        if Capability.KEEPS_PENDING in group.capabilities:
            raise AgoraError(
                f"group '{group.name}': quotas: a scheduler of kind {group.kind!r} with these "
                "options keeps the tasks that wait, so it may place them when their quota group "
                "has lost its room"
            )
