"""What a participant asks of its runtime.

Effects are not frozen: a frozen dataclass takes more than twice as long to make, and an effect goes
from a participant to its runtime and no further.
"""

from __future__ import annotations

from dataclasses import dataclass

from parsync.core.event import Event
from parsync.metrics.record import Record


@dataclass(slots=True)
class Send:
    """Deliver the event to the participant at address `to`, whichever process it lives in.

    Any participant may send to any other. The messages of one sender to one receiver arrive in the
    order of sending, each exactly once, also when the cell is killed and restarted meanwhile.

    Only the restart of a scheduler host ends that promise. Its agents begin anew with Started, and
    the messages that wait for them are dropped. In their place the agents are told which of their
    tasks run and which have lost their place; tasks that were never placed are submitted again.
    What a killed host had sent and not handed to the cell is lost, too.

    The new agents never receive the master's answers to requests of the agents before them, because
    the master answers at once. Other participants do not know of the restart: what they send
    afterwards is delivered, also if it answers a request of an earlier agent. So a protocol whose
    other participants answer later (by a timer, or from another process) puts the epoch of the
    agent's Started into the request and into the answer, and an agent drops answers of another
    epoch. What those participants hold for an earlier agent they forget at the first request with
    a greater epoch.

    A message to an address without a participant is an AgoraError, which ends the run.
    """

    to: int
    event: Event


@dataclass(slots=True)
class SetTimer:
    """Deliver the event to the sender at at_us (at once if that is past)."""

    at_us: int
    event: Event


@dataclass(slots=True)
class StartDecision:
    """Run the sender's `decide(decision, now_us)` on its view as of now; deliver DecisionDone no
    earlier than now + its `decision_us(elapsed_ns)`."""

    decision: int


Effect = Send | SetTimer | StartDecision | Record
