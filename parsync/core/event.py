"""What an event is: a message or a timer that a participant handles."""

from __future__ import annotations

from abc import ABCMeta
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, TypeVar, dataclass_transform

_Class = TypeVar("_Class")


class Priority(IntEnum):
    """Order of delivery at one instant of virtual time; ties go by the order of sending.

    ParSync's simulation (section 4.3) frees slots first, then synchronises, commits and decides.
    A decision that starts at an instant comes last, so that it sees all that.
    """

    FREE = 0
    SYNC = 1
    COMMIT = 2
    DECIDE = 3
    START = 4


class Event(metaclass=ABCMeta):
    """Base class of all events. Every event is a batch, never a single task.

    A subclass is a frozen dataclass of numbers, arrays and tuples of them, or a native class that
    is used like one (native/event.hpp), which counts as a subclass. It declares what the runtimes
    need to know of it: `kind`, the protocol that it belongs to ("core" for events that every
    protocol shares), `number`, unique within the protocol and part of the log's format, and its
    `priority`.
    """

    __slots__ = ()
    kind: ClassVar[str]
    number: ClassVar[int]
    priority: ClassVar[Priority]


class CoreEvent(Event):
    """Base class of the events that every protocol shares."""

    __slots__ = ()
    kind: ClassVar[str] = "core"


@dataclass_transform(frozen_default=True)
def static_frozen(cls: type[_Class]) -> type[_Class]:
    """A dataclass with slots whose fields are read-only to type checkers.

    For events that are made often: at run time nothing guards their fields, because frozen=True
    takes four times as long to make.
    """
    return dataclass(slots=True)(cls)
