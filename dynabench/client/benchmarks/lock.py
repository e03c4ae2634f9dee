"""The file that remembers which configuration was last applied, on each site.

It belongs into git. With it, `apply` notices that somebody has changed the configuration on the
site since, and does not undo their change without asking. It contains no secrets.
"""

import json
import os
from pathlib import Path
from typing import Any

from dynabench.client.benchmarks.folder import LOCK_FILE
from dynabench.client.benchmarks.problems import FileProblem, FolderError


def read_applied_version(folder: Path, server: str, task: str) -> str:
    """Return the version of the configuration that was last applied; "" if there is none.

    Raises FolderError for a damaged file.
    """
    # By site, since one folder may be applied to a test site and to the real one.
    entry = _read_entries(folder).get(server, {})
    if isinstance(entry, dict) and entry.get("task") == task:
        return str(entry.get("config", ""))
    return ""


def store_applied_version(folder: Path, server: str, task: str, version: str) -> None:
    """Remember the version of a configuration that the folder and the site have in common."""
    entries = _read_entries(folder)
    entry = {"task": task, "config": version}
    # So that git shows a change only where there is one.
    if entries.get(server) == entry:
        return
    entries[server] = entry
    text = json.dumps(entries, indent=1, sort_keys=True) + "\n"
    # Replaced at once, so that a stop in the middle leaves the old file or the new one.
    unfinished_file = folder / f".{LOCK_FILE}.{os.getpid()}"
    unfinished_file.write_text(text, encoding="utf-8")
    unfinished_file.replace(folder / LOCK_FILE)


def _read_entries(folder: Path) -> dict[str, Any]:
    """Return what is remembered, by the server's URL. Raises FolderError."""
    try:
        entries = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        message = "This file is damaged. Restore it from git, or delete it."
        raise FolderError([FileProblem(LOCK_FILE, message, line)]) from None
    return entries if isinstance(entries, dict) else {}
