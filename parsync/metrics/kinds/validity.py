"""Whether a live run was disturbed: by other processes, or because the machine is too small for it.

A run in real time measures its machine as well. If its processes do not get the processor when they
need it, tasks wait for that, and neither figures nor order of the arms tell anything about
schedulers. A second is disturbed if, in any actor,

- the 95th percentile of lateness exceeds 2 ms and a tenth of a decision: ticks begin, or decisions
  are delivered, so much after their time;
- unhandled messages grow: they are more than in the second before, which had more than the one
  before that, and at no moment were there fewer;
- decisions whose time is measured took over a tenth longer by the clock than their thread was on a
  processor.

A run is disturbed if more than one second in fifty is, and at least two are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from parsync.metrics.quantity import Count, Figures, counted, duration
from parsync.metrics.record import Table
from parsync.metrics.tables import ACTORS

SECOND_US = 1_000_000
LATENESS_US = 2_000  # may pass whatever a decision takes
LATENESS_PART = 10  # a decision may be late by one part of so many
WAITING_PART = 10  # so may the clock be ahead of the thread's processor time
DISTURBED_PART = 50  # one second of so many may be disturbed
DISTURBED_SECONDS = 2  # fewer disturb no run


class Cause(StrEnum):
    """What exceeded its limit."""

    LATENESS = "lateness"
    UNHANDLED = "unhandled_messages"
    WAITING = "waiting_for_processor"


class Disturbance(Figures):
    """What went wrong in one actor.

    Attributes:
        actor: Its name.
        cause: What exceeded its limit.
        seconds: In which seconds of the run, ascending.
        worst: The largest value; in us, of unhandled messages their number.
        limit: What was allowed then.
    """

    actor: str
    cause: Annotated[Cause, Field(strict=False)]
    seconds: list[Count]
    worst: Count
    limit: Count


class ActorLoad(Figures):
    """What an actor needed over the whole run.

    Attributes:
        actor: Its name.
        seconds: How long it was measured, in whole seconds.
        cpu_permille: Processor time per time, in thousandths of one processor.
        late_ticks: Ticks that began over 2 ms late.
        ticks: All ticks.
        late_us: Of the lateness in each second the 95th percentile; of these the 95th percentile.
        lag_us: The same of how much longer it slept than it asked for.
        step_us: The same of the round trip of steps; of the cell: of the time to handle one.
    """

    actor: str
    seconds: Count
    cpu_permille: Count
    ticks: Count
    late_ticks: Count
    late_us: Count
    lag_us: Count
    step_us: Count


class Validity(Figures):
    """Whether the figures of a live run can be trusted.

    Attributes:
        seconds: That were measured; 0: none were, and nothing is known.
        disturbed: Seconds in which something exceeded its limit.
        disturbances: What did, by actor and cause.
        actors: What each actor needed.
    """

    seconds: Count
    disturbed: list[Count]
    disturbances: list[Disturbance]
    actors: list[ActorLoad]

    @property
    def is_disturbed(self) -> bool:
        """Whether the figures describe the machine and not the schedulers."""
        number = len(self.disturbed)
        return number >= DISTURBED_SECONDS and number * DISTURBED_PART > self.seconds

    @property
    def text(self) -> str:
        """The evidence in a sentence or two; "" if there is none."""
        if not self.disturbed:
            return ""
        parts = [_sentence(one) for one in self.disturbances]
        return f"{len(self.disturbed)} of {counted(self.seconds, 'second')}: " + "; ".join(parts)


def validity(rows: Table, names: Mapping[int, str]) -> Validity:
    """Apply the rule to the rows of the table `actors`.

    Args:
        rows: Of one run, in any order; {} if there are none.
        names: Of the scheduler hosts, by number.
    """
    if not rows:
        return Validity(seconds=0, disturbed=[], disturbances=[], actors=[])
    decision_us = _per(rows["decision_us"].sum(), rows["decisions"].sum())
    found: list[Disturbance] = []
    loads: list[ActorLoad] = []
    names = {**ACTORS, **names}
    for actor in sorted(set(rows["actor"].tolist()), key=lambda actor: (actor < 0, abs(actor))):
        mine = rows["actor"] == actor
        order = np.argsort(rows["at_us"][mine], kind="stable")
        of_actor = {name: column[mine][order] for name, column in rows.items()}
        name = names.get(actor, f"host {actor}")
        found += _disturbances(name, of_actor, decision_us)
        loads.append(_load(name, of_actor))
    seconds = {int(at_us) // SECOND_US for at_us in rows["at_us"]}
    disturbed = sorted({second for one in found for second in one.seconds})
    return Validity(seconds=len(seconds), disturbed=disturbed, disturbances=found, actors=loads)


def _disturbances(name: str, rows: Table, mean_decision_us: int) -> list[Disturbance]:
    """What exceeded its limit in one actor, whose rows are in order."""
    own = rows["decision_us"] // np.maximum(1, rows["decisions"])
    decision_us = np.where(rows["decisions"] > 0, own, mean_decision_us)
    late_limit = np.maximum(LATENESS_US, decision_us // LATENESS_PART)
    unhandled = rows["unhandled"]
    before = np.concatenate([unhandled[:1], unhandled])[: len(unhandled)]
    earlier = np.concatenate([before[:1], before])[: len(unhandled)]
    wall_limit = rows["measured_cpu_us"] * (WAITING_PART + 1) // WAITING_PART
    checks = (
        (Cause.LATENESS, rows["late_p95_us"], late_limit, rows["late_p95_us"] > late_limit),
        (Cause.UNHANDLED, unhandled, before, (unhandled > before) & (before > earlier)),
        (
            Cause.WAITING,
            rows["measured_wall_us"],
            wall_limit,
            rows["measured_wall_us"] > wall_limit,
        ),
    )
    return [
        _disturbance(name, cause, rows["at_us"][exceeds], value[exceeds], limit[exceeds])
        for cause, value, limit, exceeds in checks
        if exceeds.any()
    ]


def _disturbance(
    name: str,
    cause: Cause,
    at_us: NDArray[np.int64],
    value: NDArray[np.int64],
    limit: NDArray[np.int64],
) -> Disturbance:
    worst = int(np.argmax(value - limit))
    return Disturbance(
        actor=name,
        cause=cause,
        seconds=sorted(set((at_us // SECOND_US).tolist())),
        worst=int(value[worst]),
        limit=int(limit[worst]),
    )


def _load(name: str, rows: Table) -> ActorLoad:
    return ActorLoad(
        actor=name,
        seconds=len(rows["at_us"]),
        cpu_permille=_per(1000 * rows["cpu_us"].sum(), rows["length_us"].sum()),
        ticks=int(rows["ticks"].sum()),
        late_ticks=int(rows["late_ticks"].sum()),
        late_us=_p95(rows["late_p95_us"]),
        lag_us=_p95(rows["lag_p95_us"]),
        step_us=_p95(rows["step_p95_us"]),
    )


def _p95(values: NDArray[np.int64]) -> int:
    return int(np.quantile(values, 0.95, method="inverted_cdf"))


def _per(part: int, whole: int) -> int:
    return int(part) // max(1, int(whole))


def _sentence(one: Disturbance) -> str:
    match one.cause:
        case Cause.LATENESS:
            what = f"was up to {duration(one.worst)} late (95th percentile; limit "
            what += f"{duration(one.limit)})"
        case Cause.UNHANDLED:
            what = f"had up to {counted(one.worst, 'message')} unhandled, ever more of them"
        case Cause.WAITING:
            what = (
                f"took {duration(one.worst)} for decisions that need at most "
                f"{duration(one.limit)}: it waited for a processor"
            )
    return f"{one.actor} {what} in {_seconds(one.seconds)}"


def _seconds(seconds: Sequence[int]) -> str:
    """Seconds as people list them: "second 3", "seconds 3-5, 9 and 2 more"."""
    stretches: list[list[int]] = []
    for second in seconds:
        if stretches and second == stretches[-1][1] + 1:
            stretches[-1][1] = second
        else:
            stretches.append([second, second])
    texts = [f"{a}" if a == b else f"{a}-{b}" for a, b in stretches[:3]]
    more = sum(b - a + 1 for a, b in stretches[3:])
    return (
        ("second " if len(seconds) == 1 else "seconds ")
        + ", ".join(texts)
        + (f" and {more} more" if more else "")
    )
