"""`python -m flowsolver solve FILE|-`: the optimal flow of a problem, as cs2 gives it."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, TypedDict

import numpy as np
import typer

from flowsolver.commands.common import (
    OVER_BUDGET,
    SELF_CHECK_FAILED,
    algorithm_of,
    display_name,
    read_problem,
    refuse,
    write_file,
)
from flowsolver.problem_files import DimacsProblem, unsent, write_dimacs_solution
from flowsolver.solution import (
    STATUS_TEXT,
    Certificate,
    CutCertificate,
    Solution,
    Status,
    algorithms,
    certify,
    certify_cut,
    describe_cut,
    explain,
    solve,
    solve_max_flow,
)

_WIDTH = max(map(len, algorithms()))
ALGORITHMS_TEXT = "\b\nAlgorithms:\n" + "\n".join(
    f"  {name:{_WIDTH}}  {what}" for name, what in algorithms().items()
)

_NODES_NAMED = 5  # of a cut, in a message


class _Budget(TypedDict):
    max_operations: int | None
    max_seconds: float | None


def solve_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="DIMACS min file or .npz (see convert), or - for standard input"
        ),
    ] = "-",
    algorithm: Annotated[
        str,
        typer.Option(
            metavar="A",
            help="algorithm, listed below; A+B races several on threads, the first answer wins; "
            "A:alpha=9:price_refine=off changes settings (docs/solver.md)",
        ),
    ] = next(iter(algorithms())),
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="the winner of a race is the one with the fewest counted operations",
        ),
    ] = False,
    max_seconds: Annotated[
        float | None,
        typer.Option(metavar="S", help="stop the solve after S seconds (see exit status 3)"),
    ] = None,
    max_operations: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="stop it after N counted operations: at the same point on every machine",
        ),
    ] = None,
    max_flow: Annotated[
        bool,
        typer.Option(
            "--max-flow",
            help="treat supplies as upper bounds: send as much as possible, at least cost",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--certify", help="prove the answer, optimal or infeasible, before printing it"
        ),
    ] = False,
    potentials: Annotated[
        bool,
        typer.Option(
            "--potentials", help="also print p <node> <price> for every node, as cs2 does"
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="print status, cost, times in ms and counts instead of the flow"
        ),
    ] = False,
) -> None:
    """Print the optimal flow of a DIMACS problem, as cs2 does.

    \b
    In:   p min <nodes> <arcs>      nodes are numbered from 1
          n <node> <supply>         below 0: demand; they sum to 0
                                    (with --max-flow they need not)
          a <tail> <head> <lower bound> <capacity> <cost per unit>
    Out:  s <cost>
          f <tail> <head> <flow>    for every arc with flow, in their order

    Exit status: 0 for an optimal answer; 1 if it failed its certificate; 2 for
    bad input or a network without an answer; 3 if the solve stopped at its
    budget. With status 2, one line on standard error says why; for an
    infeasible network it names the cut that proves it, which --json prints
    whole. With status 3, the flow reached is printed after a comment: it is
    within capacities but not optimal, and some supply may be unsent.
    """
    racers = algorithm_of("--algorithm", algorithm)
    for option, limit in (("--max-operations", max_operations), ("--max-seconds", max_seconds)):
        if limit is not None and not limit > 0:
            refuse(f"{option}: must be more than 0, got {limit}")
    start = time.perf_counter()
    problem = read_problem(file)
    read_s = time.perf_counter() - start
    start = time.perf_counter()
    budget: _Budget = {"max_operations": max_operations, "max_seconds": max_seconds}
    if max_flow:
        if problem.low.any():
            refuse(f"{display_name(file)}: --max-flow does not support lower bounds")
        most = solve_max_flow(problem.network, racers, deterministic=deterministic, **budget)
        solution = most.solution
        if solution.status is Status.OPTIMAL:  # for these supplies it is certified
            problem.network.set_supply(np.arange(most.supply.size), most.supply)
    else:
        solution = solve(problem.network, racers, deterministic=deterministic, **budget)
    solve_s = time.perf_counter() - start
    optimal = solution.status is Status.OPTIMAL
    answered = optimal or solution.status is Status.INFEASIBLE
    certificate = certify(problem.network, solution) if check and answered else None
    if as_json:
        answer = _summary(problem, solution, certificate)
        times = {"read_ms": round(read_s * 1e3, 3), "solve_ms": round(solve_s * 1e3, 3)}
        sent = {"sent": most.amount} if max_flow and optimal else {}
        print(json.dumps({"algorithm": solution.winner or algorithm, **answer, **sent, **times}))
    if certificate is not None and not certificate.ok:
        print(_failure(certificate), file=sys.stderr)
        raise typer.Exit(SELF_CHECK_FAILED)
    if solution.status is Status.INFEASIBLE:
        refuse(f"{display_name(file)}: {_why_infeasible(problem, solution, certified=check)}")
    if not optimal and solution.status is not Status.BUDGET:
        refuse(f"{display_name(file)}: {STATUS_TEXT[solution.status]}")
    if not as_json:
        write_file("-", write_dimacs_solution(problem, solution, potentials=potentials))
    if not optimal:
        raise typer.Exit(OVER_BUDGET)


def _summary(
    problem: DimacsProblem, solution: Solution, certificate: Certificate | CutCertificate | None
) -> dict[str, object]:
    optimal = solution.status is Status.OPTIMAL
    answer: dict[str, object] = {
        "status": solution.status.name,
        "cost": solution.cost + problem.base_cost if optimal else None,
        "nodes": problem.network.num_nodes,
        "arcs": problem.network.num_arcs,
        "operations": solution.stats.operations,
    }
    if solution.status is Status.BUDGET:
        answer["cost_reached"] = solution.cost + problem.base_cost
        answer["unsent"] = unsent(problem.network, solution.flow)
    if solution.status is Status.INFEASIBLE:
        gap = certify_cut(problem.network, solution.cut)
        answer["cut"] = {
            "supply": gap.supply,
            "capacity": gap.capacity,
            "nodes": (solution.cut + 1).tolist(),
        }
    if certificate is not None:
        answer["certified"] = certificate.ok
    return answer


def _why_infeasible(problem: DimacsProblem, solution: Solution, *, certified: bool) -> str:
    cut = solution.cut
    named = ", ".join(map(str, (cut[:_NODES_NAMED] + 1).tolist()))
    more = ", ..." if cut.size > _NODES_NAMED else ""
    notes = " (lower bounds removed)" if problem.low.any() else ""
    notes += " (certified)" if certified else ""
    return f"{explain(problem.network, solution)}: {named}{more}{notes}"


def _failure(certificate: Certificate | CutCertificate) -> str:
    if isinstance(certificate, CutCertificate):
        return (
            f"the answer failed its certificate: {describe_cut(certificate)}, "
            f"{certificate.unknown_nodes} of its entries are no node or repeat one"
        )
    return (
        f"the answer failed its certificate: {certificate.capacity_violations} capacity, "
        f"{certificate.balance_violations} balance and "
        f"{certificate.slackness_violations} slackness violations, "
        f"costs {'agree' if certificate.costs_agree else 'differ'}"
    )
