"""What scripts ask about the repository: its packages, and the files that a change touches."""

import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: tuple[str, ...] = tuple(PYPROJECT["tool"]["importlinter"]["root_packages"])
"""The top-level packages of the product."""
PURE_FILES: tuple[str, ...] = tuple(PYPROJECT["tool"]["coverage"]["run"]["include"])
"""Patterns of the files that `./test` measures: each line and branch is tested."""


def changed_files(commit: str | None = None) -> list[str] | None:
    """Return the files that differ from a commit, new ones included.

    None where git does not know the commit, as in a checkout without its history.

    Parameters
    ----------
    commit
        By default the one in CI_BASE, else where the branch left origin's, else the one before.
    """
    differing = _git("diff", "--name-only", commit or _base())
    untracked = _git("ls-files", "--others", "--exclude-standard")
    if differing is None or untracked is None:
        return None
    return sorted({*differing.splitlines(), *untracked.splitlines()})


def _base() -> str:
    head = _git("rev-parse", "HEAD")
    for name in (os.environ.get("CI_BASE"), "origin/HEAD"):
        base = _git("merge-base", "HEAD", name) if name else None
        if base and base != head:
            return base
    return "HEAD^"


def _git(*command: str) -> str | None:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return None if done.returncode else done.stdout.strip()
