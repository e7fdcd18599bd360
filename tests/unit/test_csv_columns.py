"""CSV files as people have them: quotes, blank lines, other encodings, compression. Each is read,
or refused in one line that says why."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.workloads.building import arriving_tasks, equal_machines
from experiments.workloads.csv_columns import (
    integer_column,
    number_column,
    read_columns,
    read_named_columns,
)
from shared_state.errors import AgoraError

COLUMNS = (integer_column("job"), number_column("run_s"))
TEXT = "job,note,run_s\n7,a,1.5\n9,b,2\n"


def read(path: Path, content: bytes) -> dict[str, list[float]]:
    path.write_bytes(content)
    return {name: column.tolist() for name, column in read_named_columns(path, COLUMNS).items()}


def refusal(path: Path, content: bytes) -> str:
    with pytest.raises(AgoraError) as refused:
        read(path, content)
    message = str(refused.value)
    assert message.startswith(str(path)) and message.isprintable()
    return message.removeprefix(str(path))


@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(str.encode, id="plain"),
        pytest.param(lambda text: (text + "\n").encode(), id="a blank last line"),
        pytest.param(lambda text: (text + "\r\n \t\n\n").encode(), id="several blank last lines"),
        pytest.param(lambda text: text.rstrip().encode(), id="no end of line at the end"),
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="CR LF"),
        pytest.param(lambda text: text.replace("\n", "\r").encode(), id="CR"),
        pytest.param(lambda text: text.encode("utf-8-sig"), id="UTF-8 with a byte order mark"),
        pytest.param(lambda text: text.encode("utf-16"), id="UTF-16"),
        pytest.param(lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"), id="UTF-16 BE"),
        pytest.param(lambda text: text.encode("utf-32"), id="UTF-32"),
        pytest.param(lambda text: gzip.compress(text.encode()), id="gzip without .gz"),
        pytest.param(lambda text: gzip.compress(text.encode("utf-16")), id="gzip of UTF-16"),
        pytest.param(
            lambda text: text.replace("job,note,run_s", '"job","note","run_s"').encode(),
            id="a quoted header",
        ),
        pytest.param(
            lambda text: text.replace(",note,", ',"a ""note"",\nin two lines",').encode(),
            id="a line break in a quoted header",
        ),
        pytest.param(
            lambda text: text.replace("7,a,1.5", '"7","a, ""b""\nand c","1.5"').encode(),
            id="quoted fields",
        ),
        pytest.param(
            lambda text: text.replace("7,a,", '7,5" disk,').encode(), id="a quote inside a field"
        ),
    ],
)
def test_the_same_table_in_other_clothes(tmp_path: Path, encode: Callable[[str], bytes]) -> None:
    assert read(tmp_path / "tasks.csv", encode(TEXT)) == {"job": [7, 9], "run_s": [1.5, 2.0]}


REFUSED = [
    (
        b"job,\x1b]0;pwned\x07run_s,\x1b[31mnote\n1,1,1\n",
        ", line 1: no column named run_s; its columns: job, \\x1b]0;pwned\\x07run_s, \\x1b[31mnote",
    ),
    (b"job,run_s\n1,\x1b[31m\n", ", line 2, run_s: '\\x1b[31m', expected a number"),
    (
        b"job,run_s\n9223372036854775808,1\n",
        ", line 2, job: '9223372036854775808', expected an integer in [0, 2^63 - 1]",
    ),
    (b'job,run_s\n1,2\n"3,4\n5,6\n', ", line 3: not CSV: a quote that is not closed"),
    (b'note,job,run_s\na,1,2\n"b,3,4\nc,5,6\n', ", line 3: not CSV: a quote that is not"),
    (b'note,job,run_s\n"a"b,1,2\n"c,3,4\n', ", line 2: not CSV: "),
    (
        # two rows that could be taken for one
        b'note,job,run_s\n"a,1,2\n"b"",3,4\n',
        ", line 2: not CSV: ',' expected after",
    ),
    (b'"job,run_s\n1,2\n', ", line 1: not CSV: a quote that is not closed"),
    (b'note,job,run_s\n"a\nb",1,2\nc,1,x\n', ", line 4, run_s: 'x', expected a number"),
    (b'"a\nnote",job,run_s\nc,1,x\n', ", line 3, run_s: 'x', expected a number"),
    (b"job,run_s\n1,2\n\n3,4\n", ", line 3: expected 2 fields, got 1"),
    (TEXT.encode("utf-16-le"), ": no text (it has zero bytes); save it as UTF-8"),
    (codecs.BOM_UTF16_LE + b"j\0o\0b", ": not UTF-16 text: "),
    (bz2.compress(TEXT.encode()), ": compressed with bzip2; unpack it first"),
    (lzma.compress(TEXT.encode()), ": compressed with xz; unpack it first"),
    (b"PK\x03\x04....", ": a zip archive or a spreadsheet; save the table as CSV"),
    (gzip.compress(TEXT.encode())[:-9], ", line 4: truncated or damaged gzip data"),
    (b"\n\n", ": expected a line with the names of the columns, got nothing"),
]


@pytest.mark.parametrize(("content", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_cannot_be_read_is_said_in_one_printable_line(
    tmp_path: Path, content: bytes, says: str
) -> None:
    assert says in refusal(tmp_path / "tasks.csv", content)


def test_a_header_is_skipped_where_columns_are_known_by_their_position(tmp_path: Path) -> None:
    path, columns = tmp_path / "rows.csv", {0: integer_column("job ID"), 2: COLUMNS[1]}
    for header in ("", "job_id,note,run_s\n", '"jobID","a\nnote","run_s"\n'):
        path.write_text(header + "7,a,1.5\n9,b,2\n")
        assert read_columns(path, 3, columns)["job ID"].tolist() == [7, 9]
        path.write_text(header + "7,a,1.5\n9,b,x\n")
        with pytest.raises(AgoraError, match=f", line {2 + header.count(chr(10))}, run_s: 'x'"):
            read_columns(path, 3, columns)
    path.write_text("run_s,note,job_id\n1.5,a,7\n")
    with pytest.raises(AgoraError, match="line 1: job ID is column 3, expected column 1"):
        read_columns(path, 3, columns)


def test_blank_lines_by_the_million_cost_no_time(tmp_path: Path) -> None:
    assert read(tmp_path / "tasks.csv", TEXT.encode() + b"\n" * 1_000_000)["job"] == [7, 9]


def test_unsigned_integers_that_do_not_fit_are_refused_not_wrapped() -> None:
    job = np.array([1, 1 << 63], np.uint64)
    with pytest.raises(AgoraError, match=r"job: expected integers up to 2\^63 - 1, got 9223372036"):
        arriving_tasks(
            "own", equal_machines(1, {"slots": 1}), [0, 1], [1, 1], {"slots": [1, 1]}, job
        )
