"""What a policy may not ask of the flow graph: arcs to nowhere, and costs beyond the solver's
arithmetic."""

from __future__ import annotations

import numpy as np

from schedulers.flow.policies.policy import Policy, PolicyError
from shared_state.tasks import Int64

MAX_COST = 1 << 40  # of one arc; keeps every path of a large graph within the solver's arithmetic


def check_heads(policy: Policy, head: Int64, machines: int, tail: str) -> None:
    """Raise PolicyError if one of these heads, int64[k], is no machine row and no aggregator.

    Args:
        tail: Where the arcs begin, for the message.
    """
    wrong = (head >= machines) | (head < -policy.aggregators)
    if np.any(wrong):
        bad = int(head[wrong][0])
        name = f"machine {bad}" if bad >= 0 else f"aggregator {-1 - bad}"
        raise PolicyError(
            f"{type(policy).__name__}: an arc from {tail} leads to {name}, which does not exist"
        )


def check_costs(policy: Policy, cost: Int64, which: str) -> None:
    """Raise PolicyError if one of these costs, int64[k], is larger than MAX_COST either way.

    Args:
        which: Which arcs they are of, for the message.
    """
    wrong = np.abs(cost) > MAX_COST
    if np.any(wrong):
        raise PolicyError(
            f"{type(policy).__name__}: an arc {which} costs {int(cost[wrong][0])}; "
            f"at most {MAX_COST} either way"
        )
