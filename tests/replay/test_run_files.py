"""The files of a run are enough for a reader: every column explains itself, and the summary's
figures come out of the Parquet files alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.commands import replay
from experiments.commands.run import app
from experiments.config.run_config import load_config
from parsync.metrics.kinds.conflicts import OUTCOMES
from parsync.metrics.tables import CONFLICT_COLUMNS
from parsync.runtime.arm_directory import read_arm
from tests.fixtures.commands import exit_status, without_figures
from tests.fixtures.google2011_files import (
    ADD,
    FINISH,
    SCHEDULE,
    SECOND,
    SUBMIT,
    WINDOW,
    machine_row,
    task_row,
    write_trace,
)
from tests.fixtures.run_toml import arm_toml, group_toml

SETTLE_US = 100_000
ALIGNED = 'sync = "state_aligned", gap_s = 0.05, sync_set = "all"'
OMEGA = f'{ALIGNED}, losers = "requeue", conflict_check = "sequence_number"'
COUNTED = 'share = 0.5\ndecision = { clock = "counted" }'
SLOW = 'decision = { clock = "modelled", task_us = 1500 }'
CONFIG = f"""
seeds = 1
settle_s = 0.1
drain_s = 0.5
runtime = "virtual"
virtual = {{ message_us = 300 }}

[workload]
kind = "synthetic"
start = "cold"
machines = 60
slots_per_machine = 4
machines_per_rack = 10
mean_duration_s = 0.3
batch_tasks = 10
load_percent = [60, 150, 80]
phase_s = 0.6
preference_groups = 6
preferred_fraction = 0.1
service_permille = 50
no_preference_permille = 200
{arm_toml("ParSync", gap_s=0.05, more=SLOW)}
[[arms]]
name = "Flow and Omega"
partitions = 4
{group_toml("flow", "flow", 1, ALIGNED, COUNTED)}
{group_toml("omega", "randomized_first_fit", 2, OMEGA, "share = 0.5")}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "run.toml").write_text(CONFIG)
    with without_figures():
        assert exit_status(app, "--config", folder / "run.toml", "--out", folder / "run") == 0
    return folder / "run"


@pytest.fixture(scope="module")
def trace_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks that run as the trace begins, tasks that wait, and tasks that arrive."""
    folder = tmp_path_factory.mktemp("trace")
    rows = [task_row(0, 1, k, event, 7 + k % 12) for k in range(9) for event in (SUBMIT, SCHEDULE)]
    rows += [task_row(0, 2, k, SUBMIT) for k in range(20)]
    rows += [task_row(WINDOW + SECOND, 2, k, SCHEDULE, 7) for k in range(20)]
    for k in range(1, 60):
        at = WINDOW + k * SECOND
        rows += [task_row(at, 100 + k, 0, SUBMIT), task_row(at, 100 + k, 0, SCHEDULE, 7)]
        rows.append(task_row(at + SECOND // 2, 100 + k, 0, FINISH, 7))
    rows += [task_row(WINDOW + 30 * SECOND, 1, k, FINISH, 7 + k % 12) for k in range(9)]
    rows.sort(key=lambda row: int(row.split(",")[0]))
    machines = [machine_row(0, 7 + k, ADD) for k in range(12)]
    trace = write_trace(folder / "files", machines, rows)
    options = ("--speedup", "10", "--seeds", "1", "--runtime", "virtual", "--mix", "optimistic=2")
    source, out = f"google2011:{trace}", folder / "run"
    with without_figures():
        assert exit_status(app, "--trace", source, *options, "--out", out) == 0
    return folder / "run"


def parquet_files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if ".parquet" in path.name)


@pytest.mark.parametrize("kind", ["run", "trace_run"])
def test_every_column_of_every_file_explains_itself(
    kind: str, request: pytest.FixtureRequest
) -> None:
    files = parquet_files(request.getfixturevalue(kind))
    assert len(files) > 12 and {path.parent.name for path in files} >= {"workload"}
    for path in files:
        schema = pq.read_schema(path)
        assert schema.metadata[b"rows"]
        for column in schema:
            said = column.metadata or {}
            assert said.get(b"meaning") and said.get(b"unit"), f"{path}: {column.name}"
            codes = json.loads(said.get(b"codes", b"{}"))
            values = pq.read_table(path)[column.name].unique().to_pylist()
            if said[b"unit"] != b"code":  # no id or count is below 0, but what stands for something
                values = [value for value in values if said[b"unit"] != b"cost" and value < 0]
            assert {str(value) for value in values} <= set(codes), f"{path}: {column.name}"


@pytest.mark.parametrize("kind", ["run", "trace_run"])
def test_a_run_holds_no_pickle(kind: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(kind)
    for path in run.rglob("*"):
        if path.is_file():
            assert path.suffix in {".toml", ".json", ".html", ".parquet", ".npz", ".png", ".svg"}
            assert not path.read_bytes().startswith(b"\x80"), path
    for path in run.rglob("*.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype != object for name in arrays.files)


def codes_of(table: pa.Table, column: str) -> dict[str, str]:
    """What the file itself says its codes mean."""
    codes: dict[str, str] = json.loads(table.schema.field(column).metadata[b"codes"])
    return codes


def conflicted(commits: pa.Table) -> np.ndarray:
    """Claims of each transaction that another scheduler's took the place of."""
    conflicts = [commits[name].to_numpy() for name in CONFLICT_COLUMNS]
    return np.sum(conflicts, axis=0)


