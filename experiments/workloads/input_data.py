"""Where the input data of batch tasks lie, and what it costs to run elsewhere: Firmament's model of
input data with Quincy's transfer costs.

The model (Firmament's simulator): a task's run time of h hours is the quantile y = 1 - 0.298
h^-0.2627; its input is 64 MB if y <= 0.5, else 2^((y - 0.5) log2(320) / 0.5) * 64 MB, rounded up to
blocks of 1 GB, at most 20. Each block has three replicas on distinct machines: two in one rack, one
in another. A machine or rack that holds at least a tenth of the input, or another part that the
workload's options name, is preferred (Quincy).
Machines hold up to 12,288 blocks in Firmament; the trace needs about a hundredth of that, so the
bound is not modelled.

Cost (integers, COST_PER_GB = 1000 to one of Quincy's): per GB read 0 from the machine itself, 1000
from its rack, 2000 from another rack. A rack's cost is that of its worst machine: one that holds
nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from typing import Annotated

import numpy as np
from pydantic import Field

from experiments.workloads.draws import draw, draw_below, zipf_table
from parsync.metrics.quantity import Better, Quantity, Unit
from parsync.strict_model import Strict
from schedulers.objective import placement_cost
from shared_state.random import Stream
from shared_state.tasks import Int32, Int64, PreferenceCatalog

COST_PER_GB = 1000
# Firmament prices waiting at 0.5 per second, on the scale of COST_PER_GB.
WAITING_COST_PER_S = COST_PER_GB // 2
BLOCKS_MAX = 20
# A machine or rack is preferred if it holds at least so much of the input (Firmament section 7; its
# Fig. 15 has 14 % and 2 %).
PREFERRED_INPUT_PERCENT = 10
_HOUR_US = 3_600_000_000


@cache
def run_time_limits_us() -> tuple[int, ...]:
    """The longest run times, in microseconds, whose input fits 1, 2, ... BLOCKS_MAX - 1 blocks.

    This is the inverse of the model, in correctly rounded decimal arithmetic: b GB is reached at
    y = 0.5 + 0.5 log_320(16 b), h = (0.298 / (1 - y))^(1 / 0.2627).
    """
    context = Context(prec=40)
    limits = []
    for blocks in range(1, BLOCKS_MAX):
        quantile = (
            Decimal("0.5")
            + context.divide(context.ln(Decimal(16 * blocks)), context.ln(Decimal(320))) / 2
        )
        hours = context.power(
            context.divide(Decimal("0.298"), 1 - quantile),
            context.divide(Decimal(1), Decimal("0.2627")),
        )
        limits.append(int(hours * _HOUR_US))
    return tuple(limits)


def input_blocks(run_us: Int64) -> Int64:
    """The number of 1 GB blocks, int64[n], that tasks of these run times read."""
    blocks: Int64 = 1 + np.searchsorted(
        np.array(run_time_limits_us(), np.int64), run_us, side="left"
    )
    return blocks


def place_replicas(rack: Int32, blocks: int, stream: Stream) -> Int32:
    """Draw the machines of each block's replicas: int32[blocks, 3], distinct if the cell has three
    machines.

    The first is uniform; the second is in its rack, or anywhere else if the rack has one machine;
    the third is in another rack, or anywhere else if there is only one rack.
    """
    machines = len(rack)
    first = stream.integers(blocks, machines)
    low = np.searchsorted(rack, rack[first], side="left")
    high = np.searchsorted(rack, rack[first], side="right")
    size = high - low
    near = low + (first - low + 1 + draw_below(stream, np.maximum(size - 1, 1))) % size
    if machines > 1:
        lone = size == 1
        near[lone] = (
            first[lone] + 1 + draw_below(stream, np.full(int(lone.sum()), machines - 1))
        ) % machines
    # one rack: no outside, any machine
    outside = np.where(size < machines, machines - size, machines)
    far = (high + draw_below(stream, outside)) % machines
    for _ in range(2):
        clash = (far == first) | (far == near)
        far[clash] = (far[clash] + 1) % machines
    return np.stack([first, near, far], axis=1).astype(np.int32)


def input_catalog(
    blocks: Int64,
    rack: Int32,
    unscheduled_margin: int,
    stream: Stream,
    preferred_percent: int = PREFERRED_INPUT_PERCENT,
) -> PreferenceCatalog:
    """The catalog of tasks that read input; set k + 1 is of the k-th input.

    Waiting costs a task without input, of set 0, as much as the task for which it costs most: such
    a task does not give way to others.

    Args:
        blocks: int64[K], the size of each input.
        rack: int32[M], the rack of each machine.
        unscheduled_margin: how much more waiting costs than running away from the data; the cost
            is never below 0.
        stream: draws where the replicas lie.
        preferred_percent: Machines and racks that hold at least so much of an input are preferred.
    """
    sets, machines = len(blocks), len(rack)
    racks = int(rack[-1]) + 1
    replica = place_replicas(rack, int(blocks.sum()), stream)
    of_block = np.repeat(np.arange(sets, dtype=np.int64), blocks)
    # Blocks each (input, rack) holds: a block counts once in a rack though two replicas lie there.
    home = np.sort(rack[replica].astype(np.int64), axis=1)
    fresh = np.ones(home.shape, np.bool_)
    fresh[:, 1:] = home[:, 1:] != home[:, :-1]
    rack_key, rack_blocks = np.unique((of_block[:, None] * racks + home)[fresh], return_counts=True)
    host = np.sort(replica.astype(np.int64), axis=1)
    distinct = np.ones(host.shape, np.bool_)
    distinct[:, 1:] = host[:, 1:] != host[:, :-1]
    machine_key, machine_blocks = np.unique(
        (of_block[:, None] * machines + host)[distinct], return_counts=True
    )

    machine_set, machine = np.divmod(machine_key, machines)
    near = rack_blocks[np.searchsorted(rack_key, machine_set * racks + rack[machine])]
    machine_cost = COST_PER_GB * ((near - machine_blocks) + 2 * (blocks[machine_set] - near))
    rack_set, listed_rack = np.divmod(rack_key, racks)
    rack_cost = COST_PER_GB * (2 * blocks[rack_set] - rack_blocks)
    machine_kept = machine_blocks * 100 >= preferred_percent * blocks[machine_set]
    rack_kept = rack_blocks * 100 >= preferred_percent * blocks[rack_set]
    elsewhere = np.concatenate([np.zeros(1, np.int64), 2 * COST_PER_GB * blocks])
    unscheduled = np.maximum(elsewhere + unscheduled_margin, 0)
    unscheduled[0] = unscheduled.max()
    return PreferenceCatalog(
        machine_offsets=_offsets(machine_set[machine_kept], sets),
        machine=machine[machine_kept].astype(np.int32),
        machine_cost=machine_cost[machine_kept],
        rack_offsets=_offsets(rack_set[rack_kept], sets),
        rack=listed_rack[rack_kept].astype(np.int32),
        rack_cost=rack_cost[rack_kept],
        elsewhere_cost=elsewhere,
        unscheduled_cost=unscheduled,
    )


class InputReplicas:
    """The machines on which input lies, read from a catalog that input_catalog made. Machines and
    racks that are not preferred count as holding nothing of an input."""

    def __init__(self, catalog: PreferenceCatalog, rack: Int32) -> None:
        self._catalog, self._rack = catalog, rack
        self._racks = int(rack[-1]) + 1
        self._blocks = catalog.elsewhere_cost // (2 * COST_PER_GB)
        rack_set = np.repeat(np.arange(catalog.sets, dtype=np.int64), np.diff(catalog.rack_offsets))
        self._rack_key = rack_set * self._racks + catalog.rack
        self._rack_gb = 2 * self._blocks[rack_set] - catalog.rack_cost // COST_PER_GB

    def local_gb(self, preference: Int32, machine: Int32) -> tuple[Int64, Int64, Int64]:
        """The input of tasks of these sets, in GB: on the machine int32[n], in its rack including
        the machine, and in all; int64[n] each."""
        of_set = preference.astype(np.int64)
        in_all = self._blocks[of_set]
        in_rack = _lookup(self._rack_key, self._rack_gb, of_set * self._racks + self._rack[machine])
        cost, is_listed = placement_cost(self._catalog, self._rack, preference, machine)
        on_machine = np.where(is_listed, 2 * in_all - in_rack - cost // COST_PER_GB, 0)
        return on_machine, in_rack, in_all


INPUT_ON_MACHINE = Quantity(
    key="input_local_share",
    label="Input on the machine",
    unit=Unit.SHARE,
    description="Of the input data of placed tasks, by size; machines that hold too little of a "
    "task's input to be preferred (by default less than a tenth) count as holding none.",
    better=Better.HIGHER,
    headline=True,
    per_scheduler=True,
)
INPUT_IN_RACK = Quantity(
    key="input_rack_share",
    label="Input in the rack",
    unit=Unit.SHARE,
    description="Of the input data of placed tasks, on the machine or elsewhere in its rack; racks "
    "that hold too little to be preferred count as holding none.",
    better=Better.HIGHER,
    headline=True,
    per_scheduler=True,
)


@dataclass(frozen=True, slots=True)
class InputLocality:
    """Data locality of placements: input on the machine itself, or in its rack including the
    machine, over all input; in GB."""

    replicas: InputReplicas
    preference: Int32
    in_rack: bool

    @property
    def quantity(self) -> Quantity:
        """What the figure is called, and which direction is better."""
        return INPUT_IN_RACK if self.in_rack else INPUT_ON_MACHINE

    def of(self, task: Int64, machine: Int32) -> tuple[Int64, Int64]:
        on_machine, in_rack, all_gb = self.replicas.local_gb(self.preference[task], machine)
        return (in_rack if self.in_rack else on_machine), all_gb


def _lookup(keys: Int64, values: Int64, wanted: Int64) -> Int64:
    """The value of each wanted key: int64[n], 0 where the ascending keys lack it."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)


