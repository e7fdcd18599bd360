"""A metric of another package: the example of docs/add_a_metric.md, installed and run."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from experiments.analysis.run_directory import read_summary
from experiments.campaign.arm_runners import live_table
from experiments.commands.compare import app as compare_app
from experiments.commands.report import app as report_app
from experiments.commands.run import app
from experiments.results.loaded_run import load_run
from parsync.metrics import registry
from parsync.metrics.conformance import check_metric
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.fixtures.installed import install
from tests.fixtures.small_run import SMALL_RUN
from tests.unit.record_factory import PHASES

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "metrics"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, as packages are installed in."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def installed(example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(example_site("metrics"))


def one_commit(agent: int, commit_us: int) -> dict[str, list[int]]:
    """A row of the table of tasks."""
    zero = {
        name: [0] for name in ("task", "job", "machine", "prefers", "preferred", "cost", "age_us")
    }
    times = {"submit_us": [5], "commit_us": [commit_us], "start_us": [commit_us]}
    return zero | times | {"agent": [agent], "attempts": [1], "first": [1]}


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "add_a_metric.md").read_text("utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    assert code == (EXAMPLE / "long_waits" / "__init__.py").read_text("utf-8")
    assert len(code.splitlines()) < 60
    entry_point = re.findall(r"```toml\n# the rest as in .*?\n(.*?)```", page, re.DOTALL)[0]
    assert entry_point in (EXAMPLE / "pyproject.toml").read_text("utf-8")


@pytest.mark.usefixtures("installed", "no_figures")
def test_its_figure_is_in_summary_report_and_comparison(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    check_metric(registry.get("long_waits"))
    (tmp_path / "small.toml").write_text(SMALL_RUN)
    run = tmp_path / "run"
    assert exit_status(app, "--config", tmp_path / "small.toml", "--out", run, "--seeds", 2) == 0
    assert "Waits" in capsys.readouterr().out, "its column in the terminal's table"

    summary = json.loads((run / "summary.json").read_text())
    for arm in summary["arms"]:
        for figures in (arm["overall"], *arm["phases"], *arm["agents"], arm["seeds"][0]["overall"]):
            assert 0 <= figures["others"]["long_wait_share"] <= 1
    assert read_summary(run).arms[0].overall.value("long_wait_share") is not None

    page = (run / "report.html").read_text("utf-8")
    assert "Placed tasks that waited for longer than 0.1 s." in page
    assert "<code>long_wait_share</code>" in page, "the data dictionary"
    assert "Long waits over time" in page and "Waited long" in page, "its figure"
    drawn = [f"long_waits_waited_long_over_time.{suffix}" for suffix in ("png", "svg")]
    assert sorted(path.name for path in (run / "figures").iterdir()) == drawn
    assert load_run(run).figure_names == ("long_waits_waited_long_over_time",)

    assert exit_status(compare_app, run, "--metric", "long_wait_share") == 0
    assert "Long waits" in capsys.readouterr().out

    # where the package is not installed, the run can still be read
    monkeypatch.undo()
    assert "long_waits" not in {metric.kind for metric in registry.metrics()}
    assert exit_status(report_app, run) == 0
    assert "Long waits over time" not in (run / "report.html").read_text("utf-8")
    assert exit_status(compare_app, run, "--metric", "long_wait_share") == 0


@pytest.mark.usefixtures("installed")
def test_actors_of_a_live_run_copy_pickle_and_merge_it() -> None:
    empty = RunMetrics(RunFrame(PHASES, 2, partitions=2))
    parts = [pickle.loads(pickle.dumps(copy.deepcopy(empty))) for _ in range(2)]
    for number, part in enumerate(parts):
        part.add("tasks", one_commit(number, 200_005))
        part.close()
    whole = pickle.loads(pickle.dumps(parts[0]))
    whole.merge(pickle.loads(pickle.dumps(parts[1])))
    scope = whole.scope(slots=range(whole.run.slots))
    assert whole.metrics["long_waits"].figures(scope).long_wait_share == 1.0
    assert whole.count["waited_long"].sum() == 2


@pytest.mark.usefixtures("installed")
def test_its_column_in_the_live_table_covers_the_time_since_the_last_one() -> None:
    metrics = RunMetrics(RunFrame(PHASES, 2, partitions=2))
    for commit_us, shown in ((200_005, "100 %"), (10, "0 %"), (None, "-")):
        if commit_us is not None:
            metrics.add("tasks", one_commit(1, commit_us))
        snapshot = metrics.snapshot(1_000_000)
        console = Console(width=120, record=True, file=io.StringIO())
        console.print(live_table("arm", ["a", "b"], snapshot, 1, None))
        lines = console.export_text().splitlines()
        assert re.search(r"waits *┃$", lines[2])
        assert lines[-2].startswith("│b") and lines[-2].split("│")[-2].strip() == shown


BROKEN = """
from parsync.metrics.delay import DelayFigures
from parsync.metrics.quantity import Figures, Number
from parsync.metrics.metric import Metric

