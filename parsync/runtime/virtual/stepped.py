"""The live runtime in virtual time: its own loops on an event heap, with times that live runs
measured.

In a plain run in virtual time every message takes the same time. A live run hands messages on with
the steps of its processes: once per tick, staggered, or a little more often where there is
something to send. Here the same loops (parsync/runtime/live/loop.py) do that. Round trips, pushes
and wake-ups take times drawn from a calibration, with streams of the run's own seed. Computing a
plan keeps a process busy for the decision's time if its clock is the scheduler's own speed; all
other work takes no time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from parsync.core.addresses import ARRIVALS, COORDINATOR, WORKERS, is_beside_cell
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.participant import Decider, Participant
from parsync.runtime.assembly import Assembly
from parsync.runtime.audit import RunAudit
from parsync.runtime.calibration import Calibration, Draws
from parsync.runtime.effect_interpreter import RecordListener, ignore
from parsync.runtime.faults import hand_out_last_records
from parsync.runtime.live.cell import CellSideLoop, HandledListener
from parsync.runtime.live.loop import WAKE_US, ActorRuntime, HostLoop, Ticks
from parsync.runtime.live.meters import LoadMeter
from parsync.runtime.live.plan import LiveOptions, plan_run
from parsync.runtime.live.steps import Steps
from parsync.runtime.live.submissions import (
    Acknowledgement,
    SubmissionReceiver,
    SubmissionSender,
    SubmittingSteps,
)
from schedulers.decision_clock import ClockClass

Messages = list[tuple[int, Event]]
Action = Callable[[], None]
EventListener = Callable[[int, int, Event, list[Effect]], None]


class _HostClock:
    """The time of one process, which is ahead of the run's while it computes a plan."""

    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        return self.us


class _HostRuntime(ActorRuntime):
    """The participants of one process.

    Args:
        own_speed: The deciders that keep the process busy for their decision times.
        of_base: As ActorRuntime.
    """

    def __init__(self, clock: _HostClock, own_speed: Collection[int], *of_base: Any) -> None:
        super().__init__(*of_base)
        self._host_clock = clock
        self._own_speed = own_speed

    def finish_decision(
        self, now_us: int, decision: int, elapsed_ns: int, decision_us: int, address: int
    ) -> None:
        """As Runtime.finish_decision. The measured time stays out of the event, which is the same
        on any machine."""
        if address in self._own_speed:
            self._host_clock.us = max(self._host_clock.us, now_us) + decision_us
        super().finish_decision(now_us, decision, 0, decision_us, address)


class _Cell(CellSideLoop):
    """The participants beside the cell, and the messages that wait for the steps of hosts."""

    def __init__(self, host_of: Mapping[int, int], on_event: EventListener, *of_base: Any) -> None:
        super().__init__(*of_base)
        self._host_of = host_of
        self._on_event = on_event
        self.outbox: defaultdict[int, Messages] = defaultdict(list)

    @property
    def handled_listener(self) -> HandledListener:
        return self._handled

    def _handled(self, address: int, event: Event, effects: list[Effect]) -> None:
        self._on_event(address, self.now_us, event, effects)

    def outgoing(self, to: int, event: Event) -> None:
        self.outbox[self._host_of[to]].append((to, event))


class _Process:
    """One process of the live runtime: its loop, and its next turn."""

    def __init__(self, number: int, clock: _HostClock, runtime: ActorRuntime, lag: Draws) -> None:
        self.number = number
        self.clock = clock
        self.runtime = runtime
        self.lag = lag
        self.loop: HostLoop | None = None
        self.turn = 0  # the number of the turn that is to come; earlier ones are cancelled


class _DrawnSteps:
    """Steps whose round trips are drawn. Half of each is the way to the cell."""

    def __init__(self, run: SteppedRuntime, process: _Process, round_trip: Draws) -> None:
        self._run = run
        self._process = process
        self._round_trip = round_trip
        self._answer: Messages | None = None
        self.number = 0
        self.under_way: Messages = []  # to the cell, or back

    def begin(self, messages: Iterable[tuple[int, Event]]) -> None:
        """As Steps.begin."""
        self.number += 1
        self.under_way = list(messages)
        round_trip_us = self._round_trip.next()
        there_us = round_trip_us // 2
        at_us = self._process.clock.us + there_us
        self._run.at(at_us, lambda: self._arrive(at_us, round_trip_us - there_us))

    def _arrive(self, at_us: int, back_us: int) -> None:
        cell, number = self._run.cell, self._process.number
        messages, self.under_way = self.under_way, []
        cell.run(at_us, messages)
        self.under_way = cell.outbox.pop(number, [])
        self._run.at(at_us + back_us, self._return)

    def _return(self) -> None:
        self._answer, self.under_way = self.under_way, []
        self._run.wake(self._process)

    def received(self) -> Messages | None:
        """As Steps.received."""
        answer, self._answer = self._answer, None
        return answer

    def messages(self) -> Messages:
        """The messages that are under way, or have arrived and not been taken."""
        return [*self.under_way, *(self._answer or ())]


