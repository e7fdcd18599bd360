"""Mean responses where each task joins one of a few randomly chosen queues: the model of probing if
messages take no time.

A machine is a server with one slot and a queue, first come first served. Tasks arrive as a Poisson
process of rate `load` per machine, their run times are exponential with mean 1, each looks at d
random machines, and there are infinitely many machines. The response of a task is its wait and its
run time, in mean run times. d = 1 is M/M/1.

With one task per job, late binding with d probes is joining the least work of d, on every sample
path: the probe at the machine that has the least work left is the first to be served.
"""

from __future__ import annotations

_SMALL = 1e-13  # terms below it are left out


def least_work(load: float, d: int) -> float:
    """The mean response of joining the least work of d.

    The share of machines with more work than w is F(w), with F(0) = load and
    F(w)^(1-d) = load + (load^(1-d) - load) e^((d-1)w) (T. Hellemans and B. Van Houdt, "On the
    Power-of-d-choices with Least Loaded Server Selection", 2018). A task waits longer than w if all
    of its d machines have more work. The integral of F(w)^d, with F in place of w, is that of
    F^(d-1) / (1 - load F^(d-1)) from 0 to load, which is the series here without its first term.

    Args:
        load: At least 0, below 1.
        d: At least 1.
    """
    response, power, j = 0.0, 1.0, 0
    while power > _SMALL:
        response += power / (1 + (d - 1) * j)
        power *= load**d
        j += 1
    return response


def shortest_queue(load: float, d: int) -> float:
    """The mean response of joining the shortest queue of d (M. Mitzenmacher, "The Power of Two
    Choices in Randomized Load Balancing", 2001).

    Args:
        load: At least 0, below 1.
        d: At least 1.
    """
    response, exponent = 0.0, 0
    while (term := load**exponent) > _SMALL:
        response += term
        exponent = d * (exponent + 1)
    return response
