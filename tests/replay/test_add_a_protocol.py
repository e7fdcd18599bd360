"""docs/add_a_protocol.md and its example: a protocol in a package of its own, installed and run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.analysis.run_directory import read_summary
from experiments.commands.replay import app as replay_app
from experiments.commands.run import app
from parsync.protocols import registry
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.fixtures.installed import install
from tests.fixtures.run_toml import short_run_toml

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "protocols"
SOURCE = (EXAMPLE / "lottery" / "__init__.py").read_text(encoding="utf-8")
CONFIG = (
    short_run_toml(70, message_us=200)
    + """
[[arms]]
name = "lottery beside ParSync"
partitions = 4

[[arms.groups]]
name = "lottery"
count = 2
protocol = { kind = "lottery" }
decision = { clock = "modelled", task_us = 100.0 }

[[arms.groups]]
name = "parsync"
kind = "random"
count = 2
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05 }
decision = { clock = "modelled", task_us = 100.0 }
"""
)
Run = Callable[[], int]


@pytest.fixture(autouse=True)
def _forget_the_example() -> Iterator[None]:
    """Another test may install another module of that name."""
    yield
    sys.modules.pop("lottery", None)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "run.toml").write_text(CONFIG, encoding="utf-8")

    def run() -> int:
        return exit_status(app, "--config", tmp_path / "run.toml", "--out", tmp_path / "run")

    return run


def test_the_page_shows_the_example_whole_and_it_is_short() -> None:
    page = (ROOT / "docs" / "add_a_protocol.md").read_text(encoding="utf-8")
    assert SOURCE in page
    assert len(SOURCE.splitlines()) < 60
    entry_point = '[project.entry-points."agora.protocols"]\nlottery = "lottery:SPEC"\n'
    assert entry_point in page and entry_point in (EXAMPLE / "pyproject.toml").read_text()


@pytest.mark.usefixtures("no_figures")
def test_the_example_shares_a_cell_with_parsync_and_is_replayed(
    run: Run,
    tmp_path: Path,
    example_site: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(example_site("protocols"))
    assert run() == 0
    [arm] = read_summary(tmp_path / "run").arms
    assert arm.totals.committed == arm.totals.submitted > 100
    assert exit_status(replay_app, tmp_path / "run") == 0


MISTAKES = {
    "the kind of an event": (
        'kind: ClassVar[str] = "lottery"\n    number: ClassVar[int] = 2',
        'kind: ClassVar[str] = "raffle"\n    number: ClassVar[int] = 2',
        "protocol 'lottery': lottery:SPEC: events: Drawn.kind: expected 'lottery'",
    ),
    "two events with one number": (
        "number: ClassVar[int] = 2",
        "number: ClassVar[int] = 1",
        "events: Ask and Drawn have the same number, 1",
    ),
    "an address that does not exist": (
        "Send(event.agent,",
        "Send(event.agent + 90,",
        "which no participant has",
    ),
}


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(
    mistake: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right, wrong, says = MISTAKES[mistake]
    assert SOURCE.count(right) == 1
    site, module = tmp_path / "site", f"lottery_{len(mistake)}"
    files = {f"{module}.py": SOURCE.replace(right, wrong)}
    install(site, "lottery", f"{module}:SPEC", files, "agora.protocols")
    monkeypatch.syspath_prepend(site)
    assert run() == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert says.replace("lottery:SPEC", f"{module}:SPEC") in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["--quick", "--runtime", "virtual"],
        ["--mix", "lottery=2"],
        ["--mix", "random=2"],
        ["--mix", "latency_first=2"],
    ],
)
def test_two_protocols_of_one_name_are_one_line_for_presets_and_mixes(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in ("one", "two"):
        site = tmp_path / module
        name = f"twin_lottery_{module}"
        install(site, "lottery", f"{name}:SPEC", {f"{name}.py": SOURCE}, "agora.protocols")
        (site / "lottery-1.0.dist-info").rename(site / f"{module}-1.0.dist-info")
        monkeypatch.syspath_prepend(site)
    assert exit_status(app, *arguments, "--out", tmp_path / "run") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "protocol 'lottery' is registered twice: twin_lottery_" in line
    assert not (tmp_path / "run").exists()


def test_a_mix_lists_the_protocols_that_stand_alone(
    tmp_path: Path,
    example_site: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(example_site("protocols"))
    for mix, says in (
        ("nope=3", "or a protocol that runs no schedulers (lottery)"),
        ("lottery:=3", "'lottery:=3' is not of the form [protocol:]kind=count"),
    ):
        assert exit_status(app, "--mix", mix, "--out", tmp_path / "run") == 2
        assert says in capsys.readouterr().err


def test_unknown_protocols_and_options_are_named(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AgoraError, match="unknown protocol 'lottery'; known: locking, optimistic"):
        registry.get("lottery")
    monkeypatch.syspath_prepend(example_site("protocols"))
    with pytest.raises(AgoraError, match="protocol 'lottery' has no option 'price'"):
        registry.get("lottery").parse_options({"price": 3})
