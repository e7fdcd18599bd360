"""What the documents show works as shown."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from experiments.arm_config import ArmConfig
from schedulers.conformance import check_conformance

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))


def block(page: str, language: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def run(page: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(block(page, "python"), page, "exec"), names)
    return names


def test_the_example_of_a_scheduler_keeps_the_contract() -> None:
    check_conformance(run("add_a_scheduler.md")["SPEC"])  # type: ignore[arg-type]


def test_the_example_of_the_solver_runs() -> None:
    assert run("solver.md")["solution"].cost == 11  # type: ignore[attr-defined]


def test_the_example_of_a_mix_is_valid() -> None:
    [arm] = tomllib.loads(block("run.md", "toml"))["arms"]
    assert ArmConfig.model_validate(arm).shares_permille() == (750, 250)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_lines_are_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (page.parent / target).exists(), target
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
    prose = [line for line in prose if not line.startswith("|")]
    assert [line for line in prose if len(line) > 100] == []


def test_first_pages_are_short() -> None:
    """One screen of README, two of ARCHITECTURE: what is longer is a page of docs/."""
    for page, screens in (("README.md", 1), ("ARCHITECTURE.md", 2)):
        assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= 50 * screens
