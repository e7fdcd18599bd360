"""The slot prices of an arm, in words: kind, mode, weight, scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.toml_text import toml_value
from parsync.spec.arm import ArmConfig
from schedulers.prices.registry import NONE, ONE_PERMILLE, PriceMode, PriceScope

NOT_RANKED_BY_REGRET = "regret looks one batch ahead, and prices look further"
REGRET_OF_PRICED_ARMS = (
    "Slot prices only steer placements: all figures rest on the workload's own costs. Regret looks "
    "one batch ahead, so prices may raise it while they lower the cost of all that comes later."
)


def prices_of(options: object) -> str:
    """The prices that a scheduler's options ask for, such as "implied prices: tie, all"; "" if it
    uses none."""
    if not isinstance(options, Mapping):
        return ""
    kind = options.get("prices", NONE)
    if not isinstance(kind, str) or kind == NONE:
        return ""
    mode = str(options.get("price_mode", PriceMode.TIE.value))
    weight = options.get("price_weight_permille", ONE_PERMILLE)
    if mode == PriceMode.PAID and isinstance(weight, int) and weight != ONE_PERMILLE:
        mode += f" at weight {weight / ONE_PERMILLE:g}"
    scope = str(options.get("price_scope", PriceScope.ALL.value))
    its = options.get("price_options")
    more = [f"{name} = {toml_value(value)}" for name, value in its.items()] if its else []
    brackets = f" ({', '.join(more)})" if more else ""
    shared = "; demand shared" if options.get("share_demand") is True else ""
    return f"{kind} prices{brackets}: {mode}, {scope}{shared}"


def prices_of_arm(arm: ArmConfig) -> str:
    """The prices of an arm's groups of schedulers, as prices_of_groups."""
    return prices_of_groups([group.model_dump() for group in arm.groups])


def prices_of_groups(groups: Sequence[Mapping[str, Any]]) -> str:
    """The prices of an arm's groups of schedulers; "" if none uses any. Where groups differ, each
    one with prices is named."""
    by_name = {str(group.get("name")): prices_of(group.get("options")) for group in groups}
    texts = set(by_name.values())
    if len(texts) == 1:
        return texts.pop()
    return "; ".join(f"{name}: {text}" for name, text in by_name.items() if text)