def test_the_cell_handles_a_claim_one_message_before_its_scheduler_learns_of_it(run: Path) -> None:
    message_us = load_config(run / "config.toml").virtual.message_us
    rejected = 0
    for arm in (run / "arms").iterdir():
        tasks = pq.read_table(arm / "tasks.parquet")
        passed = tasks["commit_us"].to_numpy() - tasks["start_us"].to_numpy()
        assert set(passed.tolist()) == {message_us}
        commits, lost = Counter[tuple[int, int, int]](), Counter[tuple[int, int, int]]()
        for row in pq.read_table(arm / "commits.parquet").to_pylist():
            commits[row["agent"], row["sequence"], row["commit_us"]] = (
                row["claims"] - row["accepted"]
            )
        for row in pq.read_table(arm / "rejections.parquet").to_pylist():
            assert row["at_us"] - row["rejected_us"] == message_us
            lost[row["agent"], row["sequence"], row["at_us"]] += 1
        assert lost == +commits
        rejected += lost.total()
    assert rejected > 0


class Reader:
    """Somebody who has the Parquet files of an arm and of its workload, and what the configuration
    says is left out at the start of each phase."""

    def __init__(self, run: Path, slug: str) -> None:
        self.table = {path.stem: pq.read_table(path) for path in (run / "arms" / slug).glob("*.p*")}
        self.workload = {path.stem: pq.read_table(path) for path in (run / "workload").glob("*.p*")}
        phases = self.workload["phases"].to_pylist()
        self.windows = [(phase["start_us"] + SETTLE_US, phase["end_us"]) for phase in phases]

    def counted(self, table: pa.Table, time: str) -> pa.Table:
        """The rows whose time lies in a window."""
        at = table[time].to_numpy()
        inside = np.zeros(len(at), bool)
        for begin, end in self.windows:
            inside |= (at >= begin) & (at < end)
        return table.filter(pa.array(inside))

    def figures(self) -> dict[str, float]:
        arriving = self.workload["tasks"]
        arriving = arriving.filter(pa.array(arriving["batch"].to_numpy() >= 0))
        submitted = self.counted(arriving, "submit_us")
        tasks = self.table["tasks"]
        tasks = tasks.filter(pa.array(tasks["first"].to_numpy() == 1))
        placed = self.counted(tasks, "submit_us")
        delay = np.sort(placed["commit_us"].to_numpy() - placed["submit_us"].to_numpy())
        commits = self.counted(self.table["commits"], "commit_us")
        sums = {name: int(commits[name].to_numpy().sum()) for name in commits.column_names}
        conflicts = sum(sums[name] for name in CONFLICT_COLUMNS)
        window_us = sum(end - begin for begin, end in self.windows)
        in_time = self.counted(tasks, "commit_us")
        n = len(submitted)
        return {
            "submitted": n,
            "committed": len(placed),
            "censored": n - len(placed),
            "submitted_prefers": int((submitted["preference"].to_numpy() > 0).sum()),
            "preferred_share": placed["preferred"].to_numpy().sum()
            / (submitted["preference"].to_numpy() > 0).sum(),
            "cost_mean": placed["cost"].to_numpy().mean(),
            "delay_mean_us": delay.mean(),
            **{
                f"delay_p{percent}_us": delay[int(np.ceil(percent / 100 * n)) - 1]
                for percent in (50, 90, 99)
                if np.ceil(percent / 100 * n) <= len(delay)
            },
            "claims": sums["claims"],
            "conflict_rate": conflicts / sums["claims"],
            "accepted": sums["accepted"],
            "conflict_fraction": int((conflicted(commits) > 0).sum())
            / int((conflicted(commits) == 0).sum()),
            "throughput_per_s": len(in_time) / (window_us / 1e6),
            "attempts_mean": placed["attempts"].to_numpy().mean(),
            "utilisation_mean": self.counted(self.table["cell"], "at_us")["used_permille"]
            .to_numpy()
            .mean()
            / 1000,
            **self.jobs(arriving, tasks),
        }

    def jobs(self, arriving: pa.Table, tasks: pa.Table) -> dict[str, float]:
        """Of the jobs that were first submitted in a window: whether all their tasks were placed
        and ended, and when the last one was."""
        jobs, job = np.unique(arriving["job"].to_numpy(), return_inverse=True)
        place = np.full(len(self.workload["tasks"]), -1)
        place[arriving["task"].to_numpy()] = job
        size = np.bincount(job)
        begin = np.full(len(jobs), 1 << 60)
        np.minimum.at(begin, job, arriving["submit_us"].to_numpy())
        counts = np.any([(begin >= first) & (begin < end) for first, end in self.windows], axis=0)

        def last(table: pa.Table, time: str) -> tuple[np.ndarray, np.ndarray]:
            """Which jobs have all their tasks in the table, and their latest time there."""
            of = place[table["task"].to_numpy()]
            latest = np.zeros(len(jobs))
            np.maximum.at(latest, of[of >= 0], table[time].to_numpy()[of >= 0])
            return counts & (np.bincount(of[of >= 0], minlength=len(jobs)) == size), latest

        ends = self.table["ends"]
        finish = [int(k) for k, v in codes_of(ends, "change").items() if v == "finished"]
        ends = ends.filter(pa.array(np.isin(ends["change"].to_numpy(), finish)))
        committed, commit_us = last(tasks, "commit_us")
        finished, finish_us = last(ends, "end_us")
        return {
            "jobs": int(counts.sum()),
            "jobs_committed": int(committed.sum()),
            "jobs_finished": int(finished.sum()),
            "jsd_mean_us": (commit_us - begin)[committed].mean(),
            "jct_mean_us": (finish_us - begin)[finished].mean(),
        }

    def conflicts_by_reason(self) -> dict[str, int]:
        """Of all rejected claims of the run, by the names that the file's own codes give them."""
        table = self.table["rejections"]
        codes = codes_of(table, "reason")
        reason, count = np.unique(table["reason"].to_numpy(), return_counts=True)
        return {
            codes[str(code)]: n for code, n in zip(reason.tolist(), count.tolist(), strict=True)
        }


