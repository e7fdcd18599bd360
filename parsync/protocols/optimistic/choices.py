"""Modelling choices that the papers leave open. Each changes results, and a run names its own."""

from enum import IntEnum


class Cut(IntEnum):
    """Whether a decision round ends at the agent's next sync, the rest being planned on the
    refreshed view."""

    NONE = 0
    AT_SYNC = 1


class FreedVisibility(IntEnum):
    """When the owner of an ended task sees its room in its own view."""

    AT_SYNC = 0
    AT_ONCE = 1


class LoserPolicy(IntEnum):
    """What becomes of rejected claims: re-decided at once while the next batch waits (ParSync), or
    back to the queue's tail after a pause (Omega)."""

    BLOCK = 0
    REQUEUE = 1
