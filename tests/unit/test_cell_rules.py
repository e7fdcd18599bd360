"""An arm's quotas and policy of evictions as the report words them."""

from __future__ import annotations

from pathlib import Path

from experiments.config.run_config import load_config
from experiments.report.arms import cell_rules


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


def test_limits_of_schedulers_are_named_in_words() -> None:
    config = load_config(Path("examples/omega/run.toml")).model_dump(mode="json")
    arm = next(arm for arm in config["arms"] if len(arm["groups"]) == 2)
    batch, service = arm["groups"]
    batch["protocol"] |= {"hold_max": 0.25, "jobs_max": 50}
    service["protocol"] |= {"jobs_max": 1}
    assert cell_rules(config, arm["name"]) == [
        f"each scheduler of {batch['name']} holds at most 25 % of the cell, admits at most 50 jobs"
        " at a time",
        f"each scheduler of {service['name']} admits at most 1 job at a time",
    ]
