"""`agora`, and `python -m experiments`: all commands (experiments/commands/)."""

from __future__ import annotations


def main() -> None:
    """Run the command that the process's arguments name, and exit with its status."""
    try:
        from parsync.runtime.stop_signals import exit_on_stop_signals
    except ImportError:
        _end_if_hidden()
        raise
    exit_on_stop_signals()  # before the imports, which take a while
    _end_if_hidden()
    from experiments.command_line import run_command
    from experiments.commands.registry import app

    run_command(app)


def _end_if_hidden() -> None:
    """End with one line if a file that does not belong to Agora hides one of its packages. Warn if
    the command runs the code of another folder."""
    import sys
    from pathlib import Path

    from experiments.imports import clash, copied_from

    copied = copied_from(Path(sys.argv[0]))
    if copied:
        print(f"note: {copied}", file=sys.stderr)
    hidden = clash()
    if hidden:
        print(f"error: {hidden}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
