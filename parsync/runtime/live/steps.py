"""Steps between a host and the cell, each carried out exactly once.

A host has one step outstanding, numbered 1, 2, ... in its epoch. A host whose call fails does not
know whether the cell handled the step. It repeats the same bytes until an answer comes, and the
cell answers a repeated number with the reply that it has kept. Every restart of a host begins an
epoch with a greater number. Steps of an earlier epoch that are still under way are ignored.

A loop that waited for each answer would deliver no decision meanwhile: a step takes a millisecond
or two, and a busy host steps every few milliseconds. So its steps are BackgroundSteps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack

from parsync.core.codec import Codec, decode
from parsync.core.event import Event
from parsync.runtime.live.calls import BackgroundCalls, Link, Unavailable, Waker
from shared_state.errors import AgoraError

Messages = list[tuple[int, Event]]  # each with the address of its receiver

STALE = b""  # the reply to a step that an earlier epoch, or an earlier attempt, left behind


class ActorLost(AgoraError):
    """An actor that does not come back."""


class Replaced(ActorLost):
    """Another process has taken the place of this one, which was thought dead and is not."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a host asks of the cell.

    Attributes:
        host: Its id.
        epoch: Of the host.
        number: 1, 2, ... within the epoch.
        messages: (address, event) of what its participants have sent since the last step, in order.
            The cell handles what is addressed to its own participants, and delivers the rest.
    """

    host: int
    epoch: int
    number: int
    messages: tuple[tuple[int, Event], ...]

    def to_bytes(self, codec: Codec) -> bytes:
        """The step as it travels, and as it is logged."""
        return codec.encode((self.host, self.epoch, self.number, self.messages))

    @staticmethod
    def of(codec: Codec, data: bytes) -> Step:
        """The step of which these are the bytes. AgoraError if they are no step's."""
        try:
            host, epoch, number, messages = codec.decode(data)
        except Exception as error:  # foreign bytes may hold anything
            why = str(error) or type(error).__name__
            raise AgoraError(f"not a step, or another version's: {why}") from error
        if not (type(host) is type(epoch) is type(number) is int and type(messages) is tuple):
            raise AgoraError("not a step: it does not say whose and which it is")
        if not all(map(_is_message, messages)):
            raise AgoraError("not a step: it holds something else than addressed events")
        return Step(host, epoch, number, messages)


def _is_message(value: Any) -> bool:
    """Whether a decoded value is a pair of an address and an event."""
    if type(value) is not tuple or len(value) != 2:
        return False
    return type(value[0]) is int and isinstance(value[1], Event)


def head_of(data: bytes) -> tuple[int, int, int]:
    """The (host, epoch, number) of an encoded step, whose events are not decoded."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    unpacker.read_array_header()
    return unpacker.unpack(), unpacker.unpack(), unpacker.unpack()


class Steps(Protocol):
    """The receiver of an actor loop's messages, which does not let the loop wait for the cell."""

    @property
    def number(self) -> int:
        """The number of the last step."""
        ...

    def begin(self, messages: Iterable[tuple[int, Event]]) -> None:
        """Begin a step that hands these messages to the cell. None is under way."""
        ...

    def received(self) -> Messages | None:
        """What the step under way brought; None while it has no answer. Errors as
        StepClient's carry_out() and messages()."""
        ...


