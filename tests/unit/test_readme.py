"""What the README shows works as shown."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from experiments.config import ArmConfig
from schedulers.conformance import check_conformance

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_scheduler_of_the_readme_keeps_the_contract() -> None:
    names: dict[str, object] = {}
    exec(compile(block("python"), "README.md", "exec"), names)
    check_conformance(names["SPEC"])  # type: ignore[arg-type]


def test_the_mix_of_the_readme_is_valid() -> None:
    [arm] = tomllib.loads(block("toml"))["arms"]
    assert ArmConfig.model_validate(arm).shares_permille() == (750, 250)
