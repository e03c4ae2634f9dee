"""Files that tests compare with what the product says: `./test --update` rewrites them."""

import os
from pathlib import Path

UPDATES = os.environ.get("UPDATE_SNAPSHOTS") == "1"
"""Whether this run writes the files instead of comparing them."""
HOW = "After a wanted change: ./test --update, and read the difference."


def compare_with_file(path: Path, text: str) -> None:
    """Assert that a file holds this text, line by line; first write it where the run updates."""
    if UPDATES:
        path.write_text(text)
    assert path.read_text().splitlines() == text.splitlines(), f"{path.name} differs. {HOW}"
