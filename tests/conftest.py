"""What every test stands on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_counts() -> Iterator[None]:
    """A job that a shell starts in the background ignores Ctrl-C, and so would the commands that
    tests start and stop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
