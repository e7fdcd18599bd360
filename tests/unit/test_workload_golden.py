"""Same options and seed, same workload, on any machine: digests over every column against
tests/golden/workloads.json.

A change of these digests changes every result that stands on a seed: say so in CHANGELOG.md, then
take the digests the failure prints.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest

from experiments.workloads.google2011 import Google2011Options, load
from experiments.workloads.service_batch import SPEC as SERVICE_BATCH
from experiments.workloads.synthetic import SyntheticOptions, demo_options, generate, paper_options
from parsync.workload.workload import Workload
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

GOLDEN = Path(__file__).parents[1] / "golden" / "workloads.json"


def digest(workload: Workload) -> str:
    """blake2b over every column (name, shape, little-endian int64 values) and every plain value but
    the facts for the report and what the workload does not have (None)."""
    hasher = hashlib.blake2b(digest_size=16)

    def feed(name: str, value: object) -> None:
        if isinstance(value, np.ndarray):
            hasher.update(f"{name}{value.shape}".encode())
            hasher.update(np.ascontiguousarray(value, "<i8").tobytes())
        elif is_dataclass(value):
            for field in fields(value):
                part = getattr(value, field.name)
                if field.name != "facts" and part is not None:
                    feed(f"{name}.{field.name}", part)
        else:
            hasher.update(f"{name}={value!r}".encode())

    feed("workload", workload)
    return hasher.hexdigest()


def trace(folder: Path) -> Workload:
    """A little trace with tasks of all lengths, so that data of one to three blocks are placed on
    90 machines."""
    machines = [machine_row(0, 10 + 7 * k, ADD) for k in range(90)]
    tasks = [
        task_row(0, 1, k, event, 10 + 7 * (k % 90), priority=k % 3)
        for k in range(200)
        for event in (SUBMIT, SCHEDULE)
    ]
    tasks += [
        task_row(WINDOW + (k + 1) * 60 * SECOND, 1, k, FINISH, 10 + 7 * (k % 90))
        for k in range(200)
    ]
    write_trace(folder, machines, tasks)
    return load(Google2011Options(directory=folder, resources="slots=2"), seed=3)


def variety() -> Workload:
    options = SyntheticOptions(
        machines=500,
        slot_score_variance=2.0,
        poisson_arrivals=True,
        service_permille=50,
        gang_permille=100,
        no_preference_permille=100,
        preference_zipf=1.3,
        rack_cost=300,
    )
    return generate(options, seed=11)


def service_batch() -> Workload:
    options = {
        "duration_s": 3600.0,
        "batch": {"pickiness": 0.5, "constrained_permille": 500},
        "service": {"pickiness": 0.75},
        "initial_fill_percent": 40,
    }
    return SERVICE_BATCH.make(SERVICE_BATCH.parse_options(options), 5)


MADE = {
    "demo, seed 1": lambda _: generate(demo_options(), 1, name="demo"),
    "demo, quick, seed 2": lambda _: generate(demo_options(quick=True), 2, name="demo"),
    "paper, 2 s, seed 1": lambda _: generate(paper_options().with_duration(2.0), 1, name="paper"),
    "every option, seed 11": lambda _: variety(),
    "trace, seed 3": trace,
    "service and batch, seed 5": lambda _: service_batch(),
}


@pytest.mark.parametrize("name", MADE)
def test_the_workload_is_the_golden_one(name: str, tmp_path: Path) -> None:
    assert {name: digest(MADE[name](tmp_path))} == {name: json.loads(GOLDEN.read_text())[name]}
