"""What every test stands on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.fixtures.commands import in_one_process, without_figures
from tests.fixtures.installed import pip_install

# A busy machine is no failure. On push, a property is tried on the same few examples every time: a
# test that fails then fails because of the change, and again for whoever repeats it. New examples,
# and four times as many, are what `make test-long` is for (fixtures/examples.py).
settings.register_profile("push", max_examples=25, derandomize=True, deadline=None, database=None)
# The same, but a failure is not made smaller: for bugs planted by mutation_check.py.
settings.register_profile(
    "planted", settings.get_profile("push"), phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("long", max_examples=100, deadline=None, print_blob=True)
settings.load_profile("push")

EXAMPLES = Path(__file__).parents[1] / "examples"


def files_below(folder: Path) -> set[Path]:
    """But for bytecode."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_counts() -> Iterator[None]:
    """A job that a shell starts in the background ignores Ctrl-C, and so would the commands that
    tests start and stop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def no_figures() -> Iterator[None]:
    """Reports are made without their figures."""
    with without_figures():
        yield


@pytest.fixture
def one_process() -> Iterator[None]:
    """Points and arms run in this process."""
    with in_one_process():
        yield


@pytest.fixture(scope="session")
def example_site(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory into which pip has installed a package of examples/, given its folder there,
    in which pip leaves nothing behind."""

    @cache
    def install(folder: str) -> Path:
        target, before = tmp_path_factory.mktemp(folder), files_below(EXAMPLES / folder)
        pip_install(target, EXAMPLES / folder)
        assert files_below(EXAMPLES / folder) == before
        return target

    return install
