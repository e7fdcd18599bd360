"""The loop of an actor with participants: timers when they are due, one coalesced step to the cell
per tick."""

from __future__ import annotations

import threading
from collections.abc import Callable

from parsync.runtime.live.actor_runtime import ActorRuntime
from parsync.runtime.live.clock import Clock
from parsync.runtime.live.steps import StepClient, Steps

LAST_STEP_S = 5.0


class Ticks:
    """Tick k is at (k * tick_us) + phase_us; ticks that a slow actor let pass are skipped."""

    def __init__(self, tick_us: int, phase_us: int) -> None:
        self._tick_us = tick_us
        self._phase_us = phase_us
        self.next_us = phase_us

    def due(self, now_us: int) -> bool:
        """True once per tick that has come."""
        if now_us < self.next_us:
            return False
        self.next_us = (
            (now_us - self._phase_us) // self._tick_us + 1
        ) * self._tick_us + self._phase_us
        return True


def ignore_step(now_us: int) -> None:
    """Of a loop whose steps nobody counts."""


class HostLoop:
    """The loop of every actor but the cell. wake_us: timers between ticks are looked at no more
    often than this.

    spacing_us: with something to say, a step does not wait for its tick but leaves this long after
    the last one (a tick or more: never early). A wait for the tick would come on top of every
    decision, and a commit cycle is as short as a decision: at G/N = 25 ms it halves an agent's
    capacity. on_step(now_us): just before each step. on_tick(now_us): after each tick's step. A
    host steps at each tick even if it has nothing to say: its messages comes with the reply.
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

    def run_once(self) -> int:
        """Do what is due; how long to wait (us) until something may be due again."""
        self._runtime.advance()
        now_us = self._clock.now_us()
        tick = self._ticks.due(now_us)
        if tick or (self._runtime.has_outgoing and now_us >= self._early_us):
            self._early_us = now_us + self._spacing_us
            self._on_step(now_us)
            for address, event in self._steps.step(self._runtime.take_outgoing(self._steps.number)):
                self._runtime.deliver(address, event)
            self._runtime.advance()
            if tick:
                self._on_tick(self._clock.now_us())
        now_us = self._clock.now_us()
        wait_us = self._ticks.next_us - now_us
        if self._runtime.has_outgoing:
            wait_us = min(wait_us, max(0, self._early_us - now_us))
        due_us = self._runtime.next_due_us
        if due_us is not None:
            wait_us = min(wait_us, max(due_us - now_us, self._wake_us))
        return max(0, wait_us)


def last_step(runtime: ActorRuntime, steps: StepClient) -> None:
    """After the loop: say what is left to say, and take the cell's answers to it. No timer fires:
    what it led to would stay unsaid."""
    steps.give_up_s = LAST_STEP_S
    for address, event in steps.step(runtime.take_outgoing(steps.number)):
        runtime.deliver(address, event)
    runtime.handle_messages()


class LoopThread:
    """Runs turns in a thread of its own until stopped; keeps what went wrong."""

    def __init__(self, name: str, body: Callable[[threading.Event, threading.Event], None]) -> None:
        self.wake = threading.Event()
        self._stopping = threading.Event()
        self._body = body
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._body(self._stopping, self.wake)
        except BaseException as error:  # the thread's last words: whoever asks the actor is told
            self.error = error

    def stop(self, timeout_s: float) -> bool:
        """Ask the loop to end and wait for it; whether it has ended."""
        self._stopping.set()
        self.wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def run_loop(run_once: Callable[[], int], stopping: threading.Event, wake: threading.Event) -> None:
    """Turn after turn, sleeping in between or until woken."""
    while not stopping.is_set():
        wait_us = run_once()
        if wait_us > 0:
            wake.wait(wait_us / 1e6)
            wake.clear()
