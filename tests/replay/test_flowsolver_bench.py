"""`python -m flowsolver bench` on small cells; reports of wrong, late and failed answers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flowsolver import Status, algorithms, solve
from flowsolver.__main__ import run
from flowsolver.benchmark.cases import series_of
from flowsolver.benchmark.plots import draw
from flowsolver.benchmark.run import Outcome, Result, judge, ratio_text
from flowsolver.benchmark.solvers import PEERS, Rounds
from flowsolver.generate import GraphOptions, quincy_graph

ROOT = Path(__file__).parents[2]


FIGURES = ("machines", "utilisation", "job-size", "others", "incremental")


def bench(options, *arguments):
    """options: In one text."""
    command = [sys.executable, "-m", "flowsolver", "bench", *options.split(), *arguments]
    return subprocess.run(command, capture_output=True, check=False, cwd=ROOT, text=True)


def test_a_small_bench_measures_everything_and_draws_it(tmp_path):
    out = tmp_path / "deep" / "out"
    race = "incremental_ssp+network_simplex"
    options = f"--machines 12 --peers ortools --algorithms {race} --quick --time-limit 30"
    done = bench(options, "--out", str(out))
    assert done.returncode == 0, done.stderr
    report = json.loads((out / "bench.json").read_text())
    assert not report["partial"]
    assert (report["options"]["time_limit_s"], report["options"]["seed"]) == (30, 1)
    known = {name for name, fact in report["machine"].items() if fact is not None}
    assert known >= {"cores", "numpy", "ortools"}
    results = report["results"]
    assert {r["outcome"] for r in results} == {"ok"}
    assert {r["figure"] for r in results} == set(FIGURES)
    assert {r["solver"] for r in results} == {"ortools", race}
    for row in results:
        assert row["certified"] is (None if row["solver"] == "ortools" else True)
        assert len(row["costs"]) == len(row["seconds"]) >= 1
        alike = {
            r["costs"][0]
            for r in results
            if (r["figure"], r["case"]) == (row["figure"], row["case"])
        }
        assert len(alike) == 1
    modes = {
        (r["solver"], r["mode"], len(r["costs"])) for r in results if r["figure"] == "incremental"
    }
    assert (race, "incremental", 3) in modes and ("ortools", "scratch", 1) in modes
    drawn = sorted(path.name for path in out.iterdir())
    assert drawn == sorted(
        ["bench.json", *(f"{figure}.{kind}" for figure in FIGURES for kind in ("png", "svg"))]
    )
    lines = [line for line in done.stderr.splitlines() if "busy" not in line]
    assert len(lines) == 2 * (1 + 3 + 1 + 5 + 5) and "30/30" in lines[-1]
    assert "utilisation: Quincy policy, 12 machines" in done.stdout and race in done.stdout


def test_a_solver_over_time_is_not_tried_on_harder_graphs(tmp_path):
    options = "--machines 10,1500,1600 --peers none --algorithms cycle_cancelling,incremental_ssp"
    options += " --figures machines --time-limit 0.1"
    done = bench(options, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "bench.json").read_text())["results"]
    slow = [r["outcome"] for r in results if r["solver"] == "cycle_cancelling"]
    assert slow[-2:] == ["over time", "not tried"]
    assert [r["outcome"] for r in results if r["solver"] == "incremental_ssp"] == ["ok"] * 3
    assert (
        "> 0.1 s: stopped at the time limit" in done.stdout and (tmp_path / "machines.png").exists()
    )
    assert "not tried: over time on an easier graph" in done.stdout


def test_ctrl_c_keeps_what_there_is(tmp_path):
    options = "bench --machines 10,2000 --figures machines --out"
    running = subprocess.Popen(
        [sys.executable, "-m", "flowsolver", *options.split(), str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    next(line for line in running.stderr if "1/" in line)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130 and "interrupted" in err
    report = json.loads((tmp_path / "bench.json").read_text())
    assert report["partial"] and report["results"][0]["outcome"] == "ok"
    assert "machines: Quincy policy" in out and (tmp_path / "machines.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "x", "--machines", "10,none"], '--machines: "none" is not a number within'),
        (["--out", "x", "--machines", "0"], '--machines: "0" is not a number within'),
        (
            ["--out", "x", "--algorithms", "guess"],
            '--algorithms: no algorithm "guess"; known: incremental_ssp',
        ),
        (
            ["--out", "x", "--peers", "cplex"],
            '--peers: no "cplex"; known: ortools, highs, networkx',
        ),
        (["--out", "x", "--figures", "12"], '--figures: no "12"; known: machines, utilisation'),
        (["--out", "x", "--time-limit", "0"], "'--time-limit'"),
        (["--out", "/dev/null/x"], "--out /dev/null/x: Not a directory"),
        ([], "'--out'"),
    ],
)
def test_bad_arguments_are_one_line(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["bench", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line and list(tmp_path.iterdir()) == []


@pytest.mark.skipif(PEERS["networkx"].importable, reason="networkx is installed")
def test_a_peer_that_is_absent_is_refused_by_name(capsys, tmp_path):
    assert run(["bench", "--peers", "networkx", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "error: --peers: networkx is not installed\n"


def result(solver, costs, certified=None, outcome=Outcome.OK, seconds=(2.0,)):
    answers = list(costs), list(seconds), [1.0], certified
    return Result("machines", "c", 1, 1, 1, solver, "scratch", outcome, *answers)


def test_wrong_answers_are_found():
    results = [
        result("ortools", [7]),
        result("ours", [6, 6], True),
        result("broken", [5], False),
        result("late", [], None, Outcome.OVER_TIME),
    ]
    judge(results)
    wrong, ok, late = Outcome.WRONG, Outcome.OK, Outcome.OVER_TIME
    assert [r.outcome for r in results] == [wrong, ok, wrong, late]
    assert results[0].note == "cost 7, not 6" and "certificate" in results[2].note
    peers = [result("ortools", [7]), result("highs", [8])]  # nobody is certified: they disagree
    judge(peers)
    assert [r.outcome for r in peers] == [Outcome.OK, Outcome.WRONG]
    rounds = [result("ours", [6, 9, 4], True), result("other", [6, 8], True)]
    judge(rounds)
    assert rounds[1].note == "cost 8, not 9"


def test_a_wrong_or_failed_answer_is_the_exit_status(tmp_path, monkeypatch, capsys):
    """If a peer dies, a line says how, and the exit status is 1."""
    monkeypatch.setattr("flowsolver.benchmark.run.sys.executable", "false")
    options = "--machines 3 --figures machines --peers ortools --algorithms incremental_ssp"
    assert run(["bench", *options.split(), "--out", str(tmp_path)]) == 1
    assert "ortools failed: exit status 1" in capsys.readouterr().err


def test_ratios():
    ours = result("ours", [1], True, seconds=[0.5, 0.1, 0.4])
    assert ours.median_s == 0.4
    assert ratio_text(ours, result("ortools", [1]), 30) == "5x"
    assert ratio_text(ours, result("ortools", [], None, Outcome.OVER_TIME), 30) == ">75x"
    assert ratio_text(ours, None, 30) == "" and ratio_text(ours, ours, 30) == ""


def test_peers_answer_as_we_do():
    network = quincy_graph(GraphOptions(12, 110, 30), 1).network
    for name, peer in PEERS.items():
        if peer.importable:
            assert peer.prepare(network)() == solve(network).cost, name


@pytest.mark.parametrize("algorithm", algorithms())
def test_rounds_are_the_same_for_every_algorithm(algorithm):
    costs = []
    for name in ("incremental_ssp", algorithm):
        graph = quincy_graph(GraphOptions(10), 2)
        rounds = Rounds(graph.network, graph.first_task, name, 30, seed=4)
        rounds.resolve()
        costs.append([])
        for _ in range(3):
            rounds.apply(*rounds.draw(7))
            rounds.resolve()
            costs[-1].append(rounds.solver.cost)
        assert rounds.solver.num_nodes == graph.network.num_nodes
        assert rounds.solver.resolve() is Status.OPTIMAL
    assert costs[0] == costs[1]
    assert len(set(costs[0])) > 1


def test_the_same_results_give_the_same_figures(tmp_path):
    (series,) = [each for each in series_of([1], 1, quick=True) if each.figure == "machines"]
    files = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        files.append(
            [
                path.read_bytes()
                for path in draw(series, [result("incremental_ssp", [1], True)], 30, folder)
            ]
        )
    assert files[0] == files[1] and len(files[0]) == 2
    assert draw(series, [result("x", [], None, Outcome.OVER_TIME)], 30, tmp_path) == []


def test_series_get_harder_and_fit_a_single_machine():
    for each in series_of([1], 1, quick=False) + series_of([300, 10], 1, quick=False):
        positions = [case.position for case in each.cases]
        # heads of the table's columns
        names = positions if each.ordered else [case.label for case in each.cases]
        assert len({case.title for case in each.cases}) == len(set(names)) == len(names)
        assert positions == sorted(positions) or not each.ordered
    for each in series_of([1], 1, quick=True):
        for case in each.cases:
            network, first_task = case.make()
            assert solve(network).status is Status.OPTIMAL, case.title
            assert (network.supply[first_task:] == 1).all()
