"""Any participant sends to any other: under both runtimes every message arrives exactly once, and
those of one sender to one receiver in order, whatever becomes of the cell and of calls to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsync.core.addresses import ARRIVALS, CELL_SIDE, COORDINATOR, MASTER, WORKERS
from parsync.core.codec import Codec, decode, encode
from parsync.core.effects import Effect, Send, StartDecision
from parsync.core.event import Event
from parsync.core.participant import Participant
from parsync.runtime.assembly import Assembly
from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of, replay_frame
from parsync.runtime.live.checkpoint import Checkpoints
from parsync.runtime.live.logs import CELL_LOG, Frame, HandledLog, handled_log, read_cell_log
from parsync.runtime.live.loop import ActorRuntime
from parsync.runtime.live.replay import ReplayedActor
from parsync.runtime.live.steps import Step, StepClient
from parsync.runtime.virtual.run import VirtualRuntime
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.journal import read_journal
from tests.fixtures.counters import COUNTER_EVENTS, Count, CountDue, Counter
from tests.fixtures.examples import examples
from tests.fixtures.hand_driven_run import HandClock
from tests.fixtures.live_runs import small_arm, small_workload
from tests.fixtures.steps_at_once import step

ASSEMBLY = Assembly.of(small_arm(), small_workload(machines=20))
TASKS = len(ASSEMBLY.workload.tasks)
CODEC = Codec(COUNTER_EVENTS)
AGENTS = {0: (0, 1), 1: (2,)}
CELL_SIDES = (CELL_SIDE, CELL_SIDE - 1)
ADDRESSES = (0, 1, 2, WORKERS, COORDINATOR, ARRIVALS, *CELL_SIDES)
HOSTS = {**AGENTS, **{address: (address,) for address in (WORKERS, COORDINATOR, ARRIVALS)}}
TICK_US, TICKS, SENDING_TICKS = 25_000, 60, 30
EPOCH = 7


def new_counters() -> dict[int, Counter]:
    return {
        address: Counter(address, ADDRESSES, 7_000 + 1_300 * place, SENDING_TICKS * TICK_US)
        for place, address in enumerate(ADDRESSES)
    }


def check(counters: Mapping[int, Counter]) -> None:
    """Everybody has what everybody sent."""
    for sender in counters.values():
        assert len(sender.sent) == len(ADDRESSES) - 1
        for to, count in sender.sent.items():
            assert counters[to].received[sender.address] == count > 10


@pytest.mark.parametrize("message_us", [0, 1_700])
def test_messages_in_virtual_time(message_us: int) -> None:
    counters = new_counters()
    participants: dict[int, Participant] = {**counters, MASTER: ASSEMBLY.master()}
    runtime = VirtualRuntime(participants, {}, ignore, CODEC, message_us)
    runtime.run_until(TICKS * TICK_US)
    check(counters)


def test_messages_between_participants_beside_the_cell_take_no_time() -> None:
    counters, arrived_us = new_counters(), dict[tuple[int, int], int]()
    first = {address: Count(address, 0, 0) for address in ADDRESSES}

    def note(address: int) -> Callable[[int, Event], list[Effect]]:
        def handle(now_us: int, event: Event) -> list[Effect]:
            if isinstance(event, Count):
                arrived_us[event.sender, address] = now_us
                return []
            return [Send(to, first[address]) for to in ADDRESSES]

        return handle

    for address, counter in counters.items():
        counter.handle = note(address)  # type: ignore
    VirtualRuntime(counters, {}, ignore, CODEC, 1_700).run_until(5_000)
    for (sender, to), at_us in arrived_us.items():
        beside = sender in CELL_SIDES and to in CELL_SIDES
        assert at_us == (0 if beside else 1_700), (sender, to)
    assert len(arrived_us) == len(ADDRESSES) ** 2


def test_only_deciders_start_decisions(tmp_path: Path) -> None:
    counters = new_counters()
    counters[CELL_SIDE].handle = lambda now_us, event: [StartDecision(1)]  # type: ignore
    line = "^participant 0 beside the master: starts a decision, but is no decider$"
    with pytest.raises(AgoraError, match=line):
        VirtualRuntime(counters, {}, ignore, CODEC).run_until(0)
    service = CellService(new_runtime(counters), tmp_path / CELL_LOG, fsync=False)
    service.start(0, ())
    counters[CELL_SIDE].handle = lambda now_us, event: [StartDecision(1)]  # type: ignore
    with pytest.raises(AgoraError, match=line):
        service.step(Step(0, 1, 1, ((CELL_SIDE, CountDue()),)).to_bytes(CODEC), 10)
    service.close()


def new_runtime(counters: dict[int, Counter]) -> CellRuntime:
    """Its counters are those of `counters`, and take their places there."""

    def make_cell_side(cell: Cell) -> dict[int, Counter]:
        made = {address: new_counters()[address] for address in CELL_SIDES}
        counters.update(made)
        return made

    return CellRuntime(CODEC, ASSEMBLY.master(), hosts_of(AGENTS), TASKS, ignore, make_cell_side)


def live_run(directory: Path, kills: set[int], loss: int) -> dict[int, Counter]:
    """A hand-driven run. kills: ticks at which the cell is killed and comes back. loss: seed of
    calls to the cell, and answers, that are lost."""
    clock, counters = HandClock(), new_counters()
    log = directory / CELL_LOG
    chance = random.Random(loss)
    service: CellService
    written: list[Checkpoints] = []

    def cell() -> CellService:
        """From what the files hold."""
        checkpoints = Checkpoints(log, None, 3_000, sync=False)
        written.append(checkpoints)
        return CellService(new_runtime(counters), log, False, checkpoints)

    def call(request: bytes) -> bytes:
        if chance.random() < 0.1:
            raise Unavailable("the call is lost")
        reply = service.step(request, clock.us)
        if chance.random() < 0.1:
            raise Unavailable("the answer is lost")
        return reply

    service = cell()
    service.start(0, tuple((host, f"host-{host}", agents) for host, agents in AGENTS.items()))
    logs = {host: HandledLog(CODEC, handled_log(directory, f"host{host}", EPOCH)) for host in HOSTS}
    runtimes = {
        host: ActorRuntime(
            {address: counters[address] for address in addresses},
            {},
            (*ADDRESSES, MASTER),
            clock,
            ignore,
            log=logs[host],
        )
        for host, addresses in HOSTS.items()
    }
    clients = {host: StepClient(CODEC, host, EPOCH, call, pause_s=0.0) for host in HOSTS}
    for runtime in runtimes.values():
        runtime.start()
    for tick in range(TICKS):
        clock.us = tick * TICK_US
        for host, runtime in runtimes.items():
            if tick in kills and host == 1:  # amid the steps of a tick
                service = cell()
                service.begin_epoch(clock.us)
            runtime.advance()
            for address, event in step(clients[host], runtime.take_outgoing(tick)):
                runtime.deliver(address, event)
            runtime.advance()
    for log_of_host in logs.values():
        log_of_host.close()
    for checkpoints in written:
        checkpoints.wait()  # no thread writes into the directory any longer
    return counters


@examples(12)
@given(kills=st.sets(st.integers(1, TICKS - 20), max_size=4), loss=st.integers(0, 1 << 16))
def test_messages_of_a_live_run_whose_cell_is_killed(kills: set[int], loss: int) -> None:
    with TemporaryDirectory() as folder:
        check(live_run(Path(folder), kills, loss))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of a run whose cell is killed twice."""
    directory = tmp_path_factory.mktemp("counters")
    live_run(directory, {9, 23}, loss=1)
    return directory


