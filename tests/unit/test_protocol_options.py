"""Options of a protocol as a whole: chosen in a configuration, kept in the arm's file, given to
every part of the protocol."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.command_line import run_command
from experiments.commands.replay import app as replay_app
from experiments.commands.run import app
from experiments.config.run_config import load_config
from parsync.runtime.arm_directory import ARM_FILE, ArmFile, read_arm, write_arm
from parsync.runtime.assembly import Assembly
from parsync.runtime.live.replay import replay
from parsync.spec.arm import SeededArm
from shared_state.errors import AgoraError
from tests.fixtures.changed import changed
from tests.fixtures.hand_driven_run import write_run
from tests.fixtures.installed import install
from tests.fixtures.live_runs import small_arm, small_workload
from tests.unit.test_protocol_tables import CONFIG, LOTTERY

OPTIONS = """

from pydantic import BaseModel, ConfigDict, Field


class Shared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    machines: int = Field(40, ge=1)


@dataclass"""
NAME = '[arms.protocols.lottery]\nmachines = 7\n\n[[arms]]\nname = "ParSync"'


def lottery() -> str:
    """The example protocol, which draws from the first machines only, by an option."""
    source = LOTTERY.replace("\n\n@dataclass", OPTIONS, 1)
    first = "np.flatnonzero(self.cell.up)[: self.environment.options.machines]"
    source = source.replace("np.flatnonzero(self.cell.up)", first)
    return source.replace("events=(Ask, Drawn)", "events=(Ask, Drawn), shared_options=Shared")


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    files = {"optional_lottery.py": lottery()}
    folder = tmp_path / "site"
    install(folder, "lottery", "optional_lottery:SPEC", files, "agora.protocols")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr("experiments.figures.FIGURES", ())
    yield
    sys.modules.pop("optional_lottery", None)


def config(folder: Path, chosen: str = NAME) -> Path:
    path = folder / "run.toml"
    path.write_text(CONFIG.replace('[[arms]]\nname = "ParSync"', chosen), encoding="utf-8")
    return path


def command(application: object, *arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        run_command(application, list(map(str, arguments)))  # type: ignore[arg-type]
    return int(left.value.code or 0)


def spec(path: Path) -> SeededArm:
    return load_config(path).arms[0].seeded(seed=1, heartbeat_us=1000, sample_us=1000, live=False)


def test_a_chosen_option_reaches_the_protocol_and_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command(app, "--config", config(tmp_path), "--out", run) == 0
    machines = pq.read_table(run / "arms" / "lottery" / "tasks.parquet")["machine"].to_pylist()
    assert set(machines) == set(range(7))
    kept = tomllib.loads((run / "config.toml").read_text())["arms"]
    assert kept[0]["protocols"] == {"lottery": {"machines": 7}}
    assert "protocols" not in kept[1]
    assert "[arms.protocols.lottery]\nmachines = 7" in (run / "report.html").read_text("utf-8")
    arm = json.loads((run / "arms" / "lottery" / ARM_FILE).read_text())["arm"]
    assert arm["protocols"] == {"lottery": {"machines": 7}}
    assert '"protocols"' not in (run / "arms" / "parsync" / ARM_FILE).read_text()
    assert command(replay_app, run) == 0


def test_defaults_are_filled_in_and_written(tmp_path: Path) -> None:
    loaded = load_config(config(tmp_path, '[[arms]]\nname = "ParSync"'))
    assert loaded.arms[0].model_dump()["protocols"] == {"lottery": {"machines": 40}}
    assert loaded.arms[1].protocols == {}
    assert "protocols" not in loaded.arms[1].model_dump()


def test_the_arm_file_holds_them_and_older_ones_have_defaults(tmp_path: Path) -> None:
    arm = spec(config(tmp_path))
    write_arm(tmp_path, ArmFile(arm=arm, workload="digest"))
    assert read_arm(tmp_path).arm == arm
    assert arm.options_of("lottery").model_dump() == {"machines": 7}
    content = json.loads((tmp_path / ARM_FILE).read_text())
    del content["arm"]["protocols"]
    (tmp_path / ARM_FILE).write_text(json.dumps(content))
    assert read_arm(tmp_path).arm.options_of("lottery").model_dump() == {"machines": 40}
    for shared, message in (
        ({"raffle": {}}, r"arm\.protocols: unknown protocol 'raffle'"),
        ({"lottery": {"machine": 1}}, "protocol 'lottery' has no shared option 'machine'"),
        ({"optimistic": {}}, "no group of the arm uses protocol 'optimistic'"),
        ({"lottery": 3}, r"arm\.protocols: protocol 'lottery': expected a table"),
        (3, r"arm\.protocols: Input should be a valid dictionary"),
    ):
        content["arm"]["protocols"] = shared
        (tmp_path / ARM_FILE).write_text(json.dumps(content))
        with pytest.raises(AgoraError, match=message):
            read_arm(tmp_path)


def test_live_logs_are_replayed_with_them(tmp_path: Path) -> None:
    group = changed(spec(config(tmp_path)).groups[0], count=3)
    arm = changed(spec(config(tmp_path)), groups=(group,))
    log = tmp_path / "log"
    log.mkdir()
    write_run(log, arm)
    found = replay(log)
    assert found.divergence is None and found.counts is not None and found.counts.accepted > 0
    other = (log / ARM_FILE).read_text().replace('"machines": 7', '"machines": 8')
    (log / ARM_FILE).write_text(other)
    assert replay(log).divergence is not None, "the option is the log's, not the default"


def test_an_arm_made_without_them_has_defaults() -> None:
    assembly = Assembly.of(small_arm(), small_workload())
    assert assembly.arm.options_of("optimistic").model_dump() == {}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (
            "[arms.protocols.raffle]",
            "unknown protocol 'raffle'; known: locking, lottery, offers, optimistic, probing",
        ),
        ("[arms.protocols.optimistic]", "no group of the arm uses protocol 'optimistic'"),
        (
            "[arms.protocols.lottery]\nmachine = 7",
            "protocol 'lottery' has no shared option 'machine' (did you mean 'machines'?); its "
            "shared options: machines",
        ),
        (
            "[arms.protocols.lottery]\nmachines = 0",
            "protocol 'lottery', shared option 'machines': Input should be greater than or",
        ),
    ],
)
def test_a_wrong_choice_is_one_line(
    chosen: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, f'{chosen}\n\n[[arms]]\nname = "ParSync"')
    assert command(app, "--config", path, "--out", tmp_path / "run") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {path}: arms.0.protocols: {message}")
    assert not (tmp_path / "run").exists()


def test_a_choice_that_is_no_table_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path)
    text = CONFIG.replace("partitions = 4", "partitions = 4\nprotocols = 3", 1)
    path.write_text(text, encoding="utf-8")
    assert command(app, "--config", path, "--out", tmp_path / "run") == 2
    assert "arms.0.protocols: Input should be a valid dictionary" in capsys.readouterr().err
