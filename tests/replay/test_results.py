"""`load_run`: a run directory in Python, however far its run got."""

from __future__ import annotations

import json
import pydoc
import re
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

from experiments import figures
from experiments.analysis.run_directory import read_summary
from experiments.commands.explain import app as explain_app
from experiments.results import LoadedRun, load_run
from experiments.results.loaded_run import LoadedArm
from experiments.studies.run.killed_runs import run_in_progress
from parsync.metrics.kinds.validity import Validity
from parsync.protocols.registry import tables_of
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.replay.conftest import SEEDS

TABLES = tables_of(["optimistic"])


@pytest.fixture(scope="module")
def run(whole: Path) -> LoadedRun:
    return load_run(whole)


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def test_the_summary_is_that_of_the_run(whole: Path, run: LoadedRun) -> None:
    assert run.summary == read_summary(whole) and not run.in_progress
    assert [arm.name for arm in run.arms] == [arm.name for arm in run.summary.arms]
    assert load_run(str(whole)).summary == run.summary


def test_arms_have_their_names_and_their_schedulers(run: LoadedRun) -> None:
    for arm in run.arms:
        assert run.arm(arm.name) is arm and run.arm(arm.summary.slug) is arm
        assert len(arm.schedulers) == len(arm.summary.agents) == len(set(arm.schedulers))
        assert "" not in arm.schedulers
    with pytest.raises(AgoraError, match=r"arm 'nobody': expected one of '.+', '.+'"):
        run.arm("nobody")


def test_tables_are_those_of_the_files_and_explain_themselves(run: LoadedRun) -> None:
    for arm in run.arms:
        for name, schema in TABLES.items():
            table = arm.table(name)
            assert table.column_names == list(schema.columns)
            path = arm.directory / f"{name}.parquet"
            if path.exists():
                assert table.equals(pq.read_table(path))
            assert len(table) > 0 or not path.exists()
            assert all(column.metadata[b"meaning"] for column in table.schema)
        assert arm.table("tasks", ["task", "cost"]).column_names == ["task", "cost"]
    with pytest.raises(AgoraError, match="table 'nothing': expected one of actors, agents, "):
        run.arms[0].table("nothing")
    with pytest.raises(AgoraError, match=r"table 'tasks': column 'color': expected one of task, "):
        run.arms[0].table("tasks", ["color"])


def test_a_table_of_the_run_has_the_rows_of_all_arms(run: LoadedRun) -> None:
    both = run.table("tasks", ["task"])
    assert both.column_names == ["arm", "task"]
    names = both["arm"].to_pylist()
    for arm in run.arms:
        assert names.count(arm.name) == len(arm.table("tasks"))
    assert len(both) == len(names)


def test_the_metrics_are_those_of_the_summary(run: LoadedRun) -> None:
    keys = [quantity.key for quantity in run.summary.quantities]
    rows = run.metrics().to_pylist()
    assert [row["arm"] for row in rows] == [arm.name for arm in run.arms]
    for row, arm in zip(rows, run.arms, strict=True):
        assert {key: row[key] for key in keys} == {
            key: arm.summary.overall.value(key) for key in keys
        }
    phases = run.phases().to_pylist()
    assert len(phases) == len(run.arms) * len(run.summary.workload.phases)
    assert phases[0]["submitted"] == run.arms[0].summary.phases[0].submitted
    seeds = run.seeds().to_pylist()
    assert len(seeds) == SEEDS * len(run.arms)
    for row in seeds:
        (of_seed,) = (one for one in run.arm(row["arm"]).summary.seeds if one.seed == row["seed"])
        assert row["digest"] == of_seed.digest
        assert row["delay_mean_us"] == of_seed.overall.value("delay_mean_us")
    described = {row["key"]: row for row in run.describe_metrics().to_pylist()}
    assert list(described) == keys and described["delay_mean_us"]["unit"] == "µs"


def test_lower_bounds_are_named(run: LoadedRun) -> None:
    for row, arm in zip(run.metrics().to_pylist(), run.arms, strict=True):
        assert set(row["lower_bounds"]) == set(arm.summary.overall.at_least)


def test_every_column_is_described(run: LoadedRun) -> None:
    rows = run.describe_tables().to_pylist()
    assert {(row["table"], row["column"]) for row in rows} == {
        (name, column) for name, schema in TABLES.items() for column in schema.columns
    }
    assert all(row["unit"] and row["meaning"] for row in rows)


def test_the_workload_is_that_of_the_arm(run: LoadedRun) -> None:
    arm = run.arms[0]
    assert len(arm.workload.arrival_rows) == run.summary.workload.arrivals
    assert arm.workload.cell.machines == run.summary.workload.machines
    assert arm.explain(0).task == 0


def test_data_frames_hold_what_the_tables_do(run: LoadedRun) -> None:
    pytest.importorskip("pandas")
    frame = run.arms[0].data_frame("tasks", ["task", "cost"])
    assert frame["task"].tolist() == run.arms[0].table("tasks")["task"].to_pylist()


def test_without_pandas_the_error_says_so(run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AgoraError, match="pandas is not installed"):
        run.arms[0].data_frame("tasks")


def test_figures_are_drawn_anew(run: LoadedRun, tmp_path: Path) -> None:
    figure = run.figure("delay_distribution")
    assert isinstance(figure, Figure) and figure.axes[-1].get_xlabel() == "Scheduling delay"
    assert "delay_distribution" in run.figure_names
    with pytest.raises(AgoraError, match=r"figure 'delay_ecdf': expected one of .*trade_off, "):
        run.figure("delay_ecdf")
    with pytest.MonkeyPatch.context() as patch:
        empty = figures.FigureSpec("empty", "Nothing", lambda run: None, "Nothing.")
        shown = [one for one in figures.FIGURES if one.name.startswith("delay")]
        patch.setattr(figures, "FIGURES", (*shown, empty))
        with pytest.raises(AgoraError, match="figure 'empty': there is nothing to draw"):
            run.figure("empty")
        files = run.save_figures(tmp_path / "new" / "folder")
    assert files and all(path.parent == tmp_path / "new" / "folder" for path in files)
    assert {path.suffix for path in files} == {".png", ".svg"}
    assert all(path.stat().st_size > 1000 for path in files)


