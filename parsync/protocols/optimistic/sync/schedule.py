"""When an agent synchronises next, and what it has seen since the last time. Native:
parsync/protocols/native/sync_schedule.hpp says what each method does. start() and on_due() say when
the next synchronisation is due, and its number k, or None if there are no more; the agent sets the
timer."""

from __future__ import annotations

from parsync.protocols._native import SyncSchedule

__all__ = ["SyncSchedule"]
