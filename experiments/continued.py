"""Commands that keep each result as soon as it is done: run again, they continue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shlex import quote

from rich.text import Text

from experiments.campaign.directories import locked
from experiments.consoles import error_console
from experiments.interruption import Interruption, stop_signals_noted
from experiments.preconditions import check_free
from shared_state.errors import AgoraError


def run_continued(
    directory: Path, what: str, kept: str, work: Callable[[Interruption], None]
) -> int:
    """Do the work in a directory where nobody else works, until a stop signal. Return the exit
    status.

    Args:
        directory: Where the results are kept. It is made if it does not exist.
        what: What runs there, such as "reproduction", for the error if the directory is in use.
        kept: What a stopped command leaves, such as "runs".
        work: Raises KeyboardInterrupt after a stop signal.

    Raises:
        AgoraError: The directory cannot be made or is in use, or its disk is full.
    """
    try:
        check_free(directory)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AgoraError(f"--out {directory}: {error.strerror}") from error
    with stop_signals_noted() as interruption, locked(directory, what):
        interruption.note = (
            f"{kept} that are done are kept; --out {quote(str(directory))} continues"
        )
        try:
            work(interruption)
        except KeyboardInterrupt:
            error_console().print(Text(f"Stopped: {interruption.note}."), soft_wrap=True)
    return interruption.exit_status if interruption.received else 0
