"""Protocols are independent of each other, and what they share knows none of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import grimp

from parsync.protocols.registry import BUILT_IN

ROOT = Path(__file__).parents[2]
CONTRACT = "protocols are independent of each other"


def protocols() -> set[str]:
    """The folder, or the module, of every protocol of this project."""
    folders = {path.parent.name for path in (ROOT / "parsync" / "protocols").glob("*/__init__.py")}
    named = {location.removeprefix("parsync.protocols.") for location in BUILT_IN.values()}
    return {f"parsync.protocols.{name}" for name in folders} | {
        f"parsync.protocols.{name.partition(':')[0].partition('.')[0]}" for name in named
    }


def test_the_contract_of_independence_lists_every_protocol() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [contract] = [one for one in contracts if one["name"] == CONTRACT]
    assert contract["type"] == "independence" and set(contract["modules"]) == protocols()


def test_what_protocols_share_imports_none_of_them() -> None:
    graph = grimp.build_graph("parsync", cache_dir=None)
    shared = graph.find_children("parsync.protocols") - protocols()
    assert "parsync.protocols.spec" in shared
    for module in shared:
        found = graph.find_modules_directly_imported_by(module)
        assert not [name for name in found if name.startswith(tuple(protocols()))], module
