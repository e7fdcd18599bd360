"""Errors a person can act on: the command line prints them as one line and exits with status 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class AgoraError(Exception):
    """Bad input. The message names the file, line or field and says what was expected."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn any exception of the block into an AgoraError that begins with `what`.

    For readers that others wrote (archives, Parquet): which exceptions they raise for a damaged
    file is theirs to choose, and changes with their version. Exceptions that are an AgoraError
    already stay as they are.
    """
    try:
        yield
    except AgoraError:
        raise
    except OSError as error:
        raise AgoraError(f"{what}: {error.strerror or first_line(error)}") from error
    except Exception as error:
        raise AgoraError(f"{what}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """The first line of an exception's message; the name of its type if it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def printable(text: str) -> str:
    """The text with escapes in place of characters that a terminal may act on, or not print."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
