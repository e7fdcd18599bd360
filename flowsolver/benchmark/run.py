"""A benchmark: the results, how every solver is run on every graph, each in a process of its own,
and the tables of the times.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from flowsolver.benchmark.cases import Case, Series
from flowsolver.benchmark.solvers import PEERS, Job
from flowsolver.network import FlowNetwork
from flowsolver.problem_files import DimacsProblem, write_problem

BASELINE = "ortools"  # what all are compared with


class Outcome(StrEnum):
    OK = "ok"
    OVER_TIME = "over time"  # stopped at the limit
    NOT_TRIED = "not tried"  # the note says why
    FAILED = "failed"  # an error, no answer
    WRONG = "wrong"  # not the cost of a certified answer, or a certificate that fails


@dataclass
class Result:
    figure: str
    case: str
    position: int
    nodes: int
    arcs: int
    solver: str
    mode: str  # scratch, incremental
    outcome: Outcome
    costs: list[int] = field(default_factory=list)  # of each solve; rounds differ
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    certified: bool | None = None  # all answers; only ours are
    note: str = ""

    @property
    def median_s(self) -> float | None:
        return statistics.median(self.seconds) if self.outcome is Outcome.OK else None


def judge(results: Sequence[Result]) -> None:
    """Mark the results of one graph whose costs differ from those of a certified answer.

    If there is no certified answer, all costs must agree.
    """
    answered = [result for result in results if result.outcome is Outcome.OK]
    for result in answered:
        if result.certified is False:
            result.outcome = Outcome.WRONG
            result.note = "failed its certificate"
    trusted = [result for result in answered if result.certified] or answered
    if not trusted:
        return
    length = max(len(result.costs) for result in trusted)
    truth = next(result.costs for result in trusted if len(result.costs) == length)
    for result in answered:
        wrong = [
            (cost, right) for cost, right in zip(result.costs, truth, strict=False) if cost != right
        ]
        if result.outcome is Outcome.OK and wrong:
            result.outcome = Outcome.WRONG
            result.note = f"cost {wrong[0][0]}, not {wrong[0][1]}"


def explanation(results: Sequence[Result], limit_s: float) -> str:
    """Why some results have no time."""
    stopped = any(result.outcome is Outcome.OVER_TIME for result in results)
    reasons = sorted({result.note for result in results if result.outcome is Outcome.NOT_TRIED})
    words = [f"> {limit_s:g} s: stopped at the time limit of one solve"] if stopped else []
    return "; ".join(words + ([f"not tried: {' or '.join(reasons)}"] if reasons else []))


def as_json(
    machine: dict[str, Any], options: dict[str, Any], partial: bool, results: Sequence[Result]
) -> str:
    rows = [{**asdict(result), "median_s": result.median_s} for result in results]
    answer = {"machine": machine, "options": options, "partial": partial, "results": rows}
    return json.dumps(answer, indent=1) + "\n"


_POLL_S = 0.2


@dataclass(frozen=True)
class Plan:
    """What a benchmark runs.

    Attributes:
        solvers: Names of peers and of our algorithms, in the order to run and show them.
    """

    series: Sequence[Series]
    solvers: Sequence[str]
    limit_s: float
    repeats: int
    rounds: int
    changes: int
    seed: int


def run_bench(
    plan: Plan,
    results: list[Result],
    on_progress: Callable[[str], None],
    save: Callable[[], None],
    check: Callable[[], None],
) -> None:
    """Run a benchmark. Appends to `results` as it goes, so that an interrupted run keeps what it
    has.

    Args:
        plan: what to run.
        results: is appended to.
        on_progress: called with one line after each measurement.
        save: called after each graph.
        check: called several times a second; an exception from it ends the benchmark and the solver
            that is running.
    """
    total = sum(len(series.cases) for series in plan.series) * len(plan.solvers)
    done = 0
    with tempfile.TemporaryDirectory(prefix="flowsolver-bench-") as folder:
        path = Path(folder) / "graph.npz"
        for series in plan.series:
            over: set[str] = set()
            for case in series.cases:
                network, first_task = case.make()
                path.write_bytes(write_problem(DimacsProblem.without_bounds(network), npz=True))
                case_results: list[Result] = []
                for solver in plan.solvers:
                    check()
                    done += 1
                    measured = _not_tried(series, case, network, solver, over) or _measure(
                        plan, series, case, network, first_task, solver, path, check
                    )
                    if series.ordered and any(
                        result.outcome is Outcome.OVER_TIME for result in measured
                    ):
                        over.add(solver)
                    case_results += measured
                    results += measured
                    on_progress(f"{done}/{total}  {case.title}: {solver} {_in_words(measured)}")
                judge(case_results)
                save()


def _blank(
    series: Series, case: Case, network: FlowNetwork, solver: str, mode: str, outcome: Outcome
) -> Result:
    nodes, arcs = network.num_nodes, network.num_arcs
    return Result(series.figure, case.title, case.position, nodes, arcs, solver, mode, outcome)


def _not_tried(
    series: Series, case: Case, network: FlowNetwork, solver: str, over: set[str]
) -> list[Result]:
    peer = PEERS.get(solver)
    too_large = (
        peer is not None and peer.largest_arcs is not None and network.num_arcs > peer.largest_arcs
    )
    if solver not in over and not too_large:
        return []
    result = _blank(series, case, network, solver, "scratch", Outcome.NOT_TRIED)
    result.note = (
        f"above {peer.largest_arcs:,} arcs ({peer.title})"
        if peer and too_large
        else "over time on an easier graph"
    )
    return [result]


def _measure(
    plan: Plan,
    series: Series,
    case: Case,
    network: FlowNetwork,
    first_task: int,
    solver: str,
    path: Path,
    check: Callable[[], None],
) -> list[Result]:
    rounds = plan.rounds if series.incremental else 0
    limits = plan.limit_s, plan.repeats, rounds, plan.changes
    job = Job(solver, str(path), *limits, first_task, plan.seed, os.getpid())
    child = subprocess.Popen(
        [sys.executable, "-m", "flowsolver.benchmark.solvers", json.dumps(asdict(job))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours to hear
    )
    try:
        out, err = _output(child, check)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    samples = [json.loads(line) for line in out.decode().splitlines()]
    outcome, note = Outcome.OK, ""
    if child.returncode == -signal.SIGALRM:
        outcome = Outcome.OVER_TIME
    elif child.returncode != 0:
        said = err.decode(errors="replace").strip().splitlines()
        outcome, note = Outcome.FAILED, [_ending(child.returncode), *said][-1]
    modes = ["incremental", "scratch"] if rounds and solver not in PEERS else ["scratch"]
    measured = []
    for mode in modes:
        mine = [sample for sample in samples if sample["mode"] == mode]
        result = _blank(series, case, network, solver, mode, Outcome.OK if mine else outcome)
        if outcome is Outcome.FAILED:
            result.outcome, result.note = outcome, note
        elif mine and outcome is Outcome.OVER_TIME:
            result.note = f"{len(mine)} solves before one was over time"
        result.costs = [sample["cost"] for sample in mine]
        result.seconds = [sample["seconds"] for sample in mine]
        result.cpu_seconds = [sample["cpu_seconds"] for sample in mine]
        verdicts = [sample["certified"] for sample in mine if sample["certified"] is not None]
        result.certified = all(verdicts) if verdicts else None
        measured.append(result)
    return measured


def _output(child: subprocess.Popen[bytes], check: Callable[[], None]) -> tuple[bytes, bytes]:
    """The child's output, once it has ended."""
    while True:
        try:
            return child.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            check()


