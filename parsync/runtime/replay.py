"""Replay of a live run's logs on bare cores: equal effects, or the first divergence.

`python -m parsync.runtime.replay DIR` reads the directory that run_live wrote. The cell's log is
fed to a fresh master, then every other log there to the cores of its actor, made anew: agents,
worker pool, workload source, coordinator. The payloads of sync replies are the replayed master's.
Effects are compared by digest. Meanwhile an audit checks the cell's invariants on its own account
(shared_state.invariants). Exit status: 0 equal, 1 diverged or an invariant broken, 2 bad input.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from parsync.core.agent import SchedulerAgent
from parsync.core.codec import decode
from parsync.core.events import (
    ARRIVALS,
    COORDINATOR,
    WORKERS,
    DecisionDone,
    Event,
    Participant,
    StartDecision,
    SyncReply,
)
from parsync.core.master import MasterCore
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import AuditedMaster
from parsync.runtime.live.assembly_file import read_assembly
from parsync.runtime.live.cell import (
    CELL_LOG,
    CellStage,
    Frame,
    hosts_of,
    read_cell_log,
    replay_frame,
)
from parsync.runtime.live.handled_log import effects_digest, handled_logs
from parsync.runtime.live.plan import COORDINATOR_NAME, SOURCE, WORKER_POOL
from parsync.runtime.live.stage import ignore_record
from parsync.runtime.live.steps import Step
from shared_state.errors import AgoraError
from shared_state.invariants import AuditCounts, CellAudit, InvariantViolation
from shared_state.journal import read_journal

# (host, its epoch) -> agent -> replies in order
SyncQueues = dict[tuple[int, int], dict[int, deque[SyncReply]]]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay found. lives: of the cell. events: that the other cores handled, by the name of
    their actor. divergence: the first difference, None if all effects are equal. counts: the
    audit's."""

    steps: int
    lives: int
    events: Mapping[str, int]
    divergence: str | None
    counts: AuditCounts


def replay(directory: Path) -> Replayed:
    """Replay the logs in `directory`. AgoraError for missing or corrupt logs, InvariantViolation if
    the run broke one."""
    assembly = read_assembly(directory)
    frames = read_cell_log(directory / CELL_LOG)
    _, _, hosts = next(frames)  # there is one: read_cell_log sees to it
    agents_of: dict[int, tuple[int, ...]] = {host: agents for host, _, agents in hosts}
    if sorted(agent for agents in agents_of.values() for agent in agents) != list(
        range(assembly.arm.agents)
    ):
        raise AgoraError(f"{directory / CELL_LOG}: frame 0: the hosts of another run")
    audit = CellAudit(assembly.workload.cell, assembly.partitioning)
    audit.submitted(assembly.workload.arrival_rows)
    bare = assembly.master()
    cell = bare.cell
    tasks = len(assembly.workload.tasks)
    stage = CellStage(
        cast(MasterCore, AuditedMaster(bare, audit)), hosts_of(agents_of), tasks, ignore_record
    )
    queues: SyncQueues = defaultdict(lambda: defaultdict(deque))
    lives = 0
    for number, frame in enumerate(frames, start=1):
        lives += frame[0] == Frame.LIFE
        try:
            equal = replay_frame(stage, frame)
        except AgoraError as error:
            raise AgoraError(f"{directory / CELL_LOG}: frame {number}: {error}") from error
        if not equal:
            divergence = f"{directory / CELL_LOG}: frame {number}, at {stage.now_us} us: other effects than logged"
            return Replayed(stage.steps, lives, {}, divergence, audit.finish())
        if frame[0] == Frame.STEP:
            _keep_syncs(stage, Step.of(frame[2]), queues)
    audit.matches(cell)
    counts = audit.finish()
    events: dict[str, int] = {}
    for name, host, make_cores in _actors(assembly, hosts):
        for epoch, path in handled_logs(directory, name):
            handled, difference = _replay_cores(make_cores(), path, queues[host, epoch])
            events[name] = events.get(name, 0) + handled
            if difference is not None:
                return Replayed(stage.steps, lives, events, difference, counts)
    return Replayed(stage.steps, lives, events, None, counts)


