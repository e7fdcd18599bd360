"""Remove tasks that can never be placed when an agent receives them, so that they hold up no
others."""

from __future__ import annotations

from parsync.metrics.agent_log import AgentLog
from parsync.protocols import _native
from parsync.protocols.spec import AgentEnvironment


class SortingOut(_native.SortingOut):
    """Removes the units that one agent can never place, and records them.

    Args:
        environment: The agent's.
        log: The agent's.
    """

    def __init__(self, environment: AgentEnvironment, log: AgentLog) -> None:
        units = environment.unplaceable
        if units is None:
            super().__init__(None, None, log)
        else:
            super().__init__(units.native, units.reason, log)
