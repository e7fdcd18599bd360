"""Tables of measurements that a protocol declares: recorded, written, described, read and replayed
as those of every run are."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.analysis.run_directory import read_summary
from experiments.command_line import run_command
from experiments.commands.run import app
from experiments.config.run_config import load_config
from parsync.core.codec import CORE
from parsync.core.effects import Effect
from parsync.metrics import registry as metrics
from parsync.metrics.conformance import check_metric
from parsync.metrics.record import Record
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from parsync.metrics.tables import SCHEMAS, measured_tables, wrong_tables
from parsync.protocols import registry
from parsync.protocols.registry import tables_of
from parsync.runtime.arm_directory import write_assembly
from parsync.runtime.live.logs import Recorder, records_log
from parsync.runtime.live.logs import read_records as read_log
from parsync.runtime.live.plan import CELL, RunPlan
from parsync.runtime.live.replay import replay
from parsync.runtime.records import merge_parts, read_records, record_files
from parsync.schema import Column, TableSchema
from shared_state.errors import AgoraError
from tests.fixtures.fake_ray import FakeRay
from tests.fixtures.installed import install
from tests.fixtures.live_runs import small_workload
from tests.fixtures.run_toml import short_run_toml
from tests.unit.record_factory import PHASES

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "protocols" / "lottery"
LOTTERY = (EXAMPLE / "__init__.py").read_text(encoding="utf-8")
DECLARED = """
from parsync.metrics.record import Record
from parsync.schema import Column, TableSchema

