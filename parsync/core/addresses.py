"""The addresses of participants.

Schedulers' agents have the addresses 0, 1, ... in the order of the arm's groups. Every other
participant has a negative one.
"""

MASTER = -1
WORKERS = -2
COORDINATOR = -3
ARRIVALS = -4
CELL_SIDE = -16  # the participants of protocols beside the master: -16, -17, ... in their order
