"""A lottery: a participant beside the master draws machines at random for the agents."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from parsync.core.effects import Send
from parsync.core.event import Event, Priority
from parsync.protocols.base import BaseAgent, BaseCellSide
from parsync.protocols.spec import NoOptions, ProtocolSpec
from shared_state.random import Stream, stream_key


@dataclass(frozen=True, slots=True)
class Ask(Event):  # agent -> machine lottery
    kind: ClassVar[str] = "lottery"
    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.DECIDE
    agent: int
    tickets: int


@dataclass(frozen=True, slots=True)
class Drawn(Event):  # machine lottery -> agent: a machine for each ticket
    kind: ClassVar[str] = "lottery"
    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.COMMIT
    machine: np.ndarray


class MachineLottery(BaseCellSide):
    def on_event(self, now_us, event):
        self.state += 1  # draws so far
        stream = Stream(stream_key(self.environment.seed, "lottery", self.state))
        up = np.flatnonzero(self.cell.up).astype(np.int32)
        return [Send(event.agent, Drawn(up[stream.integers(event.tickets, len(up))]))]


class Agent(BaseAgent):
    def __init__(self, environment):
        super().__init__(environment)
        self.asked = []  # tasks that wait for their draw, in order

    def on_queued(self, now_us, tasks):
        self.asked.append(tasks)
        return [Send(self.cell_side, Ask(self.index, len(tasks)))]

    def on_event(self, now_us, event):
        return self.claim(now_us, self.asked.pop(0), event.machine)


SPEC = ProtocolSpec("lottery", NoOptions, Agent, cell_side=MachineLottery, events=(Ask, Drawn))