def _offsets(of_input: Int64, sets: int) -> Int64:
    """The CSR offsets int64[sets + 2], with the empty set 0 in front."""
    return np.concatenate(
        [np.zeros(2, np.int64), np.cumsum(np.bincount(of_input, minlength=sets))]
    ).astype(np.int64)


class InputFiles(Strict):
    """A pool of files that tasks read, each task one of them, some more popular than others. Where
    their replicas lie, and what it costs to run elsewhere, is as of input of one task."""

    count: int = Field(ge=1, le=1_000_000, description="files in the pool")
    zipf: float = Field(
        0.5, ge=0, le=8, description="popularity of file k is proportional to k ** -zipf"
    )
    gb: tuple[Annotated[int, Field(ge=1, le=BLOCKS_MAX)], ...] = Field(
        (1,),
        min_length=1,
        strict=False,
        description="sizes of files, each equally frequent, in blocks of 1 GB",
    )

    def draw(self, readers: int, stream: Stream) -> tuple[Int64, Int64]:
        """Draw the size of each file in blocks, int64[count], and the file that each of the tasks
        reads, int64[readers]."""
        gb = np.array(self.gb, np.int64)[stream.integers(self.count, len(self.gb))]
        return gb, draw(stream, zipf_table(self.count, self.zipf), readers)
