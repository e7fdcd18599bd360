"""An arm's quotas and policy of evictions as the report words them."""

from __future__ import annotations

from pathlib import Path

from experiments.config import load_config
from experiments.report.cell_rules import cell_rules


def test_quotas_are_named_in_words() -> None:
    config = load_config(Path("examples/quotas.toml")).model_dump(mode="json")
    assert cell_rules(config, "quotas") == [
        "quotas: ads (30-60 %), search (from 20 %, weight 2), batch (up to 80 %)"
    ]
    assert cell_rules(config, "no quotas") == cell_rules(config, "unknown") == []
    config["arms"][0] |= {"evictions": "lower_priority"}
    config["arms"][0]["quotas"]["reclaim_after_s"] = 0.5
    quotas, evictions = cell_rules(config, "quotas")
    assert quotas.endswith("batch (up to 80 %); tasks above a grant end after 0.5 s")
    assert evictions == "evicts tasks of lower priority, of any scheduler"
