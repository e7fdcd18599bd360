"""What several tests of whole runs look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.commands.run import app
from experiments.studies.sweeps import page
from tests.fixtures.commands import exit_status, without_figures
from tests.fixtures.small_run import SMALL_RUN

SEEDS = 2


@pytest.fixture
def one_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of sweeps have plots of the metric only, since drawing takes seconds."""
    monkeypatch.setattr(page, "shown_quantities", lambda one: [*map(one.quantity, one.metrics)])


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with two arms and two paired seeds. Copy it to damage it."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.toml").write_text(SMALL_RUN)
    arguments = ["--config", folder / "small.toml", "--out", folder / "run", "--seeds", SEEDS]
    with without_figures():
        assert exit_status(app, *arguments) == 0
    return folder / "run"
