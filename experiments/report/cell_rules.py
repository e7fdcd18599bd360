"""What an arm's schedulers may take of the cell and whom they may evict, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parsync.metrics.quantity import counted
from parsync.spec.arm import kept_choice


def cell_rules(config: Mapping[str, Any], name: str) -> list[str]:
    """The quotas of an arm, the limits of its schedulers and its policy of evictions; none of those
    that every arm has.

    Args:
        config: Of the run, as its summary keeps it.
        name: The arm's.
    """
    arms: list[Mapping[str, Any]] = [arm for arm in config.get("arms", ()) if arm["name"] == name]
    arm = arms[0] if arms else {}
    rules = []
    if quotas := arm.get("quotas"):
        groups = ", ".join(_group(group) for group in quotas["groups"])
        after_s = quotas.get("reclaim_after_s")
        reclaims = "" if after_s is None else f"; tasks above a grant end after {after_s:g} s"
        rules.append(f"quotas: {groups}{reclaims}")
    rules += [rule for group in arm.get("groups", ()) if (rule := _limits(group))]
    if arm.get("evictions", "own") != "own":
        rules.append("evicts tasks of lower priority, of any scheduler")
    return rules


def _limits(group: Mapping[str, Any]) -> str:
    """What each scheduler of a group limits itself to, "" if to nothing: e.g. `each scheduler
    of batch holds at most 25 % of the cell, admits at most 50 jobs at a time`."""
    choice = kept_choice(group["protocol"])
    if choice is None:
        return ""
    hold, jobs = choice.reach.limits.hold_permille, choice.reach.limits.jobs_max
    said = [
        "" if hold is None else f"holds at most {hold / 10:g} % of the cell",
        "" if jobs is None else f"admits at most {counted(jobs, 'job')} at a time",
    ]
    limits = ", ".join(filter(None, said))
    return f"each scheduler of {group['name']} {limits}" if limits else ""


def _group(group: Mapping[str, Any]) -> str:
    """E.g. `ads (30-60 %)`, `batch (up to 80 %, weight 2)`."""
    least, most = round(group["minimum"] * 100, 1), round(group["maximum"] * 100, 1)
    share = f"{least:g}-{most:g} %" if least and most < 100 else ""
    if not share and least:
        share = f"from {least:g} %"
    if not share and most < 100:
        share = f"up to {most:g} %"
    weight = f"weight {group['weight']}" if group["weight"] != 1 else ""
    said = ", ".join(part for part in (share, weight) if part)
    return f"{group['name']} ({said})" if said else str(group["name"])
