"""What is wrong with a trace folder is told by file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from experiments.workloads.google2011_tables import read_trace
from shared_state.errors import AgoraError
from tests.fixtures.google2011_files import (
    ADD,
    JOB_EVENTS,
    MACHINE_EVENTS,
    SCHEDULE,
    SUBMIT,
    TASK_EVENTS,
    WINDOW,
    machine_row,
    task_row,
    write_gzip,
    write_trace,
)

MACHINES = [machine_row(0, 5, ADD), machine_row(0, 7, ADD)]
TASKS = [task_row(0, 1, index, event, 5) for index in range(200) for event in (SUBMIT, SCHEDULE)]
TASKS.append(task_row(WINDOW + 5, 1, 0, 4, 5))


def refusal(folder: Path) -> str:
    with pytest.raises(AgoraError) as caught:
        read_trace(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def with_tasks(folder: Path, rows: list[str]) -> str:
    write_trace(folder, MACHINES, rows)
    return refusal(folder)


@pytest.mark.parametrize("path", [MACHINE_EVENTS, TASK_EVENTS], ids=str)
def test_a_missing_file(tmp_path: Path, path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    (tmp_path / path).unlink()
    assert refusal(tmp_path).endswith(f"lacks {path.parent}/part-*.csv.gz")
    (tmp_path / path).mkdir()
    assert refusal(tmp_path).endswith(f"lacks {path.parent}/part-*.csv.gz")


def test_a_part_missing_in_the_middle_or_there_twice(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    folder = (tmp_path / TASK_EVENTS).parent
    for number in (2, 5):
        write_gzip(folder / f"part-{number:05}-of-00500.csv.gz", TASKS[-1] + "\n")
    assert "task_events: part 1 is missing; add what is missing, or take out" in refusal(tmp_path)
    write_gzip(folder / "part-00001-of-00500.csv.gz", TASKS[-1] + "\n")
    assert "task_events: parts 3 to 4 are missing; add what is missing" in refusal(tmp_path)
    (folder / "part-00001-of-00500.csv").write_text(TASKS[-1] + "\n")
    assert "part-00001-of-00500.csv and part-00001-of-00500.csv.gz are the same part" in refusal(
        tmp_path
    )


def test_a_part_that_goes_back_in_time(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    path = tmp_path / TASK_EVENTS.with_name("part-00001-of-00500.csv.gz")
    write_gzip(path, TASKS[0] + "\n")
    assert refusal(tmp_path) == (
        f"{path}: begins at 0 us, before the last row of {TASK_EVENTS.name} at {WINDOW + 5} us"
    )


def test_a_missing_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none").endswith("no such trace directory")


@pytest.mark.parametrize(
    ("position", "field", "text", "expected"),
    [
        (0, "time", "12.5", "a time in microseconds"),
        (0, "time", "-3", "a time in microseconds"),
        (0, "time", "", "a time in microseconds"),
        (2, "job ID", "seven", "an integer"),
        (2, "job ID", "", "an integer"),
        (2, "job ID", "99999999999999999999", "an integer"),
        (3, "task index", "1e3", "an integer in"),
        (4, "machine ID", "-1", "an integer"),
        (5, "event type", "9", "an integer in [0, 8]"),
        (8, "priority", "high", "an integer in"),
        (9, "CPU request", "nan", "a number in [0, 1]"),
        (9, "CPU request", "-0.5", "a number in [0, 1]"),
        (10, "memory request", "inf", "a number in [0, 1]"),
        (10, "memory request", "1.5", "a number in [0, 1]"),
        (10, "memory request", "0.1.2", "a number in [0, 1]"),
        (12, "different machines restriction", "2", "an integer in [0, 1]"),
    ],
)
def test_a_malformed_field(
    tmp_path: Path, position: int, field: str, text: str, expected: str
) -> None:
    rows = list(TASKS)
    fields = rows[300].split(",")
    fields[position] = text
    rows[300] = ",".join(fields)
    message = with_tasks(tmp_path, rows)
    assert (
        f"{TASK_EVENTS}, line 301, {field}: {repr(text) if text else 'nothing'}, expected "
        f"{expected}" in message
    )


@pytest.mark.parametrize(
    ("row", "fields"), [("0,,1", 3), ("", 1), (TASKS[0] + ",x", 14), ('"0,0",' + TASKS[0], 14)]
)
def test_a_row_of_another_width(tmp_path: Path, row: str, fields: int) -> None:
    rows = list(TASKS)
    rows[17] = row
    assert f"{TASK_EVENTS}, line 18: expected 13 fields, got {fields}" in with_tasks(tmp_path, rows)


def test_a_last_row_cut_short(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    write_gzip(tmp_path / TASK_EVENTS, "\n".join(TASKS)[:-30])
    assert f"line {len(TASKS)}: " in refusal(tmp_path)


def test_truncated_gzip(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    path = tmp_path / TASK_EVENTS
    # Incompressible names, so that a cut in the middle of the file is a cut in the middle of the
    # rows.
    rows = [row.replace("user=", f"{hash_like(number)}") for number, row in enumerate(TASKS)]
    write_gzip(path, "\n".join(rows) + "\n")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    message = refusal(tmp_path)
    line = int(message.split("line ")[1].split(":")[0])
    assert "truncated or damaged gzip data" in message and 50 < line < 350


def hash_like(number: int) -> str:
    return format((number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128), "032x")


def test_damaged_gzip(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    path = tmp_path / TASK_EVENTS
    whole = bytearray(path.read_bytes())
    whole[-6] ^= 0xFF  # in the checksum
    path.write_bytes(whole)
    assert f"line {len(TASKS) + 1}: truncated or damaged gzip data" in refusal(tmp_path)


def test_a_file_that_is_not_gzip(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    (tmp_path / MACHINE_EVENTS).write_text("0,5,0,p,0.5,0.5\n")
    assert f"{MACHINE_EVENTS}, line 1: truncated or damaged gzip data" in refusal(tmp_path)


def test_an_empty_file(tmp_path: Path) -> None:
    write_trace(tmp_path, MACHINES, TASKS)
    with gzip.open(tmp_path / JOB_EVENTS, "wb"):
        pass
    assert refusal(tmp_path).endswith(f"{JOB_EVENTS}: holds no rows")
