"""The addresses of participants.

Schedulers' agents have the addresses 0, 1, ... in the order of the arm's groups. Every other
participant has a negative one.
"""

MASTER = -1
WORKERS = -2
COORDINATOR = -3
ARRIVALS = -4
CELL_SIDE = -16  # the participants of protocols beside the master: -16, -17, ... in their order

_NAMES = {MASTER: "master", WORKERS: "workers", COORDINATOR: "coordinator", ARRIVALS: "arrivals"}


def is_beside_cell(address: int) -> bool:
    """Whether it is the master, or a protocol's participant beside it: they share a process."""
    return address == MASTER or address <= CELL_SIDE


def address_name(address: int) -> str:
    """The name of a participant in messages for people, e.g. "agent 3"."""
    if address >= 0:
        return f"agent {address}"
    if address <= CELL_SIDE:
        return f"cell-side participant {CELL_SIDE - address}"
    return _NAMES.get(address, f"address {address}")
