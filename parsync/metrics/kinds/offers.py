"""What became of offers, how much room they held, and how long schedulers waited for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from parsync.metrics.metric import (
    Counters,
    Merges,
    NativeMetric,
    OverTime,
    Rows,
    Scope,
    TableColumns,
    TimeSeries,
    ratio,
)
from parsync.metrics.quantity import Better, Count, Figures, Number, Unit, quantity
from parsync.metrics.run_frame import RunFrame
from parsync.metrics.tables import Tables
from parsync.schema import Column, TableSchema

OFFERS = "offers"
OFFER_WAITS = "offer_waits"
_PPM_US = "ppm us"
_PPM = 1_000_000

TABLES: Tables = {
    OFFERS: TableSchema(
        "One row per scheduler of the protocol of offers and sample interval: sums over the "
        "interval, counted by the allocator.",
        {
            "at_us": Column("int64", "us", "the end of the interval"),
            "agent": Column("int32", "id", "the scheduler, counted over the groups of the arm"),
            "made": Column("int64", "offers", "offers made to it: room on one machine each"),
            "accepted": Column("int64", "offers", "those that ended because it claimed on them"),
            "declined": Column("int64", "offers", "those that it declined"),
            "rescinded": Column(
                "int64", "offers", "those that ended because their machine or the scheduler failed"
            ),
            "expired": Column("int64", "offers", "those that had no answer for too long"),
            "held": Column(
                "int64",
                _PPM_US,
                "how long offers kept room in the interval, times this room in millionths of the "
                "cell's first resource",
            ),
            "used": Column(
                "int64",
                _PPM_US,
                "how long offers accepted in the interval had kept the room that was then claimed, "
                "in the same unit",
            ),
            "share": Column(
                "int64",
                "ppm",
                "its dominant share at the end of the interval, offers included, in millionths of "
                "the total",
            ),
            "share_gap": Column(
                "int64",
                "ppm",
                "the difference between the largest and the smallest dominant share then; the "
                "first of the schedulers has it, others 0",
            ),
            "gaps": Column("int64", "gaps", "1 for that scheduler, 0 for others"),
            "runs": Column("int64", "runs", "allocation runs; that scheduler has them, others 0"),
        },
    ),
    OFFER_WAITS: TableSchema(
        "One row per wait of a scheduler of the protocol of offers that ended, and per commit of "
        "which claims failed.",
        {
            "at_us": Column("int64", "us", "when"),
            "agent": Column("int32", "id", "the scheduler, counted over the groups of the arm"),
            "offers": Column("int64", "waits", "1 if an offer came while tasks waited, else 0"),
            "offer_us": Column("int64", "us", "how long they had waited without an offer"),
            "usable": Column("int64", "waits", "1 if an offer was accepted, else 0"),
            "usable_us": Column("int64", "us", "how long tasks had waited for one"),
            "failed": Column("int64", "claims", "claims on offers that the cell rejected"),
        },
    ),
}
_COUNTED = ("made", "accepted", "declined", "rescinded", "expired", "held", "used", "runs")
_GAPS = ("share_gap", "gaps")
_WAITED = ("offers", "offer_us", "usable", "usable_us", "failed")


class OffersFigures(Figures):
    """Over the sample intervals that end, and the waits that ended, within the windows."""

    offers_made: Count = quantity(
        "Offers made",
        Unit.COUNT,
        Better.NEITHER,
        "Room on one machine, offered to one scheduler.",
    )
    offers_accepted: Count = quantity(
        "Offers accepted",
        Unit.COUNT,
        Better.NEITHER,
        "Offers on which a scheduler claimed room.",
    )
    offers_declined: Count = quantity(
        "Offers declined",
        Unit.COUNT,
        Better.NEITHER,
        "Offers that a scheduler had no use for.",
    )
    offers_rescinded: Count = quantity(
        "Offers rescinded",
        Unit.COUNT,
        Better.LOWER,
        "Offers that ended because their machine or their scheduler failed.",
    )
    offers_expired: Count = quantity(
        "Offers expired",
        Unit.COUNT,
        Better.LOWER,
        "Offers that had no answer for `offer_timeout_s`.",
    )
    claims_failed: Count = quantity(
        "Claims on offers that failed",
        Unit.COUNT,
        Better.LOWER,
        "Claims on offered room that the cell rejected: the machine or the offer was gone, or, "
        "without locks, somebody else had taken it.",
    )
    used_part: Number | None = quantity(
        "Used part of offers",
        Unit.SHARE,
        Better.HIGHER,
        "Of the room that offers kept, times how long they kept it, the part that was claimed.",
    )
    held_us: Count = quantity(
        "Room kept by offers",
        Unit.DURATION,
        Better.LOWER,
        "How long offers kept room, in time of the whole cell (first resource): half of the cell "
        "for two seconds is one second. The room is idle meanwhile.",
    )
    offer_wait_us: Number | None = quantity(
        "Wait for an offer",
        Unit.DURATION,
        Better.LOWER,
        "How long a scheduler with waiting tasks was without an offer; mean.",
    )
    usable_offer_wait_us: Number | None = quantity(
        "Wait for a usable offer",
        Unit.DURATION,
        Better.LOWER,
        "How long a scheduler with waiting tasks had accepted no offer; mean.",
    )
    longest_wait_us: Count = quantity(
        "Longest wait for a usable offer",
        Unit.DURATION,
        Better.LOWER,
        "The longest time that a scheduler with waiting tasks accepted no offer.",
    )
    share_gap: Number | None = quantity(
        "Gap of dominant shares",
        Unit.SHARE,
        Better.LOWER,
        "The difference between the largest and the smallest dominant share of the schedulers, "
        "offers included; mean over the samples.",
    )
    allocation_runs: Count = quantity(
        "Allocation runs",
        Unit.COUNT,
        Better.NEITHER,
        "How often the allocator ran.",
    )


class OffersMetric(NativeMetric):
    """Offers and waits for them. Only arms with the protocol of offers have it."""

    kind = "offers"
    description = "What became of offers, how much room they kept, and how long schedulers waited."
    figures_model = OffersFigures
    tables: ClassVar[Tables] = TABLES
    reads: ClassVar[TableColumns] = {
        OFFERS: ("at_us", "agent", "share", *_COUNTED, *_GAPS),
        OFFER_WAITS: ("at_us", "agent", *_WAITED),
    }
    plots: ClassVar[Sequence[OverTime]] = (
        OverTime(
            title="Dominant shares over time",
            part="dominant_share_ppm",
            whole="dominant_share_samples_ppm",
            unit=Unit.SHARE,
            axis="Dominant share",
            caption="The dominant share of each scheduler that takes offers, at the end of each "
            "sample interval: the largest of its parts of the resources, in use or offered.",
            look_for="A wide band: some schedulers have much more than others.",
        ),
    )
    merges: ClassVar[Merges] = {"_longest_us": np.maximum}

    def __init__(self, run: RunFrame) -> None:
        super().__init__(run)
        names = (*_COUNTED, *_GAPS, *_WAITED)
        self.count = Counters([f"offers_{name}" for name in names], run)
        self._longest_us = np.zeros((run.agents, run.slots), np.int64)
        names_over_time = ("dominant_share_ppm", "dominant_share_samples_ppm")
        self.timeline = TimeSeries(names_over_time, run.agents, run.bucket_us)

    @classmethod
    def applies(cls, run: RunFrame) -> bool:
        return OFFERS in run.brought

    def add_up(self, rows: Rows) -> None:
        where = (rows["agent"], rows.slot("at_us"))
        if rows.table == OFFER_WAITS:
            for name in _WAITED:
                rows.add(self.count[f"offers_{name}"], where, rows[name])
            rows.largest(self._longest_us, where, rows["usable_us"])
            return
        for name in (*_COUNTED, *_GAPS):
            rows.add(self.count[f"offers_{name}"], where, rows[name])
        share = rows["share"]
        rows.add_over_time(self.timeline, "dominant_share_ppm", where[0], rows["at_us"], share)
        rows.add_over_time(
            self.timeline, "dominant_share_samples_ppm", where[0], rows["at_us"], _PPM
        )

    def figures(self, scope: Scope) -> OffersFigures:
        names = (*_COUNTED, *_GAPS, *_WAITED)
        of = {name: scope.sum(self.count[f"offers_{name}"]) for name in names}
        gap = ratio(of["share_gap"], of["gaps"])
        return OffersFigures(
            offers_made=of["made"],
            offers_accepted=of["accepted"],
            offers_declined=of["declined"],
            offers_rescinded=of["rescinded"],
            offers_expired=of["expired"],
            claims_failed=of["failed"],
            used_part=ratio(of["used"], of["held"]),
            held_us=of["held"] // 1_000_000,
            offer_wait_us=ratio(of["offer_us"], of["offers"]),
            usable_offer_wait_us=ratio(of["usable_us"], of["usable"]),
            longest_wait_us=int(self._longest_us[np.ix_(scope.agents, scope.slots)].max(initial=0)),
            share_gap=None if gap is None else gap / _PPM,
            allocation_runs=of["runs"],
        )
