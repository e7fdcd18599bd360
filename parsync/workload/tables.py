"""The tables of a run's workload: what its arms had to do, and on which cell.

They stand once per run, in its folder `workload`; arms/<arm>/tasks.parquet and the other tables of
an arm (parsync/metrics/tables.py) name tasks, machines and preference sets by the ids used here.
"""

from __future__ import annotations

from collections.abc import Sequence

from parsync.schema import Column, TableSchema, flag, names_of
from shared_state.tasks import NO_GANG, NO_PREFERENCE, TaskClass

NO_BATCH = -1
NO_MACHINE = -1
NO_END = -1
AT_THE_START = "runs as the run begins"
QUOTA_GROUP = "quota_group"  # a column of tasks, where a workload has quota groups

MAPREDUCE = "mapreduce"  # a table, where a workload has MapReduce jobs
_MAPREDUCE = TableSchema(
    "One row per MapReduce job. Its maps are consecutive tasks; its reduces come behind them.",
    {
        "first_task": Column("int64", "id", "its first map, a task"),
        "workers": Column("int64", "workers", "how many its user asked for"),
        "maps": Column("int64", "tasks", "map activities"),
        "reduces": Column("int64", "tasks", "reduce activities, which start after all maps"),
        "map_us": Column("int64", "us", "average run time of its maps, as known from earlier runs"),
        "reduce_us": Column("int64", "us", "average run time of its reduces"),
    },
)

_PREFERENCE = Column("int32", "id", "the preference set")
_COST = "cost of a place"
_AT_US = Column("int64", "us", "when")


def request_column(dimension: str) -> str:
    """The name of a task's request in a resource dimension."""
    return f"request_{dimension}"


def capacity_column(dimension: str) -> str:
    """The name of a machine's capacity in a resource dimension."""
    return f"capacity_{dimension}"


def limit_column(dimension: str) -> str:
    """The name of what claims may fill a machine to in a resource dimension."""
    return f"limit_{dimension}"


def partition_column(partitions: int, counts: Sequence[int]) -> str:
    """The name of the column with the partition of each machine in arms with so many partitions.

    Args:
        counts: The different numbers of partitions of the run's arms.
    """
    return "partition" if len(counts) == 1 else f"partition_of_{partitions}"


def workload_schemas(
    dimensions: Sequence[str],
    partitions: Sequence[int],
    quota_groups: Sequence[str] = (),
    has_mapreduce: bool = False,
) -> dict[str, TableSchema]:
    """The tables by name.

    Args:
        dimensions: Names of the cell's resource dimensions.
        partitions: The different numbers of partitions of the run's arms.
        quota_groups: The names of the quota groups; without any, no table has a column of them.
        has_mapreduce: Whether there is a table of MapReduce jobs.
    """
    schemas = {
        "tasks": TableSchema(
            "One row per task of the workload, in the order of their ids.",
            _tasks(dimensions) | _quota_group(quota_groups),
        ),
        "machines": TableSchema(
            "One row per machine of the cell, in the order of their ids: rack by rack.",
            _machines(dimensions, partitions),
        ),
        "machine_events": TableSchema(
            "Machines that go down or come up, in order. Those that are down as the run begins go "
            "down at 0.",
            {
                "at_us": _AT_US,
                "machine": Column("int32", "id", "the machine"),
                "up": flag("whether it is up from then on"),
            },
        ),
        "phases": TableSchema(
            "Stretches of offered load, in order.",
            {
                "phase": Column("int32", "id", "the phase, from 0"),
                "start_us": Column("int64", "us", "when it begins"),
                "end_us": Column("int64", "us", "when it ends"),
                "load_percent": Column(
                    "int64",
                    "percent",
                    "offered load, in per cent of the cell's capacity",
                    {0: "the load is the trace's own"},
                ),
            },
        ),
        "preferences": TableSchema(
            "One row per preference set. A task costs what is listed for the machine "
            "(preferred_machines), else for its rack (preferred_racks), else elsewhere_cost.",
            {
                "preference": _PREFERENCE,
                "elsewhere_cost": Column("int64", "cost", f"{_COST} that is not listed"),
                "unscheduled_cost": Column("int64", "cost", "cost of being left waiting"),
            },
        ),
        "preferred_machines": TableSchema(
            "One row per machine that a preference set prefers, ascending within a set.",
            {
                "preference": _PREFERENCE,
                "machine": Column("int32", "id", "the preferred machine"),
                "cost": Column("int64", "cost", f"{_COST} on it"),
            },
        ),
        "preferred_racks": TableSchema(
            "One row per rack that a preference set lists, ascending within a set.",
            {
                "preference": _PREFERENCE,
                "rack": Column("int32", "id", "the rack"),
                "cost": Column("int64", "cost", f"{_COST} on its machines that are not listed"),
            },
        ),
    }
    return schemas | {MAPREDUCE: _MAPREDUCE} if has_mapreduce else schemas


