"""The events of the probing protocol: messages between agents and the queues at the machines, and
timers of agents. They are native: parsync/protocols/native/probing_events.hpp says what each is
for."""

from __future__ import annotations

from parsync.core.event import Event
from parsync.protocols._native import (
    AgentRestarted,
    DecisionDue,
    LengthAnswers,
    LengthRequests,
    Probes,
    ProbesCancelled,
    ProbesLost,
    ProbingEvent,
    ReprobeDue,
    TaskAnswers,
    TaskRequests,
)

KIND = ProbingEvent.kind
EVENTS: tuple[type[Event], ...] = (
    Probes,
    TaskRequests,
    TaskAnswers,
    ProbesCancelled,
    ProbesLost,
    AgentRestarted,
    LengthRequests,
    LengthAnswers,
    DecisionDue,
    ReprobeDue,
)
