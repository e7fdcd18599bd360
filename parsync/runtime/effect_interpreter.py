"""The interpreter of effects: what participants ask for, carried out under every runtime.

A runtime drives participants with events. What it does with their effects differs in clock and
transport only, which is what the Runtime protocol asks for. Three runtimes implement it: the one in
virtual time (virtual/run.py), the one of an actor (live/loop.py), and the one of the
participants that live beside the cell (live/cell.py).

Messages and timers of native participants are carried out in native code
(parsync/core/native/bound_participant.hpp). What they ask for besides comes here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Protocol

from parsync.core.addresses import address_name
from parsync.core.effects import Effect, Send, SetTimer
from parsync.core.event import Event
from parsync.core.participant import Decider
from parsync.metrics.record import Record
from shared_state.errors import AgoraError

RecordListener = Callable[[Record], None]


def ignore(*values: object) -> None:
    """The listener of those who want to know nothing."""


class WrongEffect(AgoraError):
    """A participant asked for what cannot be carried out.

    Args:
        sender: The participant, for people.
        what: What it did.
    """

    def __init__(self, sender: str, what: str) -> None:
        super().__init__(sender, what)
        self.what = what

    def __str__(self) -> str:
        return ": ".join(self.args)

    @staticmethod
    def none(sender: str) -> WrongEffect:
        """The error of a participant that returned None."""
        return WrongEffect(sender, "returned None, expected a list of effects")


class Runtime(Protocol):
    """What the interpreter asks of a runtime. now_us is the time of the event that led to it."""

    def send(self, now_us: int, to: int, event: Event, sender: int) -> None:
        """Deliver a message. The receiver exists."""
        ...

    def set_timer(self, now_us: int, at_us: int, event: Event, address: int) -> None:
        """Deliver the event to `address` at at_us, or at once if that is past."""
        ...

    def record(self, record: Record) -> None:
        """Keep a measurement."""
        ...


class DecidingRuntime(Runtime, Protocol):
    """A runtime whose participants take decisions."""

    def finish_decision(
        self, now_us: int, decision: int, elapsed_ns: int, decision_us: int, address: int
    ) -> None:
        """Deliver DecisionDone to `address` when the decision has taken decision_us.

        Args:
            now_us: The time of the event that started the decision.
            decision: Its number.
            elapsed_ns: The wall time that computing it took.
            decision_us: The time that it takes by the decider's clock.
            address: The decider.
        """
        ...


class EffectInterpreter:
    """Carries out the effects of participants, in the order in which they ask for them.

    None of these participants may take decisions; see DecisionInterpreter.

    Args:
        runtime: Where messages, timers and measurements go.
        addresses: Of all participants of the run, in this process or another.
    """

    def __init__(self, runtime: Runtime, addresses: Container[int]) -> None:
        self._addresses = addresses
        self._send = runtime.send
        self._set_timer = runtime.set_timer
        self._record = runtime.record

    def carry_out(self, now_us: int, address: int, effects: Iterable[Effect] | None) -> None:
        """Carry out what the participant at `address` asked for at now_us.

        Raises:
            WrongEffect: It returned None, sends to an address without a participant, or starts a
                decision and is no decider.
        """
        if effects is None:
            raise WrongEffect.none(address_name(address))
        for effect in effects:
            if isinstance(effect, Send):
                if effect.to not in self._addresses:
                    raise no_receiver(address_name(address), effect.to, effect.event)
                self._send(now_us, effect.to, effect.event, address)
            elif isinstance(effect, SetTimer):
                self._set_timer(now_us, effect.at_us, effect.event, address)
            elif isinstance(effect, Record):
                self._record(effect)
            else:
                self._decide(now_us, address, effect.decision)

    def _decide(self, now_us: int, address: int, decision: int) -> None:
        """Refuse the decision of a participant that is no decider."""
        raise WrongEffect(address_name(address), "starts a decision, but is no decider")


class DecisionInterpreter(EffectInterpreter):
    """Carries out the effects of participants of which some take decisions.

    Args:
        runtime: As for EffectInterpreter, and where finished decisions go.
        addresses: Of all participants of the run.
        deciders: The participants of the runtime that take decisions, by address.
    """

    def __init__(
        self, runtime: DecidingRuntime, addresses: Container[int], deciders: Mapping[int, Decider]
    ) -> None:
        super().__init__(runtime, addresses)
        self._deciders = deciders
        self._finish_decision = runtime.finish_decision

    def _decide(self, now_us: int, address: int, decision: int) -> None:
        """Compute the decision at once, on the state as it stands."""
        decider = self._deciders.get(address)
        if decider is None:
            super()._decide(now_us, address, decision)
            return
        begun_ns = time.perf_counter_ns()
        decider.decide(decision, now_us)
        elapsed_ns = time.perf_counter_ns() - begun_ns
        decision_us = decider.decision_us(elapsed_ns)
        self._finish_decision(now_us, decision, elapsed_ns, decision_us, address)


def no_receiver(sender: str, to: int, event: Event) -> WrongEffect:
    """The error of a message to an address without a participant."""
    name = type(event).__name__
    return WrongEffect(sender, f"sent {name} to address {to}, which no participant has")
