"""The version of Agora, which with the seed and the configuration reproduces a run."""

from __future__ import annotations

import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_GIT_S = 5.0


def version_text(source: Path = Path(__file__).parents[1]) -> str:
    """Return the package's version and, in a git checkout, the commit.

    For example "0.1.0, commit 1a2b3c4d5e6f", with "-dirty" if files differ from the commit.
    """
    try:
        package = version("agora")
    except PackageNotFoundError:
        package = "not installed"
    commit = _commit(source)
    return f"{package}, commit {commit}" if commit else package


def _commit(source: Path) -> str:
    if not (source / ".git").exists():
        return ""  # an installed package, perhaps inside somebody else's repository
    try:
        described = subprocess.run(
            [
                "git",
                "-C",
                str(source),
                "describe",
                "--always",
                "--dirty",
                "--abbrev=12",
                "--exclude=*",
            ],
            capture_output=True,
            text=True,
            timeout=_GIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip()