def arms_of(run: Path) -> list[dict[str, Any]]:
    summary = json.loads((run / "summary.json").read_text())
    arms: list[dict[str, Any]] = summary["arms"]
    return arms


def test_the_summary_comes_out_of_the_parquet_files(run: Path) -> None:
    arms = arms_of(run)
    for arm in arms:
        reader = Reader(run, arm["slug"])
        found, said = reader.figures(), arm["overall"]
        assert found["submitted"] > 500 and len(found) >= 20
        for name, value in found.items():
            # quantiles come from buckets that are up to 1/128 wide
            within = 2**-7 if name.startswith("delay_p") else 1e-9
            assert said[name] == pytest.approx(value, rel=within), (arm["name"], name)
        by_reason = reader.conflicts_by_reason()
        assert by_reason and sum(by_reason.values()) == sum(
            arm["totals"][name] for name in OUTCOMES if name != "accepted"
        )
    assert arms[1]["overall"]["stale"] > 0, "Omega's sequence numbers"


def test_machines_of_the_tables_hold_what_was_placed(run: Path) -> None:
    """No machine ever holds more than its table says: from starts and ends, machine by machine."""
    machines = pq.read_table(run / "workload" / "machines.parquet")
    limit = machines["limit_slots"].to_numpy()
    tasks = pq.read_table(run / "workload" / "tasks.parquet")
    request = tasks["request_slots"].to_numpy()
    endless = tasks["duration_us"].to_numpy() < 0
    assert {"partition_of_6", "partition_of_4"} <= set(machines.column_names)
    for arm in arms_of(run):
        ends = pq.read_table(run / "arms" / arm["slug"] / "ends.parquet")
        starts = pq.read_table(run / "arms" / arm["slug"] / "tasks.parquet")
        # an agent hears of a commit one message after the task starts
        at = np.concatenate([ends["end_us"].to_numpy(), starts["commit_us"].to_numpy() - 300])
        machine = np.concatenate([ends["machine"].to_numpy(), starts["machine"].to_numpy()])
        change = np.concatenate(
            [-request[ends["task"].to_numpy()], request[starts["task"].to_numpy()]]
        )
        order = np.lexsort((np.arange(len(at)), at, machine))
        of, running = machine[order], np.cumsum(change[order])
        assert running[-1] == endless[starts["task"].to_numpy()].sum() > 10, "others end once"
        before = np.concatenate([[0], running[:-1]])[np.searchsorted(of, of)]
        assert (running - before <= limit[of]).all() and (running - before).max() > 2


