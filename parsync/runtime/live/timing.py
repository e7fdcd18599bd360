"""Times of the live runtime's loops that no option sets."""

from __future__ import annotations

# Timers of scheduler hosts are looked at no more often than this between ticks. A decision is at
# most so much late for it.
WAKE_US = 300
# The coordinator's tick, unless schedulers wait for it (plan.py).
COORDINATOR_TICK_US = 100_000