def _ending(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}"


def _in_words(measured: Sequence[Result]) -> str:
    words = []
    for result in measured:
        what = str(result.outcome) if result.median_s is None else time_text(result.median_s)
        words.append(f"{result.mode} {what}" if len(measured) > 1 else what)
    return ", ".join(words) + (f" ({measured[0].note})" if measured[0].note else "")


def time_text(seconds: float) -> str:
    unit, factor = ("s", 1) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    count = seconds * factor
    return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"


def machine_facts() -> dict[str, Any]:
    """Everything besides the code that the times depend on."""
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_1min": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": _commit(),
    }
    for peer in PEERS.values():
        facts[peer.package] = importlib.metadata.version(peer.package) if peer.importable else None
    return facts


def _processor() -> str | None:
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or None


def _commit() -> str | None:
    """The commit of this checkout, with + if files differ from it; None without git."""
    here = Path(__file__).parent
    try:
        known = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        )
        changed = subprocess.run(
            ["git", "diff", "--quiet", "HEAD", "--", ".."],
            cwd=here,
            capture_output=True,
            check=False,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return known.stdout.strip() + ("+" if changed.returncode else "")


def tables(series: Sequence[Series], results: Sequence[Result], limit_s: float) -> list[Group]:
    """A title and a table for each series that has results."""
    groups = []
    for each in series:
        mine = [result for result in results if result.figure == each.figure]
        if mine:
            what = explanation(mine, limit_s)
            groups.append(
                Group(
                    Text(f"{each.figure}: {each.title}", style="bold"),
                    _table(each, mine, limit_s),
                    Text(f"{what}\n" if what else "", style="dim"),
                )
            )
    return groups


def ratio_text(result: Result, baseline: Result | None, limit_s: float) -> str:
    """How many times faster than the baseline; a lower bound if the baseline was stopped at the
    limit.
    """
    if baseline is None or baseline is result or result.median_s is None:
        return ""
    if baseline.median_s is not None:
        return _times(baseline.median_s / result.median_s)
    return ">" + _times(limit_s / result.median_s) if baseline.outcome is Outcome.OVER_TIME else ""


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 100 else f"{ratio:,.0f}x"


def _table(series: Series, results: Sequence[Result], limit_s: float) -> Table:
    table = Table(header_style="bold")
    table.add_column(f"solver\n{series.axis}", no_wrap=True)
    cases = list(dict.fromkeys(result.case for result in results))
    labels = {case.title: case.label for case in series.cases}
    for case in cases:
        at = next(result for result in results if result.case == case)
        head = f"{at.position:,}" if series.ordered else labels[case]
        table.add_column(f"{head}\n{_arcs(at.arcs)}", justify="right", no_wrap=True)
    baselines = {r.case: r for r in results if r.solver == BASELINE}
    for solver, mode in dict.fromkeys((result.solver, result.mode) for result in results):
        row: list[Text] = []
        for case in cases:
            found = [r for r in results if (r.case, r.solver, r.mode) == (case, solver, mode)]
            row.append(_cell(found[0], baselines.get(case), limit_s) if found else Text(""))
        table.add_row(f"{solver}, {mode}" if series.incremental else solver, *row)
    return table


def _cell(result: Result, baseline: Result | None, limit_s: float) -> Text:
    if result.outcome is Outcome.OVER_TIME:
        return Text(f"> {limit_s:g} s", style="yellow")
    if result.median_s is None:
        not_tried = result.outcome is Outcome.NOT_TRIED
        return Text(str(result.outcome), style="dim" if not_tried else "bold red")
    return Text(f"{time_text(result.median_s)}\n{ratio_text(result, baseline, limit_s)}".rstrip())


def _arcs(count: int) -> str:
    if count < 10_000:
        return f"{count} arcs"
    return f"{count / 1000:.0f}k arcs" if count < 10**6 else f"{count / 1e6:.2f}M arcs"