def _actors(
    assembly: Assembly, hosts: tuple[tuple[int, str, tuple[int, ...]], ...]
) -> list[tuple[str, int, Callable[[], dict[int, Participant]]]]:
    """(name, id among the cell's hosts, its cores made anew) of every actor but the cell's."""

    def agents(indexes: tuple[int, ...]) -> dict[int, Participant]:
        return {index: assembly.agent(index) for index in indexes}

    return [
        (COORDINATOR_NAME, COORDINATOR, lambda: {COORDINATOR: assembly.coordinator()}),
        (SOURCE, ARRIVALS, lambda: {ARRIVALS: assembly.arrivals()}),
        *((name, host, partial(agents, indexes)) for host, name, indexes in hosts),
        (WORKER_POOL, WORKERS, lambda: {WORKERS: assembly.workers()}),
    ]


def _keep_syncs(stage: CellStage, step: Step, queues: SyncQueues) -> None:
    """Keep the sync replies of the step just replayed for the agents they went to."""
    for address, data in decode(stage.known(step) or b""):
        event = decode(data)
        if isinstance(event, SyncReply):
            queues[step.host, step.epoch][address].append(event)


def _replay_cores(
    cores: dict[int, Participant], path: Path, replies: dict[int, deque[SyncReply]]
) -> tuple[int, str | None]:
    """Feed an actor's log to fresh cores: (events, the first difference)."""
    handled = 0
    for payload in read_journal(path):
        handled += 1
        address, at_us, event, logged = _entry(payload, cores, f"{path}: event {handled}")
        core = cores[address]
        name = f"{core.name} " if isinstance(core, SchedulerAgent) else ""
        where = f"{path}: event {handled}, {name}at {at_us} us"
        if isinstance(event, tuple):
            event = _reply(event, replies[address])
            if event is None:
                return handled, f"{where}: a sync that the replayed cell did not answer so"
        try:
            equal = effects_of(core, at_us, event) == logged
        except Exception as error:  # the live core had none, or its log would end before
            return handled, f"{where}: {type(error).__name__}: {error}"
        if not equal:
            return handled, f"{where}: {type(event).__name__} has other effects than logged"
    return handled, None


def _entry(
    payload: bytes, cores: dict[int, Participant], where: str
) -> tuple[int, int, Any, bytes]:
    """(address, time, event, digest). AgoraError if the frame is none of an actor with these
    cores."""
    try:
        entry, logged = decode(payload)
        address, at_us, event = decode(entry)
    except (ValueError, TypeError) as error:
        raise AgoraError(f"{where}: not one of an actor's log: {error}") from error
    if not (
        type(address) is int and address in cores and type(at_us) is int and type(logged) is bytes
    ):
        raise AgoraError(f"{where}: of another actor's log")
    return address, at_us, event, logged


def _reply(logged: tuple[Any, ...], replies: deque[SyncReply]) -> SyncReply | None:
    """The next sync reply, if it is the logged one: (epoch, ((partition, from, to), ...))."""
    if not replies:
        return None
    reply = replies.popleft()
    moved = tuple((delta.partition, delta.from_version, delta.to_version) for delta in reply.deltas)
    return reply if (reply.epoch, moved) == logged else None


def effects_of(core: Participant, at_us: int, event: Event) -> bytes:
    """The digest of what an event leads to. Decisions run as they did: at once, with the decision
    time that was measured then."""
    if not isinstance(core, SchedulerAgent):
        return effects_digest(core.handle(at_us, event))
    if isinstance(event, DecisionDone):
        core.decision_us(event.elapsed_ns)
    effects = core.handle(at_us, event)
    digest = effects_digest(effects)
    for effect in effects:
        if isinstance(effect, StartDecision):
            core.decide(effect.decision, at_us)
    return digest


def main(arguments: list[str]) -> int:
    """The command. Returns its exit status."""
    if len(arguments) != 1:
        print("usage: python -m parsync.runtime.replay DIR", file=sys.stderr)
        return 2
    try:
        replayed = replay(Path(arguments[0]))
    except AgoraError as error:
        print(error, file=sys.stderr)
        return 2
    except InvariantViolation as error:
        print(f"invariant broken: {error}")
        return 1
    if replayed.divergence is not None:
        print(replayed.divergence)
        return 1
    print(
        f"ok: {replayed.steps} steps, {replayed.lives} lives of the cell, {sum(replayed.events.values())} events of {len(replayed.events)} other actors, "
        f"{replayed.counts.accepted} of {replayed.counts.claims} claims accepted"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
