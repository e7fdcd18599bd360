"""A result names the commit it was made from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from experiments.version import version_text


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(directory), *identity, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_checkout_names_its_commit_and_whether_files_differ(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1", encoding="ascii")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")[:12]
    assert version_text(tmp_path).endswith(f"commit {commit}")
    (tmp_path / "file").write_text("2", encoding="ascii")
    assert version_text(tmp_path).endswith(f"commit {commit}-dirty")


def test_elsewhere_the_package_version_stands_alone(tmp_path: Path) -> None:
    assert "commit" not in version_text(tmp_path)