def _tasks(dimensions: Sequence[str]) -> dict[str, Column]:
    return {
        "task": Column("int64", "id", "the task, from 0"),
        "job": Column("int64", "id", "the job it is of"),
        "submit_us": Column(
            "int64", "us", "when it is submitted (0 for tasks that run as the run begins)"
        ),
        "phase": Column("int32", "id", "the load phase in which it is submitted"),
        "batch": Column(
            "int32",
            "id",
            "tasks of a batch are submitted together; batches are numbered in order of arrival",
            {NO_BATCH: AT_THE_START},
        ),
        "initial_machine": Column(
            "int32", "id", "where it runs as the run begins", {NO_MACHINE: "arrives later"}
        ),
        **{
            request_column(name): Column("int64", unit_of(name), f"request of resource {name}")
            for name in dimensions
        },
        "gang": Column(
            "int64",
            "id",
            "tasks of a gang are of use only together; with commit_mode all_or_nothing they are "
            "placed together or not at all",
            {NO_GANG: "no gang"},
        ),
        "task_class": Column(
            "int8",
            "code",
            "batch tasks and activities of MapReduce jobs end, services run on",
            names_of(TaskClass),
        ),
        "priority": Column("int32", "level", "higher is more important"),
        "preference": Column(
            "int32", "id", "the preference set", {NO_PREFERENCE: "prefers nothing"}
        ),
        "duration_us": Column(
            "int64",
            "us",
            "true run time on a machine that is not preferred (what remains of it for tasks that "
            "run as the run begins); no scheduler knows it",
            {NO_END: "runs past the end of the run"},
        ),
    }


def _quota_group(names: Sequence[str]) -> dict[str, Column]:
    if not names:
        return {}
    codes = dict(enumerate(names))
    return {QUOTA_GROUP: Column("int32", "code", "the quota group that its job belongs to", codes)}


def _machines(dimensions: Sequence[str], partitions: Sequence[int]) -> dict[str, Column]:
    return {
        "machine": Column("int32", "id", "the machine, from 0"),
        "rack": Column("int32", "id", "the rack it stands in"),
        **{
            partition_column(count, partitions): Column(
                "int32", "id", f"its partition in arms with {count} partitions"
            )
            for count in partitions
        },
        **{
            capacity_column(name): Column("int64", unit_of(name), f"capacity of resource {name}")
            for name in dimensions
        },
        **{
            limit_column(name): Column(
                "int64",
                unit_of(name),
                f"limit up to which claims may use resource {name}: capacity with over-commit",
            )
            for name in dimensions
        },
        "slot_score": Column(
            "int64", "score", "static quality, higher is better", {0: "no scores in this cell"}
        ),
        "up_at_start": flag("whether it is up as the run begins"),
    }


def unit_of(dimension: str) -> str:
    """The unit of a resource dimension, which its name ends in: "ppm" of "cpu_ppm"."""
    return dimension.rpartition("_")[2]
