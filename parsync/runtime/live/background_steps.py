"""Steps whose answers an actor's loop does not wait for.

A loop that waited for each answer would deliver no decision meanwhile: a step takes a millisecond
or two, and a busy host steps every few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from parsync.core.event import Event
from parsync.runtime.live.background_calls import BackgroundCalls, Connection
from parsync.runtime.live.steps import StepClient
from parsync.runtime.live.waker import Waker

Messages = list[tuple[int, Event]]


class BackgroundSteps:
    """Carries out the steps of one actor, one at a time.

    Args:
        client: Makes the steps, and carries out those that the connection does not.
        connection: To the cell.
        wake: Woken when an answer is there.
    """

    def __init__(self, client: StepClient, connection: Connection, wake: Waker) -> None:
        self._client = client
        self._calls = BackgroundCalls(connection, client.carry_out, wake, client.lost)
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
