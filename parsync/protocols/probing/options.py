"""What a group, and an arm as a whole, may choose of the probing protocol."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parsync.strict_model import LONGEST_S, Strict

MOST_PROBES = 1000  # per task


class ProbingOptions(Strict):
    """The options of a group, as they stand in a configuration."""

    probe_ratio: float = Field(
        2.0,
        ge=1,
        le=MOST_PROBES,
        description="d: how many machines a scheduler probes per task, in thousandths; of a job,"
        " the product is rounded up; no effect with binding = random",
    )
    binding: Literal["late", "random", "least_queue", "least_work"] = Field(
        "late",
        description="when a task gets its machine: late: when one of the probed machines has room;"
        " random: at once, a random one; least_queue: that of the probed ones where the fewest"
        " tasks run and wait; least_work: that with the least remaining run time of these tasks (an"
        " oracle: no scheduler knows run times)",
    )
    sampling: Literal["batch", "per_task"] = Field(
        "batch",
        description="batch: the tasks of a job that ask for the same share their probes; per_task:"
        " each task has its own",
    )
    with_replacement: bool = Field(
        False,
        description="a machine may be drawn several times for one job (per_task: one task); without"
        " it, only where there are fewer machines than probes, and then equally often",
    )
    cancellation: bool = Field(
        True,
        description="once all tasks of a job have got their machines, its other reservations are"
        " taken out of the queues; only for binding = late",
    )
    preferred_probes: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of the probes that go to machines which the task prefers, if it prefers"
        " any; the others go to all machines. An extension: Sparrow has none",
    )
    reprobe_s: float = Field(
        0.1,
        ge=1e-6,
        le=LONGEST_S,
        description="after how many seconds another machine is probed in place of one that is down",
    )


class ProbingSharedOptions(Strict):
    """The options of the protocol as a whole, in an arm."""

    queue: Literal["first_come", "round_robin", "priority"] = Field(
        "first_come",
        description="which reservation of a machine is next: first_come: the oldest; round_robin:"
        " the users take turns (quota groups if the workload has them, else schedulers); priority:"
        " one of the highest priority",
    )
    hop_s: float = Field(
        0.0005,
        ge=0,
        le=LONGEST_S,
        description="least time in seconds of a message between a scheduler and a machine, however"
        " fast the run's own messages are",
    )
