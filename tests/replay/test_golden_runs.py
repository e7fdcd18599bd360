"""Whole runs against tests/golden/runs.json: the same seed gives the same run, today as when it was
written down, on any machine.

Each run has three digests. `outcome` covers what happened on the cell (commits, syncs and ends in
order, with their times) and no encoding: it changes only with behaviour. `digest` covers the bytes
of the event log: it changes with the encoding of events, too. `records` covers the rows of all
tables, in order, as the run hands them out. Each run of tests/fixtures/golden_features.py is there
for a feature, which it must be seen to use. When a digest changes on purpose, say so in
CHANGELOG.md and renew them:

    python -m tests.replay.test_golden_runs > tests/golden/runs.json
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from experiments.config.presets import SHARED_PRICES
from experiments.workloads.google2011 import Google2011Options, load
from parsync.core.codec import CORE
from parsync.metrics.record import Record
from parsync.runtime.arm_directory import read_assembly
from parsync.runtime.effect_interpreter import RecordListener
from parsync.runtime.live.cell import CellRuntime, hosts_of, replay_frame
from parsync.runtime.live.logs import CELL_LOG, read_cell_log
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import ArmConfig
from parsync.workload.workload import Workload
from shared_state.journal import read_journal
from tests.fixtures.feature_runs import FeatureRun, Seen, guests
from tests.fixtures.golden_features import FEATURES
from tests.fixtures.google2011_files import (
    FINISH,
    SCHEDULE,
    SECOND,
    SUBMIT,
    WINDOW,
    machine_row,
    task_row,
    write_trace,
)
from tests.fixtures.hand_driven_run import HOSTS, write_run
from tests.fixtures.outcome_digest import (
    DigestObserver,
    ObservedMaster,
    OutcomeDigest,
    RecordDigest,
)
from tests.fixtures.overloaded_cell import OPTIONS, arm, failing_workload
from tests.fixtures.overloaded_cell import group as make_group

GOLDEN = Path(__file__).parents[1] / "golden" / "runs.json"
SCORED = OPTIONS.model_copy(update={"slot_score_variance": 2.0, "preference_groups": 0})
GANGS = OPTIONS.model_copy(update={"load_percent": (60, 130, 20), "gang_permille": 500})

group = partial(make_group, head_of_line_s=0)  # strict order, as when they were written down
QUALITY = group(strategy="quality_first")
ADAPTIVE = group(strategy="adaptive", tau_s=0.02)
FLOW = group("flow", 1, name="flow", share=0.25, cut_at_sync=False)
OMEGA = group(
    losers="requeue", requeue_s=0.03, conflict_check="sequence_number", commit_pipelining=False
)


def trace_workload() -> Workload:
    """A tiny trace on 6 machines of 3 slots: 30 jobs of four tasks a second, 5 s each, the first
    three of them waiting as the window opens."""
    rows: list[tuple[int, str]] = []
    for job in range(30):
        at = 0 if job < 3 else WINDOW + job * SECOND
        for index in range(4):
            rows.append((at, task_row(at, 100 + job, index, SUBMIT)))
            start = max(at, WINDOW + SECOND // 2)
            rows.append((start, task_row(start, 100 + job, index, SCHEDULE, machine=7)))
            end = start + 5 * SECOND
            rows.append((end, task_row(end, 100 + job, index, FINISH, machine=7)))
    rows.sort(key=lambda row: row[0])
    machines = [machine_row(0, 7 + number, 0) for number in range(6)]
    with tempfile.TemporaryDirectory() as directory:
        write_trace(Path(directory), machines, [row for _, row in rows])
        return load(
            Google2011Options(directory=Path(directory), speedup=10, resources="slots=3"), seed=3
        )


def synthetic(options: object = OPTIONS) -> Callable[[], Workload]:
    return partial(failing_workload, options)


VIRTUAL: dict[str, tuple[Callable[[], Workload], ArmConfig, int]] = {
    "ParSync adaptive": (synthetic(), arm("diff_block", ADAPTIVE), 0),
    "StateSync weighted sampling with slot scores": (
        synthetic(SCORED),
        arm("state_aligned", group("weighted_sampling")),
        0,
    ),
    "mix with flow": (
        synthetic(),
        arm("diff_block", ADAPTIVE.model_copy(update={"share": 0.75}), FLOW),
        0,
    ),
    "StateSync staggered latency-first": (
        synthetic(),
        arm("state_staggered", group(strategy="latency_first")),
        0,
    ),
    "DiffSyn by single partitions": (synthetic(), arm("diff_single", QUALITY), 0),
    "DiffSyn, freshest-preferred with shared prices": (
        synthetic(),
        arm("diff_block", group(strategy="freshest_preferred", options=SHARED_PRICES)),
        0,
    ),
    "DiffSyn, prompt": (synthetic(), arm("diff_block", group(strategy="prompt")), 0),
    "SameSyn": (synthetic(), arm("same_block", QUALITY), 0),
    "Omega: sync at every attempt, requeue, sequence numbers": (
        synthetic(),
        arm("every_attempt", OMEGA),
        0,
    ),
    "Omega with message time": (synthetic(), arm("every_attempt", OMEGA), 700),
    "sequence numbers while commits are pipelined": (
        synthetic(),
        arm("diff_block", group("best_fit", conflict_check="sequence_number")),
        400,
    ),
    "requeue under periodic syncs": (
        synthetic(),
        arm("state_aligned", group("load_spreading", losers="requeue", requeue_s=0.02)),
        0,
    ),
    "waiting for each commit, with message time": (
        synthetic(),
        arm("diff_block", group(strategy="quality_first", commit_pipelining=False)),
        400,
    ),
    "uncut rounds, freed slots seen at once": (
        synthetic(),
        arm("diff_block", group("first_fit", cut_at_sync=False, freed_at_once=True)),
        0,
    ),
    "gangs, all or nothing": (
        synthetic(GANGS),
        arm("diff_block", group(strategy="quality_first", commit_mode="all_or_nothing")),
        0,
    ),
    "preemption": (
        synthetic(),
        arm("state_aligned", group("flow", 2, options={"preemption": True})),
        0,
    ),
    "load spreading by flow": (
        synthetic(),
        arm("state_aligned", group("flow_load_spreading", 1)),
        0,
    ),
    "a trace": (trace_workload, arm("diff_block", group("randomized_first_fit")), 0),
}
LIVE = "a live log, its cell killed once"
Summary = dict[str, str | int]


def virtual_run(name: str) -> Summary:
    """What is pinned of a run in virtual time: most on an overloaded cell in which three machines
    fail and come back."""
    make_workload, config, message_us = VIRTUAL[name]
    run = FeatureRun(lambda: config, lambda _: True, make_workload, message_us)
    return summary_of(run, lambda _: None)


def summary_of(run: FeatureRun, on_record: RecordListener) -> Summary:
    """What is pinned of such a run. on_record: is given its measurements, too."""
    observed, records = OutcomeDigest(), RecordDigest()

    def take(record: Record) -> None:
        records.add(record)
        on_record(record)

    outcome = run_virtual(
        run.spec(),
        run.make_workload(),
        run.drain_us,
        take,
        lambda _: None,
        run.message_us,
        DigestObserver(observed),
        calibration=run.calibration,
    )
    return _summary(observed, records) | {"events": outcome.events, "digest": outcome.digest}


def feature_run(name: str) -> tuple[Summary, Seen]:
    """What is pinned of a run of FEATURES, and what it recorded."""
    run = FEATURES[name]
    with guests():
        seen = Seen(run.make_workload(), run.spec())
        return summary_of(run, seen.take), seen


def live_log(directory: Path) -> Summary:
    """What is pinned of the cell's log of a live run, replayed."""
    write_run(directory)
    assembly, _ = read_assembly(directory)
    observed, records = OutcomeDigest(), RecordDigest()
    master = ObservedMaster(assembly.master(), DigestObserver(observed))
    runtime = CellRuntime(CORE, master, hosts_of(HOSTS), len(assembly.workload.tasks), records.add)
    frames = read_cell_log(directory / CELL_LOG)
    next(frames)
    assert all(replay_frame(runtime, frame) for frame in frames)
    content = hashlib.blake2b(digest_size=16)
    for payload in read_journal(directory / CELL_LOG):
        content.update(payload)
    return _summary(observed, records) | {
        "steps": runtime.steps,
        "digest": content.hexdigest(),
    }


