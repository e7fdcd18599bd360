"""The event loop of an actor: it delivers messages and timers, and steps to the cell."""

from __future__ import annotations

import threading
from collections.abc import Callable

from parsync.runtime.live.actor_runtime import ActorRuntime
from parsync.runtime.live.clock import Clock
from parsync.runtime.live.steps import StepClient, Steps

LAST_STEP_S = 5.0


class Ticks:
    """The times at which an actor steps: tick k is at k * tick_us + phase_us.

    Ticks that pass while the actor is busy are skipped.
    """

    def __init__(self, tick_us: int, phase_us: int) -> None:
        self._tick_us = tick_us
        self._phase_us = phase_us
        self.next_us = phase_us

    def due(self, now_us: int) -> bool:
        """Return True once per tick that has come."""
        if now_us < self.next_us:
            return False
        self.next_us = (
            (now_us - self._phase_us) // self._tick_us + 1
        ) * self._tick_us + self._phase_us
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
    message, and no host spends more than half of its time in such steps: the busier the cell, the
    longer its steps take, and the more each of them carries. A host with nothing to send steps at
    each tick all the same, because its messages come with the reply. While a step is under way the
    loop waits for it; messages and timers that arrive meanwhile are handled after it. If the cell
    is away, the step is repeated until it is back.

    Args:
        runtime: The actor's participants.
        steps: Where their messages go.
        clock: The actor's.
        ticks: The times of the regular steps.
        wake_us: Timers between ticks are looked at no more often than this.
        spacing_us: The least time between steps that do not wait for their tick; a tick or more:
            every step waits.
        on_tick: Called with the time after each tick's step.
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
        """Do what is due.

        Returns:
            How long to wait until something may be due again, in us.

        Raises:
            AgoraError: The cell stays away, or a participant sends to nobody.
        """
        self._runtime.advance()
        now_us = self._clock.now_us()
        tick = self._ticks.due(now_us)
        if tick or (self._runtime.has_outgoing and now_us >= self._early_us):
            self._on_step(now_us)
            for address, event in self._steps.step(self._runtime.take_outgoing(self._steps.number)):
                self._runtime.deliver(address, event)
            step_us = self._clock.now_us() - now_us
            self._early_us = now_us + max(self._spacing_us, 2 * step_us)
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
    """Step once more after the loop has ended, and handle the cell's answers.

    No timer fires: what it led to could not be sent any more.
    """
    steps.give_up_s = LAST_STEP_S
    for address, event in steps.step(runtime.take_outgoing(steps.number)):
        runtime.deliver(address, event)
    runtime.handle_messages()


class LoopThread:
    """A thread that runs an actor's loop until it is stopped.

    Attributes:
        wake: Set it to let a sleeping loop run at once.
        error: What ended the loop early, if anything did.
    """

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
        except BaseException as error:  # kept for the question that comes next
            self.error = error

    def stop(self, timeout_s: float) -> bool:
        """Ask the loop to end, and wait for it. Returns whether it has ended."""
        self._stopping.set()
        self.wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def run_loop(run_once: Callable[[], int], stopping: threading.Event, wake: threading.Event) -> None:
    """Call run_once until `stopping` is set, and sleep in between for as long as it returns, or
    until `wake` is set."""
    while not stopping.is_set():
        wait_us = run_once()
        if wait_us > 0:
            wake.wait(wait_us / 1e6)
            wake.clear()
