"""`python -m flowsolver solve FILE|-`: solves a DIMACS min-cost flow file."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from flowsolver.dimacs import DimacsProblem, parse_dimacs, write_dimacs_solution
from flowsolver.solution import STATUS_TEXT, Certificate, Status, algorithms, certify, solve

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_BAD_INPUT = 2
_SELF_CHECK_FAILED = 1
_UNREAD = 1  # as typer has it
_INTERRUPTED = 130
_USAGE_ERRORS: tuple[Any, ...] = typer.BadParameter.__bases__  # typer brings UsageError along, but under no public name


@app.callback()
def main() -> None:
    """Min-cost max-flow on integer networks."""


@app.command("solve")
def solve_command(
    file: Annotated[str, typer.Argument(help="DIMACS min file, or - for standard input")],
    algorithm: Annotated[
        str, typer.Option(help="see the error message of an unknown one for the list")
    ] = "incremental_ssp",
    check: Annotated[bool, typer.Option("--certify", help="prove the answer optimal before printing it")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print cost, solve_ms and status as JSON")] = False,
) -> None:
    """Prints the optimal flow in DIMACS form (s <cost>, then f <tail> <head> <flow>).

    Exit status 2 for a malformed file or a network without an answer, with one line on standard error.
    """
    known = algorithms()
    if algorithm not in known:
        _refuse(f'--algorithm: no algorithm "{algorithm}"; known: {", ".join(known)}')
    name = "<stdin>" if file == "-" else file
    problem = _read(file, name)
    start = time.perf_counter()
    solution = solve(problem.network, algorithm)
    solve_ms = (time.perf_counter() - start) * 1e3
    optimal = solution.status is Status.OPTIMAL
    certificate = certify(problem.network, solution) if check and optimal else None
    if as_json:
        answer: dict[str, object] = {
            "status": solution.status.name,
            "cost": solution.cost + problem.base_cost if optimal else None,
            "solve_ms": round(solve_ms, 3),
        }
        if certificate is not None:
            answer["certified"] = certificate.ok
        print(json.dumps(answer))
    if not optimal:
        _refuse(f"{name}: {STATUS_TEXT[solution.status]}")
    if certificate is not None and not certificate.ok:
        print(_certificate_text(certificate), file=sys.stderr)
        raise typer.Exit(_SELF_CHECK_FAILED)
    if not as_json:
        sys.stdout.buffer.write(write_dimacs_solution(problem, solution))


def _read(file: str, name: str) -> DimacsProblem:
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return parse_dimacs(text, name)
    except OSError as error:
        _refuse(f"{name}: {error.strerror}")
    except MemoryError:
        _refuse(f"{name}: not enough memory for a network of this size")
    except ValueError as error:
        _refuse(str(error))


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(_BAD_INPUT)


def _certificate_text(certificate: Certificate) -> str:
    return (
        f"the answer failed its certificate: {certificate.capacity_violations} capacity, "
        f"{certificate.balance_violations} balance and {certificate.slackness_violations} slackness violations, "
        f"costs {'agree' if certificate.costs_agree else 'differ'}"
    )


def run(arguments: Sequence[str] | None = None) -> int:
    """The command on these arguments (unset: the process's). One line on standard error tells what is wrong. Returns its exit status."""
    try:
        status: int = app(args=arguments, standalone_mode=False) or 0
        sys.stdout.flush()
    except _USAGE_ERRORS as error:
        print(f"{error.format_message().rstrip('.')} (--help tells the options)", file=sys.stderr)
        return _BAD_INPUT
    except MemoryError:
        print("not enough memory for a network of this size", file=sys.stderr)
        return _BAD_INPUT
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still held goes nowhere
        if isinstance(error, BrokenPipeError):  # whoever read the answer has seen enough
            return _UNREAD
        print(f"standard output: {error.strerror}", file=sys.stderr)
        return _BAD_INPUT
    except (typer.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(run())
