"""Print how far the slot simulator and the platform agree, as the table of docs/slot_simulator.md:

python -m tests.slot_cross_check [SEEDS [HEARTBEAT_US]]

HEARTBEAT_US is how often the platform learns of ended tasks.
"""

from __future__ import annotations

import sys

from tests.slot_cross_check.comparison import CELLS, compare


def main() -> None:
    given = [int(argument) for argument in sys.argv[1:]]
    count, heartbeat_us = (*given, *(20, 1)[len(given) :])
    print("| cell | figure | simulator | platform | difference, 98 % | p |")
    print("|---|---|---|---|---|---|")
    for name, settings in CELLS.items():
        for one in compare(settings, range(1, 1 + count), heartbeat_us=heartbeat_us):
            print(
                f"| {name} | {one.figure.name} | {one.simulator:.4f} | {one.platform:.4f} | "
                f"{one.difference:+.4f} ±{one.half_width:.4f} | {one.p_value:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
