"""What is drawn is what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from experiments.analysis.run_directory import Run, read_run
from experiments.analysis.summary_model import ArmSummary
from experiments.figures import FIGURES, FigureSpec, draw_all, draw_for_page, drawings
from experiments.report.page import never_stop
from parsync.metrics import histogram
from parsync.metrics.kinds.conflicts import Outcome
from parsync.metrics.kinds.delay import DelayMetric
from shared_state.errors import AgoraError
from tests.unit.run_factory import write_synthetic_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_run(
        write_synthetic_run(tmp_path_factory.mktemp("runs") / "run", ["ParSync adaptive", "Flow"])
    )


def arm_of(series: dict[str, np.ndarray]) -> drawings.Arm:  # type: ignore[type-arg]
    return drawings.Arm(0, "A", cast(ArmSummary, None), series)


def test_coarser_buckets_keep_the_counts_and_cover_the_time() -> None:
    counts = np.arange(2 * 500).reshape(2, 500)
    arm = arm_of({"claims": counts, "bucket_us": np.array([250_000])})
    time, coarse = drawings.coarse(arm, "claims", 125_000_000)
    assert coarse.shape[1] <= drawings.MOST_POINTS
    assert coarse.sum(axis=1).tolist() == counts.sum(axis=1).tolist()
    width = time[1] - time[0]
    assert time[0] == pytest.approx(width / 2)
    assert time[-1] + width / 2 >= 125
    _, cut = drawings.coarse(arm, "claims", 1_000_000)  # later buckets are not shown
    assert cut.sum() == counts[:, :4].sum()


def test_the_band_is_among_schedulers_and_skips_those_without_a_value() -> None:
    values = np.array([[1.0, np.nan, 5.0], [2.0, np.nan, np.nan], [3.0, np.nan, np.nan]])
    low, median, high = drawings.band(values)
    assert median[0] == 2.0 and low[0] == pytest.approx(1.2) and high[0] == pytest.approx(2.8)
    assert np.isnan(median[1])
    assert low[2] == median[2] == high[2] == 5.0


def test_ages_are_rebinned_without_loss() -> None:
    ages = np.zeros((2, Outcome.COUNT, histogram.BUCKETS), np.int64)
    values = np.random.default_rng(1).integers(0, 600_000, 1000)
    np.add.at(ages, (0, Outcome.CONFLICT, histogram.bucket_of(values)), 1)
    edges = np.linspace(0, 600_001, 7)
    counts = drawings.rebinned_ages(arm_of({"ages": ages}), edges)
    expected, _ = np.histogram(values, edges)
    assert counts.sum() == 1000
    # values within a bucket of an edge
    assert np.abs(counts[Outcome.CONFLICT] - expected).max() <= 8


def test_samples_of_many_agents_are_gathered_by_time() -> None:
    at = np.repeat(np.arange(0, 1_000_000, 1000), 2)  # two agents, 1000 instants
    arm = arm_of(
        {
            "agents_at_us": at,
            "agents_agent": np.tile([0, 1], 1000),
            "agents_queued": np.tile([10, 30], 1000),
            "group_of": np.zeros(2, np.int64),
        }
    )
    time, value = drawings.sampled_by_agent(arm, "queued")
    assert len(time) <= drawings.MOST_POINTS
    assert (value[0] == 10).all() and (value[1] == 30).all()


def test_lines_hold_the_recorded_delays_and_throughput(run: Run) -> None:
    figure = drawings.metric_over_time(DelayMetric.plots[0], run)
    assert figure is not None
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["ParSync adaptive", "Flow"]
    series = run.series["flow"]
    low, high = 1_000_000, 60_000_000  # of delays in this arm, wherever they are
    ydata = np.asarray(lines[1].get_ydata(), float)
    mean = series["delay_us"].sum() / series["committed"].sum()
    assert low / 1000 < np.nanmedian(ydata) < high
    assert np.nanmedian(ydata) == pytest.approx(mean, rel=0.5)

    figure = drawings.throughput(run)
    assert figure is not None
    committed = figure.axes[0].get_lines()[1]
    x, y = np.asarray(committed.get_xdata(), float), np.asarray(committed.get_ydata(), float)
    shown = (y * (x[1] - x[0])).sum()
    assert shown == pytest.approx(run.series["parsync-adaptive"]["first_commits"].sum(), rel=0.05)


def test_every_figure_is_one_png_and_one_svg(run: Run, tmp_path: Path) -> None:
    drawn = draw_all(run, tmp_path, never_stop, FIGURES)
    assert [figure.spec.name for figure in drawn] == [spec.name for spec in FIGURES]
    for figure in drawn:
        assert figure.png.read_bytes().startswith(b"\x89PNG")
        text = figure.svg.read_text("utf-8")
        assert "<svg" in text
        assert "Flow" in text  # names its arms


def test_a_page_needs_no_png(run: Run, tmp_path: Path) -> None:
    drawn = draw_for_page(run, tmp_path, never_stop, FIGURES[:2])
    assert [figure.spec.name for figure in drawn] == [spec.name for spec in FIGURES[:2]]
    assert sorted(tmp_path.iterdir()) == sorted(figure.svg for figure in drawn)
    assert all("Flow" in figure.svg.read_text("utf-8") for figure in drawn)


@pytest.mark.parametrize(
    "spec", [spec for spec in FIGURES if spec.name != "rivals"], ids=lambda spec: str(spec.name)
)
def test_axes_say_what_they_show(run: Run, spec: FigureSpec) -> None:
    figure = spec.draw(run)
    assert figure is not None
    assert figure.axes[-1].get_xlabel() and figure.axes[0].get_ylabel()


def test_a_folder_that_is_gone_is_named(run: Run, tmp_path: Path) -> None:
    for draw in (draw_all, draw_for_page):
        with pytest.raises(AgoraError, match="cannot write the figure"):
            draw(run, tmp_path / "gone", never_stop, FIGURES)


def test_lines_of_quota_groups_are_what_they_hold_and_their_shares(run: Run) -> None:
    figure = drawings.quota_shares(run)
    assert figure is not None and len(figure.axes) == 2  # one for each arm
    capacity = run.summary.workload.capacity[0]
    lines = figure.axes[0].get_lines()
    assert len(lines) == 4  # two groups
    for held, share, first in ((lines[0], lines[1], 2_000), (lines[2], lines[3], 8_000)):
        x, y = np.asarray(share.get_xdata()), np.asarray(share.get_ydata())
        assert y == pytest.approx((first + (x * 10).astype(np.int64)) / capacity, abs=1 / capacity)
        assert np.asarray(held.get_ydata()) == pytest.approx(y - 100 / capacity)
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == ["ads", "batch", "fair share"]
