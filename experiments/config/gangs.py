"""The line about gangs that a run begins with: how many there are, and which arms may tear them."""

from __future__ import annotations

from experiments.config.run_config import RunConfig
from parsync.metrics.quantity import counted
from parsync.protocols.spec import ProtocolCapability
from parsync.spec.arm import ArmConfig, GroupConfig
from parsync.workload.workload import TaskGangs, Workload


def tears_gangs(arm: ArmConfig) -> str:
    """Why an arm may tear gangs, such as `commit_mode = "incremental"`; "" if it may not."""
    return ", ".join(dict.fromkeys(filter(None, map(_tears, arm.groups))))


def _tears(group: GroupConfig) -> str:
    if ProtocolCapability.COMMITS_GANGS_WHOLE in group.protocol.capabilities:
        return ""
    return group.protocol.described.get("gangs", f"protocol {group.protocol.kind!r}")


def gangs_announced(config: RunConfig, workload: Workload) -> str:
    """How many gangs the workload has, and which arms may tear them, in one line; "" if it has
    none.

    Args:
        config: Of the run, settled with its workload.
        workload: What it runs.
    """
    gangs = TaskGangs.of(workload)
    if gangs is None:
        return ""
    reasons: dict[str, list[str]] = {}
    for arm in config.arms:
        reasons.setdefault(tears_gangs(arm), []).append(f"'{arm.name}'")
    whole = reasons.pop("", [])
    if not reasons:
        return f"{counted(len(gangs), 'gang')}: placed whole or not at all."
    by_reason = "; ".join(f"{', '.join(arms)} ({reason})" for reason, arms in reasons.items())
    others = " The other arms place them whole or not at all." if whole else ""
    return f"{counted(len(gangs), 'gang')} may be torn by {by_reason}.{others}"
