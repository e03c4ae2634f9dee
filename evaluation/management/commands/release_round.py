"""Release a round, or the next version of its dataset, and show the progress."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.web.refusals import raise_as_command_error
from evaluation.dataset_releases.build import Options, build_version
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import Forecast
from evaluation.dataset_releases.services import check_sizes, request_release, suggest_sizes
from evaluation.dataset_releases.splits import HELD_SPLIT, PROGRAM_SPLIT, SPLITS
from evaluation.dataset_releases.statements import RAI_PROPERTIES, StatementsForm
from evaluation.dataset_releases.undo_services import undo_release
from evaluation.isolation.queue.leases import claim_job
from evaluation.isolation.queue.lifecycle import do_claimed_job
from evaluation.models import Dataset
from tasks.management.lookups import get_round, get_task


class Command(BaseCommand):
    help = "Release a closed round as a dataset, or the next version of it. See docs/datasets.md."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("number", type=int, help="the round's number")
        parser.add_argument("--train", type=int, help="rows; default: all that is left")
        parser.add_argument("--dev", type=int, help="rows; default: a tenth")
        parser.add_argument("--test", type=int, help="rows; default: a tenth")
        parser.add_argument(
            "--seed", type=int, default=0, help="random seed of the splits; default: 0"
        )
        parser.add_argument(
            "--license", default=Options.license, help="the license's name on the hub"
        )
        parser.add_argument("--description", default="", help="for the dataset card")
        parser.add_argument(
            "--private-test", action="store_true", help="only members get the test split's labels"
        )
        parser.add_argument(
            "--hold-back", action="store_true", help="publish a fifth of what is confirmed later"
        )
        parser.add_argument(
            "--statements", type=Path, help='JSON file of statements, such as {"biases": "…"}'
        )
        exclusive_options = parser.add_mutually_exclusive_group()
        exclusive_options.add_argument(
            "--preview", action="store_true", help="only show what it would contain and leave out"
        )
        exclusive_options.add_argument(
            "--undo", action="store_true", help="undo the release, if no one has used it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        round = get_round(get_task(options["code"]), options["number"])
        if options["undo"]:
            with raise_as_command_error():
                undo_release(round=round, actor=None)
            self.stdout.write(f"The release of {round} was undone.")
            return
        option_names = ("train", "seed", "license", "description", "private_test", "hold_back")
        census = take_census(round)
        sizes = suggest_sizes(census.counts)
        release_options = Options(
            dev=sizes.dev if options["dev"] is None else options["dev"],
            test=sizes.test if options["test"] is None else options["test"],
            statements=_read_statements(options["statements"]),
            **{name: options[name] for name in option_names},
        )
        if options["preview"]:
            with raise_as_command_error():
                self._print_preview(check_sizes(census, release_options))
            return
        with raise_as_command_error(), transaction.atomic():  # claimed before workers can see it
            queued_dataset = request_release(round=round, options=release_options, actor=None)
            dataset = claim_job(Dataset, queued_dataset.pk)
        assert dataset is not None
        do_claimed_job(dataset, lambda dataset: build_version(dataset, self._show_progress))
        dataset.refresh_from_db()
        if dataset.state != Dataset.State.DONE:
            raise CommandError(f"{dataset} was not made: {dataset.error}")
        rows = dataset.numbers["rows"]
        split_sizes = []
        for split in (*SPLITS, PROGRAM_SPLIT, HELD_SPLIT):
            if split in rows:
                split_sizes.append(f"{split} {rows[split]}")
        self.stdout.write(f"{dataset}: {', '.join(split_sizes)}")
        for file in dataset.files.all():
            self.stdout.write(f"{file.sha256}  {file.size:>12}  {file.file.name}")

    def _show_progress(self, progress: float, message: str) -> None:
        self.stdout.write(f"{progress:4.0%} {message}")

    def _print_preview(self, planned_release: Forecast) -> None:
        """Print the rows of each split, and the number of rows left out, by reason."""
        self.stdout.write(
            ", ".join(f"{split} {row_count}" for split, row_count in planned_release.rows.items())
        )
        for name, row_count in planned_release.left_out.items():
            self.stdout.write(f"left out, {row_count}: {REASONS[name]}")


def _read_statements(path: Path | None) -> dict[str, str] | None:
    """Return the statements in the file; None without a file.

    Raises CommandError, which says what is wrong with the file.
    """
    if path is None:
        return None
    try:
        statements = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CommandError(f"{path}: {error}") from error
    if not isinstance(statements, dict) or not all(
        isinstance(text, str) for text in statements.values()
    ):
        raise CommandError(f"{path} must be an object whose values are texts.")
    # A misspelt name would silently omit the statement.
    if unknown_names := statements.keys() - RAI_PROPERTIES.keys():
        names = ", ".join(sorted(unknown_names))
        raise CommandError(f"{path}: {names} is unknown. Use {', '.join(RAI_PROPERTIES)}.")
    # The page's own form, so that the same limits apply to the file.
    form = StatementsForm(statements)
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        raise CommandError(f"{path}: {name}: {errors[0]}")
    return form.get_statements()
