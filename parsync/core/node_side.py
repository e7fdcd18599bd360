"""The queues at the machines that some protocols have."""

from __future__ import annotations

from typing import Protocol

from parsync.core.participant import Participant


class NodeSide(Participant, Protocol):
    """A protocol's queues at the machines, which are part of the worker pool.

    The pool hands them
    - Started at the start of the run, and events of the protocol, their own timers among them;
    - TasksStarted, AllocationsEnded and MachinesChanged: every task of any agent that starts or
      ends, and every machine that goes down or comes up. Tasks that run at time 0 start then, and
      machines are up at time 0. A start comes before its end, and each end exactly once. A machine
      goes down before its tasks end. If the pool has just reported a task as finished when the
      master evicts it, or loses its machine, the task ends as finished here;
    - the CommitReply to each transaction that they sent for an agent of the protocol, after the
      starts that follow from it.

    They share the pool's fate: a live run in which the pool's process is killed ends.
    """
