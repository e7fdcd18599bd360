"""An arm in words: its groups, how it differs from the baseline, what its schedulers may take of
the cell, how much they can decide, and what its clock includes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.analysis.summary_model import ArmSummary, Settings
from experiments.config.price_settings import prices_of
from experiments.report.answer import effective_capacity, times
from parsync.metrics.quantity import counted, duration
from parsync.protocols.optimistic.options import StrategyKind
from parsync.spec.arm import kept_choice
from schedulers.prices.registry import PriceOptions

NOTHING = "nothing"
_NOT_A_CHOICE = ("name",)
# Options that have an effect only where another one, if the protocol has it, has this value.
_ONLY_WITH = {
    "protocol.tau_s": ("protocol.strategy", "adaptive"),
    "protocol.average_permille": ("protocol.strategy", "adaptive"),
    "protocol.requeue_s": ("protocol.losers", "requeue"),
    "protocol.attempts_max": ("protocol.losers", "requeue"),
    "protocol.attempts_max_unplaced": ("protocol.losers", "requeue"),
}


def described(group: Settings) -> str:
    """A scheduler group in a few words: how many, of which kind, with which strategy and prices;
    the rest is in the details below."""
    words = [str(group[name]) for name in ("count", "kind") if group.get(name) not in ("", None)]
    text = " ".join(words or [str(group.get("name", ""))]).replace("_", " ")
    choice = kept_choice(group.get("protocol"))
    strategy = None if choice is None else choice.described.get("strategy")
    if strategy not in (None, StrategyKind.OPTIMISTIC):
        text += f", {strategy}".replace("_", " ")
    return "; ".join(part for part in (text, prices_of(group.get("options"))) if part)


def settings(group: Settings) -> Iterator[tuple[str, str]]:
    """All settings of a scheduler group as (path, value)."""
    for name, value in group.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", text) for inner, text in settings(value))
        elif value is not None:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def differences(arm: ArmSummary, baseline: ArmSummary) -> str:
    """What the arm has instead of the baseline's, in words; NOTHING if they are alike."""
    if len(arm.mix) != len(baseline.mix):
        names = ", ".join(f"{group.get('count')} {group.get('name')}" for group in arm.mix)
        return f"its groups of schedulers: {names}"
    parts = []
    for mine, theirs in zip(arm.mix, baseline.mix, strict=True):
        ours, others = _without_prices(mine), _without_prices(theirs)
        for path in dict.fromkeys([*ours, *others]):
            if path in _NOT_A_CHOICE or ours.get(path) == others.get(path):
                continue
            if path in _ONLY_WITH and not _has_effect(path, ours, others):
                continue
            label = path.removeprefix("protocol.").removeprefix("decision.").replace("_", " ")
            parts.append(f"{label} {_value(ours, path)} (not {_value(others, path)})")
        its, other = (prices_of(group.get("options")) for group in (mine, theirs))
        if its != other:
            parts.append(f"{its or 'no prices'} (not {other or 'none'})")
    return ", ".join(parts) or NOTHING


def differs(arm: ArmSummary, baseline: ArmSummary | None) -> str:
    """In what an arm differs from the baseline, as a clause; "" for the baseline itself."""
    if baseline is None or arm is baseline:
        return ""
    return f"differs from {baseline.name} in {differences(arm, baseline)}"


def _without_prices(group: Settings) -> dict[str, str]:
    """The settings of a group except those of its slot prices, which are told together."""
    return {
        path: value
        for path, value in settings(group)
        if path.removeprefix("options.").split(".")[0] not in PriceOptions.model_fields
    }


def _has_effect(path: str, *groups: dict[str, str]) -> bool:
    chooser, value = _ONLY_WITH[path]
    return any(path in group and group.get(chooser, value) == value for group in groups)


def _value(group: dict[str, str], path: str) -> str:
    return group.get(path, "none").replace("_", " ")


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


def capacity_text(arm: ArmSummary) -> str:
    """How much the arm's groups can decide, and how much they did, over what arrives at 100 %
    load."""
    parts = []
    for capacity in arm.decision_capacity:
        low, high = f"{capacity.low:.3g}", f"{capacity.high:.3g}"
        name = f"{capacity.group.replace('_', ' ')}: " if len(arm.mix) > 1 else ""
        its = "its share of the arrivals" if len(arm.mix) > 1 else "the arrival rate"
        parts.append(
            f"{name}decides {low if low == high else f'{low} to {high}'} × {its} at 100 % load"
        )
    effective = effective_capacity(arm)
    if effective is not None:
        parts.append(f"effective capacity {times(effective)} times the arrivals")
    return "; ".join(parts)


def clock_text(notes: Settings) -> str:
    """The notes on an arm's clock: names ending in _us and _s are durations, in _share parts of the
    delay."""
    parts = []
    for name, value in notes.items():
        if value is None or value == []:
            continue
        stem, _, unit = name.rpartition("_")
        if isinstance(value, bool):
            parts.append(f"{'' if value else 'not '}{name.replace('_', ' ')}")
        elif isinstance(value, int | float) and unit == "us":
            parts.append(f"{stem.replace('_', ' ')} {duration(value)}")
        elif isinstance(value, int | float) and unit == "share":
            parts.append(f"{stem.replace('_', ' ')} {100 * value:.1f} % of the delay")
        elif isinstance(value, int | float) and unit == "s" and stem:
            parts.append(f"{stem.replace('_', ' ')} {value:.3g} s")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"
            parts.append(f"{name.replace('_', ' ')} {text}")
    return "; ".join(parts) or "exact"
