"""Release a round, or the next version of its dataset, and show the progress."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.web.refusals import as_command_error
from evaluation.dataset_releases.build import Options, build_version
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.forecast import Forecast
from evaluation.dataset_releases.services import check_sizes, request_release, suggest_sizes
from evaluation.dataset_releases.splits import HELD, PROGRAM, SPLITS
from evaluation.dataset_releases.undo_services import undo_release
from evaluation.isolation.queue.leases import claim_job
from evaluation.isolation.queue.lifecycle import do_claimed
from evaluation.models import Dataset
from tasks.management.named import get_round, task_of


class Command(BaseCommand):
    help = "Release a closed round as a dataset, or the next version of it; docs/datasets.md."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("number", type=int, help="the round's number")
        parser.add_argument("--train", type=int, help="rows; default: all that is left")
        parser.add_argument("--dev", type=int, help="rows; default: a tenth")
        parser.add_argument("--test", type=int, help="rows; default: a tenth")
        parser.add_argument("--seed", type=int, default=0, help="of the splits; default: 0")
        parser.add_argument("--license", default=Options.license, help="the hub's name of it")
        parser.add_argument("--description", default="", help="for the dataset card")
        parser.add_argument(
            "--private-test", action="store_true", help="only members get the test split's labels"
        )
        parser.add_argument(
            "--hold-back", action="store_true", help="publish a fifth of what is confirmed later"
        )
        instead = parser.add_mutually_exclusive_group()
        instead.add_argument(
            "--preview", action="store_true", help="only say what it would hold and leave out"
        )
        instead.add_argument(
            "--undo", action="store_true", help="undo the release, if nobody has used it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        round = get_round(task_of(options["code"]), options["number"])
        if options["undo"]:
            with as_command_error():
                undo_release(round=round, actor=None)
            self.stdout.write(f"The release of {round} was undone.")
            return
        names = ("train", "seed", "license", "description", "private_test", "hold_back")
        census = take_census(round)
        sizes = suggest_sizes(census.counts)
        release_options = Options(
            dev=sizes.dev if options["dev"] is None else options["dev"],
            test=sizes.test if options["test"] is None else options["test"],
            **{name: options[name] for name in names},
        )
        if options["preview"]:
            with as_command_error():
                self._preview(check_sizes(census, release_options))
            return
        with as_command_error(), transaction.atomic():  # claimed before a worker can see it
            queued = request_release(round=round, options=release_options, actor=None)
            dataset = claim_job(Dataset, queued.pk)
        assert dataset is not None
        do_claimed(dataset, lambda dataset: build_version(dataset, self._show))
        dataset.refresh_from_db()
        if dataset.state != Dataset.State.DONE:
            raise CommandError(f"{dataset} was not made: {dataset.error}")
        rows = dataset.numbers["rows"]
        sizes_in_words = []
        for split in (*SPLITS, PROGRAM, HELD):
            if split in rows:
                sizes_in_words.append(f"{split} {rows[split]}")
        self.stdout.write(f"{dataset}: {', '.join(sizes_in_words)}")
        for file in dataset.files.all():
            self.stdout.write(f"{file.sha256}  {file.size:>12}  {file.file.name}")

    def _show(self, progress: float, message: str) -> None:
        self.stdout.write(f"{progress:4.0%} {message}")

    def _preview(self, planned: Forecast) -> None:
        """Print the rows of each split, and the number of rows left out, by reason."""
        self.stdout.write(", ".join(f"{split} {n}" for split, n in planned.rows.items()))
        for name, n in planned.left_out.items():
            self.stdout.write(f"left out, {n}: {REASONS[name]}")
