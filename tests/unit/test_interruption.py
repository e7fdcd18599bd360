"""Ctrl-C while processes are started: it is neither lost nor theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from experiments.interruption import ctrl_c_kept_from_children

BLOCKED = "import signal, sys; sys.exit(signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


@pytest.mark.parametrize("other_threads", [False, True])
def test_ctrl_c_while_children_start_comes_when_they_have_started(other_threads: bool) -> None:
    """A signal to the process is any thread's: one that lets it through brings it to the main
    thread at once."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    if other_threads:
        thread.start()
    started = []
    try:
        with pytest.raises(KeyboardInterrupt), ctrl_c_kept_from_children():
            os.kill(os.getpid(), signal.SIGINT)
            started.append(subprocess.run([sys.executable, "-c", BLOCKED], check=False).returncode)
    finally:
        done.set()
        if other_threads:
            thread.join()
    assert started == [0]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_nothing_happens_without_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_kept_from_children():
        pass
    assert signal.getsignal(signal.SIGINT) is before
