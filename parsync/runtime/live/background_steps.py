"""Steps in a thread of their own, so that an actor's loop goes on while the cell answers.

A loop that waited for each answer would deliver no decision meanwhile: a step takes a millisecond
or two, and a busy host steps every few milliseconds.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Iterable

from parsync.core.effects import Send
from parsync.core.event import Event
from parsync.runtime.live.steps import StepClient

Messages = list[tuple[int, Event]]


class BackgroundSteps:
    """Carries out the steps of one actor, one at a time. Its thread ends when nobody uses it.

    Args:
        client: Carries out a step, and waits for its answer.
        wake: Set when an answer is there.
    """

    def __init__(self, client: StepClient, wake: threading.Event) -> None:
        self._client = client
        self._requests: queue.SimpleQueue[list[Send] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Messages | BaseException] = queue.SimpleQueue()
        self._under_way = False
        arguments = client, self._requests, self._answers, wake
        threading.Thread(target=_carry_out, args=arguments, name="steps", daemon=True).start()
        weakref.finalize(self, self._requests.put, None)

    @property
    def number(self) -> int:
        """The number of the last step."""
        return self._client.number

    def begin(self, sends: Iterable[Send]) -> None:
        """As Steps.begin."""
        assert not self._under_way
        self._under_way = True
        self._requests.put(list(sends))

    def received(self) -> Messages | None:
        """As Steps.received."""
        try:
            return self._take(self._answers.get_nowait())
        except queue.Empty:
            return None

    def last(self, sends: Iterable[Send], give_up_s: float) -> Messages:
        """Wait for the step under way, if there is one, and for one more. Returns what both
        brought. Errors as StepClient.step.

        Args:
            sends: The messages of the last step.
            give_up_s: How long a step is repeated.
        """
        self._client.give_up_s = give_up_s
        earlier = self._take(self._answers.get()) if self._under_way else []
        self.begin(sends)
        return earlier + self._take(self._answers.get())

    def _take(self, answer: Messages | BaseException) -> Messages:
        self._under_way = False
        if isinstance(answer, BaseException):
            try:
                raise answer
            finally:
                del answer  # its traceback holds this frame
        return answer


def _carry_out(
    client: StepClient,
    requests: queue.SimpleQueue[list[Send] | None],
    answers: queue.SimpleQueue[Messages | BaseException],
    wake: threading.Event,
) -> None:
    """Carry out steps until None is asked for. The thread does not hold its BackgroundSteps."""
    while (sends := requests.get()) is not None:
        try:
            answers.put(client.step(sends))
        except BaseException as error:  # raised where the answer is taken
            answers.put(error)
        wake.set()