class _DrawnPushes:
    """The pushes of submissions to one scheduler host: a HostClient."""

    def __init__(
        self, run: SteppedRuntime, source: _Process, process: _Process, way: Draws
    ) -> None:
        self._run = run
        self._source = source
        self._process = process
        self._way = way
        self._receiver = SubmissionReceiver(0)

    def begin(self, epoch: int, number: int, payload: bytes) -> list[Acknowledgement]:
        """As HostClient.begin."""
        call: list[Acknowledgement] = []

        def arrive() -> None:
            answer, messages = self._receiver.take(epoch, number, payload)
            call.append(answer)
            for agent, event in messages:
                self._process.runtime.deliver(agent, event)
            if messages:
                self._run.wake(self._process)

        self._run.at(self._source.clock.us + self._way.next(), arrive)
        return call

    def poll(self, call: list[Acknowledgement]) -> Acknowledgement | None:
        """As HostClient.poll."""
        return call[0] if call else None


class SteppedRuntime:
    """Drives all participants of an arm in virtual time as the live runtime does.

    Args:
        assembly: Of the arm.
        participants: By address.
        deciders: Those of them that take decisions.
        on_record: Called with every Record as it is made.
        calibration: The times of the live runtime.
        audit: Checks what comes of every event.

    Attributes:
        now_us: The time up to which everything has happened.
        events: How many events participants have handled.
    """

    def __init__(
        self,
        assembly: Assembly,
        participants: Mapping[int, Participant],
        deciders: Mapping[int, Decider],
        on_record: RecordListener,
        calibration: Calibration,
        audit: RunAudit | None = None,
    ) -> None:
        self._audit = audit
        self._participants = participants
        self._on_record = on_record
        self._parts = assembly.parts
        self._digest = assembly.codec.log_digest()
        self._heap: list[tuple[int, int, Action]] = []
        self._sequence = 0
        self.now_us = 0
        self.events = 0
        self._broken = False
        arm, seed = assembly.arm, assembly.arm.seed
        options = LiveOptions(Path(), hosts=calibration.hosts, tick_us=calibration.tick_us)
        plan = plan_run("", assembly, options)
        own_speed = {
            agent
            for agent in deciders
            if arm.clock(arm.group_of(agent)).clock_class is ClockClass.OWN_SPEED
        }
        agents = {host.host: host.agents for host in plan.hosts}
        others = {address: (address,) for address in (WORKERS, ARRIVALS, COORDINATOR)}
        host_of = {address: host for host, of in (agents | others).items() for address in of}
        beside = {a: one for a, one in participants.items() if is_beside_cell(a)}
        self.cell = _Cell(host_of, self._handled, beside, host_of, on_record, self._parts)
        self._processes: dict[int, _Process] = {}
        self._steps: dict[int, _DrawnSteps] = {}
        for host, addresses in (agents | others).items():
            clock = _HostClock()
            runtime = _HostRuntime(
                clock,
                own_speed,
                {address: participants[address] for address in addresses},
                {a: one for a, one in deciders.items() if a in addresses},
                assembly.addresses,
                clock,
                on_record,
                self._handled,
                self._parts,
            )
            process = _Process(host, clock, runtime, Draws(calibration.lag_us, seed, f"lag {host}"))
            table = calibration.step_us if host in agents else calibration.other_step_us
            self._processes[host] = process
            self._steps[host] = _DrawnSteps(self, process, Draws(table, seed, f"step {host}"))
        source = self._processes[ARRIVALS]
        never_placed = np.ones(len(assembly.workload.tasks), np.bool_)  # hosts are never restarted
        self._senders = {
            host: SubmissionSender(
                _DrawnPushes(
                    self,
                    source,
                    self._processes[host],
                    Draws(calibration.push_us, seed, f"push {host}"),
                ),
                lambda: never_placed,
            )
            for host in agents
        }
        tick_us = plan.tick_us
        for one in plan.hosts:
            self._make_loop(
                one.host,
                self._steps[one.host],
                Ticks(tick_us, one.phase_us),
                WAKE_US,
                plan.spacing_us,
                plan.talk_us,
            )
        self._make_loop(
            WORKERS,
            self._steps[WORKERS],
            Ticks(tick_us, plan.workers_phase_us),
            tick_us,
            plan.workers_spacing_us,
            plan.talk_us,
        )
        submitting = SubmittingSteps(self._steps[ARRIVALS], self._senders, plan.host_of)
        phase_us = plan.source_phase_us
        self._make_loop(ARRIVALS, submitting, Ticks(tick_us, phase_us), tick_us, tick_us)
        tick_us = plan.coordinator_tick_us
        self._make_loop(COORDINATOR, self._steps[COORDINATOR], Ticks(tick_us, 0), tick_us, tick_us)
        self.cell.start(0, 0)
        for process in self._processes.values():
            process.runtime.start()
            self.wake(process)

    def _make_loop(
        self,
        host: int,
        steps: Steps,
        ticks: Ticks,
        wake_us: int,
        spacing_us: int,
        talk_us: int = 0,
    ) -> None:
        process = self._processes[host]
        on_tick = self._poll_senders if host == ARRIVALS else ignore
        load = LoadMeter(host, ignore, lambda: 0)
        process.loop = HostLoop(
            process.runtime,
            steps,
            process.clock,
            ticks,
            wake_us,
            spacing_us,
            on_tick,
            load,
            talk_us=talk_us,
        )

    @property
    def digest(self) -> str:
        """Hex digest of all events handled so far."""
        return self._digest.hexdigest()

    def run_until(self, until_us: int) -> None:
        """Do everything that happens up to and including until_us. Errors as
        VirtualRuntime.run_until."""
        heap = self._heap
        try:
            while heap and heap[0][0] <= until_us:
                self.now_us, _, action = heappop(heap)
                action()
        except Exception:
            self._broken = True
            raise
        self._digest.hash_frames()
        self.now_us = until_us

    def at(self, at_us: int, action: Action) -> None:
        """Do something at a time, after what was to be done then before."""
        self._sequence += 1
        heappush(self._heap, (at_us, self._sequence, action))

    def wake(self, process: _Process) -> None:
        """Let a process's loop turn now, or as soon as it has computed its plan."""
        self._set_turn(process, max(self.now_us, process.clock.us))

    def _set_turn(self, process: _Process, at_us: int) -> None:
        process.turn = turn = process.turn + 1
        self.at(at_us, lambda: self._turn(process, turn))

    def _turn(self, process: _Process, turn: int) -> None:
        if turn != process.turn or process.loop is None:
            return
        process.clock.us = max(process.clock.us, self.now_us)
        wait_us = process.loop.run_once()
        if wait_us > 0:
            wait_us += process.lag.next()
        self._set_turn(process, process.clock.us + wait_us)

    def _poll_senders(self, now_us: int) -> None:
        for sender in self._senders.values():
            sender.poll(now_us)

    def _handled(self, address: int, at_us: int, event: Event, effects: list[Effect]) -> None:
        if self._audit is not None:
            self._audit.handled(address, at_us, event, effects)
        self.events += 1
        self._digest.frames.append(address, at_us, event)

    def under_way(self, to: int, *kinds: type) -> list[tuple[int, Event]]:
        """The messages of these kinds to a participant that are sent and not handled, as if they
        were delivered now."""
        return [
            (self.now_us, event)
            for address, event in self._messages()
            if address == to and isinstance(event, kinds)
        ]

    def _messages(self) -> Iterator[tuple[int, Event]]:
        """All messages that are sent and not handled, in the order of their senders' processes."""
        for waiting in self.cell.outbox.values():
            yield from waiting
        for host, process in self._processes.items():
            yield from self._steps[host].messages()
            yield from process.runtime.messages()

    def finish(self) -> None:
        """Hand out the measurements that participants still hold."""
        hand_out_last_records(
            self._participants, self._parts, self.now_us, self._on_record, self._broken
        )
