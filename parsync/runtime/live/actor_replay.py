"""Replay of one actor's log: its participants, made anew, handle the logged events."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parsync.core.codec import Codec, decode
from parsync.core.effects import Effect, StartDecision
from parsync.core.event import Event
from parsync.core.events import DecisionDone
from parsync.core.participant import Decider, Participant
from parsync.metrics.record import Record
from parsync.metrics.tables import SCHEMAS, Tables, measured_tables
from parsync.runtime.plan_limit import PLAN_LIMIT_S, plan_limit
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True)
class Entry:
    """A frame of an actor's log.

    Attributes:
        address: Of the participant that handled the event.
        at_us: Run time of that.
        event: In its log form: a sync reply is a tuple (parsync.core.codec).
        digest: Of the effects that the event had (handled_log.py).
    """

    address: int
    at_us: int
    event: Any
    digest: bytes


class ReplayedActor:
    """The participants of an actor, made anew.

    Args:
        codec: Of the arm.
        participants: By address.
        deciders: Those of them that take decisions.
        tables: Of the arm.
    """

    def __init__(
        self,
        codec: Codec,
        participants: Mapping[int, Participant],
        deciders: Mapping[int, Decider],
        tables: Tables = SCHEMAS,
    ) -> None:
        self._codec = codec
        self._digest = codec.event_effects_digest(measured_tables(tables))
        self._participants = participants
        self._deciders = deciders

    def entry(self, payload: bytes, where: str) -> Entry:
        """The entry in a frame of the actor's log.

        Args:
            payload: The frame.
            where: Names the file and the frame, for messages.

        Raises:
            AgoraError: The frame is not an entry of the log of an actor with these participants.
        """
        try:
            logged, digest = decode(payload)
            address, at_us, event = self._codec.decode(logged)
        except Exception as error:  # a foreign frame may hold anything
            raise AgoraError(f"{where}: not an entry of an actor's log: {error}") from error
        known = type(address) is int and address in self._participants
        if not (known and type(at_us) is int and type(digest) is bytes):
            raise AgoraError(f"{where}: belongs to another actor's log")
        if type(event) is not tuple and not isinstance(event, Event):
            raise AgoraError(f"{where}: not an event of an actor's log")
        return Entry(address, at_us, event, digest)

    def effects_of(self, address: int, at_us: int, event: Event) -> tuple[list[Effect], bytes]:
        """Let a participant handle an event. Return its effects and their digest.

        A decision that it starts is computed as it was: at once, and with the decision time that
        was measured then. Exceptions of the participant pass through.
        """
        decider = self._deciders.get(address)
        if decider is not None and isinstance(event, DecisionDone):
            decider.decision_us(event.elapsed_ns)
        effects = self._participants[address].handle(at_us, event)
        digest = self._digest.of(effects)
        if decider is not None:
            for effect in effects:
                if isinstance(effect, StartDecision):
                    self._decide(decider, effect.decision, at_us)
        return effects, digest

    def participant(self, address: int) -> Participant:
        """The participant of an address."""
        return self._participants[address]

    def finish(self, now_us: int) -> Iterator[tuple[int, Record]]:
        """The measurements that the participants still hold at the end, each with the address of
        its participant."""
        for address in sorted(self._participants):
            for record in self._participants[address].finish(now_us):
                yield address, record

    @staticmethod
    def _decide(decider: Decider, decision: int, at_us: int) -> None:
        # Where a scheduler broke its contract it does so again: the run ended there. (Where it did
        # not, the round's DecisionDone follows, and finds no plan.)
        with contextlib.suppress(ContractBroken), plan_limit(PLAN_LIMIT_S, lambda: at_us):
            decider.decide(decision, at_us)
