"""The slot prices of docs/add_slot_prices.md, as a package of somebody else: they keep the
contract, a scheduler uses them, and a mistake in them is told in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.config.run_config import load_config
from parsync.runtime.virtual.run import run_virtual
from schedulers.prices import registry
from schedulers.prices.conformance import check_estimator
from shared_state.errors import AgoraError
from tests.fixtures.installed import install
from tests.fixtures.overloaded_cell import failing_workload
from tests.price_world import PriceWorld

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "slot_prices"
PAGE = ROOT / "docs" / "add_slot_prices.md"
SOURCE = (EXAMPLE / "contested" / "__init__.py").read_text(encoding="utf-8")


@pytest.fixture
def spec(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> registry.SlotPriceSpec:
    monkeypatch.syspath_prepend(example_site("slot_prices"))
    monkeypatch.delitem(sys.modules, "contested", raising=False)
    return registry.get("contested")


def test_the_page_shows_the_example_whole_and_it_is_short() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert SOURCE in page
    assert len(SOURCE.splitlines()) < 40
    entry_point = '[project.entry-points."agora.slot_prices"]\ncontested = "contested:SPEC"\n'
    assert entry_point in page and entry_point in (EXAMPLE / "pyproject.toml").read_text()


def test_the_example_keeps_the_contract(spec: registry.SlotPriceSpec) -> None:
    check_estimator(spec)
    check_estimator(spec, {"full_permille": 900})
    with pytest.raises(AgoraError, match="'contested', option 'full_permille'"):
        spec.parse_options({"full_permille": 0})


def test_the_example_prices_what_more_tasks_prefer_than_fit(spec: registry.SlotPriceSpec) -> None:
    # Eight slots are busy. Three of four tasks want machine 0, which holds four; one of four wants
    # machine 1: six and two Erlang.
    world = PriceWorld("contested", [4, 4, 8], [(100, {0: 0}), (100, {1: 0})])
    world.occupy([2], [8])
    world.offer([1, 1, 1, 2])
    assert world.price() == [[100], [0], [0]]
    world = PriceWorld("contested", [4, 4, 8], [(100, {0: 0}), (100, {1: 0})], full_permille=500)
    world.occupy([2], [8])
    world.offer([1, 1, 1, 2])
    assert world.price() == [[100], [100], [0]]


def test_the_example_configuration_uses_them(spec: registry.SlotPriceSpec) -> None:
    config = load_config(EXAMPLE / "run.toml")
    options = [arm.groups[0].options for arm in config.arms]
    assert [one.get("prices") for one in options] == ["contested", "implied", None]


# What a newcomer gets wrong, and the line that tells of it.
MISTAKES = {
    "a negative price": (
        "contested, gain, 0)",
        "contested, gain, -1)",
        "slot prices 'contested': price: expected 0 or more, got -1",
    ),
    "prices as floats": (
        "gain, 0)[:, None]",
        "gain, 0.5)[:, None]",
        "slot prices 'contested': price: expected int64[60, 1], got float64[60, 1]",
    ),
    "prices without columns": (
        "[:, None], gain)",
        ", gain)",
        "slot prices 'contested': price: expected int64[60, 1], got int64[60]",
    ),
    "a misspelt figure": (
        "self.demand.gain()",
        "self.demand.gains()",
        "AttributeError: 'OfferedDemand' object has no attribute 'gains'",
    ),
    "a constructor that fails": (
        "self.full_permille = options.full_permille",
        "self.full_permille = options.full",
        "'Options' object has no attribute 'full'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_prices_that_break_a_rule_are_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    right, wrong, says = MISTAKES[mistake]
    assert SOURCE.count(right) == 1
    files = {"contested.py": SOURCE.replace(right, wrong)}
    install(tmp_path, "contested", "contested:SPEC", files, "agora.slot_prices")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "contested", raising=False)
    line = ""
    try:
        spec = load_config(EXAMPLE / "run.toml").arms[0].seeded(3, 1000, 50_000, live=False)
        run_virtual(spec, failing_workload(), 5_000_000, lambda _: None, lambda _: None)
    except AgoraError as error:
        line = str(error)
    assert says in line and "greedy" in line and "\n" not in line
