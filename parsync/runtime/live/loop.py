"""The event loop of an actor: it delivers messages and timers, and steps to the cell."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from parsync.runtime.live.actor_runtime import ActorRuntime
from parsync.runtime.live.background_steps import BackgroundSteps
from parsync.runtime.live.clock import Clock
from parsync.runtime.live.meters import LoadMeter
from parsync.runtime.live.steps import Steps
from parsync.runtime.live.waker import Waker

LAST_STEP_S = 5.0
LONGEST_WAIT_US = 100_000


class Ticks:
    """The times at which an actor steps: tick k is at k * tick_us + phase_us.

    Ticks that pass while the actor is busy are skipped.
    """

    def __init__(self, tick_us: int, phase_us: int) -> None:
        self.tick_us = tick_us
        self._phase_us = phase_us
        self.next_us = phase_us

    def due(self, now_us: int) -> bool:
        """Return True once per tick that has come."""
        if now_us < self.next_us:
            return False
        self.next_us = (
            (now_us - self._phase_us) // self.tick_us + 1
        ) * self.tick_us + self._phase_us
        return True


def ignore_step(now_us: int) -> None:
    """The listener of a loop whose steps nobody counts."""


class HostLoop:
    """The loop of every actor but the cell.

    A step carries what the actor's participants have sent to the cell, and brings back what the
    cell has for them. One step per tick would be the least work. But a decision that ends just
    after a tick would then wait for the next one before its claims leave, and a commit cycle is as
    short as a decision: at a gap of G/N = 25 ms between syncs, such waits halve an agent's
    capacity. So a loop with something to send steps as soon as spacing_us have passed since the
    last step, and does not wait for the tick. The spacing keeps a busy host from stepping for every
    message. A host with nothing to send steps at each tick all the same, because its messages come
    with the reply.

    One step is under way at a time. The loop does not wait for its answer: it goes on to handle
    messages and timers and to deliver decisions. If the cell is away, the step is repeated until it
    is back.

    Args:
        runtime: The actor's participants.
        steps: Where their messages go. An answer wakes the loop.
        clock: The actor's.
        ticks: The times of the regular steps.
        wake_us: Timers between ticks are looked at no more often than this.
        spacing_us: The least time between steps that do not wait for their tick; a tick or more:
            every step waits.
        on_tick: Called with the time after each tick's step.
        load: The actor's meter.
        on_step: Called with the time just before each step.
    """

    def __init__(
        self,
        runtime: ActorRuntime,
        steps: Steps,
        clock: Clock,
        ticks: Ticks,
        wake_us: int,
        spacing_us: int,
        on_tick: Callable[[int], None],
        load: LoadMeter,
        on_step: Callable[[int], None] = ignore_step,
    ) -> None:
        self._runtime = runtime
        self._steps = steps
        self._clock = clock
        self._ticks = ticks
        self._on_step = on_step
        self._wake_us = wake_us
        self._spacing_us = spacing_us
        # the earliest time of a step that does not wait for its tick
        self._early_us = ticks.next_us
        self._on_tick = on_tick
        self._load = load
        self._begun_us: int | None = None  # of the step under way
        self._for_tick = False  # whether it is a tick's
        self._answered_us = clock.now_us()

    def run_once(self) -> int:
        """Do what is due.

        Returns:
            How long to wait until something may be due again, in us.

        Raises:
            AgoraError: The cell stays away, or a participant sends to nobody.
        """
        self._load.unhandled(self._runtime.unhandled)
        self._runtime.advance()
        self._finish_step()
        now_us = self._clock.now_us()
        if self._begun_us is None:
            due_us = self._ticks.next_us
            self._for_tick = self._ticks.due(now_us)
            if self._for_tick:
                self._load.tick(self._late_us(due_us, now_us))
            if self._for_tick or (self._runtime.has_outgoing and now_us >= self._early_us):
                self._begin_step(now_us)
                self._finish_step()
        return self._wait_us()

    def _late_us(self, due_us: int, now_us: int) -> int:
        """How late a tick is. The time of decisions contains that of computing their plans, and a
        step that was under way serves a tick as well, unless it took another tick's time."""
        answered_us = min(self._answered_us, due_us + self._ticks.tick_us)
        return now_us - max(due_us, self._runtime.computed_us, answered_us)

    def _begin_step(self, now_us: int) -> None:
        self._early_us = now_us + self._spacing_us
        self._on_step(now_us)
        self._begun_us = now_us
        self._steps.begin(self._runtime.take_outgoing(self._steps.number))

    def _finish_step(self) -> None:
        """Handle what the step under way brought, if its answer is there."""
        received = None if self._begun_us is None else self._steps.received()
        if self._begun_us is None or received is None:
            return
        self._answered_us = self._clock.now_us()
        self._load.step(self._answered_us - self._begun_us)
        self._begun_us = None
        for address, event in received:
            self._runtime.deliver(address, event)
        self._runtime.advance()
        if self._for_tick:
            now_us = self._clock.now_us()
            self._on_tick(now_us)
            self._load.sample(now_us)

    def _wait_us(self) -> int:
        now_us = self._clock.now_us()
        if self._begun_us is not None:
            wait_us = LONGEST_WAIT_US  # the answer wakes the loop
        else:
            wait_us = self._ticks.next_us - now_us
            if self._runtime.has_outgoing:
                wait_us = min(wait_us, max(0, self._early_us - now_us))
        due_us = self._runtime.next_due_us
        if due_us is not None:
            wait_us = min(wait_us, max(due_us - now_us, self._wake_us))
        return max(0, wait_us)


def last_step(runtime: ActorRuntime, steps: BackgroundSteps) -> None:
    """Step once more after the loop has ended, and handle the cell's answers.

    No timer fires: what it led to could not be sent any more.
    """
    for address, event in steps.last(runtime.take_outgoing(steps.number), LAST_STEP_S):
        runtime.deliver(address, event)
    runtime.handle_messages()


class LoopThread:
    """A thread that runs an actor's loop until it is stopped.

    Attributes:
        wake: Lets a sleeping loop run at once.
        error: What ended the loop early, if anything did.
    """

    def __init__(self, name: str, body: Callable[[threading.Event, Waker], None]) -> None:
        self.wake = Waker()
        self._stopping = threading.Event()
        self._body = body
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._body(self._stopping, self.wake)
        except BaseException as error:  # kept for the question that comes next
            self.error = error

    def stop(self, timeout_s: float) -> bool:
        """Ask the loop to end, and wait for it. Returns whether it has ended."""
        self._stopping.set()
        self.wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def run_loop(
    run_once: Callable[[], int], stopping: threading.Event, wake: Waker, load: LoadMeter
) -> None:
    """Call run_once until `stopping` is set, and sleep in between for as long as it returns, or
    until something wakes it. The meter learns how much longer each sleep was than asked for."""
    while not stopping.is_set():
        wait_us = run_once()
        if wait_us > 0:
            begun_ns = time.monotonic_ns()
            if not wake.wait(wait_us / 1e6):
                load.slept((time.monotonic_ns() - begun_ns) // 1000 - wait_us)