def test_the_log_of_the_cell_replays_and_a_changed_one_does_not(directory: Path) -> None:
    frames = [frame for frame in read_cell_log(directory / CELL_LOG) if frame[0] != Frame.HEADER]
    runtime, counters = (lambda made: (new_runtime(made), made))(new_counters())
    assert all(replay_frame(runtime, frame) for frame in frames)
    assert sum(frame[0] == Frame.EPOCH for frame in frames) == 3
    assert min(counters[address].received[0] for address in CELL_SIDES) > 10
    changed = 0
    for place, frame in enumerate(frames):
        if frame[0] != Frame.STEP or place % 7:
            continue
        step = Step.of(CODEC, frame[2])
        for k, (to, event) in enumerate(step.messages):
            assert isinstance(event, Count)
            other = Count(event.sender, event.count, event.pass_on + 1)
            messages = (*step.messages[:k], (to, other), *step.messages[k + 1 :])
            request = Step(step.host, step.epoch, step.number, messages).to_bytes(CODEC)
            runtime = new_runtime(new_counters())
            assert all(replay_frame(runtime, earlier) for earlier in frames[:place])
            assert not replay_frame(runtime, (*frame[:2], request, frame[3])), (place, k)
            changed += 1
            break
        if changed == 8:
            return
    pytest.fail("too few messages in the log")


