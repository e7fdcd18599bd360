"""Shared by the commands: exit statuses, reading and writing problems, error messages."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import NoReturn

import typer

from flowsolver.choices import AlgorithmChoice, parse_algorithms
from flowsolver.commands.stop_signals import holding_stop_signals
from flowsolver.problem_files import DimacsProblem, parse_problem

SELF_CHECK_FAILED = 1
UNREAD = 1  # as typer has it
BAD_INPUT = 2  # or a network without an answer
OVER_BUDGET = 3
INTERRUPTED = 130


def print_error(message: str) -> int:
    """Print an error to standard error. Return the exit status for bad input."""
    print(f"error: {message}", file=sys.stderr)
    return BAD_INPUT


def refuse(message: str) -> NoReturn:
    """Print an error to standard error and exit with status 2 (bad input)."""
    raise typer.Exit(print_error(message))


def algorithm_of(option: str, text: str) -> tuple[AlgorithmChoice, ...]:
    """The algorithm, or those of a race joined by +, with their settings. Refuses what
    `parse_algorithms` does.
    """
    try:
        return parse_algorithms(text)
    except ValueError as error:
        refuse(f"{option}: {error}")


def display_name(file: str) -> str:
    """The name of a file for messages; - is standard input."""
    return "<stdin>" if file == "-" else file


def read_problem(file: str) -> DimacsProblem:
    """Read a problem from a DIMACS or .npz file; - is standard input. Refuses bad input."""
    name = display_name(file)
    if file == "-" and sys.stdin is None:
        refuse(f"{name}: closed")
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return parse_problem(data, name)
    except OSError as error:
        refuse(f"{name}: {error.strerror or error}")
    except MemoryError as error:
        refuse(str(error) or f"{name}: not enough memory for a network of this size")
    except ValueError as error:
        refuse(str(error))


def write_file(file: str, data: bytes) -> None:
    """Write a file; - is standard output. A regular file is written completely or not at all."""
    if file == "-":
        left = memoryview(data)
        while left:  # unbuffered (PYTHONUNBUFFERED), a call may write a part only
            left = left[sys.stdout.buffer.write(left) :]
        return
    path = Path(file)
    try:
        if path.exists() and not path.is_file():  # a device, a pipe; a directory refuses
            path.write_bytes(data)
            return
        unfinished = path.with_name(path.name + ".partial")
        with holding_stop_signals():
            try:
                unfinished.write_bytes(data)
                os.replace(unfinished, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    unfinished.unlink(missing_ok=True)
                raise
    except OSError as error:
        refuse(f"{file}: {error.strerror}")
    except ValueError as error:  # no name of a file
        refuse(f"{file!r}: {error}")
