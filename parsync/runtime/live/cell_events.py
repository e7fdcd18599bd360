"""The events that a live cell's master handled, read from the cell's log and handled again.

For readers that want the run's true state, without the replies to hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from parsync.core.addresses import MASTER
from parsync.core.codec import Codec
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.events import SyncRequest
from parsync.core.participant import Participant
from parsync.runtime.live.actor_runtime import ignore_record
from parsync.runtime.live.cell import hosts_of
from parsync.runtime.live.cell_log import Frame, read_cell_log
from parsync.runtime.live.cell_side import CellSideLoop, HandledListener
from parsync.runtime.live.steps import Step


@dataclass(frozen=True, slots=True)
class Handled:
    """An event that the master handled again.

    Attributes:
        at_us: The cell's time.
        epoch: Of the host whose step led to it; -1 if none did.
        event: The event.
        effects: What the master asked for.
    """

    at_us: int
    epoch: int
    event: Event
    effects: list[Effect]


def ignore_outgoing(at_us: int, to: int, event: Event) -> None:
    """The listener of a reader that wants no messages."""


def replay_master(
    codec: Codec,
    log: Path,
    master: Participant,
    cell_side: Mapping[int, Participant],
    on_outgoing: Callable[[int, int, Event], None] = ignore_outgoing,
) -> Iterator[Handled]:
    """Feed a cell's log to a master as it was at the start of the run.

    Agents' requests to sync are left out: they change nothing.

    Args:
        codec: Of the arm.
        log: The cell's.
        master: Handles the events.
        cell_side: The other participants beside the cell, new, by address.
        on_outgoing: Called with (time, address, event) of each message to other processes.

    Returns:
        Every event that the master handles, in order. Times never decrease.

    Raises:
        AgoraError: As read_cell_log.
    """
    frames = read_cell_log(log)
    _, _, hosts = next(frames)
    host_of = hosts_of({host: agents for host, _, agents in hosts})
    loop = _Loop({MASTER: master, **cell_side}, host_of, on_outgoing)
    for frame in frames:
        loop.epoch = -1
        if frame[0] == Frame.EPOCH:
            _, epoch, at_us, _ = frame
            loop.start(epoch, at_us)
        else:
            _, at_us, request, _ = frame
            step = Step.of(codec, request)
            loop.epoch = step.epoch
            loop.run(at_us, (message for message in step.messages if not _only_reads(*message)))
        yield from loop.handled_by_master
        loop.handled_by_master.clear()


def _only_reads(to: int, event: Event) -> bool:
    return to == MASTER and type(event) is SyncRequest


class _Loop(CellSideLoop):
    """Keeps what the master handled, and hands on the messages to other processes."""

    def __init__(
        self,
        participants: Mapping[int, Participant],
        addresses: Collection[int],
        on_outgoing: Callable[[int, int, Event], None],
    ) -> None:
        super().__init__(participants, addresses, ignore_record)
        self._on_outgoing = on_outgoing
        self.epoch = -1
        self.handled_by_master: list[Handled] = []

    @property
    def handled_listener(self) -> HandledListener:
        return self._handled

    def _handled(self, address: int, event: Event, effects: list[Effect]) -> None:
        if address == MASTER:
            self.handled_by_master.append(Handled(self.now_us, self.epoch, event, effects))

    def outgoing(self, to: int, event: Event) -> None:
        self._on_outgoing(self.now_us, to, event)
