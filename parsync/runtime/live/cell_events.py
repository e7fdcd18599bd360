"""What a live cell's master was asked to do, read back from its log: for whoever wants the run's
true state without making the replies again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parsync.core.codec import Codec
from parsync.core.event import Event
from parsync.core.events import Started, SyncRequest
from parsync.runtime.live.cell import Frame, read_cell_log
from parsync.runtime.live.steps import Step


def cell_events(codec: Codec, log: Path) -> Iterator[tuple[int, Event]]:
    """(at_us, event) of every event that may have changed the cell, in the order the master handled
    them; times never decrease.

    Left out: requests to sync and the master's own timers, which change nothing. Errors as
    shared_state.journal.read_journal.
    """
    for frame in read_cell_log(log):
        if frame[0] == Frame.LIFE:
            _, epoch, at_us, _ = frame
            yield at_us, Started(epoch)
        elif frame[0] == Frame.STEP:
            _, at_us, request, _ = frame
            for event in Step.of(codec, request).events:
                if type(event) is not SyncRequest:
                    yield at_us, event
