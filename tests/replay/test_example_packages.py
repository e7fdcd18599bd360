"""The packages of examples/: pip installs each elsewhere, and all have one form."""

from __future__ import annotations

import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.fixtures.installed import pip_install

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGES = ("metrics", "protocols", "schedulers", "slot_prices", "sync_policies", "workloads")


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_they_are_all_the_packages() -> None:
    assert sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml")) == [*PACKAGES]


@pytest.mark.parametrize("folder", PACKAGES)
def test_pip_installs_it_and_leaves_nothing_behind(tmp_path: Path, folder: str) -> None:
    before = files_below(EXAMPLES / folder)
    pip_install(tmp_path, EXAMPLES / folder)
    assert files_below(EXAMPLES / folder) == before
    [package] = distributions(path=[str(tmp_path)])
    assert package.version == "1.0" and package.requires == ["agora"] and package.entry_points
    for point in package.entry_points:
        assert point.group == f"agora.{folder}"
        assert (tmp_path / point.module / "__init__.py").is_file()


def test_their_settings_differ_in_names_only() -> None:
    def form(folder: str) -> dict[str, object]:
        text = (EXAMPLES / folder / "pyproject.toml").read_text(encoding="utf-8")
        tree = tomllib.loads(text)
        [(_, points)] = tree["project"].pop("entry-points").items()
        del tree["project"]["name"]
        assert tree["tool"]["scikit-build"]["wheel"].pop("packages") == [*points]
        return tree

    assert all(form(folder) == form("schedulers") for folder in PACKAGES)
