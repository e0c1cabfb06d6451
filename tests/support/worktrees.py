"""Checkouts of other revisions, outside the working tree."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.forks import ROOT


@contextmanager
def worktree(revision: str, scratch: Path) -> Iterator[Path]:
    """Check out another revision with its own environment; remove the checkout afterwards."""
    path = scratch / "tree"
    git = ["git", "-C", str(ROOT)]
    subprocess.run([*git, "worktree", "add", "--detach", "--quiet", str(path), revision], check=True)
    try:
        subprocess.run(["uv", "sync", "--quiet"], cwd=path, check=True)
        yield path
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", str(path)], check=True)
