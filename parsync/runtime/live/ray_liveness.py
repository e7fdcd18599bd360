"""Checks that the two Ray processes that a run needs are alive: this machine's node and the head
node.

If one of them is gone, Ray ends this process sooner or later without a message. A run checks them
itself, so that it can end before that and write its measurements.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import ray

from parsync.runtime.live.ray_glue.nodes import living_nodes

LOOK_S = 1.0
ANSWER_S = 0.5
HEAD_S = 10.0  # Ray gives up on its head node after 60 s

Address = tuple[str, int]


class RayLiveness:
    """Whether the two Ray processes still run.

    Args:
        home: Where this machine's node listens.
        head: Where the head node listens.
        now_s: A clock.
    """

    def __init__(
        self, home: Address, head: Address, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._home = home
        self._head = head
        self._now_s = now_s
        self._looked_s = self._head_seen_s = now_s()

    @staticmethod
    def of_this_process() -> RayLiveness:
        """The liveness of the Ray that this process is connected to."""
        context = ray.get_runtime_context()
        own = context.get_node_id()
        [home] = [node for node in living_nodes() if node["NodeID"] == own]
        host, _, port = context.gcs_address.rpartition(":")
        return RayLiveness(
            (home["NodeManagerAddress"], home["NodeManagerPort"]), (host.strip("[]"), int(port))
        )

    def home_is_gone(self) -> bool:
        """Whether this machine's node has ended. Nothing may be asked of Ray then."""
        try:
            socket.create_connection(self._home, timeout=ANSWER_S).close()
        except ConnectionRefusedError:
            return True
        except OSError:  # nothing that proves it
            pass
        return False

    def head_answers(self) -> bool:
        """Whether the head node takes a connection now."""
        try:
            socket.create_connection(self._head, timeout=ANSWER_S).close()
        except OSError:
            return False
        self._head_seen_s = self._now_s()
        return True

    def head_is_gone(self) -> bool:
        """Whether the head node has not answered for HEAD_S. Actors can still be called then."""
        return not self.head_answers() and self._now_s() - self._head_seen_s >= HEAD_S

    def due(self) -> bool:
        """Whether it is time to look again: True once per LOOK_S."""
        if self._now_s() - self._looked_s < LOOK_S:
            return False
        self._looked_s = self._now_s()
        return True
