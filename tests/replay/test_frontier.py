"""Frontiers from runs: means, dominated areas, who is best; and the command."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

from experiments.analysis.frontier_model import (
    FRONTIER,
    FrontierSummary,
    read_frontier,
    write_frontier,
)
from experiments.analysis.summary_model import SeedFigures
from experiments.campaign.running import make_workload
from experiments.commands.frontier import app
from experiments.config.price_settings import prices_of_arm
from experiments.config.run_config import load_config, validated
from experiments.interruption import Interruption
from experiments.studies.frontiers.build import (
    Box,
    best_of,
    build_frontier,
    dominated_area,
    elsewhere_cost,
)
from experiments.studies.frontiers.execution import POINTS, FrontierOfRun, run_grid, write_points
from experiments.studies.frontiers.grid import Grid, make_grid
from experiments.studies.frontiers.wording import (
    answers,
    condition_text,
    limits_us,
    pairs_of,
    sets_of,
    within,
)
from experiments.toml_text import toml_text
from shared_state.errors import AgoraError
from tests.fixtures.commands import exit_status
from tests.fixtures.frontier_toml import FRONTIER_TOML, frontier_config

Results = dict[tuple[int, int], SeedFigures]
Changed = Callable[..., SeedFigures]


@pytest.fixture(scope="module")
def grid() -> Grid:
    return make_grid(frontier_config())


@pytest.fixture(scope="module")
def results(grid: Grid) -> Results:
    found: Results = {}
    for place, point in grid.points():
        figures = point.measure(None).figures
        assert isinstance(figures, SeedFigures)
        found[place, point.seed] = figures
    return found


def summary_of(grid: Grid, results: Results, partial: str = "") -> FrontierSummary:
    workload = make_workload(grid.conditions[0].config, grid.config.seed)
    return build_frontier(grid, results, workload, partial)


def with_figures(run: SeedFigures, **figures: float | None) -> SeedFigures:
    at_least = {key: run.overall.at_least[key] for key in run.overall.at_least}
    overall = run.overall.model_copy(update={"at_least": at_least, **figures})
    return run.model_copy(update={"overall": overall})


def set_to(results: Results, figures: dict[int, tuple[float, float]]) -> Results:
    """The results with (mean delay in us, preferred share) of each spot."""
    return {
        (place, seed): with_figures(
            run, delay_mean_us=figures[place][0], preferred_share=figures[place][1]
        )
        for (place, seed), run in results.items()
    }


def test_points_are_medians_over_the_seeds(grid: Grid, results: Results) -> None:
    summary = summary_of(grid, results)
    assert summary.seeds == [1, 2] and len(summary.points) == 5
    for place, point in enumerate(summary.points):
        shares = [results[place, seed].overall.preferred_share or 0 for seed in (1, 2)]
        interval = point.figures["preferred_share"]
        assert interval.estimate == pytest.approx(sum(shares) / 2) and interval.n == 2
    greedy = summary.points_of(0, 0)
    assert [point.text for point in greedy] == ["0", "100 ms"]
    # patience trades delay for preferred machines
    for key in ("delay_mean_us", "preferred_share"):
        without, patient = (point.figures[key].estimate for point in greedy)
        assert without is not None and patient is not None and without < patient


def test_points_have_what_stands_beside_a_mean_as_far_as_any_run_has_it(
    grid: Grid, results: Results
) -> None:
    beside = {"set_preferred_share_worst": 0.25, "set_preferred_share_mean": 0.5}
    known = {place: with_figures(run, jct_mean_us=7e5, **beside) for place, run in results.items()}
    point = summary_of(grid, known).points[0]
    for key, value in {**beside, "jct_mean_us": 7e5}.items():
        assert point.figures[key].estimate == pytest.approx(value)
    none = {place: with_figures(run, **dict.fromkeys(beside)) for place, run in results.items()}
    keys = [quantity.key for quantity in summary_of(grid, none).quantities]
    assert "jct_mean_us" in keys and not set(keys) & set(beside)


def test_architectures_say_which_slot_prices_they_have() -> None:
    """As configured; a knob that chooses them says so itself."""
    tree = frontier_config().model_dump(mode="json")
    tree["arms"][0]["groups"][0]["options"] = {"prices": "implied"}
    tree["frontier"]["seeds"] = 1
    prices = {"arm": tree["arms"][0]["name"], "name": "by kind", "knob": "options.prices"}
    tree["frontier"]["architectures"] = [
        {"arm": tree["arms"][0]["name"]},
        {"arm": tree["arms"][1]["name"]},
        {**prices, "values": ["none", "occupancy"]},
    ]
    grid = make_grid(validated(tree, "test"))
    assert [prices_of_arm(spot.arm) for spot in grid.spots] == [
        "implied prices: tie, all",
        "",
        "",
        "occupancy prices: tie, all",
    ]
    results: Results = {}
    for place, point in grid.points():
        figures = point.measure(None).figures
        assert isinstance(figures, SeedFigures)
        results[place, point.seed] = figures
    summary = summary_of(grid, results)
    assert [one.prices for one in summary.architectures] == ["implied prices: tie, all", "", ""]
    assert [point.text for point in summary.points_of(2, 0)] == ["none", "occupancy"]


def test_areas_are_those_of_each_seed_s_points_in_the_box(grid: Grid, results: Results) -> None:
    given = {0: (1e3, 0.5), 1: (1e5, 0.9), 2: (1e4, 0.4), 3: (1e2, 0.5), 4: (1e5, 0.8)}
    summary = summary_of(grid, set_to(results, given))
    box = Box(100, 1e7, best=1, worst=0)
    for architecture, spots in ((0, (0, 1)), (1, (2,)), (2, (3, 4))):
        expected = dominated_area([box.place(*given[spot]) for spot in spots])
        area = summary.area_of(architecture, 0, "delay_mean_us", "preferred_share")
        assert area is not None and area.by_seed == pytest.approx([expected, expected])
        assert area.area.estimate == pytest.approx(expected)
    # 4 decades at 0.5, and 2 of them at 0.9
    area = summary.area_of(0, 0, "delay_mean_us", "preferred_share")
    assert area is not None and area.area.estimate == pytest.approx((4 * 0.5 + 2 * 0.4) / 5)
    best = next(one for one in summary.bests if one.quality == "preferred_share")
    assert (best.members, best.best, best.tied) == ([0, 1], 0, [1])  # not the fast one: own speed
    assert best.seeds_needed == 6 > len(summary.seeds)


def test_points_that_their_architecture_beats_are_marked(grid: Grid, results: Results) -> None:
    given = {0: (1e3, 0.9), 1: (1e5, 0.8), 2: (1e4, 0.4), 3: (1e2, 0.5), 4: (1e5, 0.8)}
    summary = summary_of(grid, set_to(results, given))
    pair = "delay_mean_us/preferred_share"
    assert [point.not_dominated[pair] for point in summary.points] == [
        True,
        False,
        True,
        True,
        True,
    ]


def test_a_lower_bound_dominates_nothing(grid: Grid, results: Results) -> None:
    bounded = dict(results)
    for seed in (1, 2):
        run = results[2, seed]
        overall = run.overall.model_copy(update={"at_least": {"delay_mean_us": 10.0}})
        bounded[2, seed] = run.model_copy(update={"overall": overall})
    summary = summary_of(grid, bounded)
    area = summary.area_of(1, 0, "delay_mean_us", "preferred_share")
    other = summary.area_of(1, 0, "delay_p99_us", "preferred_share")
    assert area is not None and area.area.estimate == 0
    assert other is not None and other.area.estimate and other.area.estimate > 0
    point = summary.points_of(1, 0)[0]
    assert point.bounds == ["delay_mean_us"]
    assert not point.not_dominated["delay_mean_us/preferred_share"]


def test_a_limit_on_the_delay_buys_the_best_point_within_it(grid: Grid, results: Results) -> None:
    given = {0: (2e3, 0.5), 1: (2e5, 0.9), 2: (1e4, 0.4), 3: (1e2, 0.5), 4: (1e5, 0.8)}
    summary = summary_of(grid, set_to(results, given))
    assert limits_us(summary) == [1e3, 1e4, 1e5, 1e6]
    pair = ("delay_mean_us", "preferred_share")
    found = [within(summary, 0, 0, pair, limit) for limit in limits_us(summary)]
    points = summary.points_of(0, 0)
    assert found == [None, points[0], points[0], points[1]]


def test_only_seeds_that_ran_at_every_point_count(grid: Grid, results: Results) -> None:
    some = {key: run for key, run in results.items() if key != (4, 2)}
    summary = summary_of(grid, some, "interrupted")
    assert summary.seeds == [1] and summary.partial == "interrupted"
    none = {key: run for key, run in some.items() if key != (0, 1)}
    with pytest.raises(AgoraError, match="no seed has run at every point"):
        summary_of(grid, none)


def test_the_worst_cost_is_that_of_places_that_nobody_prefers(grid: Grid, results: Results) -> None:
    workload = make_workload(grid.config, 1)
    assert elsewhere_cost(workload) == 1000
    summary = summary_of(grid, results)
    assert summary.box.worst == {"preferred_share": 0.0, "cost_mean": 1000.0}
    # every place costs 0 or 1000, so the cost says what the share says
    assert pairs_of(summary) == [
        ("delay_mean_us", "preferred_share"), ("delay_p99_us", "preferred_share")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("by_seed", "best", "tied"),
    [
        # six seeds are just enough for one comparison
        ({0: [0.5, 0.6, 0.7, 0.5, 0.6, 0.7], 1: [0.4, 0.5, 0.6, 0.4, 0.5, 0.6]}, 0, []),
        ({0: [0.5, 0.6, 0.7, 0.5, 0.6], 1: [0.4, 0.5, 0.6, 0.4, 0.5]}, 0, [1]),
        ({0: [0.5, 0.6, 0.7, 0.6, 0.6, 0.6], 1: [0.55, 0.5, 0.6, 0.5, 0.5, 0.5]}, 0, [1]),
        ({0: [0.5], 1: [0.4]}, 0, [1]),  # one seed is never certain
        ({0: [0.0, 0.0], 1: [0.0, 0.0]}, None, []),
    ],
)
def test_the_best_is_certain_only_beyond_the_paired_interval(
    by_seed: dict[int, list[float]], best: int | None, tied: list[int]
) -> None:
    assert best_of(by_seed) == (best, tied)


def test_more_architectures_need_a_clearer_difference() -> None:
    # All six seeds agree: enough for one comparison, and not for twelve.
    one, other = [0.50, 0.52, 0.51, 0.53, 0.50, 0.5], [0.495, 0.505, 0.506, 0.52, 0.498, 0.4]
    assert best_of({0: one, 1: other}) == (0, [])
    many = {0: one, **dict.fromkeys(range(1, 13), other)}
    assert best_of(many) == (0, list(range(1, 13)))


def test_sentences_name_sets_and_conditions(grid: Grid, results: Results) -> None:
    summary = summary_of(grid, results)
    assert [members for _, members in sets_of(summary)] == [[0, 1], [2]]
    assert condition_text(summary.conditions[0]) == "the workload as it is"
    (answer,) = answers(summary)
    assert answer.startswith("Equal capacity, A = ") and "greedy dominates most" in answer


def test_a_run_s_frontier_takes_what_its_arms_have_run(
    grid: Grid, results: Results, tmp_path: Path
) -> None:
    config = grid.config
    known = {seed: {"greedy": results[0, seed], "first fit": results[2, seed]} for seed in (1, 2)}
    frontier = FrontierOfRun(config, known)
    assert len(frontier.points) == 6 and not frontier.is_whole  # of 10
    workload = make_workload(config, 1)
    of_key = {point.key(): results[place, point.seed] for place, point in grid.points()}
    for index, point in enumerate(frontier.points):
        if index == 3:  # those of seed 1
            part = frontier.write(workload, tmp_path)
            assert part.partial == "interrupted after 7 of 10 runs"
        frontier.take(index, of_key[point.key()])
    assert frontier.is_whole
    summary = frontier.write(workload, tmp_path)
    assert summary == read_frontier(tmp_path / FRONTIER) == summary_of(grid, results)


def test_an_interrupted_grid_keeps_what_has_run(grid: Grid, results: Results) -> None:
    class AfterOne(Interruption):
        def check(self) -> None:
            if done:
                raise KeyboardInterrupt

    done: list[int] = []
    found, partial = run_grid(grid, AfterOne(), done.append)
    assert found.items() <= results.items() and 1 <= len(found) < 10
    assert partial == f"interrupted after {len(found)} of 10 runs"


@pytest.fixture
def differences(grid: Grid, results: Results, tmp_path: Path) -> Callable[..., list[str]]:
    """What examples/questions/differences.py prints about a frontier at two loads."""
    two = make_grid(frontier_config(load_percent=[60, 90], seeds=8))
    doubled = {
        (place + 5 * condition, seed): results[place, 1 + seed % 2]
        for place in range(5)
        for seed in two.seeds
        for condition in (0, 1)
    }
    # patience 0 at the first load
    given = {(0, seed): 0.5 + seed / 100 for seed in two.seeds}
    given |= {(3, seed): 0.4 for seed in two.seeds}
    for (place, seed), preferred in given.items():
        doubled[place, seed] = with_figures(doubled[place, seed], preferred_share=preferred)
    write_frontier(tmp_path / FRONTIER, summary_of(two, doubled))
    write_points(tmp_path / POINTS, two, doubled)

    def lines(*arguments: str) -> list[str]:
        command = [sys.executable, "examples/questions/differences.py", str(tmp_path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(
            "\n"
        )

    return lines


def test_differences_are_taken_seed_by_seed_and_corrected_for_their_number(
    differences: Callable[..., list[str]],
) -> None:
    found = differences("greedy", "fast")
    assert [line.split(":")[0] for line in found[:4]] == [
        "load 60 %, 0", "load 60 %, 100 ms", "load 90 %, 0", "load 90 %, 100 ms"
    ]  # fmt: skip
    assert found[0].endswith("0.545 and 0.4, 0.145 [0.11, 0.18]")  # the range of eight seeds
    two = [line for line in differences("greedy", "fast", "--values", "0") if line]
    assert len(two) == 2 and "[0.11, 0.18]" in two[0]
    areas = [line for line in differences("greedy", "fast", "--figure", "area") if line]
    assert [line.split(":")[0] for line in areas] == ["load 60 %", "load 90 %"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "frontier.toml"
    path.write_text(FRONTIER_TOML)
    return path


@pytest.mark.usefixtures("one_process")
def test_the_command_writes_everything_and_continues_where_it_was(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = [str(file), "--out", str(out), "--load", "60,90", "--seeds", "1"]
    assert exit_status(app, *arguments) == 0
    said = capsys.readouterr()
    told = r"3 architectures, 10 points, 1 seed: 10 runs in virtual time, about \d+ s\."
    assert re.match(told, said.err)
    assert "Dominated area" in said.out and str(out / "frontier.html") in said.err
    summary = read_frontier(out / FRONTIER)
    assert [one.load_percent for one in summary.conditions] == [60, 90]
    table = parquet.read_table(out / POINTS)
    assert table.num_rows == 10
    assert set(table.column("load_percent").to_pylist()) == {60, 90}
    field = table.schema.field("delay_mean_us")
    assert field.metadata[b"unit"] == b"duration" and field.metadata[b"description"]
    page = (out / "frontier.html").read_text()
    assert (
        "Who is best where" in page and "load 90 %" in page and "http" not in page.split("<svg")[0]
    )

    name = "map-1-delay_mean-preferred_share"
    assert f'id="{name}"' in page and (out / "figures" / f"{name}.png").is_file()

    # What was killed goes on: runs that are kept are not run again.
    kept = sorted((out / "points").iterdir())
    assert len(kept) == 10
    before = {path.name: path.stat().st_mtime_ns for path in kept[1:]}
    kept[0].unlink()
    (out / FRONTIER).unlink()
    assert exit_status(app, *arguments) == 0
    assert "10 runs in virtual time; 1 run left, about " in capsys.readouterr().err
    assert read_frontier(out / FRONTIER) == summary
    after = {path.name: path.stat().st_mtime_ns for path in (out / "points").iterdir()}
    assert before.items() <= after.items() and len(after) == 10


@pytest.mark.usefixtures("one_process")
def test_more_seeds_are_added_in_the_same_directory(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = [str(file), "--out", str(out), "--seeds"]
    assert exit_status(app, *arguments, "1") == 0
    before = {path.name: path.stat().st_mtime_ns for path in (out / "points").iterdir()}
    one = parquet.read_table(out / POINTS).to_pylist()
    capsys.readouterr()
    assert exit_status(app, *arguments, "2") == 0
    assert "2 seeds: 10 runs in virtual time; 5 runs left" in capsys.readouterr().err
    after = {path.name: path.stat().st_mtime_ns for path in (out / "points").iterdir()}
    assert before.items() <= after.items() and len(after) == 10
    assert read_frontier(out / FRONTIER).seeds == [1, 2]
    both = parquet.read_table(out / POINTS).to_pylist()
    assert [row for row in both if row["seed"] == 1] == one and len(both) == 10
    assert load_config(out / "config.toml").frontier.seeds == 2

    # Anything else is another frontier, and leaves this one as it is.
    assert exit_status(app, *arguments, "2", "--load", "60") == 2
    assert "frontier.load_percent: expected [], got [60]" in capsys.readouterr().err
    assert load_config(out / "config.toml").frontier.load_percent == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick"], "--quick: has no effect with a file, which sets everything"),
        (["--load", "50,many"], "--load 50,many: expected numbers joined by commas"),
        (["--gap", ""], "--gap : expected numbers joined by commas"),
        (["--gap", "nan"], "--gap: gap_s.0: "),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    file: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert exit_status(app, str(file), "--out", str(out), *arguments) == 2
    assert message in capsys.readouterr().err and not out.exists()


def test_a_file_without_architectures_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(FRONTIER_TOML[: FRONTIER_TOML.index("[frontier]")])
    assert exit_status(app, str(file)) == 2
    assert "frontier.architectures: missing; expected [[frontier.arch" in capsys.readouterr().err


def test_a_directory_of_something_else_is_refused(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert exit_status(app, str(file), "--out", str(out)) == 2
    assert "already exists and is not the directory of a frontier" in capsys.readouterr().err
    (out / "config.toml").write_text("seeds = 3\n")
    assert exit_status(app, str(file), "--out", str(out)) == 2
    assert "holds another configuration: arms: expected nothing, got [" in capsys.readouterr().err
    (out / "config.toml").write_text("seeds =")
    assert exit_status(app, str(file), "--out", str(out)) == 2
    assert f"{out / 'config.toml'}: Invalid value" in capsys.readouterr().err
    shutil.rmtree(out)


def test_two_commands_in_one_directory(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    config = load_config(file)
    config = config.for_workload(make_workload(config, config.seed))
    (out / "config.toml").write_text(toml_text(config.model_dump(mode="json")))
    descriptor = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert exit_status(app, str(file), "--out", str(out)) == 2
    finally:
        os.close(descriptor)
    assert "its frontier is still in progress" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["config.toml"]


def test_a_changed_file_is_refused_by_its_field(
    grid: Grid, results: Results, tmp_path: Path
) -> None:
    path = tmp_path / FRONTIER
    content = json.loads(summary_of(grid, results).model_dump_json())
    content["points"][0]["architecture"] = 9
    path.write_text(json.dumps(content))
    with pytest.raises(AgoraError, match=r"points\[0\].architecture"):
        read_frontier(path)
