"""What probing costs and how long it waits at machines: the probes and the empty answers per task,
the room that is kept for answers, and the waits in the queues of machines."""

from __future__ import annotations

from typing import ClassVar

from parsync.metrics.metric import Counters, NativeMetric, Rows, Scope, TableColumns, ratio
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.tables import Tables
from parsync.schema import Column, TableSchema

PROBES = "probes"
_RESERVATIONS = "reservations"

TABLES: Tables = {
    PROBES: TableSchema(
        "One row per scheduler of the probing protocol and sample interval in which it sent or was "
        "asked anything: sums over the interval.",
        {
            "at_us": Column("int64", "us", "the end of the interval"),
            "agent": Column("int32", "id", "the scheduler, counted over the groups of the arm"),
            "probes": Column(
                "int64",
                _RESERVATIONS,
                "probes sent: reservations, or questions for the length of a queue",
            ),
            "asked": Column("int64", _RESERVATIONS, "reservations whose machine asked for a task"),
            "given": Column("int64", _RESERVATIONS, "those of them that were given a task"),
            "empty": Column("int64", _RESERVATIONS, "those that were told that none is left"),
            "cancelled": Column("int64", _RESERVATIONS, "reservations that were cancelled"),
            "lost": Column("int64", _RESERVATIONS, "reservations whose machine was down"),
            "returned": Column(
                "int64",
                "claims",
                "claims that the cell rejected, so that task and reservation were first again",
            ),
            "held_us": Column(
                "int64", "us", "how long room was kept for answers, summed over reservations"
            ),
            "queued_us": Column(
                "int64",
                "us",
                "how long reservations had been in their queues when they asked, summed",
            ),
            "head_us": Column(
                "int64", "us", "how long they had been the first in their queues then, summed"
            ),
            "given_short": Column(
                "int64", _RESERVATIONS, "given ones whose task is short: not of the class service"
            ),
            "behind_long": Column(
                "int64",
                _RESERVATIONS,
                "those of them that waited at a machine where they found a long task, running or "
                "waiting, when they came",
            ),
        },
    )
}
_SUMS = tuple(TABLES[PROBES].columns)[2:]


class ProbingFigures(Figures):
    """Over the sample intervals that end within the windows. Per task: per reservation that was
    given one. Early binding keeps no room and asks for no task, so only probes are counted then."""

    probes_sent: Count = quantity(
        "Probes",
        Unit.COUNT,
        Better.NEITHER,
        "Messages to machines that are candidates for a task: reservations, or with `least_queue` "
        "questions for the length of a queue.",
    )
    probes_per_task: Number | None = quantity(
        "Probes per task",
        Unit.PLAIN,
        Better.NEITHER,
        "Probes sent, divided by the tasks given to machines. Late binding only.",
    )
    empty_answers_per_task: Number | None = quantity(
        "Empty answers per task",
        Unit.PLAIN,
        Better.LOWER,
        "How often a machine asked for a task of a job that had none left, per task given to a "
        "machine.",
    )
    probes_cancelled: Count = quantity(
        "Probes cancelled",
        Unit.COUNT,
        Better.NEITHER,
        "Reservations that their scheduler cancelled, as all tasks of the job had a machine.",
    )
    probes_lost: Count = quantity(
        "Probes of machines that were down",
        Unit.COUNT,
        Better.LOWER,
        "Reservations whose machine was down or went down; others were sent in their place.",
    )
    held_idle_us: Count = quantity(
        "Room held idle",
        Unit.DURATION,
        Better.LOWER,
        "How long queues at machines kept room for a reservation while its machine asked for a "
        "task, summed over reservations.",
    )
    reservation_wait_us: Number | None = quantity(
        "Wait in the queue of a machine",
        Unit.DURATION,
        Better.LOWER,
        "From the arrival of a reservation at its machine until that asked for a task; mean over "
        "the reservations that asked, empty answers among them.",
    )
    head_wait_us: Number | None = quantity(
        "Wait at the head of the queue",
        Unit.DURATION,
        Better.LOWER,
        "The part of that wait in which the reservation was the first of its queue; mean.",
    )
    short_behind_long: Number | None = quantity(
        "Short tasks behind a long one",
        Unit.SHARE,
        Better.LOWER,
        "Of the short tasks, those given to a reservation that had waited, and found a long task "
        "or its reservation at the machine when it came. Long tasks are those of the class "
        "service, short ones all others. Late binding only.",
    )


class ProbingMetric(NativeMetric):
    """Probes and waits at machines. Only arms with the probing protocol have it."""

    kind = "probing"
    description = "What probing costs, and how long reservations wait at machines."
    figures_model = ProbingFigures
    tables: ClassVar[Tables] = TABLES
    reads: ClassVar[TableColumns] = {PROBES: ("at_us", "agent", *_SUMS)}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        self.count = Counters(_SUMS, run)

    @classmethod
    def applies(cls, run: RunFrame) -> bool:
        return PROBES in run.brought

    def add_up(self, rows: Rows) -> None:
        where = (rows["agent"], rows.slot("at_us"))
        for name in self.count:
            rows.add(self.count[name], where, rows[name])

    def figures(self, scope: Scope) -> ProbingFigures:
        of = {name: scope.sum(self.count[name]) for name in self.count}
        return ProbingFigures(
            probes_sent=of["probes"],
            probes_per_task=ratio(of["probes"], of["given"]),
            empty_answers_per_task=ratio(of["empty"], of["given"]),
            probes_cancelled=of["cancelled"],
            probes_lost=of["lost"],
            held_idle_us=of["held_us"],
            reservation_wait_us=ratio(of["queued_us"], of["asked"]),
            head_wait_us=ratio(of["head_us"], of["asked"]),
            short_behind_long=ratio(of["behind_long"], of["given_short"]),
        )
