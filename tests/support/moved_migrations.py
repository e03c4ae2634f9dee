"""Where released migrations are now: their packages moved, their operations stayed."""

from pathlib import Path

from tests.support.live import ROOT

PLACES = {
    "dynabench/accounts/": "core/accounts/",
    "dynabench/upkeep/": "core/jobs/",
    "dynabench/demo/": "dynabench/operations/demo/",
}
"""The folders of released migrations, and where they are now."""


def place_now(released: str) -> Path:
    """Return the file that a release had under this name."""
    for before, now in PLACES.items():
        released = released.replace(before, now)
    return ROOT / released


def released_name(file: Path) -> str:
    """Return the name that a migration has, or would have, in a release before the move."""
    name = str(file.relative_to(ROOT))
    for before, now in PLACES.items():
        name = name.replace(now, before)
    return name


def as_released(file: Path) -> bytes:
    """Return a migration's text with the module names of before the move."""
    text = file.read_bytes()
    for before, now in PLACES.items():
        old, new = (path.strip("/").replace("/", ".").encode() for path in (before, now))
        text = text.replace(new + b".", old + b".")
    return text
