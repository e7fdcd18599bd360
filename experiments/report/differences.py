"""How an arm's configuration differs from that of the baseline."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.analysis.summary_model import ArmSummary, Settings
from experiments.config.price_settings import prices_of
from schedulers.prices.registry import PriceOptions

NOTHING = "nothing"
_NOT_A_CHOICE = ("name",)
# What an option with this value leaves without effect.
_ONLY_WITH = {
    "protocol.tau_s": ("protocol.strategy", "adaptive"),
    "protocol.average_permille": ("protocol.strategy", "adaptive"),
    "protocol.requeue_s": ("protocol.losers", "requeue"),
    "protocol.attempts_max": ("protocol.losers", "requeue"),
    "protocol.attempts_max_unplaced": ("protocol.losers", "requeue"),
}


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


def _without_prices(group: Settings) -> dict[str, str]:
    """The settings of a group except those of its slot prices, which are told together."""
    return {
        path: value
        for path, value in settings(group)
        if path.removeprefix("options.").split(".")[0] not in PriceOptions.model_fields
    }


def _has_effect(path: str, *groups: dict[str, str]) -> bool:
    chooser, value = _ONLY_WITH[path]
    return any(group.get(chooser) == value for group in groups)


def _value(group: dict[str, str], path: str) -> str:
    return group.get(path, "none").replace("_", " ")
