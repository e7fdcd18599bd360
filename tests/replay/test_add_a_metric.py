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
from experiments.results.loaded_run import load_run
from parsync.metrics import registry
from parsync.metrics.conformance import check_metric
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.run_metrics import RunMetrics
from shared_state.errors import AgoraError
from tests.fixtures.commands import agora
from tests.fixtures.installed import install
from tests.fixtures.small_run import SMALL_RUN
from tests.unit.record_factory import PHASES


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


@pytest.mark.usefixtures("installed", "no_figures")
def test_its_figure_is_in_summary_report_and_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_metric(registry.get("long_waits"))
    (tmp_path / "small.toml").write_text(SMALL_RUN)
    run = tmp_path / "run"
    done = agora("run", "--config", tmp_path / "small.toml", "--out", run, "--seeds", 2)
    assert done.returncode == 0 and "Waits" in done.stdout, "its column in the terminal's table"

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

    compared = agora("compare", run, "--metric", "long_wait_share")
    assert compared.returncode == 0 and "Long waits" in compared.stdout

    # where the package is not installed, the run can still be read
    monkeypatch.undo()
    assert "long_waits" not in {metric.kind for metric in registry.metrics()}
    assert agora("report", run).returncode == 0
    assert "Long waits over time" not in (run / "report.html").read_text("utf-8")
    assert agora("compare", run, "--metric", "long_wait_share").returncode == 0


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
from parsync.metrics.kinds.delay import DelayFigures
from parsync.metrics.quantity import Figures, Number
from parsync.metrics.metric import Counters, Metric

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
class Sums(Base):
    def __init__(self, run):
        super().__init__(run)
        self.count = Counters(("accepted",), run)
class Fails(Base):
    reads = {"tasks": ("agent",)}
    def fold(self, batch): return batch["gone"]
"""


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("broken", "broken:NUMBER", "metric 'broken': broken:NUMBER is not a MetricClass of that"),
        ("broken", "broken:OtherKind", "broken:OtherKind is not a MetricClass of that kind"),
        ("broken", "broken:Gone", "metric 'broken': cannot load broken:Gone: "),
        ("broken", "gone:Gone", "metric 'broken': cannot load gone:Gone: No module named 'gone'"),
        ("broken", "broken:OldColumn", "reads: table 'tasks' has no column 'wait_us'; it has task"),
        ("broken", "broken:Drawn", "plots: expected a list of OverTime, got ('waits',)"),
        ("broken", "broken:Taken", "metric 'broken': its figure 'submitted' is one of metric 'del"),
        ("broken", "broken:Claims", "'broken': series 'claims' already belongs to metric"),
        ("broken", "broken:Sums", "'broken': sum 'accepted' already belongs to metric 'conflicts'"),
        ("delay", "broken:Base", "metric 'delay' is registered twice: "),
    ],
)
def test_a_metric_that_cannot_be_used_is_one_clear_line(
    site: Path, name: str, value: str, says: str
) -> None:
    install(site, name, value, {"broken.py": BROKEN}, "agora.metrics")
    with pytest.raises(AgoraError) as error:
        RunMetrics(RunFrame(PHASES, 2, partitions=2))
    assert says in str(error.value) and "\n" not in str(error.value)


def test_a_report_leaves_out_the_figures_of_a_metric_that_cannot_be_loaded(site: Path) -> None:
    install(site, "broken", "broken:Gone", {"broken.py": BROKEN}, "agora.metrics")
    assert registry.plots_of_others() == []


@pytest.mark.usefixtures("no_figures")
def test_a_metric_whose_code_fails_ends_its_arm_with_one_line(site: Path, tmp_path: Path) -> None:
    install(site, "broken", "broken:Fails", {"broken.py": BROKEN}, "agora.metrics")
    (tmp_path / "small.toml").write_text(SMALL_RUN)
    run = tmp_path / "run"
    done = agora("run", "--config", tmp_path / "small.toml", "--out", run, "--seeds", 1)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: 'ParSync': metric 'broken': fold: KeyError: 'gone'"), last
    summary = read_summary(run)
    assert summary.partial and summary.arms[0].totals.committed > 0, "the other figures are kept"
