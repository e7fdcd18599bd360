"""`agora`, and `python -m experiments`: all commands (experiments/commands/)."""

from __future__ import annotations

from parsync.runtime.stop_signals import exit_on_stop_signals


def main() -> None:
    """Run the command that the process's arguments name, and exit with its status."""
    exit_on_stop_signals()  # before the imports, which take a while
    from experiments.command_line import run_command
    from experiments.commands.registry import app

    run_command(app)


if __name__ == "__main__":
    main()
