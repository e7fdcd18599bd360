"""The sync policy of docs/add_a_sync_policy.md, as a package of somebody else: it keeps the
contract, and a mistake in it is told in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.config.run_config import load_config
from parsync.protocols.optimistic import sync as sync_policies
from parsync.protocols.optimistic.sync import SyncContext, SyncFeedback
from parsync.protocols.optimistic.sync_conformance import check_sync_policy
from parsync.runtime.virtual.run import run_virtual
from shared_state.errors import AgoraError
from tests.fixtures.installed import install
from tests.fixtures.overloaded_cell import failing_workload

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "sync_policies"
PAGE = ROOT / "docs" / "add_a_sync_policy.md"
SOURCE = (EXAMPLE / "conflicts_first" / "__init__.py").read_text(encoding="utf-8")


def site_of(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    site.mkdir()
    return site


@pytest.fixture
def spec(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> sync_policies.SyncPolicySpec:
    monkeypatch.syspath_prepend(example_site("sync_policies"))
    monkeypatch.setitem(sys.modules, "conflicts_first", None)  # so that it is gone afterwards
    monkeypatch.delitem(sys.modules, "conflicts_first")
    return sync_policies.get("conflicts_first")


def test_the_page_shows_the_example_whole_and_it_is_short() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert SOURCE in page
    assert len(SOURCE.splitlines()) < 60
    entry_point = (
        '[project.entry-points."agora.sync_policies"]\nconflicts_first = "conflicts_first:SPEC"\n'
    )
    assert entry_point in page and entry_point in (EXAMPLE / "pyproject.toml").read_text()


def test_the_example_keeps_the_contract(spec: sync_policies.SyncPolicySpec) -> None:
    check_sync_policy(spec)
    check_sync_policy(spec, {"extra": 5})


def test_the_example_refreshes_the_partitions_with_most_conflicts_first(
    spec: sync_policies.SyncPolicySpec,
) -> None:
    context = SyncContext(80_000, 8, index=1, agents=4, stream=0)
    policy = sync_policies.make_sync_policy("conflicts_first", {"extra": 2}, context)
    assert policy.partitions(1).tolist() == [3]
    conflicts = np.array([5, 0, 0, 0, 1, 0, 9, 0])
    policy.observe(SyncFeedback(20_000, conflicts, conflicts, conflicts, 0, 0, conflicts))
    assert policy.partitions(2).tolist() == [6, 0, 4]
    none = np.zeros(8, np.int64)
    policy.observe(SyncFeedback(30_000, *[none] * 3, 0, 0, none))
    assert policy.partitions(3).tolist() == [6, 0, 5], "they fade"


# What a newcomer gets wrong, and the line that tells of it.
MISTAKES = {
    "a list of int64": (
        "dtype=np.int32",
        "dtype=np.int64",
        "sync policy 'conflicts_first' of scheduler 'quality-0', synchronisation 1: "
        "partitions: expected int32[n], got int64[1]",
    ),
    "a partition too many": (
        "% of.partitions\n        worst",
        "% of.partitions + 1\n        worst",
        "partitions: expected numbers below 8, got 8",
    ),
    "a misspelt figure": (
        "feedback.conflicts  #",
        "feedback.conflict  #",
        "synchronisation 1: AttributeError: 'SyncFeedback' object has no attribute 'conflict' "
        "(conflicts_first.py, line 27)",
    ),
    "a time as a float": (
        "gap_us // self.context.partitions",
        "gap_us / self.context.partitions",
        "synchronisation 1: due_us: expected an int or None, got a float, 12500.0",
    ),
    "times that stand still": (
        "return k * self.context.gap_us",
        "return 8 * self.context.gap_us",
        "synchronisation 2: due_us: expected a time after 100000, that of 1, got 100000",
    ),
    "a constructor that fails": (
        "self.extra = options.extra",
        "self.extra = options.extras",
        "group 'quality': sync policy 'conflicts_first': cannot make it: ",
    ),
    "a method instead of a flag": (
        "wants_feedback = True",
        "def wants_feedback(self):\n        return True\n",
        "wants_feedback: expected True or False, got a method",
    ),
}


def install_mistaken(site: Path, mistake: str) -> str:
    """Install the example with a mistake; what is said of it."""
    right, wrong, says = MISTAKES[mistake]
    assert SOURCE.count(right) == 1
    files = {"conflicts_first.py": SOURCE.replace(right, wrong)}
    install(site, "conflicts_first", "conflicts_first:SPEC", files, "agora.sync_policies")
    return says


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_policy_that_breaks_a_rule_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    site = site_of(tmp_path)
    says = install_mistaken(site, mistake)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setitem(sys.modules, "conflicts_first", None)  # so that it is gone afterwards
    monkeypatch.delitem(sys.modules, "conflicts_first")
    line = ""
    try:
        spec = load_config(EXAMPLE / "run.toml").arms[0].seeded(3, 1000, 50_000, live=False)
        run_virtual(spec, failing_workload(), 5_000_000, lambda _: None, lambda _: None)
    except AgoraError as error:
        line = str(error)
    assert says in line and "\n" not in line


def test_an_option_that_it_does_not_have_is_named(spec: sync_policies.SyncPolicySpec) -> None:
    with pytest.raises(AgoraError, match="'conflicts_first' has no option 'hot'; its options: ext"):
        spec.parse_options({"hot": 1})
