"""`agora slots`: what it prints, writes and refuses, and the files of settings."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from experiments.commands.slots import app
from experiments.config.slot_settings_file import load_settings, settings_text, with_values
from experiments.studies.slots import phase_figures
from parsync.model.slot_settings import Phase, SchedulerGroup, SlotSettings, SlotWeighting, SyncMode
from parsync.model.slot_simulator import simulate
from parsync.protocols.optimistic.options import StrategyKind
from parsync.protocols.pending_queue import LoserPolicy
from parsync.runtime.command_line import run
from schedulers.interface import PartitionQuality
from tests.unit.slot_cells import small_settings

EXAMPLE = Path("examples/slots.toml")
TWO_GROUPS = small_settings(
    groups=(
        SchedulerGroup(schedulers=3, batch_tasks=10, decision_s=0.01),
        SchedulerGroup(
            schedulers=4, batch_tasks=5, decision_s=0.01, strategy=StrategyKind.LATENCY_FIRST
        ),
    ),
    phases=(
        Phase(duration_s=6.0, rate_per_s=(100.0, 100.0)),
        Phase(duration_s=8.0, rate_per_s=(0.0, 250.0)),
    ),
    sync=SyncMode.DIFF_BLOCK,
    partitions=7,
)


def written(path: Path, settings: SlotSettings) -> Path:
    path.write_text(settings_text(settings))
    return path


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def test_what_it_writes_is_what_the_simulator_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = written(tmp_path / "settings.toml", TWO_GROUPS), tmp_path / "out"
    assert run(app, [str(file), "--out", str(out)]) == 0
    printed = capsys.readouterr()
    found = simulate(TWO_GROUPS)
    assert "7 schedulers (optimistic, latency_first) on 2,000 slots" in printed.out
    assert "preferred" in printed.out and "visible" in printed.out
    assert "0 to 6 s" in printed.out and "6 to 14 s" in printed.out and "group 1" in printed.out
    table = rows(out / "slots.csv")
    causes = ("same_tick_conflicts", "quality_conflicts", "stale_conflicts", "visible_conflicts")
    for name in ("arrived", "claims", "conflicts", *causes, "commits"):
        for group in (0, 1):
            in_file = [int(row[name]) for row in table if row["group"] == str(group)]
            assert in_file == getattr(found, name)[:, group].tolist()
    in_use = [float(row["score_in_use"]) for row in table if row["score_in_use"]]
    best = [float(row["best_score"]) for row in table if row["best_score"]]
    assert in_use and all(one < most for one, most in zip(in_use, best, strict=True))
    empty = [row for row in table if row["commits"] == "0"]
    assert empty, "group 0 offers nothing in the second phase"
    assert all(row["delay_mean_s"] == row["score_mean"] == "" for row in empty)
    assert (out / "slots.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "slots.svg").read_bytes().startswith(b"<?xml")
    assert load_settings(out / "settings.toml") == TWO_GROUPS


def test_figures_of_phases_are_those_of_their_bins() -> None:
    found = simulate(TWO_GROUPS)
    figures = {(one.label, one.group): one for one in phase_figures(TWO_GROUPS, found)}
    first, second = found.between(0, 6), found.between(6, 14)
    for label, bins in (("0 to 6 s", first), ("6 to 14 s", second), ("whole run", slice(None))):
        one = figures[label, None]
        assert one.found.conflict_rate == pytest.approx(found.conflict_rate(bins))
        assert one.delay_mean_s == pytest.approx(found.mean_delay_s(bins))
        assert one.score == pytest.approx(found.mean_score(bins))
        by_group = [figures[label, group] for group in (0, 1)]
        assert one.backlog == sum(part.backlog for part in by_group)
    assert figures["0 to 6 s", None].utilisation == pytest.approx(found.utilisation()[first].mean())
    assert figures["0 to 6 s", 1].delay_p90_s == found.delay_quantile_s(0.9, first, 1)


def test_phases_shorter_than_a_bin_have_no_figures() -> None:
    phases = (Phase(duration_s=0.4, rate_per_s=(100.0,)), Phase(duration_s=0.4, rate_per_s=(0.0,)))
    settings = small_settings(phases=phases)
    first, second, *_ = phase_figures(settings, simulate(settings))
    assert first.found.conflict_rate is not None and second.found.conflict_rate is None
    assert second.backlog == 0


def test_the_default_is_parsync_s_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["--set", "phases.duration_s=5", "--set", "groups.strategy=adaptive"]) == 0
    assert "20 schedulers (adaptive) on 20,000 slots in 1 partition" in capsys.readouterr().out


def test_settings_are_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    for settings in (
        TWO_GROUPS,
        small_settings(
            weighting=SlotWeighting.SCORE,
            quality=PartitionQuality.MEAN_WEIGHT,
            losers=LoserPolicy.REQUEUE,
            horizon_s=77.0,
            freed_at_once=True,
        ),
    ):
        assert load_settings(written(tmp_path / "settings.toml", settings)) == settings


def test_values_are_set_in_every_group() -> None:
    changed = with_values(TWO_GROUPS, ["groups.tau_s=2", "gap_s = 0.25", 'sync="same_block"'])
    assert [group.tau_s for group in changed.groups] == [2.0, 2.0]
    assert (changed.gap_s, changed.sync) == (0.25, SyncMode.SAME_BLOCK)
    assert changed.phases == TWO_GROUPS.phases


def test_the_example_can_be_simulated() -> None:
    settings = load_settings(EXAMPLE)
    settings.to_native()
    assert settings.groups[0].strategy is StrategyKind.QUALITY_FIRST


GROUPS = "[[groups]]\nschedulers = 2\nbatch_tasks = 5\n"
PHASES = "[[phases]]\nduration_s = 5.0\nrate_per_s = [10.0]\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GROUPS, "phases: is missing"),
        (GROUPS.replace("batch_tasks", "batch") + PHASES, "groups.0.batch: unknown field; fields:"),
        (GROUPS.replace("2", "2.5") + PHASES, "groups.0.schedulers: expected a whole number"),
        (GROUPS + PHASES.replace("[10.0]", "10.0"), "phases.0.rate_per_s: expected a list, got"),
        ("groups = 3\n" + PHASES, "groups: expected a list, got 3"),
        ("groups = [3]\n" + PHASES, "groups.0: expected a table, got 3"),
        ("sync = 1\n" + GROUPS + PHASES, "sync: expected one of state_aligned, "),
        ("cut_at_sync = 1\n" + GROUPS + PHASES, "cut_at_sync: expected true or false, got 1"),
        ("gap_s = true\n" + GROUPS + PHASES, "gap_s: expected a number, got true"),
        ("gap_s =\n", "line 1"),
    ],
)
def test_a_bad_file_is_named_with_its_field(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    assert run(app, [str(file)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {file}: ") and says in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gone.toml"], "error: gone.toml: No such file or directory"),
        ([str(EXAMPLE), "--scale", "paper"], "error: --scale: has no effect with FILE"),
        (["--set", "gap_s"], "error: --set gap_s: expected FIELD=VALUE"),
        (["--set", "gap=1"], "error: --set gap=1: gap: unknown field; fields: groups, phases, "),
        (["--set", "groups.gap_s=1"], "error: --set groups.gap_s=1: groups.gap_s: unknown field"),
        (["--set", "gap_s=soon"], 'error: --set gap_s=soon: gap_s: expected a number, got "soon"'),
        (["--set", "sync=daily"], "error: --set sync=daily: sync: expected one of state_aligned"),
        (["--set", "gap_s=0"], "error: gap_s: expected "),
        (["--set", "gap_s=inf"], "error: gap_s: expected "),
        (["--set", "sync=diff_block"], "error: partitions: expected at least 20, one for each"),
        (["--out", "tests"], "error: --out tests: already exists; choose another name"),
    ],
)
def test_bad_options_are_named(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(app, arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(says)


def test_control_bytes_of_a_file_are_escaped_in_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('"\\u001b[31mq" = 2\n')
    assert run(app, [str(file)]) == 2
    assert "\\x1b[31mq: unknown field" in (error := capsys.readouterr().err)
    assert error.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("slots = 1".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        (gzip.compress(b"slots = 1", mtime=0), "is compressed with gzip; unpack it first"),
        (b"slots = 1 # \xff", "is not UTF-8 text"),
    ],
    ids=["UTF-16", "gzip", "neither"],
)
def test_a_file_that_is_no_text_is_refused_with_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(content)
    assert run(app, [str(file)]) == 2
    assert capsys.readouterr().err == f"error: {file}: {says}\n"