NUMBER = 3

class Base(Metric):
    kind, description, figures_model = "broken", "Text.", Figures
    def figures(self, scope): return Figures()
class OtherKind(Base):
    kind = "other"
class OldColumn(Base):
    reads = {"tasks": ("agent", "wait_us")}
class Taken(Base):
    figures_model = DelayFigures
class Drawn(Base):
    plots = ("waits",)
class Claims(Base):
    def series(self): return {"claims": None}
class Fails(Base):
    reads = {"tasks": ("agent",)}
    def fold(self, batch): return batch["gone"]
"""


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("broken:NUMBER", "metric 'broken': broken:NUMBER is not a MetricClass of that kind"),
        ("broken:OtherKind", "broken:OtherKind is not a MetricClass of that kind"),
        ("broken:Gone", "metric 'broken': cannot load broken:Gone: "),
        ("gone:Gone", "metric 'broken': cannot load gone:Gone: No module named 'gone'"),
        ("broken:OldColumn", "reads: table 'tasks' has no column 'wait_us'; it has task, job"),
        ("broken:Drawn", "plots: expected a list of OverTime, got ('waits',)"),
        ("broken:Taken", "metric 'broken': its figure 'submitted' is one of metric 'delay'"),
    ],
)
def test_a_metric_that_cannot_be_used_is_one_clear_line(site: Path, value: str, says: str) -> None:
    install(site, "broken", value, {"broken.py": BROKEN}, "agora.metrics")
    with pytest.raises(AgoraError) as error:
        registry.metrics()
    assert says in str(error.value) and "\n" not in str(error.value)


def test_two_series_of_one_name_are_refused(site: Path) -> None:
    install(site, "broken", "broken:Claims", {"broken.py": BROKEN}, "agora.metrics")
    with pytest.raises(AgoraError, match="'broken': series 'claims' already belongs to metric"):
        RunMetrics(RunFrame(PHASES, 2, partitions=2))


def test_a_report_leaves_out_the_figures_of_a_metric_that_cannot_be_loaded(site: Path) -> None:
    install(site, "broken", "broken:Gone", {"broken.py": BROKEN}, "agora.metrics")
    assert registry.plots_of_others() == []


def test_two_metrics_of_one_name_are_refused(site: Path) -> None:
    install(site, "delay", "broken:Base", {"broken.py": BROKEN}, "agora.metrics")
    with pytest.raises(AgoraError, match=r"metric 'delay' is registered twice: .*broken:Base"):
        registry.metrics()


@pytest.mark.usefixtures("no_figures")
def test_a_metric_whose_code_fails_ends_its_arm_with_one_line(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, "broken", "broken:Fails", {"broken.py": BROKEN}, "agora.metrics")
    (tmp_path / "small.toml").write_text(SMALL_RUN)
    run = tmp_path / "run"
    assert exit_status(app, "--config", tmp_path / "small.toml", "--out", run, "--seeds", 1) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: 'ParSync': metric 'broken': fold: KeyError: 'gone'"), last
    summary = read_summary(run)
    assert summary.partial and summary.arms[0].totals.committed > 0, "the other figures are kept"
