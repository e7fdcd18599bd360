"""Running a decision: the plan is computed at once, and how long it stands for is the agent's
clock's to say."""

from __future__ import annotations

import time
from typing import cast

from parsync.core.participant import Decider, Participant


def run_decision(participant: Participant, decision: int, now_us: int) -> tuple[int, int]:
    """Plan on the view as it stands. Returns (elapsed_ns, measured wall time of it; the decision
    time in us)."""
    decider = cast(Decider, participant)
    begun_ns = time.perf_counter_ns()
    decider.decide(decision, now_us)
    elapsed_ns = time.perf_counter_ns() - begun_ns
    return elapsed_ns, decider.decision_us(elapsed_ns)
