"""Modelling choices the paper leaves open (reference model, "Pitfalls"). Each changes results; a
run names its own."""

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


class WhileCommitting(IntEnum):
    """What an agent does until a transaction's outcome is known.

    WAIT is the reference model's: every round pays the round trip to the cell, and ParSync's short
    rounds pay it most often. GO_ON opens the next round at once; the claims under way are overlaid
    on the view, and losers join the work at hand when the answer comes. Without message time the
    two hardly differ. Agents that synchronise at every attempt always wait, as Omega's do: a sync
    sent after a commit may overtake it and show the state before.
    """

    WAIT = 0
    GO_ON = 1
