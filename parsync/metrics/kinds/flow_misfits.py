"""What the flow of a flow scheduler cannot express. A flow counts tasks. So where tasks ask for
different amounts of several resources, or start as gangs, what it wants is not always possible."""

from __future__ import annotations

from typing import ClassVar

from parsync.metrics.metric import Counters, NativeMetric, Rows, Scope, TableColumns
from parsync.metrics.quantity import Better, Count, Figures, Unit, quantity
from parsync.metrics.run_frame import RunFrame


class FlowMisfitFigures(Figures):
    """Over the rounds of the windows. A task counts once in each round in which it happens to it.

    None of these is a conflict: the scheduler finds them in its own view, before it claims.
    """

    flow_misfits: Count = quantity(
        "Misfits of the flow",
        Unit.COUNT,
        Better.LOWER,
        "Tasks that the flow sent to a machine where they do not fit beside the others that it "
        "sent there: a flow counts tasks, not what each asks for. Once per round.",
        headline=True,
        column_label="Misfits",
    )
    flow_repairs: Count = quantity(
        "Placed beside the flow",
        Unit.COUNT,
        Better.NEITHER,
        "Waiting tasks that were placed one at a time in a round, because the flow sent them "
        "nowhere, or to a place where they do not fit.",
    )
    flow_torn_gangs: Count = quantity(
        "Held back for their gang",
        Unit.COUNT,
        Better.LOWER,
        "Tasks with a place that were not placed, as the flow had none for all of their gang. Once "
        "per round.",
    )
    flow_unrouted: Count = quantity(
        "Without a flow at the budget's end",
        Unit.COUNT,
        Better.LOWER,
        "Tasks that the solver had not reached when its budget (max_operations) ended. Once per "
        "round.",
    )


class FlowMisfitMetric(NativeMetric):
    """Tasks of flow rounds for which the flow had no place of use. Only arms with flow schedulers
    have it."""

    kind = "flow_misfits"
    description = "Where what a flow wants is not possible, apart from conflicts."
    figures_model = FlowMisfitFigures
    reads: ClassVar[TableColumns] = {
        "rounds": ("at_us", "agent", "oversubscribed", "repaired", "held_back", "unrouted")
    }

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(("oversubscribed", "repaired", "held_back", "unrouted"), run)

    @classmethod
    def applies(cls, run: RunFrame) -> bool:
        return run.flows

    def add_up(self, rows: Rows) -> None:
        where = (rows["agent"], rows.slot("at_us"))
        for name in self.count:
            rows.add(self.count[name], where, rows[name])

    def figures(self, scope: Scope) -> FlowMisfitFigures:
        return FlowMisfitFigures(
            flow_misfits=scope.sum(self.count["oversubscribed"]),
            flow_repairs=scope.sum(self.count["repaired"]),
            flow_torn_gangs=scope.sum(self.count["held_back"]),
            flow_unrouted=scope.sum(self.count["unrouted"]),
        )