class StepClient:
    """The host's side of steps.

    Args:
        codec: Of the arm.
        host: Its id.
        epoch: Of this process of it.
        call: Carries bytes to the cell and back; raises Unavailable when the outcome is unknown.
        give_up_s: How long a step is repeated.
        pause_s: The time between two attempts.

    Attributes:
        number: Of the last step.
        repeats: Attempts that failed, over all steps.
        round_trip_us: From the beginning of a step until its host takes the answer, of all steps
            that were answered at the first attempt. A plan that is computed meanwhile counts.
    """

    def __init__(
        self,
        codec: Codec,
        host: int,
        epoch: int,
        call: Callable[[bytes], bytes],
        give_up_s: float = 60.0,
        pause_s: float = 0.1,
    ) -> None:
        self._codec = codec
        self._host = host
        self._epoch = epoch
        self._call = call
        self.give_up_s = give_up_s
        self._pause_s = pause_s
        self.number = 0
        self.repeats = 0
        self.round_trip_us: list[int] = []
        self._begun = 0.0  # the last step
        self._repeats_before = 0

    def request(self, messages: Iterable[tuple[int, Event]]) -> bytes:
        """Begin a step that hands these messages to the cell. Returns its bytes."""
        self.number += 1
        self._begun = time.monotonic()
        self._repeats_before = self.repeats
        return Step(self._host, self._epoch, self.number, tuple(messages)).to_bytes(self._codec)

    def lost(self) -> None:
        """Take note that a first attempt, made without carry_out(), has failed."""
        self.repeats += 1

    def carry_out(self, request: bytes) -> bytes:
        """The cell's reply to the step begun last.

        Raises:
            ActorLost: The cell stays away for give_up_s.
        """
        while True:
            try:
                return self._call(request)
            except Unavailable as error:
                self.repeats += 1
                if time.monotonic() - self._begun > self.give_up_s:
                    raise ActorLost(
                        f"the cell has not answered for {self.give_up_s:g} s: {error}"
                    ) from error
                time.sleep(self._pause_s)

    def messages(self, reply: bytes) -> Messages:
        """What the reply to the step begun last brings.

        Returns:
            The (address, event) pairs that the cell has for this host.

        Raises:
            Replaced: The cell knows a later epoch of this host.
        """
        if self.repeats == self._repeats_before:
            self.round_trip_us.append(int((time.monotonic() - self._begun) * 1e6))
        if reply == STALE:
            raise Replaced(f"host {self._host}: a later epoch of it has taken its place")
        return [(address, self._codec.decode(event)) for address, event in decode(reply)]


class BackgroundSteps:
    """Carries out the steps of one actor, one at a time.

    Args:
        client: Makes the steps, and carries out those that the connection does not.
        link: To the cell.
        wake: Woken when an answer is there.
    """

    def __init__(self, client: StepClient, link: Link, wake: Waker) -> None:
        self._client = client
        self._calls = BackgroundCalls(link, client.carry_out, wake, client.lost)
        self._under_way = False

    @property
    def number(self) -> int:
        """The number of the last step."""
        return self._client.number

    def begin(self, messages: Iterable[tuple[int, Event]]) -> None:
        """As Steps.begin."""
        assert not self._under_way
        self._under_way = True
        self._calls.begin(self._client.request(messages))

    def received(self) -> Messages | None:
        """As Steps.received."""
        if not self._under_way:
            return None
        try:
            reply = self._calls.reply()
        except BaseException:
            self._under_way = False
            raise
        return None if reply is None else self._take(reply)

    def last(self, messages: Iterable[tuple[int, Event]], give_up_s: float) -> Messages:
        """Wait for the step under way, if there is one, and for one more. Returns what both
        brought. Errors as StepClient's carry_out() and messages().

        Args:
            messages: Those of the last step.
            give_up_s: How long a step is repeated.
        """
        self._client.give_up_s = give_up_s
        earlier = self._take(self._calls.wait()) if self._under_way else []
        self.begin(messages)
        return earlier + self._take(self._calls.wait())

    def _take(self, reply: bytes) -> Messages:
        self._under_way = False
        return self._client.messages(reply)


class StepDeduplicator:
    """The cell's side of steps: the last step of each host, and the reply to it."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int, bytes]] = {}

    def is_new_epoch(self, step: Step) -> bool:
        """Return True if the step's host was known in an earlier epoch."""
        last = self._last.get(step.host)
        return last is not None and step.epoch > last[0]

    def known(self, step: Step) -> bytes | None:
        """The reply to a step that has been handled; None if it is new and to be handled now.

        Returns:
            STALE for a step of an earlier epoch, or one before the host's last.

        Raises:
            ValueError: The host left out a number, which is a bug.
        """
        epoch, number, reply = self._last.get(step.host, (-1, 0, STALE))
        if step.epoch < epoch:
            return STALE
        if step.epoch > epoch:
            number = 0
        if step.number == number:
            return reply
        if step.number < number:
            return STALE
        if step.number != number + 1:
            raise ValueError(f"host {step.host}: step {step.number} after step {number}")
        return None

    def answered(self, step: Step, reply: bytes) -> None:
        """Remember the reply until the next step."""
        self._last[step.host] = (step.epoch, step.number, reply)

    def checkpoint(self) -> tuple[tuple[int, int, int, bytes], ...]:
        """The last step of each host, as (host, epoch, number, reply)."""
        return tuple((host, *last) for host, last in sorted(self._last.items()))

    def restore(self, known: tuple[tuple[int, int, int, bytes], ...]) -> None:
        """Take what checkpoint() returned."""
        self._last = {host: (epoch, number, reply) for host, epoch, number, reply in known}
