"""What is measured of the demand that schedulers share."""

from __future__ import annotations

from parsync.metrics.tables import Tables
from parsync.schema import Column, TableSchema

DEMAND_UPDATES = "demand_updates"

TABLES: Tables = {
    DEMAND_UPDATES: TableSchema(
        "One row per update of the demand that schedulers share: what an agent learnt of the tasks "
        "that others were offered. Empty unless schedulers share demand.",
        {
            "agent": Column("int32", "id", "the scheduler, counted over the groups of the arm"),
            "at_us": Column("int64", "us", "when"),
            "sets": Column("int32", "sets", "preference sets whose sums had changed"),
            "waiting": Column("int32", "sets", "further ones, that come with the next update"),
            "tasks": Column(
                "int64",
                "tasks",
                "of other schedulers, that were new; below 0: of its own, that had counted twice",
            ),
            "bytes": Column("int64", "bytes", "size of the sums in the message"),
        },
    )
}