def test_figures_that_cannot_be_written_are_refused(run: LoadedRun, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AgoraError, match="file: cannot make the directory"):
        run.save_figures(tmp_path / "file")


def test_a_killed_run_has_what_it_left(copy: Path, run: LoadedRun) -> None:
    (copy / "summary.json").unlink()
    shutil.rmtree(copy / "arms" / run.arms[1].summary.slug)
    killed = load_run(copy)
    assert [arm.name for arm in killed.arms] == [run.arms[0].name] and not killed.in_progress
    assert killed.summary.partial and "1 of 2 arms did not run" in killed.summary.partial_reason
    assert killed.arms[0].table("tasks").equals(run.arms[0].table("tasks"))
    assert isinstance(killed.figure("delay_distribution"), Figure)


def test_a_run_in_progress_has_the_arms_that_have_ended(
    copy: Path, run: LoadedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / "summary.json").unlink()
    second = copy / "arms" / run.arms[1].summary.slug
    (second / "figures.json").unlink()
    before = sorted(copy.rglob("*"))
    with run_in_progress(copy):
        loaded = load_run(copy)
        assert loaded.in_progress and "in progress" in repr(loaded)
        assert [arm.name for arm in loaded.arms] == [run.arms[0].name]
        reason = loaded.summary.partial_reason
        assert reason == "still in progress: 1 of 2 arms have ended"
        assert loaded.metrics().num_rows == 1
        assert loaded.arms[0].explain(3) == run.arms[0].explain(3)
        assert isinstance(loaded.figure("delay_distribution"), Figure)
        assert exit_status(explain_app, copy, "--task", 3) == 0
        told = capsys.readouterr()
        assert told.err == f"{copy}: partial: {reason}\n" and told.out.startswith("Task 3 of job ")
        (copy / "arms" / run.arms[0].summary.slug / "figures.json").unlink()
        with pytest.raises(AgoraError, match="in progress, and no arm of it has ended yet"):
            load_run(copy)
    assert len(sorted(copy.rglob("*"))) == len(before) - 1  # nothing was written


def test_what_is_no_run_of_this_version_is_refused(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(AgoraError, match="no such directory"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(AgoraError, match="not a run directory"):
        load_run(tmp_path)
    summary = json.loads((copy / "summary.json").read_text())
    (copy / "summary.json").write_text(json.dumps({**summary, "format": 1}))
    with pytest.raises(AgoraError, match=r"summary.json: field format: expected \d+, .+ got 1"):
        load_run(copy)


def test_tables_that_cannot_be_read_are_named(copy: Path) -> None:
    arm = load_run(copy).arms[0]
    tasks = arm.directory / "tasks.parquet"
    table = pq.read_table(tasks)
    pq.write_table(table.drop_columns(["start_us"]), tasks)
    with pytest.raises(AgoraError, match=r"tasks.parquet: it has no column 'start_us': .+ another"):
        arm.explain(0)
    tasks.write_bytes(tasks.read_bytes()[:-1])
    with pytest.raises(AgoraError, match=r"tasks.parquet: not closed, or damaged"):
        load_run(copy).arms[0].table("tasks")


def test_a_missing_file_of_a_table_with_rows_is_named(copy: Path) -> None:
    arm = load_run(copy).arms[0]
    assert len(arm.table("actors")) == 0 and not (arm.directory / "actors.parquet").exists()
    for name in ("commits", "rejections", "submissions", "tasks"):
        assert len(arm.table(name)) > 0
        (arm.directory / f"{name}.parquet").unlink()
        with pytest.raises(AgoraError, match=rf"/{name}\.parquet: missing; the summary counts \d"):
            arm.table(name)


def test_a_live_run_without_its_table_of_actors_is_refused(run: LoadedRun) -> None:
    """The report and the verdict rest on that table; an empty one would say nothing was wrong."""
    measured = Validity(seconds=3, disturbed=[], disturbances=[], actors=[])
    live = run.arms[0].summary.model_copy(update={"runtime": "ray", "validity": measured})
    arm = LoadedArm(run.arms[0].directory, live)
    with pytest.raises(AgoraError, match=r"actors\.parquet: missing; .+ counts 3 measured seconds"):
        arm.table("actors")
    short = live.model_copy(update={"validity": measured.model_copy(update={"seconds": 0})})
    assert len(LoadedArm(arm.directory, short).table("actors")) == 0  # less than a second long


def test_the_help_tells_how_to_begin() -> None:
    text = pydoc.plain(pydoc.render_doc(load_run))
    for word in ("metrics()", "table(name)", "figure(name)", "killed", "in progress"):
        assert word in text


def test_the_page_shows_what_there_is(run: LoadedRun) -> None:
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {"RUN": run.directory}
    example = example.replace('"runs/first"', "RUN")
    exec(compile(example, "results.md", "exec"), names)
    assert isinstance(names["figure"], Figure)
    _, _, tables = page.partition("These are the tables of an arm")
    listed = re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE)
    assert sorted(listed) == sorted(TABLES)
    for owner, thing in (("run", run), ("arm", run.arms[0])):
        mentioned = re.findall(rf"`{owner}\.(\w+)", page)
        assert len(mentioned) > 3
        assert [name for name in mentioned if not hasattr(thing, name)] == []
