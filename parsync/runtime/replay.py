"""Replay of a live run's logs on bare cores: equal effects, or the first divergence.

`python -m parsync.runtime.replay DIR` reads the directory that run_live wrote. The cell's log is fed to a fresh master; with agents' logs there, every agent
is fed what it handled, the payloads of its sync replies made anew by the replayed master. Effects are compared by digest. Meanwhile an audit
checks the cell's invariants on its own account (shared_state.invariants). Exit status: 0 equal, 1 diverged or an invariant broken, 2 bad input.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from parsync.core.agent import SchedulerAgent
from parsync.core.codec import decode
from parsync.core.events import DecisionDone, Event, StartDecision, SyncReply
from parsync.core.master import MasterCore
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import AuditedMaster
from parsync.runtime.live.assembly_file import read_assembly
from parsync.runtime.live.cell import CELL_LOG, CellStage, Frame, hosts_of, read_cell_log, replay_frame
from parsync.runtime.live.handled_log import effects_digest
from parsync.runtime.live.stage import ignore_record
from parsync.runtime.live.steps import Step
from shared_state.errors import AgoraError
from shared_state.invariants import AuditCounts, CellAudit, InvariantViolation
from shared_state.journal import read_journal

SyncQueues = dict[tuple[int, int], dict[int, deque[SyncReply]]]  # (host, its epoch) -> agent -> replies in order


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay found. divergence: the first difference, None if all effects are equal. counts: the audit's."""

    steps: int
    lives: int
    agent_events: int
    divergence: str | None
    counts: AuditCounts


def replay(directory: Path) -> Replayed:
    """Replay the logs in `directory`. AgoraError for missing or corrupt logs, InvariantViolation if the run broke one."""
    assembly = read_assembly(directory)
    frames = read_cell_log(directory / CELL_LOG)
    _, _, hosts = next(frames)  # there is one: read_cell_log sees to it
    agents_of: dict[int, tuple[int, ...]] = {host: agents for host, _, agents in hosts}
    if sorted(agent for agents in agents_of.values() for agent in agents) != list(range(assembly.arm.agents)):
        raise AgoraError(f"{directory / CELL_LOG}: frame 0: the hosts of another run")
    logs = [
        (host, int(path.stem.removeprefix(f"{name}-")), path)
        for host, name, _ in hosts
        for path in sorted(directory.glob(f"{name}-*.journal"))
        if path.stem.removeprefix(f"{name}-").isdecimal()
    ]
    audit = CellAudit(assembly.workload.cell, assembly.partitioning)
    audit.submitted(assembly.workload.arrival_rows)
    bare = assembly.master()
    cell = bare.cell
    tasks = len(assembly.workload.tasks)
    stage = CellStage(cast(MasterCore, AuditedMaster(bare, audit)), hosts_of(agents_of), tasks, ignore_record)
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
            return Replayed(stage.steps, lives, 0, divergence, audit.finish())
        if frame[0] == Frame.STEP and logs:
            _keep_syncs(stage, Step.of(frame[2]), queues)
    audit.matches(cell)
    counts = audit.finish()
    events = 0
    for host, epoch, path in logs:
        handled, difference = _replay_agents(assembly, agents_of[host], path, queues[host, epoch])
        events += handled
        if difference is not None:
            return Replayed(stage.steps, lives, events, difference, counts)
    return Replayed(stage.steps, lives, events, None, counts)


def _keep_syncs(stage: CellStage, step: Step, queues: SyncQueues) -> None:
    """Keep the sync replies of the step just replayed for the agents they went to."""
    for address, data in decode(stage.known(step) or b""):
        event = decode(data)
        if isinstance(event, SyncReply):
            queues[step.host, step.epoch][address].append(event)


def _replay_agents(
    assembly: Assembly, indexes: tuple[int, ...], path: Path, replies: dict[int, deque[SyncReply]]
) -> tuple[int, str | None]:
    """Feed a host's log to fresh agents: (events, the first difference)."""
    agents: dict[int, SchedulerAgent] = {index: assembly.agent(index) for index in indexes}
    handled = 0
    for payload in read_journal(path):
        entry, logged = decode(payload)
        address, at_us, event = decode(entry)
        handled += 1
        where = f"{path}: event {handled}, {agents[address].name} at {at_us} us"
        if isinstance(event, tuple):
            event = _reply(event, replies[address])
            if event is None:
                return handled, f"{where}: a sync that the replayed cell did not answer so"
        if effects_of(agents[address], at_us, event) != bytes(logged):
            return handled, f"{where}: {type(event).__name__} has other effects than logged"
    return handled, None


def _reply(logged: tuple[Any, ...], replies: deque[SyncReply]) -> SyncReply | None:
    """The next sync reply, if it is the logged one: (epoch, ((partition, from, to), ...))."""
    if not replies:
        return None
    reply = replies.popleft()
    moved = tuple((delta.partition, delta.from_version, delta.to_version) for delta in reply.deltas)
    return reply if (reply.epoch, moved) == logged else None


def effects_of(agent: SchedulerAgent, at_us: int, event: Event) -> bytes:
    """The digest of what an event leads to. Decisions run as they did: at once, with the decision time that was measured then."""
    if isinstance(event, DecisionDone):
        agent.decision_us(event.elapsed_ns)
    effects = agent.handle(at_us, event)
    digest = effects_digest(effects)
    for effect in effects:
        if isinstance(effect, StartDecision):
            agent.decide(effect.decision, at_us)
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
        f"ok: {replayed.steps} steps, {replayed.lives} lives of the cell, {replayed.agent_events} agent events, "
        f"{replayed.counts.accepted} of {replayed.counts.claims} claims accepted"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