DRAWS = TableSchema(
    "One row per draw of the lottery.",
    {
        "at_us": Column("int64", "us", "when"),
        "agent": Column("int32", "id", "the scheduler that asked"),
        "tickets": Column("int64", "tasks", "tasks it drew for"),
        "whole": Column("int8", "code", "whether every ticket won", {0: "no", 1: "yes"}),
    },
)
"""
DRAWN = """
        draw = {"at_us": [now_us], "agent": [event.agent], "tickets": [event.tickets], "whole": [1]}
        recorded = Record("draws", draw)
        return [recorded, Send"""
METRIC = """
from parsync.metrics.metric import Counters, Metric
from parsync.metrics.quantity import Better, Count, Figures, Unit, quantity
from recording_lottery import DRAWS


class DrawFigures(Figures):
    tickets_drawn: Count = quantity("Tickets", Unit.COUNT, Better.NEITHER, "Tickets drawn.")
    draws_kept: Count = quantity("Draws", Unit.COUNT, Better.NEITHER, "Draws.")


class Draws(Metric):
    kind = "draws"
    description = "What was drawn."
    figures_model = DrawFigures
    tables = {"draws": DRAWS}
    reads = {"draws": ("agent", "at_us", "tickets")}
    keeps = {"draws": ("at_us", "agent")}

    def __init__(self, run):
        super().__init__(run)
        self.count = Counters(("tickets",), run)

    def fold(self, batch):
        self.count.add("tickets", batch["agent"], batch.slot("at_us"), batch["tickets"])

    def figures(self, scope):
        _, inside = scope.rows("draws")
        drawn = scope.sum(self.count["tickets"])
        return DrawFigures(tickets_drawn=drawn, draws_kept=int(inside.sum()))
"""
CONFIG = (
    short_run_toml(70)
    + """
[[arms]]
name = "lottery"
partitions = 4

[[arms.groups]]
name = "lottery"
count = 2
protocol = { kind = "lottery" }
decision = { clock = "modelled", task_us = 100.0 }

[[arms]]
name = "ParSync"
partitions = 4

[[arms.groups]]
name = "parsync"
kind = "random"
count = 2
protocol = { kind = "optimistic", sync = "diff_block", gap_s = 0.05 }
decision = { clock = "modelled", task_us = 100.0 }
"""
)
ONE = TableSchema("Rows.", {"at_us": Column("int64", "us", "when")})


def recording_lottery() -> str:
    """The example protocol with a table of its own."""
    source = LOTTERY.replace("@dataclass", f"{DECLARED}\n\n@dataclass", 1)
    source = source.replace(
        "\n        return [Send(event.agent, Drawn", f"{DRAWN}(event.agent, Drawn"
    )
    source = source.replace("events=(Ask, Drawn))", 'events=(Ask, Drawn), tables={"draws": DRAWS})')
    assert 'Record("draws"' in source and "tables=" in source
    return source


@pytest.fixture(autouse=True)
def _without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time of a small run."""
    monkeypatch.setattr("experiments.figures.FIGURES", ())


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with the protocol installed."""
    folder = tmp_path / "site"
    files = {"recording_lottery.py": recording_lottery()}
    install(folder, "lottery", "recording_lottery:SPEC", files, "agora.protocols")
    monkeypatch.syspath_prepend(folder)
    yield folder
    for module in ("recording_lottery", "draws_metric"):
        sys.modules.pop(module, None)


def install_metric(folder: Path) -> None:
    files = {"draws_metric.py": METRIC}
    install(folder, "draws", "draws_metric:Draws", files, "agora.metrics")


def run(folder: Path, config: str = CONFIG) -> int:
    (folder / "run.toml").write_text(config, encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        run_command(app, ["--config", str(folder / "run.toml"), "--out", str(folder / "run")])
    return int(left.value.code or 0)


def test_a_run_writes_the_table_and_its_meaning(site: Path, tmp_path: Path) -> None:
    assert run(tmp_path) == 0
    arm = tmp_path / "run" / "arms" / "lottery"
    path = arm / "draws.parquet"
    table = pq.read_table(path)
    assert table.num_rows > 10 and set(table["agent"].to_pylist()) == {0, 1}
    schema = pq.read_schema(path)
    assert schema.metadata[b"rows"] == b"One row per draw of the lottery."
    assert schema.field("tickets").metadata[b"unit"] == b"tasks"
    assert json.loads(schema.field("whole").metadata[b"codes"]) == {"0": "no", "1": "yes"}
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "One row per draw of the lottery." in page, "the data dictionary"

    tables = tables_of(["lottery"])
    files = record_files(arm, tables)
    assert files["draws"] == [path]
    rows = [rows for name, rows in read_records(files, tables) if name == "draws"]
    tickets = np.concatenate([batch["tickets"] for batch in rows])
    assert tickets.dtype == np.int64 and tickets.tolist() == table["tickets"].to_pylist()
    assert not (tmp_path / "run" / "arms" / "parsync" / "draws.parquet").exists()


def test_a_metric_reads_it_also_in_arms_without_the_protocol(site: Path, tmp_path: Path) -> None:
    install_metric(site)
    check_metric(metrics.get("draws"))
    assert run(tmp_path) == 0
    lottery, parsync = read_summary(tmp_path / "run").arms
    drawn = pq.read_table(tmp_path / "run" / "arms" / "lottery" / "draws.parquet")
    assert 0 < (lottery.overall.value("draws_kept") or 0) <= drawn.num_rows
    assert 0 < (lottery.overall.value("tickets_drawn") or 0) <= sum(drawn["tickets"].to_pylist())
    assert parsync.overall.value("tickets_drawn") == parsync.overall.value("draws_kept") == 0


def test_a_metric_may_not_read_a_table_that_nobody_declares(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = METRIC.replace('    tables = {"draws": DRAWS}\n', "")
    files = {"draws_metric.py": source}
    install(site, "draws", "draws_metric:Draws", files, "agora.metrics")
    assert run(tmp_path) == 2
    assert (
        "metric 'draws': draws_metric:Draws: reads: expected tables of" in capsys.readouterr().err
    )
    assert not (tmp_path / "run").exists()


def test_a_metric_of_another_version_of_the_table_is_refused_before_the_run(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = "{**DRAWS.columns, 'won': DRAWS.columns['tickets']}"
    other = f"from parsync.schema import TableSchema\nDRAWS = TableSchema('Rows.', {columns})\n"
    source = METRIC.replace("import DRAWS\n", f"import DRAWS\n{other}", 1)
    source = source.replace('"tickets")}', '"tickets", "won")}')
    files = {"draws_metric.py": source}
    install(site, "draws", "draws_metric:Draws", files, "agora.metrics")
    assert run(tmp_path) == 2
    [line] = capsys.readouterr().err.strip().splitlines()[-1:]
    assert "arm 'lottery': metric 'draws': table 'draws' has no column 'won'; it has at_us" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('Record("draws", draw)', 'Record("drawings", draw)', "table 'drawings': not a table of"),
        ('"tickets": [event.tickets], ', "", "table 'draws': a batch of rows has no column 'ti"),
        ('"tickets": [event.tickets]', '"tickets": []', "table 'draws': its columns differ in len"),
        ('tables={"draws"', 'tables={"tasks"', "tables: 'tasks' is a table of every run already"),
        ('tables={"draws"', 'tables={"A/B"', "tables: expected names of lower-case letters, digit"),
        (
            'Column("int64", "us"',
            'Column("text", "us"',
            "tables: draws: column 'at_us': expected a",
        ),
    ],
)
def test_a_mistake_is_one_line(
    right: str,
    wrong: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = recording_lottery()
    assert right in source
    module = f"lottery_{abs(hash((right, wrong)))}"
    files = {f"{module}.py": source.replace(right, wrong)}
    install(tmp_path / "site", "lottery", f"{module}:SPEC", files, "agora.protocols")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert run(tmp_path) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert message in line


def test_two_protocols_with_one_table_cannot_share_a_run(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"other_lottery.py": recording_lottery().replace('"lottery"', '"raffle"')}
    other = tmp_path / "other"
    install(other, "raffle", "other_lottery:SPEC", files, "agora.protocols")
    monkeypatch.syspath_prepend(other)
    config = CONFIG + CONFIG[CONFIG.index("[[arms]]") :].partition('[[arms]]\nname = "ParSync"')[
        0
    ].replace('"lottery"', '"raffle"')
    assert run(tmp_path, config) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "protocols 'lottery' and 'raffle' both have a table 'draws'" in line
    assert registry.get("raffle").tables.keys() == {"draws"}
    with pytest.raises(AgoraError, match="both have a table 'draws'"):
        tables_of(["raffle", "optimistic", "lottery"])


def test_a_live_actor_keeps_the_rows_over_a_restart(site: Path, tmp_path: Path) -> None:
    """The recorder of a killed actor's successor reads its log; the Parquet parts are joined."""
    tables = tables_of(["lottery"])
    plan = RunPlan("n", "arm", 1, (), 1, 1, 0, 0, 1, 0, 1, str(tmp_path), str(tmp_path), False, 1)
    log = records_log(tmp_path, "cell")

    def recorder() -> Recorder:
        return Recorder(
            plan, "cell", RunMetrics(RunFrame(PHASES, 2, partitions=2), tables=tables), log
        )

    def draws(*at_us: int) -> Record:
        n = len(at_us)
        rows = {"agent": [0] * n, "tickets": [3] * n, "whole": [1] * n}
        return Record("draws", {"at_us": list(at_us), **rows})

    killed = recorder()
    killed(draws(10, 20))
    killed.flush()
    second = recorder()
    second(draws(30))
    second.close()
    assert [table for table, _ in read_log(log)] == ["draws", "draws"]
    assert merge_parts(tmp_path, tables) == []
    table = pq.read_table(tmp_path / "draws.parquet")
    assert table["at_us"].to_pylist() == [10, 20, 30]
    assert table.schema.field("agent").metadata[b"unit"] == b"id"


def test_a_live_run_keeps_and_replays_them_though_its_cell_is_killed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.toml").write_text(CONFIG, encoding="utf-8")
    [config, _] = load_config(tmp_path / "run.toml").arms
    arm = config.seeded(seed=1, heartbeat_us=1000, sample_us=100_000, live=True)
    workload = small_workload(machines=60)
    tables = tables_of(arm.protocol_kinds)
    make = partial(RunMetrics, RunFrame(workload.phases, arm.agents, partitions=4), tables=tables)
    ray = FakeRay(monkeypatch, tmp_path, arm, workload, make)
    write_assembly(tmp_path / "log", arm, workload)
    ray.pass_time(500_000)
    ray.kill(CELL)
    ray.restart(CELL)
    while not ray.idle:
        ray.pass_time(ray.clock.us + 50_000)
    ray.pass_time(ray.clock.us + 50_000)
    outcome = ray.finish(quiet=True)
    assert not outcome.partial and outcome.recovered_steps > 0
    assert merge_parts(tmp_path / "records", tables) == []
    draws = pq.read_table(tmp_path / "records" / "draws.parquet")
    claims = int(outcome.metrics.count["claims"].sum())
    assert sum(draws["tickets"].to_pylist()) == claims > 0, "a ticket for each claim, each once"
    assert max(draws["at_us"].to_pylist()) > 500_000 > min(draws["at_us"].to_pylist())
    found = replay(tmp_path / "log")
    assert found.divergence is None and found.steps > 0


def test_only_tables_that_are_measured_by_the_clock_are_left_out_of_digests() -> None:
    tables = {**SCHEMAS, "waits": replace(ONE, measured=True), "draws": ONE}
    assert measured_tables(tables) == {"actors", "rounds", "waits"}

    def digest(table: str, at_us: int) -> bytes:
        effects: list[Effect] = [Record(table, {"at_us": np.array([at_us])})]
        return CORE.event_effects_digest(measured_tables(tables)).of(effects)

    assert digest("waits", 1) == digest("waits", 2)
    assert digest("draws", 1) != digest("draws", 2)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, ""),
        ({"own": ONE}, ""),
        ([ONE], "expected table schemas by name, got"),
        ({3: ONE}, "expected names of lower-case letters, digits and _, got 3"),
        ({"a.b": ONE}, "expected names of lower-case letters, digits and _, got 'a.b'"),
        ({"cell": ONE}, "'cell' is a table of every run already"),
        ({"own": {}}, "own: expected a TableSchema, got {}"),
        ({"own": TableSchema("", {})}, "own: expected at least one column"),
        (
            {"own": TableSchema("", {"a": "int64"})},  # type: ignore[dict-item]
            "own: column 'a': expected a Column",
        ),
        (
            {"own": TableSchema("", {"a": Column("bool", "", "")})},
            "own: column 'a': expected a dtyp",
        ),
    ],
)
def test_what_can_be_declared(tables: Any, message: str) -> None:
    found = wrong_tables(tables)
    assert found.startswith(message) and bool(found) == bool(message)
