"""`python -m experiments.compare`: the command `agora compare`."""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take a while
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

from experiments.command_line import run_command
from experiments.commands.compare import app

if __name__ == "__main__":
    run_command(app)
