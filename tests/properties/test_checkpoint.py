"""A cell's runtime taken up from a checkpoint at any place of its log goes on exactly as one that
replayed all of it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parsync.core.addresses import ARRIVALS, MASTER, WORKERS
from parsync.core.codec import CORE
from parsync.core.event import Event
from parsync.core.events import CommitRequest, MachinesChanged, SyncRequest, TasksFinished
from parsync.runtime.assembly import Assembly
from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of, replay_frame
from parsync.runtime.live.logs import CELL_LOG, Frame, read_cell_log
from parsync.runtime.live.steps import Step
from shared_state.transaction import CommitMode, Transaction
from tests.fixtures.examples import examples
from tests.fixtures.live_runs import small_arm, small_workload

WORKLOAD = small_workload(machines=40)
ASSEMBLY = Assembly.of(small_arm(), WORKLOAD)
HOSTS = {0: (0, 2), 1: (1, 3)}
MACHINES = WORKLOAD.cell.machines

MOVES = st.lists(
    st.tuples(
        st.sampled_from(
            ["claim", "claim", "claim", "sync", "end", "machine", "new host", "new cell", "nothing"]
        ),
        st.integers(0, 3),
        st.integers(0, 1 << 20),
        st.integers(0, 60_000),
    ),
    min_size=1,
    max_size=40,
)


def new_runtime() -> CellRuntime:
    return CellRuntime(CORE, ASSEMBLY.master(), hosts_of(HOSTS), len(WORKLOAD.tasks), ignore)


def event_of(move: str, agent: int, number: int, runtime: CellRuntime) -> tuple[int, Event | None]:
    """(host, event) of a move."""
    rng = np.random.default_rng(number)
    if move == "claim":
        n = number % 7 + 1
        task = rng.choice(60, n, replace=False)
        mode = CommitMode.ALL_OR_NOTHING if number % 3 == 0 else CommitMode.INCREMENTAL
        machine = rng.integers(0, min(8, MACHINES), n).astype(np.int32)
        request = rng.integers(1, 4, (n, 1))
        claims = Transaction(
            agent, number, task, machine, request, np.zeros(n, np.int64), commit_mode=mode
        )
        return agent % 2, CommitRequest(agent, claims)
    if move == "sync":
        return agent % 2, SyncRequest(
            agent, np.array([number % 4], np.int32), np.array([0]), number % 2 == 0
        )
    if move == "end":
        held = runtime.master.cell.allocations().allocation
        ended = held[rng.random(len(held)) < 0.5]
        owner = runtime.master.cell.describe(ended).owner
        return WORKERS, TasksFinished(ended, owner, np.zeros(len(ended), np.int64))
    if move == "machine":
        return ARRIVALS, MachinesChanged(
            np.array([number % 8], np.int32), np.array([number % 2 == 0])
        )
    return agent % 2, None


def log_of(moves: list[tuple[str, int, int, int]], path: Path) -> list[tuple[Any, ...]]:
    """The EPOCH and STEP frames that a cell writes on these moves."""
    service = CellService(new_runtime(), path, fsync=False)
    service.start(0, tuple((host, f"schedulers-{host}", agents) for host, agents in HOSTS.items()))
    at_us = 0
    epochs: dict[int, int] = {}
    numbers: dict[int, int] = {}
    for move, agent, number, pause_us in moves:
        at_us += pause_us
        if move == "new cell":
            service.begin_epoch(at_us)
            continue
        host, event = event_of(move, agent, number, service.runtime)
        if move == "new host":
            epochs[host] = epochs.get(host, 1) + 1
            numbers[host] = 0
        numbers[host] = numbers.get(host, 0) + 1
        messages = () if event is None else ((MASTER, event),)
        service.step(Step(host, epochs.get(host, 1), numbers[host], messages).to_bytes(CORE), at_us)
    service.close()
    return [frame for frame in read_cell_log(path) if frame[0] != Frame.HEADER]


@examples(40)
@given(moves=MOVES, share=st.floats(0, 1))
def test_checkpoint_and_rest_equal_the_whole(
    moves: list[tuple[str, int, int, int]], share: float
) -> None:
    with TemporaryDirectory() as directory:
        frames = log_of(moves, Path(directory) / CELL_LOG)
    cut = round(share * len(frames))
    whole, early, resumed = new_runtime(), new_runtime(), new_runtime()
    for frame in frames:
        assert replay_frame(whole, frame)
    for frame in frames[:cut]:
        assert replay_frame(early, frame)
    parts = early.checkpoint()
    resumed.restore(parts)
    assert resumed.checkpoint() == parts
    for frame in frames[cut:]:
        assert replay_frame(resumed, frame), "other effects than logged"
    assert resumed.checkpoint() == whole.checkpoint()
    assert np.array_equal(resumed.never_placed(), whole.never_placed())
    for frame in frames:
        if frame[0] == Frame.STEP:
            step = Step.of(CORE, frame[2])
            assert resumed.known(step) == whole.known(step)
