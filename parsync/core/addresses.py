"""The addresses of participants.

Schedulers' agents have the addresses 0, 1, ... in the order of the arm's groups. Every other
participant has a negative one.
"""

MASTER = -1
WORKERS = -2
COORDINATOR = -3
ARRIVALS = -4
CELL_SIDE = -16  # the participants of protocols beside the master: -16, -17, ... in their order

_OF_OTHERS = 1 << 40  # sequence numbers from here on are not of an agent's own transactions
_NAMES = {MASTER: "master", WORKERS: "workers", COORDINATOR: "coordinator", ARRIVALS: "arrivals"}


def is_beside_cell(address: int) -> bool:
    """Whether it is the master, or a protocol's participant beside it: they share a process."""
    return address == MASTER or address <= CELL_SIDE


def sequence_of(claimant: int, number: int) -> int:
    """The sequence number of a participant's transaction for the tasks of some agent.

    An agent's own are 1, 2, ... Those of the queues at the machines, or of a participant beside the
    master, are in a range of their own. So no two transactions for one agent have the same number,
    although the claimants do not know of each other.

    Args:
        claimant: The address that gets the reply.
        number: 1, 2, ... per claimant and agent (or per claimant).
    """
    return number if claimant >= 0 else -claimant * _OF_OTHERS + number


def is_own(sequence: int) -> bool:
    """Whether an agent's transaction of this sequence number was made by the agent itself."""
    return sequence < _OF_OTHERS


def address_name(address: int) -> str:
    """The name of a participant in messages for people, e.g. "agent 3"."""
    if address >= 0:
        return f"agent {address}"
    if address <= CELL_SIDE:
        return f"participant {CELL_SIDE - address} beside the master"
    return _NAMES.get(address, f"address {address}")
