"""The seed rows of the official tasks, and the tenth of them that no training sees. No Django."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OFFICIAL_TASKS_FOLDER = Path(__file__).resolve().parents[1] / "tasks" / "official"
HELD_OUT_SHARE = 0.1

Row = Mapping[str, Any]


def has_seeds(code: str) -> bool:
    """Return whether seed rows are shipped for the task with this code."""
    return (OFFICIAL_TASKS_FOLDER / code / "seed.jsonl").exists()


def read_seed_rows(code: str) -> list[dict[str, Any]]:
    """Return the rows of a task's seed.jsonl. Rows for question answering include their passage."""
    rows = _read_rows(OFFICIAL_TASKS_FOLDER / code / "seed.jsonl")
    if "passage_id" not in rows[0]:
        return rows
    contexts = _read_rows(OFFICIAL_TASKS_FOLDER / code / "contexts.jsonl")
    passages = {context["metadata"]["id"]: context["passage"] for context in contexts}
    return [{**row, "passage": passages[row["passage_id"]]} for row in rows]


def _read_rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def split_held_out(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split rows by group into training rows and the tenth that no model is trained on."""
    return split_by_group(rows, share=HELD_OUT_SHARE, salt="held-out")


def get_split_group(row: Row) -> str:
    """Return the group by which a row is split.

    It is the row's `group`, or else a context or text that rows may share.
    """
    return str(row.get("group") or row.get("premise") or row.get("passage") or row.get("text"))


def split_by_group(rows: Sequence[Row], *, share: float, salt: str) -> tuple[list[Row], list[Row]]:
    """Split rows into two parts by a hash of salt and group, the second with about `share` of them.

    Whole groups are taken in the order of their hash until the share is reached. So the choice does
    not depend on the order of the rows. The first part gets at least one group.
    """
    sizes = Counter(map(get_split_group, rows))
    order = sorted(sizes, key=lambda group: hashlib.sha256(f"{salt}:{group}".encode()).digest())
    chosen_groups: set[str] = set()
    taken_count = 0
    for group in order[:-1]:  # the last group stays in the rest, which would otherwise be empty
        if taken_count >= share * len(rows):
            break
        chosen_groups.add(group)
        taken_count += sizes[group]
    first_rows, second_rows = [], []
    for row in rows:
        if get_split_group(row) in chosen_groups:
            second_rows.append(row)
        else:
            first_rows.append(row)
    return first_rows, second_rows