@pytest.mark.parametrize("host", HOSTS)
def test_the_log_of_a_host_replays_and_a_changed_one_does_not(directory: Path, host: int) -> None:
    frames = list(read_journal(handled_log(directory, f"host{host}", EPOCH)))

    def first_divergence(frames: list[bytes]) -> int | None:
        counters = new_counters()
        own = {address: counters[address] for address in HOSTS[host]}
        actor = ReplayedActor(CODEC, own, {})
        for number, payload in enumerate(frames):
            entry = actor.entry(payload, str(number))
            try:
                _, digest = actor.effects_of(entry.address, entry.at_us, entry.event)
            except AssertionError:  # the counter misses a message
                return number
            if digest != entry.digest:
                return number
        return None

    assert first_divergence(frames) is None
    place = len(frames) // 2
    assert first_divergence(frames[:place] + frames[place + 1 :]) is not None
    entry, digest = decode(frames[place])
    address, at_us, _ = CODEC.decode(entry)
    by = CODEC.encode((address, at_us, CountDue()))
    if by == entry:
        by = CODEC.encode((address, at_us, Count(WORKERS, 1 << 20, 0)))
    assert first_divergence([*frames[:place], encode((by, digest)), *frames[place + 1 :]]) == place


def test_a_message_to_nobody_is_an_error_that_names_it() -> None:
    line = "agent 1: sent CountDue to address 99, which no participant has"
    counters = new_counters()
    counters[1].handle = lambda now_us, event: [Send(99, CountDue())]  # type: ignore[method-assign]
    participants: dict[int, Participant] = {**counters, MASTER: ASSEMBLY.master()}
    with pytest.raises(AgoraError, match=f"^{line}$"):
        VirtualRuntime(participants, {}, ignore, CODEC).run_until(0)
    own = {1: counters[1]}
    runtime = ActorRuntime(own, {}, ADDRESSES, HandClock(), ignore, lambda *_: None)
    runtime.start()
    with pytest.raises(AgoraError, match=f"^{line}$"):
        runtime.advance()


def test_a_message_to_nobody_from_beside_the_cell_stops_the_cell(tmp_path: Path) -> None:
    """The step that led to it is half carried out: nothing of it is on record, and no step
    follows."""
    counters = new_counters()
    service = CellService(new_runtime(counters), tmp_path / CELL_LOG, fsync=False)
    service.start(0, ())
    allocator = counters[CELL_SIDE]
    allocator.handle = lambda now_us, event: [Send(99, CountDue())]  # type: ignore[method-assign]
    line = "participant 0 beside the master: sent CountDue to address 99, which no participant has"
    request = Step(0, 1, 1, ((CELL_SIDE, CountDue()),)).to_bytes(CODEC)
    for data in (request, request, Step(1, 1, 1, ()).to_bytes(CODEC)):
        with pytest.raises(AgoraError, match=f"^{line}$"):
            service.step(data, 10)
    service.close()
    assert [frame[0] for frame in read_cell_log(tmp_path / CELL_LOG)] == [Frame.HEADER, Frame.EPOCH]


def test_participants_beside_a_restored_cell_read_it_and_not_the_one_before() -> None:
    cells: list[Cell] = []

    def make_cell_side(cell: Cell) -> dict[int, Counter]:
        cells.append(cell)
        return {}

    runtime = CellRuntime(CODEC, ASSEMBLY.master(), hosts_of(AGENTS), TASKS, ignore, make_cell_side)
    runtime.restore(runtime.checkpoint())
    assert len(cells) == 2 and cells[1] is runtime.master.cell is not cells[0]


def test_messages_that_wait_for_a_restarted_host_are_dropped(tmp_path: Path) -> None:
    service = CellService(new_runtime(new_counters()), tmp_path / CELL_LOG, fsync=False)
    service.start(0, ())

    def step(host: int, epoch: int, number: int, *messages: tuple[int, Count]) -> list[Count]:
        request = Step(host, epoch, number, messages).to_bytes(CODEC)
        return [CODEC.decode(data) for _, data in decode(service.step(request, 10))]

    step(1, 1, 1)
    first, second = Count(0, 1, 0), Count(0, 2, 0)
    assert step(0, 1, 1, (2, first), (1, first)) == [first], "one to an agent of the same host, too"
    assert step(1, 2, 1) == []
    step(0, 1, 2, (2, second))
    assert step(1, 2, 2) == [second]
