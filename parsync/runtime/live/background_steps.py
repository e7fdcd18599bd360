"""Steps in a thread of their own, so that an actor's loop goes on while the cell answers.

A loop that waited for each answer would deliver no decision meanwhile: a step takes a millisecond
or two, and a busy host steps every few milliseconds.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable

from parsync.core.effects import Send
from parsync.core.event import Event
from parsync.runtime.live.steps import StepClient

Messages = list[tuple[int, Event]]


class BackgroundSteps:
    """Carries out the steps of one actor, one at a time.

    Args:
        client: Carries out a step, and waits for its answer.
        wake: Set when an answer is there.
    """

    def __init__(self, client: StepClient, wake: threading.Event) -> None:
        self._client = client
        self._wake = wake
        self._requests: queue.SimpleQueue[list[Send]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Messages | BaseException] = queue.SimpleQueue()
        self._under_way = False
        threading.Thread(target=self._run, name="steps", daemon=True).start()

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
            raise answer
        return answer

    def _run(self) -> None:
        while True:
            sends = self._requests.get()
            try:
                self._answers.put(self._client.step(sends))
            except BaseException as error:  # raised where the answer is taken
                self._answers.put(error)
            self._wake.set()