def _summary(observed: OutcomeDigest, records: RecordDigest) -> Summary:
    return {
        "records": records.hexdigest(),
        "commits": observed.commits,
        "rejected": observed.rejected,
        "evicted": observed.evicted,
        "syncs": observed.syncs,
        "ends": observed.ends,
        "outcome": observed.hexdigest(),
    }


def _golden(name: str) -> Summary:
    summary: Summary = json.loads(GOLDEN.read_text(encoding="utf-8"))[name]
    return summary


@pytest.mark.parametrize("name", VIRTUAL)
def test_the_run_is_the_golden_one(name: str) -> None:
    assert virtual_run(name) == _golden(name)


@pytest.mark.parametrize("name", FEATURES)
def test_the_run_uses_its_feature_and_is_the_golden_one(name: str) -> None:
    summary, seen = feature_run(name)
    assert FEATURES[name].shows(seen), "the run is empty of what it is for"
    assert summary == _golden(name)


def test_the_live_log_is_the_golden_one(tmp_path: Path) -> None:
    assert live_log(tmp_path) == _golden(LIVE)


if __name__ == "__main__":
    summaries = {name: virtual_run(name) for name in VIRTUAL}
    with tempfile.TemporaryDirectory() as directory:
        summaries[LIVE] = live_log(Path(directory))
    summaries |= {name: feature_run(name)[0] for name in FEATURES}
    print(json.dumps(summaries, indent=2))
