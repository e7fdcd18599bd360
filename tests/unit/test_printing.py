"""Printing never ends a command."""

from __future__ import annotations

import io
import sys

import pytest

from parsync.runtime.command_line import print_what_can_be_encoded

TEXT = "★ ∞ é"


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [("ascii", b"? ? ?"), ("latin-1", b"? ? \xe9"), ("cp1252", b"? ? \xe9")],
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_characters_that_an_encoding_lacks_are_question_marks(
    monkeypatch: pytest.MonkeyPatch, encoding: str, printed: bytes, stream: str
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, stream, io.TextIOWrapper(written, encoding))
    print_what_can_be_encoded()
    print(TEXT, file=getattr(sys, stream), end="", flush=True)
    assert written.getvalue() == printed


@pytest.mark.parametrize(
    ("errors", "printed"), [("strict", b"?.toml"), ("surrogateescape", b"\xff.toml")]
)
def test_names_of_files_that_are_no_text_are_printed(
    monkeypatch: pytest.MonkeyPatch, errors: str, printed: bytes
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "utf-8", errors))
    print_what_can_be_encoded()
    print("\udcff.toml", end="", flush=True)
    assert written.getvalue() == printed
