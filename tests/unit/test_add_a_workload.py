"""The reader of docs/add_a_workload.md, as a package of somebody else: it keeps the contract,
and says what is wrong with a file in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.workloads import registry
from experiments.workloads.conformance import check_workload
from shared_state.errors import AgoraError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "workloads"
PAGE = ROOT / "docs" / "add_a_workload.md"


@pytest.fixture
def spec(
    example_site: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> registry.WorkloadSpec:
    monkeypatch.syspath_prepend(example_site("workloads"))
    monkeypatch.delitem(sys.modules, "csv_trace", raising=False)
    return registry.get("csv_trace")


def test_the_page_shows_the_example_whole_and_it_is_short() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in ("csv_trace/__init__.py", "pyproject.toml"):
        assert (EXAMPLE / name).read_text(encoding="utf-8") in page
    assert len((EXAMPLE / "csv_trace" / "__init__.py").read_text().splitlines()) < 60


def test_the_example_keeps_the_contract(spec: registry.WorkloadSpec) -> None:
    workload = check_workload(spec, {"file": EXAMPLE / "tasks.csv", "machines": 25})
    text = (EXAMPLE / "tasks.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split(",") for line in text]
    assert len(workload.tasks) == len(rows) == 499
    assert workload.cell.dimensions == ("cpu_milli", "mem_mib")
    assert workload.tasks.submit_us.tolist() == [round(float(row[1]) * 1e6) for row in rows]
    assert workload.tasks.request.tolist() == [[int(row[3]), int(row[4])] for row in rows]
    # the tasks of a job came together, so there is one batch for each
    assert len(workload.arrival_us) == len({row[0] for row in rows})


HEADER = "job,submit_s,run_s,cpu_milli,mem_mib"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": expected a line with the names of the columns, got nothing"),
        (f"{HEADER}\n", ": holds no rows"),
        ("job,submit_s\n1,2\n", ", line 1: no column named run_s; its columns: job, submit_s"),
        (f"{HEADER},job\n1,2,3,4,5,6\n", ", line 1: more than one column named job; its columns"),
        (f"{HEADER}\n1,0,1,1,1\n1,-2,1,1,1\n", ", line 3, submit_s: '-2', expected a number in"),
        (f"{HEADER}\n1,0,x,1,1\n", ", line 2, run_s: 'x', expected a number in [0, 1e+09]"),
        (f"{HEADER}\n1,0,nan,1,1\n", ", line 2, run_s: 'nan', expected a number in"),
        (f"{HEADER}\n1,0,inf,1,1\n", ", line 2, run_s: 'inf', expected a number in"),
        (f"{HEADER}\n1,0,1,,1\n", ", line 2, cpu_milli: nothing, expected an integer in"),
        (f"{HEADER}\n1,0,1,-1,1\n", ", line 2, cpu_milli: '-1', expected an integer in [0, 10000"),
        (f"{HEADER}\n1,0,1,1.5,1\n", ", line 2, cpu_milli: '1.5', expected an integer"),
        (f"{HEADER}\n1,0,1,1,1\n1,0,1,1\n", ", line 3: expected 5 fields, got 4"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(
    spec: registry.WorkloadSpec, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "tasks.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AgoraError) as refused:
        spec.make(spec.parse_options({"file": file}), seed=1)
    assert str(refused.value).startswith(f"{file}{says}") and "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_not_compressed(
    spec: registry.WorkloadSpec, tmp_path: Path
) -> None:
    (tmp_path / "tasks.csv.gz").write_text(HEADER)
    for name, says in (("gone.csv", "No such file"), (".", "Is a dir"), ("tasks.csv.gz", "gzip")):
        with pytest.raises(AgoraError, match=says):
            spec.make(spec.parse_options({"file": tmp_path / name}), seed=1)


def test_columns_may_stand_in_any_order_among_others(
    spec: registry.WorkloadSpec, tmp_path: Path
) -> None:
    file = tmp_path / "tasks.csv"
    file.write_bytes(
        b"\xef\xbb\xbfnote,mem_mib,cpu_milli,run_s, submit_s,job\r\n"
        b"late,2,1,0,7.5,4\r\nearly,20,10,1e-3,0.25,4\r\n"
    )
    workload = spec.make(spec.parse_options({"file": file, "speedup": 2}), seed=1)
    assert workload.tasks.submit_us.tolist() == [125_000, 3_750_000]
    assert workload.tasks.request.tolist() == [[10, 20], [1, 2]]
    assert workload.duration_us.tolist() == [500, 1] and workload.end_us == 3_750_001
    assert np.array_equal(workload.tasks.job, [0, 0])
