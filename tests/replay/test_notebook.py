"""examples/notebooks/results.ipynb runs from its first cell to its last, on the run that it says to
make."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from experiments.commands.run import app
from tests.fixtures.commands import exit_status, without_figures

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
PLACE = '"../../runs/notebook"'


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, str]]]:
    """What each cell of code put out, by kind."""
    run = tmp_path_factory.mktemp("notebook") / "run"
    with without_figures():
        assert exit_status(app, "--config", FOLDER / "run.toml", "--out", run) == 0
    notebook = nbformat.read(FOLDER / "results.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert PLACE in code[0].source
    code[0].source = code[0].source.replace(PLACE, repr(str(run)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FOLDER.parents[1]), prepend=os.pathsep)
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(FOLDER))
    return [
        [
            {"stream": output.text} if output.output_type == "stream" else dict(output.data)
            for output in cell.outputs
        ]
        for cell in code
    ]


def test_every_cell_puts_out_what_it_says(outputs: list[list[dict[str, str]]]) -> None:
    place, loaded, metrics, seeds, own, drawn, story, conflict = outputs
    assert place == [] and "arms: ParSync, Omega" in loaded[0]["text/plain"]
    assert "Mean delay (µs)" in metrics[0]["stream"] and "Omega" in metrics[0]["stream"]
    assert seeds[0]["stream"].startswith("3 seeds, baseline: ParSync\nOmega: mean delay ")
    assert all(any("image/png" in one for one in cell) for cell in (own, drawn))
    assert "rejected (no room left)" in story[0]["stream"]
    assert "delay added: " in conflict[0]["stream"]


def test_it_is_kept_without_outputs() -> None:
    notebook = nbformat.read(FOLDER / "results.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
