"""Whatever can be refused before a run is: one line naming flag, file, field or line, exit status
2, and no run directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.campaign import preconditions
from experiments.campaign.running import make_workload
from experiments.commands.run import app
from experiments.config.run_config import load_config
from flowsolver import memory
from tests.fixtures.commands import exit_status
from tests.fixtures.google2011_files import (
    ADD,
    SCHEDULE,
    SUBMIT,
    WINDOW,
    machine_row,
    task_row,
    write_trace,
)
from tests.fixtures.small_run import FLOW, PARSYNC, PROTOCOL, SMALL_RUN

Refusal = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """The one line that the command says before it leaves with status 2, having made nothing."""

    def run(*arguments: str | Path) -> str:
        status = exit_status(app, *arguments, "--out", tmp_path / "run")
        said = capsys.readouterr()
        assert status == 2 and said.out == ""
        assert not (tmp_path / "run").exists()
        (line,) = said.err.splitlines()
        assert line.startswith("error: ")
        return line

    return run


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("seeds = 1", "sedes = 1", "sedes: unknown option"),
        ("machines = 60", "mashines = 60",
         "workload: kind 'synthetic' has no option 'mashines' (did you mean 'machines'?); its"),
        ("count = 4", "count = 4, cuont = 4", "arms.0.groups.0.cuont: unknown option"),
        ("seeds = 1", "seeds = = 1", "at line 2, column 9"),
        ("seeds = 1", 'seeds = "two"', "seeds: "),
        ("seeds = 1", "seeds = 0", "seeds: "),
        ('kind = "random"', 'kind = "oracle"', "unknown scheduler kind 'oracle'"),
        ("count = 4", "count = 4, options = { depth = 1 }",
         "scheduler kind 'random' has no option 'depth'"),
        ("diff_block", "diff_blok",
         "arms.0.groups.0.protocol: protocol 'optimistic': unknown sync policy 'diff_blok'"),
        ("count = 4", "count = 4, share = 0.5", "arms.0: groups: shares sum to 0.5, not to 1"),
        (FLOW,
         FLOW[:-1] + ', { name = "b", kind = "random", count = 1, share = 1.0, ' + PROTOCOL + " }]",
         "leave nothing for group 'flow'"),
        ('"flow"', '"flow", task_class = "service"',
         "arm 'Flow': mix: the shares of batch jobs sum to 0"),
        ("count = 4", "count = 0", "arms.0.groups.0.count: "),
        ("count = 4", "count = 8",
         "partitions: expected at least 8, one for each scheduler, with diff_block (ParSync "
         "section 5.1), got 6"),
        ("partitions = 7", "partitions = 61", "arm 'Flow': partitions: expected 1 to 60"),
        ("phase_s = 0.5", "phase_s = 0.04",
         "phase_s: phases of 0.04 s are shorter than the gap G of 0.05 s"),
        ("phase_s = 0.5", "phase_s = inf", "workload.phase_s: "),
        ("gap_s = 0.05", "gap_s = inf", "protocol \'optimistic\', option \'gap_s\': "),
        ("gap_s = 0.05", "gap_s = 1e300", "protocol \'optimistic\', option \'gap_s\': "),
        ("gap_s = 0.05", "gap_s = 1e-9", "gap_s: "),
        ("gap_s = 0.05", "gap_s = nan", "protocol \'optimistic\', option \'gap_s\': "),
        ("settle_s = 0.1", "sample_s = 1e-9", "sample_s: "),
        ("settle_s = 0.1", "sample_s = 86401", "sample_s: "),
        ("settle_s = 0.1", "settle_s = 0.5", "settle_s: 0.5 s leaves nothing of phases of 0.5 s"),
        ("machines = 60", "machines = -60", "workload.machines: "),
        ("[workload]", '[google2011]\ndirectory = "x"\n[workload]',
         '[google2011]: now [workload] with kind = "google2011"'),
        ('[workload]\nkind = "synthetic"', "[synthetic]",
         '[synthetic]: now [workload] with kind = "synthetic"'),
        ('kind = "synthetic"', 'kind = "synthesis"',
         "workload: unknown workload kind 'synthesis' (did you mean 'synthetic'?); known: "
         "google2011, service_batch, synthetic"),
        ('kind = "synthetic"', "",
         "workload: kind: missing; expected one of google2011, "
         "service_batch, synthetic"),
        ("gap_s = 0.05", "gap = 0.05",
         "arms.0.groups.0.protocol: protocol 'optimistic' has no option 'gap' (did you mean "
         "'gap_s'?); its options: "),
        (PARSYNC, 'protocol = "optimistic"',
         'arms.0.groups.0.protocol: expected a table, protocol = {kind = "optimistic", ...}'),
        (", " + PARSYNC, "",
         'arms.0.groups.0: protocol: missing; expected protocol = {kind = "optimistic", sync = '),
        (PARSYNC, PARSYNC.replace("protocol", "protcol"),
         "arms.0.groups.0.protcol: unknown option"),
        ("gap_s = 0.05 }", "gap_s = 0.05, check = 1, waits_for_commit = true }",
         "protocol 'optimistic': renamed options: check (now conflict_check), waits_for_commit "
         "(now commit_pipelining, with the opposite meaning)"),
        ("partitions = 6", "partitions = 6\nprotocols = { optimistic = { x = 1 } }",
         "protocol 'optimistic' has no shared option 'x'; its shared options: none"),
        ("partitions = 7", "partitons = 7", "arms.1.partitons: unknown option"),
        ('kind = "synthetic"', 'kind = "google2011"\ndirectry = "x"',
         "workload: kind 'google2011' has no option 'directry' (did you mean 'directory'?); its"),
        ('"Flow"', '"ParSync"', "two arms have the same name"),
        ('kind = "random", count = 4, ' + PARSYNC,
         'count = 4, protocol = { kind = "probing", probe_ratio = 61 }, decision = { clock = '
         '"modelled", task_us = 100 }',
         "arm 'ParSync': group 'greedy': probe_ratio: expected at most 60, the machines of the "
         "cell, got 61"),
        ("seeds = 1", "seed = true", "seed: Input should be a valid integer, got true"),
        ("seeds = 1", 'seed = "1"', "seed: Input should be a valid integer, got '1'"),
        ("seeds = 1", "seeds = 1.0", "seeds: Input should be a valid integer, got 1.0"),
        ("seeds = 1", "seeds = " + "9" * 5000, "a number has too many digits"),
        ("seeds = 1", "seeds = " + "9" * 4000,
         "seeds: Input should be less than or equal to 1000, got an integer of 13288 bits"),
        ("seeds = 1", "seeds = " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ("drain_s = 5.0", "drain_s = true", "drain_s: Input should be a valid number, got true"),
        ("settle_s = 0.1", "plan_limit_s = 0",
         "plan_limit_s: Input should be greater than or equal to 0.1, got 0"),
        ("settle_s = 0.1", "live = { fsync = 1 }",
         "live.fsync: Input should be a valid boolean, got 1"),
        ("settle_s = 0.1", 'live = { hosts = true }',
         "live.hosts: Input should be a valid integer, got true"),
        ("settle_s = 0.1", "virtual = { message_us = false }",
         "virtual.message_us: Input should be a valid integer, got false"),
        ("machines = 60", "machines = true",
         "workload.machines: Input should be a valid integer, got true"),
        ("machines = 60", "load_percent = [50, true]",
         "workload.load_percent.1: Input should be a valid integer, got true"),
        ("machines = 60", 'poisson_arrivals = "yes"',
         "workload.poisson_arrivals: Input should be a valid boolean, got 'yes'"),
        ("count = 4", "count = true",
         "arms.0.groups.0.count: Input should be a valid integer, got true"),
        ("count = 4", "count = 4, share = true",
         "arms.0.groups.0.share: Input should be a valid number, got true"),
        ("gap_s = 0.05", "gap_s = 0.05, cut_at_sync = 0",
         "option 'cut_at_sync': Input should be a valid boolean"),
        ("count = 4", "count = 4, decision = { clock = 'modelled', task_us = true }",
         "decision.modelled.task_us: Input should be a valid number, got true"),
        (FLOW, FLOW[:-3] + ', options = { preemption = 1 } }]',
         "option 'preemption': Input should be a valid boolean"),
        (FLOW, FLOW[:-3] + ', options = { repairs = true } }]',
         "option 'repairs': Input should be a valid integer"),
        ("[workload]", '[workload]\nkind = "google2011"\ndirectory = 5\n[unused]',
         "workload.directory: "),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense(
    tmp_path: Path, refused: Refusal, old: str, new: str, says: str
) -> None:
    assert old in SMALL_RUN
    file = tmp_path / "bad.toml"
    file.write_text(SMALL_RUN.replace(old, new, 1))
    line = refused("--config", file)
    assert says in line
    assert line.startswith(f"error: {file}: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--seeds", "0"], "'--seeds'"),
        (["--seed", "-1"], "'--seed'"),
        (["--seed", "9" * 30], "seed: "),
        (["--duration", "0"], "'--duration'"),
        (["--duration", "nan"], "'--duration'"),
        (["--duration", "inf"], "phase_s"),
        (["--duration", "0.01"], "shorter than the gap G"),
        (["--mix", ""], "--mix: '' is not of the form [protocol:]kind=count"),
        (["--mix", "latency_first"], "--mix: 'latency_first' is not of the form"),
        (["--mix", "a=b"], "--mix: 'a=b' is not of the form"),
        (["--mix", ":random=3"], "--mix: ':random=3' is not of the form [protocol:]kind=count"),
        (["--mix", "optimistic:=3"], "--mix: 'optimistic:=3' is not of the form [protocol:]kind="),
        (["--mix", "oracle=3"], "--mix: unknown 'oracle'"),
        (["--mix", "nope=3"], "or a protocol that runs no schedulers (probing)"),
        (["--mix", "offers=3"], "--mix: 'offers=3': protocol 'offers' runs schedulers, expected"
         " 'offers:KIND=3' with a kind of scheduler (best_fit, "),
        (["--mix", "probing:random=3"], "--mix: 'probing:random=3': protocol 'probing' runs no"
         " schedulers, expected 'probing=3'"),
        (["--mix", "latency_first=0"], "at least one scheduler"),
        (["--mix", "latency_first=-3"], "is not of the form"),
        (["--mix", "latency_first=1,latency_first=2"], "--mix: 'latency_first' appears twice"),
        (["--mix", "offers:random=1,random=1,offers:random=2"],
         "--mix: 'offers:random' appears twice"),
        (["--mix", "offer:random=2"], "--mix: unknown protocol 'offer' (did you mean 'offers'?),"),
        (["--mix", "probeing=2"], "--mix: unknown 'probeing' (did you mean 'probing'?), expected"),
        (["--mix", "kubernets=2"], "--mix: unknown 'kubernets' (did you mean 'kubernetes'?)"),
        (["--mix", "latency_first=99999999999"],
         "--mix latency_first=99999999999: expected at most 1,000,000 schedulers"),
        (["--mix", "latency_first=" + "9" * 5000],
         "--mix: latency_first: a count of 5000 digits is too large"),
        (["--mix", "9" * 5000 + "=1"],
         f"--mix: unknown '{'9' * 39}…', expected a strategy (optimistic, "),
        (["--mix", "latency_first=²"],
         "--mix: 'latency_first=²' is not of the form [protocol:]kind=count"),
        (["--mix", ",".join(f"latency_first{'_' * 30}=1" for _ in range(9))], "--mix: unknown"),
        (
            ["--mix", "latency_first=3000", "--runtime", "virtual"],
            "expected 1 to 2000 (the number of machines)",
        ),
        (["--scale", "huge"], "'--scale'"),
        (["--runtime", "warp"], "'--runtime'"),
        (["--trace", "foo:bar"], "--trace foo:bar: expected google2011:PATH"),
        (["--trace", "google2011:/nowhere"], "/nowhere: no such trace directory"),
        (["--trace", "google2011:x", "--speedup", "0"], "'--speedup'"),
        (["--trace", "google2011:x", "--resources", "slots=0"], "workload.resources: "),
        (
            ["--trace", "google2011:x", "--overcommit", "2"],
            "overcommit: only with resources 'requests'",
        ),
        (["--speedup", "5"], "--speedup: a workload of kind 'synthetic' has no option 'speedup'"),
        (["--trace", "synthetic:x"], "--trace synthetic:x: expected google2011:PATH"),
        (["--runtime", "virtual", "--hold"], "--hold: has no effect in virtual time"),
        (
            ["--runtime", "virtual", "--address", "10.0.0.1:6379"],
            "--address: has no effect in virtual time",
        ),
        (["--frobnicate"], "--frobnicate"),
        (["stray"], "stray"),
    ],
)  # fmt: skip
def test_flags_that_make_no_sense(refused: Refusal, arguments: list[str], says: str) -> None:
    assert says in refused(*arguments)


def test_a_configuration_that_cannot_be_read(tmp_path: Path, refused: Refusal) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "empty.toml").touch()
    for name, says in (
        ("gone.toml", "No such file"),
        (".", "Is a directory"),
        ("binary.toml", "UTF-8"),
        ("empty.toml", "workload: "),
    ):
        assert says in refused("--config", tmp_path / name)


def test_a_flag_that_spoils_a_file_is_named_beside_it(tmp_path: Path, refused: Refusal) -> None:
    file = tmp_path / "good.toml"
    file.write_text(SMALL_RUN)
    for flags, says in (
        (
            ["--seeds", "9999"],
            "--seeds: seeds: Input should be less than or equal to 1000, got 9999",
        ),
        (
            ["--duration", "0.01"],
            "--duration: phase_s: phases of 0.002 s are shorter than the gap G",
        ),
        (["--duration", "inf", "--seed", "3"], "--duration and --seed: workload.phase_s: Input"),
    ):
        assert f"error: {file} with {says}" in refused("--config", file, *flags)


def test_a_file_that_never_ends(refused: Refusal) -> None:
    assert refused("--config", "/dev/zero") == "error: /dev/zero: larger than 16 MiB"


def test_flags_that_a_file_would_silently_override(tmp_path: Path, refused: Refusal) -> None:
    (tmp_path / "good.toml").write_text(SMALL_RUN)
    assert "--scale: has no effect with --config" in refused(
        "--config", tmp_path / "good.toml", "--scale", "paper"
    )
    assert "--quick: has no effect with --config" in refused(
        "--config", tmp_path / "good.toml", "--quick"
    )


@pytest.mark.parametrize("runtime", ["virtual", "ray"])
def test_too_little_memory_is_said_before_anything_is_made(refused: Refusal, runtime: str) -> None:
    line = refused("--duration", "500000", "--runtime", runtime)  # 3.55 billion tasks
    assert "memory: 3,550,000,000 tasks on 2,000 machines need about" in line


def test_paper_scale_on_a_small_machine(refused: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preconditions, "available_bytes", lambda: 1 << 30)
    assert "memory: 8,520,000 tasks on 200,000 machines" in refused("--scale", "paper")


def test_a_container_s_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = memory.available_bytes()
    for name, text in (
        ("max", "1000000000"),
        ("current", "900000000"),
        ("stat", "anon 1\nfile 300000000\n"),
    ):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    assert memory.available_bytes() == 400_000_000
    (tmp_path / "memory.max").write_text("max\n")
    unlimited = memory.available_bytes()
    assert free is None or (unlimited is not None and unlimited > 400_000_000)


def test_an_out_that_is_taken_or_impossible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.toml").write_text(SMALL_RUN)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for out, says in (
        ("file", "already exists; choose a new directory"),
        ("dangling", "already exists; choose a new directory"),
        ("file/run", "Not a directory"),
    ):
        before = sorted(tmp_path.rglob("*"))
        assert exit_status(app, "--config", tmp_path / "good.toml", "--out", tmp_path / out) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"--out {tmp_path / out}: {says}" in line
        assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "file").read_text() == "mine"


MACHINES = [machine_row(0, machine, ADD) for machine in range(3)]
TASKS = [task_row(0, 1, index, event, 1) for index in range(4) for event in (SUBMIT, SCHEDULE)]
LATER = [task_row(WINDOW + 1_000_000 + index, 2, index, SUBMIT) for index in range(4)]


def test_traces_that_cannot_be_read(tmp_path: Path, refused: Refusal) -> None:
    trace = write_trace(tmp_path / "trace", MACHINES, [*TASKS, "1,2,3", *LATER])
    assert "line 9: expected 13 fields, got 3" in refused("--trace", f"google2011:{trace}")
    trace = write_trace(tmp_path / "trace", MACHINES, [*TASKS, *LATER])
    (table,) = trace.glob("task_events/*")
    table.write_bytes(table.read_bytes()[:-9])
    assert "truncated or damaged gzip data" in refused("--trace", f"google2011:{trace}")
    table.unlink()
    assert "the trace lacks task_events" in refused("--trace", f"google2011:{trace}")


def test_a_trace_that_leaves_nothing_names_the_file_that_asks_for_it(
    tmp_path: Path, refused: Refusal
) -> None:
    trace = write_trace(tmp_path / "trace", MACHINES, [*TASKS, *LATER])
    (tmp_path / "long.toml").write_text(
        SMALL_RUN.replace("settle_s = 0.1", "settle_s = 9e5").replace(
            SMALL_RUN[SMALL_RUN.index("[workload]") : SMALL_RUN.index("[[arms]]")],
            f'[workload]\nkind = "google2011"\ndirectory = "{trace}"\n\n',
        )
    )
    line = refused("--config", tmp_path / "long.toml")
    assert f"error: {tmp_path / 'long.toml'}: settle_s: expected less than" in line


@pytest.mark.usefixtures("no_figures")
def test_runs_that_begin_in_one_second_have_directories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "experiments.campaign.preconditions.time.strftime", lambda _: "20260101-120000"
    )
    (tmp_path / "good.toml").write_text(SMALL_RUN)
    for name in ("20260101-120000", "20260101-120000-2", "20260101-120000-3"):
        assert exit_status(app, "--config", "good.toml") == 0
        assert f"report: runs/{name}/report.html\n" in capsys.readouterr().err
        assert (tmp_path / "runs" / name / "summary.json").exists()


def test_a_default_directory_that_another_run_has_just_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the making of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "experiments.campaign.preconditions.time.strftime", lambda _: "20260101-120000"
    )
    (tmp_path / "good.toml").write_text(SMALL_RUN)
    config = load_config(tmp_path / "good.toml")
    (tmp_path / "runs").mkdir()
    mkdir = Path.mkdir

    def slow(path: Path, *arguments: object, **named: object) -> None:
        if path == Path("runs/20260101-120000") and not path.exists():
            mkdir(path)
        mkdir(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", slow)
    made = preconditions.make_run_directory(None, config, make_workload(config, 1))
    assert made == Path("runs/20260101-120000-2")
    assert not list(Path("runs/20260101-120000").iterdir())
