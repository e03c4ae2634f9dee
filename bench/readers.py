"""Readers of changed sentences: which they get, and how many of these are valid for them."""

import csv
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from validation.rates.agreement import compute_krippendorff_alpha
from validation.rates.rates import compute_wilson_interval

READ_TEXTS, READ_CONTROLS = 60, 20
"""How many changed sentences, and how many unchanged ones, readers get."""


def compute_interval(count: int, total: int) -> list[float]:
    """Return Wilson's 95% interval of a share."""
    return [round(end, 3) for end in compute_wilson_interval(count, total)]


def name_text(text: str) -> str:
    """Return an id of a text that says nothing of it."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def choose_read_texts(flips: Sequence[Mapping[str, str]], seed: int) -> list[dict[str, str]]:
    """Return changed and unchanged sentences for readers, shuffled: id, text, label, source.

    flips: each with its label, from and to.
    """
    rng = Random(seed)
    shuffled_flips = rng.sample(flips, len(flips))
    rows = []
    for one in shuffled_flips[:READ_TEXTS]:
        rows.append({"text": one["to"], "label": one["label"], "source": "changed"})
    # Of other sentences, so that nobody can compare a changed one with its original.
    for one in shuffled_flips[READ_TEXTS : READ_TEXTS + READ_CONTROLS]:
        rows.append({"text": one["from"], "label": one["label"], "source": "unchanged"})
    rng.shuffle(rows)
    return [{"id": name_text(row["text"]), **row} for row in rows]


def write_texts(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write the texts for readers, without what they must not know."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text", "label"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def read_judgements(path: Path) -> dict[str, dict[str, bool]]:
    """Return by text id what each reader said. Raises SystemExit for another value than yes, no."""
    judgements: dict[str, dict[str, bool]] = defaultdict(dict)
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            word = (row.get("valid") or "").strip().lower()
            if word not in ("yes", "no") or not row.get("id") or not row.get("reader"):
                raise SystemExit(
                    f"{path}, line {number}: it needs id, reader, and valid: yes or no."
                )
            judgements[row["id"]][row["reader"]] = word == "yes"
    return judgements


def measure_validity(
    rows: Sequence[Mapping[str, str]], judgements: Mapping[str, Mapping[str, bool]]
) -> dict[str, Any]:
    """Return the share of valid texts, by source, and how well readers agree on all of them.

    A text counts if two readers or more judged it, and is valid if all of them say so.
    """
    result: dict[str, Any] = {}
    for source in ("changed", "unchanged"):
        votes = [judgements.get(row["id"], {}) for row in rows if row["source"] == source]
        read_votes = [one for one in votes if len(one) >= 2]
        valid_count = sum(all(one.values()) for one in read_votes)
        total = len(read_votes)
        result[source] = {"texts": total, "valid": valid_count}
        if total:
            result[source]["share"] = round(valid_count / total, 3)
            result[source]["interval"] = compute_interval(valid_count, total)
    read_ids = [row["id"] for row in rows if len(judgements.get(row["id"], {})) >= 2]
    table, agreeing_count, pair_count = [], 0, 0
    for one in read_ids:
        yes_count = sum(judgements[one].values())
        no_count = len(judgements[one]) - yes_count
        table.append([yes_count, no_count])
        pair_count += (yes_count + no_count) * (yes_count + no_count - 1) // 2
        agreeing_count += (yes_count * (yes_count - 1) + no_count * (no_count - 1)) // 2
    if pair_count:
        result["agreement"] = round(agreeing_count / pair_count, 3)
        alpha = compute_krippendorff_alpha(table)
        result["alpha"] = round(alpha, 3) if isinstance(alpha, float) else None
    return result


def print_validity(validity: Mapping[str, Any]) -> None:
    """Print what `measure_validity` found."""
    for source in ("changed", "unchanged"):
        found = validity[source]
        if found["texts"]:
            low, high = found["interval"]
            print(
                f"{source} sentences: {found['share']:.1%} of {found['texts']} valid for all "
                f"readers (95% CI {low:.1%} to {high:.1%})"
            )
    if "agreement" in validity:
        print(f"readers agree: {validity['agreement']:.1%} of pairs, alpha {validity['alpha']}")