def test_a_trace_tells_who_runs_waits_and_arrives(trace_run: Path) -> None:
    tasks = pq.read_table(trace_run / "workload" / "tasks.parquet").to_pydict()
    machine = np.array(tasks["initial_machine"])
    assert (machine >= 0).sum() == 9 and len(set(machine[machine >= 0].tolist())) == 9
    assert (np.array(tasks["submit_us"]) == 0).sum() == 29 and len(machine) == 88
    (arm,) = arms_of(trace_run)
    assert arm["totals"]["submitted"] == (np.array(tasks["batch"]) >= 0).sum() == 79
    ends = pq.read_table(trace_run / "arms" / arm["slug"] / "ends.parquet")
    initial = np.flatnonzero(machine >= 0)
    assert (np.array(tasks["duration_us"])[initial] == 3 * SECOND).all(), "what remains of it"
    ended = dict(zip(*(ends[name].to_pylist() for name in ("task", "end_us")), strict=True))
    assert [ended[task] // 100_000 for task in initial.tolist()] == [30] * len(initial)


# --- replay ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["run", "trace_run"])
def test_a_run_in_virtual_time_repeats(
    kind: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    run = request.getfixturevalue(kind)
    assert replay.main([str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    repeated = [line for line in lines if ": ok: run again in virtual time: " in line]
    assert len(repeated) == len(arms_of(run))
    again = [line for line in lines if "/arms/" in line and "the figures and series" in line]
    assert len(again) == len(arms_of(run)) and all(": computed again, equal: " in s for s in again)


def test_what_the_arms_are_made_of_is_the_configuration(run: Path) -> None:
    config = load_config(run / "config.toml")
    for arm, described in zip(config.arms, arms_of(run), strict=True):
        found = read_arm(run / "arms" / described["slug"])
        assert found.arm == arm.seeded(config.seed, config.heartbeat_us, 100_000, live=False)
        assert found.virtual is not None
        assert (found.virtual.drain_us, found.virtual.message_us) == (500_000, 300)
