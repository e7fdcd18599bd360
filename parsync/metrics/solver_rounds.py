"""How long the rounds of flow schedulers take, by the clock."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from parsync.metrics.figures import Count, Figures, Number
from parsync.metrics.metric import Metric, Scope, TableColumns
from parsync.metrics.quantity import Better, Unit, quantity


class SolverRoundFigures(Figures):
    """The times of the rounds in the windows; None without any."""

    rounds: Count | None
    solve_p50_us: Number | None = quantity(
        "Solver time per round",
        Unit.DURATION,
        Better.LOWER,
        "Median over the rounds of flow schedulers.",
    )
    solve_max_us: Number | None = quantity(
        "Longest solver time",
        Unit.DURATION,
        Better.LOWER,
        "Over the rounds of flow schedulers.",
    )
    round_p50_us: Number | None = quantity(
        "Flow round, end to end",
        Unit.DURATION,
        Better.LOWER,
        "Graph update, solve and extraction; median.",
    )
    round_max_us: Number | None


class SolverRoundMetric(Metric):
    """Times of the rounds of flow schedulers."""

    kind = "solver_rounds"
    description = "How long the rounds of flow schedulers take, by the clock."
    figures_model = SolverRoundFigures
    keeps: ClassVar[TableColumns] = {
        "rounds": ("at_us", "agent", "graph_us", "solve_us", "extract_us")
    }

    def figures(self, scope: Scope) -> SolverRoundFigures:
        rows, inside = scope.rows("rounds")
        if not inside.any():
            return SolverRoundFigures(**dict.fromkeys(SolverRoundFigures.model_fields))
        solve_us = rows["solve_us"][inside]
        round_us = solve_us + rows["graph_us"][inside] + rows["extract_us"][inside]
        return SolverRoundFigures(
            rounds=int(inside.sum()),
            solve_p50_us=float(np.quantile(solve_us, 0.5, method="inverted_cdf")),
            solve_max_us=int(solve_us.max()),
            round_p50_us=float(np.quantile(round_us, 0.5, method="inverted_cdf")),
            round_max_us=int(round_us.max()),
        )
