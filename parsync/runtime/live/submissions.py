"""Reliable delivery of submissions from the workload source to the scheduler hosts.

Each epoch of a host receives each task exactly once. One push is outstanding per host. It is
numbered, and repeated under its number until it is acknowledged. A push names the epoch of the host
that it is meant for. A host of another epoch takes nothing and answers with its own epoch. Then the
sender goes through every batch ever submitted to that host's agents, and pushes the tasks that the
cell has never placed to the new epoch. A task that a step of the old epoch places meanwhile is
rejected by the cell as a duplicate when it is claimed again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parsync.core.codec import decode, encode
from parsync.core.event import Event
from parsync.core.events import TasksSubmitted
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.steps import Steps

NO_EPOCH = -1
NO_SUBMISSIONS = encode(())
PING_US = 200_000  # how often a host with nothing to receive is asked whether it is still the same


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A host's answer to a push.

    Attributes:
        epoch: Of the host.
        taken: Whether the push was meant for this epoch; then it has been taken, now or before.
    """

    epoch: int
    taken: bool


class HostClient(Protocol):
    """Calls to one scheduler host that do not wait for the answer."""

    def begin(self, epoch: int, number: int, payload: bytes) -> Any:
        """Begin a push. Returns the call, for poll()."""
        ...

    def poll(self, call: Any) -> Acknowledgement | None:
        """The answer to a push; None while it is under way.

        Raises:
            Unavailable: Whether the host took it is unknown. The sender repeats it.
        """
        ...


class SubmissionSender:
    """Delivers submissions to one host.

    Args:
        host: The host.
        never_placed: Asks the cell for bool[tasks]. If it raises Unavailable, it is asked again at
            the next poll.

    Attributes:
        epoch: Of the host, as it answered last.
        resubmitted: Tasks that were pushed again to a restarted host.
    """

    def __init__(self, host: HostClient, never_placed: Callable[[], np.ndarray]) -> None:
        self._host = host
        self._never_placed = never_placed
        self._history: list[tuple[int, TasksSubmitted]] = []
        self._waiting: list[tuple[int, TasksSubmitted]] = []
        self._outstanding: tuple[int, bytes, Any] | None = None  # number, payload, call
        self._number = 0
        self._recover_to: int | None = None
        self._last_us = -PING_US
        self.epoch = NO_EPOCH
        self.resubmitted = 0

    @property
    def idle(self) -> bool:
        """Whether the host's epoch known last has taken everything submitted so far."""
        carries = self._outstanding is not None and self._outstanding[1] != NO_SUBMISSIONS
        return (
            not self._waiting
            and not carries
            and self._recover_to is None
            and self.epoch != NO_EPOCH
        )

    @property
    def waiting(self) -> int:
        """Tasks not pushed yet."""
        return sum(len(event.task) for _, event in self._waiting)

    def submit(self, submissions: list[tuple[int, TasksSubmitted]]) -> None:
        """Take (agent, event) pairs to be pushed."""
        self._history += submissions
        self._waiting += submissions

    def poll(self, now_us: int) -> None:
        """Take the answer to the push under way, and begin the next. Called once per tick."""
        if self._outstanding is not None and not self._settle():
            return
        if self._recover_to is not None and not self._recover():
            return
        if self._waiting or now_us >= self._last_us + PING_US:
            self._number += 1
            payload = encode(tuple(self._waiting))
            self._waiting = []
            self._last_us = now_us
            self._outstanding = (
                self._number,
                payload,
                self._host.begin(self.epoch, self._number, payload),
            )

    def _settle(self) -> bool:
        assert self._outstanding is not None
        number, payload, call = self._outstanding
        try:
            answer = self._host.poll(call)
        except Unavailable:
            self._outstanding = (number, payload, self._host.begin(self.epoch, number, payload))
            return False
        if answer is None:
            return False
        self._outstanding = None
        if not answer.taken:
            self._recover_to = answer.epoch
        return True

    def _recover(self) -> bool:
        """The host was restarted: push what was ever submitted and never placed again.

        Returns:
            Whether that is known.
        """
        assert self._recover_to is not None
        try:
            lost = self._never_placed() if self._history else np.zeros(0, np.bool_)
        except Unavailable:
            return False
        again: list[tuple[int, TasksSubmitted]] = []
        for agent, event in self._history:
            task = event.task[lost[event.task]]
            if len(task):
                again.append((agent, TasksSubmitted(task)))
                self.resubmitted += len(task) if self.epoch != NO_EPOCH else 0
        self._waiting = again
        self.epoch = self._recover_to
        self._recover_to = None
        return True


class SubmittingSteps:
    """The steps of the workload source.

    Submissions go to the senders of their hosts. Every other message goes along with a step.
    """

    def __init__(
        self, steps: Steps, senders: Mapping[int, SubmissionSender], host_of: Mapping[int, int]
    ) -> None:
        self._steps = steps
        self._senders = senders
        self._host_of = host_of

    @property
    def number(self) -> int:
        """The number of the last step."""
        return self._steps.number

    def begin(self, messages: Iterable[tuple[int, Event]]) -> None:
        """As Steps.begin."""
        others: list[tuple[int, Event]] = []
        submitted: defaultdict[int, list[tuple[int, TasksSubmitted]]] = defaultdict(list)
        for to, event in messages:
            if isinstance(event, TasksSubmitted) and to in self._host_of:
                submitted[self._host_of[to]].append((to, event))
            else:
                others.append((to, event))
        for host, submissions in submitted.items():
            self._senders[host].submit(submissions)
        self._steps.begin(others)

    def received(self) -> list[tuple[int, Event]] | None:
        """As Steps.received."""
        return self._steps.received()


class SubmissionReceiver:
    """The host's side: takes each push to its epoch once."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._number = 0

    def take(
        self, epoch: int, number: int, payload: bytes
    ) -> tuple[Acknowledgement, list[tuple[int, Event]]]:
        """Take a push. Returns the answer, and the submissions if they are new."""
        if epoch != self._epoch:
            return Acknowledgement(self._epoch, False), []
        if number <= self._number:
            return Acknowledgement(self._epoch, True), []
        self._number = number
        return Acknowledgement(self._epoch, True), list(decode(payload))
