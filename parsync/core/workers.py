"""The worker pool: runs tasks by waiting for their ends, and reports those once per heartbeat.

It is native (native/worker_pool.cpp).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from parsync.core import _native
from parsync.core.participant import NodeSide
from parsync.metrics.record import Record
from schedulers.objective import native_columns
from shared_state.tasks import CellSpec, Int32, Int64, PreferenceCatalog


class WorkerPool(_native.WorkerPool):
    """Executes tasks: t, or preferred_permille/1000 of t on a preferred machine (ParSync section
    6.4). The only holder of true durations.

    duration_us: int64[n] by task id, -1 = never ends. preference: int32[n] by task id. One release
    batch per heartbeat. node_sides: the queues of protocols that have some, by protocol.
    protocol_of: the protocol of each agent.
    """

    def __init__(
        self,
        cell: CellSpec,
        catalog: PreferenceCatalog,
        preference: Int32,
        duration_us: Int64,
        preferred_permille: int,
        heartbeat_us: int,
        node_sides: Mapping[str, NodeSide],
        protocol_of: Sequence[str],
    ) -> None:
        super().__init__(
            heartbeat_us,
            np.ascontiguousarray(duration_us, np.int64),
            np.ascontiguousarray(preference, np.int32),
            native_columns(catalog, cell),
            preferred_permille,
            list(node_sides.items()),
            list(protocol_of),
        )
        self._node_sides = dict(node_sides)

    def finish(self, now_us: int) -> list[Record]:
        """Hand out the measurements of the protocols' queues: the pool makes none."""
        return [
            record for node_side in self._node_sides.values() for record in node_side.finish(now_us)
        ]
