"""Stop signals while work must not be torn, and while processes are started: none is lost, and none
goes to a child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from experiments.interruption import (
    stop_signals_held,
    stop_signals_kept_from_children,
    stop_signals_noted,
)

BLOCKED = (
    "import signal, sys; "
    "blocked = signal.pthread_sigmask(signal.SIG_BLOCK, []); "
    "sys.exit(not {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} <= blocked)"
)


def test_a_signal_waits_for_the_check_and_a_second_one_does_what_it_did_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals_noted() as interruption:
        interruption.check()
        signal.raise_signal(signal.SIGTERM)
        assert interruption.received and interruption.exit_status == 143
        with pytest.raises(KeyboardInterrupt):
            interruption.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interruption.exit_status == 143  # the first counts
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(KeyboardInterrupt):  # as it was before
        signal.raise_signal(signal.SIGINT)


def test_a_held_signal_comes_at_the_end() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), stop_signals_held():
        signal.raise_signal(signal.SIGINT)
        done.append(1)
    assert done


def test_what_is_held_within_noted_work_is_noted() -> None:
    with stop_signals_noted() as interruption:
        with stop_signals_held():
            signal.raise_signal(signal.SIGINT)
        assert interruption.received


def test_a_wait_for_input_ends_at_once() -> None:
    with stop_signals_noted() as interruption:
        with pytest.raises(KeyboardInterrupt), interruption.raised_at_once():
            signal.raise_signal(signal.SIGINT)
        interruption.forget_ctrl_c()
        assert not interruption.received
        signal.raise_signal(signal.SIGTERM)
        interruption.forget_ctrl_c()
        assert interruption.received
        with pytest.raises(KeyboardInterrupt), interruption.raised_at_once():
            raise AssertionError("it had come before")


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with stop_signals_noted() as interruption:
            signal.raise_signal(signal.SIGHUP)
            assert not interruption.received
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_change_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with stop_signals_noted() as interruption:
            seen.append((interruption.received, signal.getsignal(signal.SIGINT) is before))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, True)]


@pytest.mark.parametrize("other_threads", [False, True])
def test_a_signal_while_children_start_comes_when_they_have_started(other_threads: bool) -> None:
    """A signal to the process is any thread's: one that lets it through brings it to the main
    thread at once."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    if other_threads:
        thread.start()
    started = []
    try:
        with pytest.raises(KeyboardInterrupt), stop_signals_kept_from_children():
            os.kill(os.getpid(), signal.SIGINT)
            started.append(subprocess.run([sys.executable, "-c", BLOCKED], check=False).returncode)
    finally:
        done.set()
        if other_threads:
            thread.join()
    assert started == [0]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_nothing_happens_without_a_signal() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_signals_kept_from_children():
        pass
    assert signal.getsignal(signal.SIGINT) is before
