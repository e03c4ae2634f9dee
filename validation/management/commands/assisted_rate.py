"""Print a share from few votes and a judge model that answered everything, from a CSV file."""

import csv
import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from validation.rates.assisted_rates import (
    MIN_AUTHORS,
    MIN_VOTED_EXAMPLES,
    AssistedExample,
    compute_assisted_rate,
)

COLUMNS = ("author", "judge", "people", "chance")


class Command(BaseCommand):
    help = (
        "Print the share that people would find if they judged everything, from their votes on a"
        " random sample and a judge model's answers to all examples."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help=f"CSV with the columns {', '.join(COLUMNS)}")
        parser.add_argument("--json", action="store_true", help="as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        examples = _read_examples(options["file"])
        try:
            rate = compute_assisted_rate(examples)
        except ValueError as error:
            raise CommandError(f"{options['file']}: {error}") from None
        if rate is None:
            raise CommandError(
                f"People must have judged at least {MIN_VOTED_EXAMPLES} examples, by at least "
                f"{MIN_AUTHORS} authors."
            )
        if options["json"]:
            self.stdout.write(json.dumps(asdict(rate)))
        else:
            self.stdout.write(
                f"{rate.value:.1%} (95% interval {rate.low:.1%} to {rate.high:.1%}), from "
                f"{rate.voted_count} of {len(examples)} examples judged by people."
            )


def _read_examples(path: Path) -> list[AssistedExample]:
    """Return the examples in a CSV file. Raises CommandError, which names the file and line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise CommandError(f"{path}: the column {missing[0]} is missing.")
            return [_read_example(path, rows.line_num, row) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path}: {error}") from None


def _read_example(path: Path, line: int, row: Mapping[str, str | None]) -> AssistedExample:
    try:
        # An example that people weren't asked about has an empty cell.
        people_score = float(row["people"]) if row["people"] else None
        example = AssistedExample(
            author=row["author"],
            judge_score=float(row["judge"] or "none"),
            people_score=people_score,
            draw_chance=float(row["chance"] or "none"),
        )
    except ValueError:
        raise CommandError(
            f"{path}, line {line}: judge, people and chance must be numbers. Only people may be "
            "empty."
        ) from None
    # A score outside this range, or no number at all, would give a share that looks right.
    scores = (example.judge_score, example.people_score or 0.0)
    if not all(0 <= score <= 1 for score in scores):
        raise CommandError(f"{path}, line {line}: judge and people must be from 0 to 1.")
    return example
