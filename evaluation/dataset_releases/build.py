"""Make a version of a round's dataset: rows, then files, and then all appears at once."""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Count, F
from django.utils.translation import gettext, gettext_noop

from core.accounts.services import log
from core.days import today
from core.errors import Refused
from core.files.storage.stored import files_in
from evaluation.contract import AttemptFailed, ImpossibleJob
from evaluation.dataset_releases.cards import write_cards
from evaluation.dataset_releases.census import take_census
from evaluation.dataset_releases.columns import FEATURES
from evaluation.dataset_releases.files import SplitFiles, compute_digest
from evaluation.dataset_releases.forecast import Forecast, forecast
from evaluation.dataset_releases.media_files import MediaFiles
from evaluation.dataset_releases.rows import (
    CHUNK_EXAMPLES,
    Freezer,
    pick,
    select_releasable,
    to_json,
)
from evaluation.dataset_releases.splits import (
    DEV,
    HELD,
    PROGRAM,
    SPLITS,
    TEST,
    TRAIN,
    Counts,
    Dealer,
    Sizes,
)
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.lifecycle import carry_through
from evaluation.models import Dataset, DatasetFile, DatasetItem
from tasks.config.schema import TaskConfig
from tasks.models import Round
from tasks.rounds.loop import RoundError
from tasks.rounds.states import set_round_state
from validation.bulk_insert import Table
from validation.statistics.report import task_report

logger = logging.getLogger(__name__)

ShowProgress = Callable[[float, str], None]
COLUMNS = (
    *("dataset_id", "position", "split", "uid", "example_id", "line"),
    *("label", "is_validated", "is_withdrawn"),
)


@dataclass(frozen=True)
class Options:
    """The options of a release that its owner chooses.

    train: number of rows; None takes all rows that are not in dev or test. url: of the public page,
    if known. canary: a text by which the data can be found in training corpora. held_until: the
    first day (ISO) on which new versions publish the held-back rows. confirmed: the number of rows
    of each split that the owner confirmed; None if none.
    """

    train: int | None = None
    dev: int = 0
    test: int = 0
    seed: int = 0
    license: str = "cc-by-4.0"
    description: str = ""
    private_test: bool = False
    hold_back: bool = False
    held_until: str = ""
    url: str = ""
    canary: str = ""
    confirmed: Mapping[str, int] | None = None

    def sizes(self, counts: Counts) -> Sizes:
        """Return the requested size of each split.

        Holds back a fifth of the verified rows if chosen.
        """
        held = counts.labels(True).total() // 5 if self.hold_back else 0
        return Sizes(self.train, self.dev, self.test, held)


class RoundChanged(Refused):
    """Raised when a release would differ from what its owner confirmed."""

    code = "changed"


def check_confirmed(planned_release: Forecast, options: Options) -> None:
    """Raise RoundChanged if the planned rows differ from the ones that the owner confirmed."""
    if options.confirmed is not None and dict(options.confirmed) != dict(planned_release.rows):
        raise RoundChanged(
            gettext(
                "The round has changed: the release would now hold %(now)d rows, or others than "
                "the %(before)d that you confirmed. Check the numbers and release again."
            )
            % {"now": planned_release.total, "before": sum(options.confirmed.values())}
        )


class Build:
    """One attempt to build a claimed dataset. Nothing of it is visible before `run` ends.

    Each step that writes holds the job's lease, so a worker that was presumed dead cannot mix its
    rows with those of its successor. Raises LeaseLost.
    """

    def __init__(self, dataset: Dataset, show: ShowProgress | None = None):
        self.dataset, self.round = dataset, dataset.round
        self.options = Options(**dataset.options)
        self.show = show
        # Only finished versions: one that failed or runs has no rows to go on from.
        done = self.round.datasets.filter(state=Dataset.State.DONE, version__lt=dataset.version)
        self.previous = done.order_by("-version").first()
        self.table = Table(DatasetItem, COLUMNS)
        until = self.options.held_until
        # Today the rows that were held back are published, so this version has them.
        self.holds_back = bool(until) and date.fromisoformat(until) > today()
        self.planned: Forecast | None = None  # of a first version, once it is dealt

    def run(self) -> None:
        """Build the version and release the round.

        1. Clear what an earlier attempt left.
        2. Store the rows: copy the previous version, or freeze the round's examples.
        3. Count the numbers that cards and pages show.
        4. Write the files of each split, then the cards, and store all of them.
        5. Publish: change files, round and dataset in one transaction.

        Raises RoundError if the round is open again, and RoundChanged.
        """
        self._clear()
        if self.previous:
            self._copy_rows(self.previous)
        else:
            self._freeze_rows()
        self._report(0.6, gettext_noop("counting"))
        numbers = self._count_numbers()
        with TemporaryDirectory() as name:
            folder = Path(name)
            self._write_splits(folder, numbers["rows"])
            self._report(0.9, gettext_noop("writing cards"))
            private_names = ["test.jsonl", "test.parquet"] if self.options.private_test else []
            write_cards(self.dataset, folder, numbers, private_names)
            files = []
            for path in sorted(folder.iterdir()):
                files.append(self._store_file(path, is_public=path.name not in private_names))
        self._publish(numbers, files)

    def _report(self, progress: float, message: str) -> None:
        """Record the progress and renew the lease. Raises LeaseLost."""
        leases.heartbeat(self.dataset, progress, message)
        if self.show:
            self.show(progress, message)

    def _clear(self) -> None:
        """Delete the rows and files that a failed attempt left."""
        self._report(0, gettext_noop("starting"))
        # Rows and files of a try whose worker died: this try counts positions from 0 again.
        self.dataset.items.all().delete()
        for name in files_in(f"releases/{self.dataset}"):
            default_storage.delete(name)

    def _store_rows(self, rows: Sequence[tuple[Any, ...]], progress: float) -> None:
        # One transaction: rows are stored only while the lease is ours.
        with transaction.atomic():
            self._report(0.6 * progress, gettext_noop("freezing rows"))
            self.table.insert(rows)

    def _freeze_rows(self) -> None:
        """Store the rows of a first version, split as forecast.

        Raises RoundChanged if votes or withdrawals have changed what the owner confirmed.
        """
        census, seed = take_census(self.round), self.options.seed
        self.planned = forecast(census, self.options.sizes(census.counts), seed=seed)
        check_confirmed(self.planned, self.options)
        dealer = Dealer(self.planned.plan, seed=seed)
        examples = select_releasable(self.round)
        total, position = examples.count(), 0
        # Chunks, so that memory does not grow with the round, and so that each renews the lease.
        for number, chunk in enumerate(Freezer(self.round).chunks(examples)):
            rows = []
            for frozen in chunk:
                row, label, is_verified = frozen.row, frozen.label, frozen.is_verified
                if row["by_program"]:
                    split: str | None = PROGRAM
                else:
                    split = dealer.deal(frozen.author, label, is_verified)
                row |= {"split": split, "canary": self.options.canary}
                if split:
                    line = to_json(row)
                    values = (split, frozen.uid, frozen.example, line, label, is_verified, False)
                    rows.append((self.dataset.pk, position, *values))
                    position += 1
            self._store_rows(rows, min(1, number * CHUNK_EXAMPLES / max(total, 1)))
        # Withdrawals do not wait for a release.
        # What was withdrawn while rows were read does not enter at all.
        self.dataset.items.filter(example__retracted_at__isnull=False).delete()

    def _copy_rows(self, previous: Dataset) -> None:
        """Store the rows of a later version: copies of the previous rows.

        Rows whose examples were withdrawn become tombstones.
        """
        total, last_position = previous.items.count(), -1
        rows = previous.items.select_related("example").order_by("position")
        # By position and not by offset: an offset reads all rows before it again.
        while chunk := list(rows.filter(position__gt=last_position)[:CHUNK_EXAMPLES]):
            last_position = chunk[-1].position
            self._store_rows(list(map(self._copy_row, chunk)), last_position / max(total, 1))

    def _copy_row(self, item: DatasetItem) -> tuple[Any, ...]:
        """Return the values of a copied row, or of its tombstone if it was withdrawn."""
        is_withdrawn = item.example is None or item.example.retracted_at is not None
        label, is_validated, line = item.label, item.is_validated, item.line
        if is_withdrawn:
            label, is_validated = "", False
            tombstone: dict[str, Any] = {"uid": item.uid, "split": item.split}
            tombstone |= {"task": self.round.task.code, "round": self.round.number}
            tombstone |= {"withdrawn": True, "canary": self.options.canary}
            line = to_json(tombstone)
        values = (item.split, item.uid, item.example_id, line, label, is_validated, is_withdrawn)
        return (self.dataset.pk, item.position, *values)

    def _count_numbers(self) -> dict[str, Any]:
        """Return the numbers that cards and pages show, counted from the version's rows."""
        public_items = self.dataset.items.all()
        if self.holds_back:
            public_items = public_items.exclude(split=HELD)
        split_names = public_items.order_by().values_list("split", flat=True)
        split_name_set = set(split_names.distinct())
        splits = list(SPLITS) + [split for split in (PROGRAM, HELD) if split in split_name_set]
        held = self.dataset.items.filter(split=HELD, is_withdrawn=False)
        held_rows = held.count() if self.holds_back else 0
        items = public_items.filter(is_withdrawn=False)
        # Programs have authors, too, but "authors" on cards are people.
        items_by_people = items.exclude(split=PROGRAM)
        labels: dict[str, Any] = {}
        for split in splits:
            labels[split] = {"validated": {}, "unjudged": {}}
        rows = dict.fromkeys(splits, 0)
        cells = items.order_by("label").values_list("split", "is_validated", "label")
        for split, is_validated, label, n in cells.annotate(n=Count("pk")):
            labels[split]["validated" if is_validated else "unjudged"][label] = n
            rows[split] += n
        authors = (
            items.order_by()
            .values_list("split")
            .annotate(n=Count("example__annotator", distinct=True))
        )
        authors_by_name = dict.fromkeys(splits, 0) | dict(authors)
        author_count = items_by_people.aggregate(n=Count("example__annotator", distinct=True))["n"]
        # Grouped below: one query for all splits.
        withdrawn = public_items.filter(is_withdrawn=True).order_by().values_list("split")
        # Long queries: the lease must not run out.
        self._report(0.6, gettext_noop("comparing splits"))
        in_train = items.filter(split=TRAIN).values("example__context")
        edits = items_by_people.filter(example__parent__dataset_items__dataset=self.dataset)
        examples_by_people = select_releasable(self.round).filter(by_program=False)

        shared_contexts = {}
        for split in (DEV, TEST):
            sharing = items.filter(split=split, example__context__in=in_train)
            shared_contexts[split] = sharing.count()
        rows_by_people = sum(rows.values()) - rows.get(PROGRAM, 0)
        authors_by_split = sum(authors_by_name.values()) - authors_by_name.get(PROGRAM, 0)
        split_edit_count = edits.exclude(example__parent__dataset_items__split=F("split")).count()
        self._report(0.6, gettext_noop("counting votes"))
        return {
            "rows": rows,
            "labels": labels,
            "authors": authors_by_name,
            "withdrawn": dict.fromkeys(splits, 0) | dict(withdrawn.annotate(n=Count("pk"))),
            "held": held_rows,
            "left_out": max(0, examples_by_people.count() - rows_by_people - held_rows),
            "reasons": dict(self.planned.left_out) if self.planned else {},
            # Counted once in each split and once altogether: the difference is in several.
            "shared_authors": authors_by_split - author_count,
            "shared_contexts": shared_contexts,
            "parted_edits": split_edit_count,
            "report": task_report([self.round], code=self.round.task.code)["rounds"][0],
        }

    def _write_splits(self, folder: Path, splits: Collection[str]) -> None:
        """Write the files of all splits in one pass.

        A private test split also gets files without answers.
        """
        names, private_split = list(splits), ""
        if self.options.private_test:
            names, private_split = [*names, "test-unlabelled"], TEST
        config = self.round.task.config
        media = None
        if config.media_fields:
            media = MediaFiles(folder, self.round.task)
        files = {}
        for name in names:
            files[name] = SplitFiles(folder, name, config, media, is_public=name != private_split)
        # Of a private test split everybody gets the texts without answers.
        unlabelled_file = files.get("test-unlabelled")
        items = self.dataset.items.filter(split__in=list(splits))
        total, number = items.count(), 0
        lines = items.order_by("position").values_list("split", "line")
        for number, (split, line) in enumerate(lines.iterator(chunk_size=CHUNK_EXAMPLES)):
            files[split].write(line)
            if unlabelled_file and split == TEST:
                unlabelled_file.write(to_json(strip_label(json.loads(line), config)))
            # Not at each line: renewing a lease is a query.
            if number % (10 * CHUNK_EXAMPLES) == 0:
                self._report(0.6 + 0.3 * number / total, gettext_noop("writing files"))
        for file in files.values():
            file.close()
        if media:
            media.close()

    def _store_file(self, path: Path, is_public: bool) -> DatasetFile:
        """Store a file and return its unsaved row."""
        self._report(0.95, f"storing {path.name}")
        dataset_file = DatasetFile(dataset=self.dataset, name=path.name, is_public=is_public)
        # Of the file that was written, so that damage on the way into the storage is found.
        dataset_file.size, dataset_file.sha256 = path.stat().st_size, compute_digest(path)
        with path.open("rb") as file:
            dataset_file.file.save(path.name, File(file), save=False)
        return dataset_file

    @transaction.atomic
    def _publish(self, numbers: dict[str, Any], files: Sequence[DatasetFile]) -> None:
        """Publish files, round and dataset together. Locks the round, then the dataset."""
        actor = self.dataset.requested_by
        round = Round.objects.select_for_update(of=("self",)).get(pk=self.round.pk)
        # Later versions find the round released already.
        if round.state != Round.State.RELEASED:
            set_round_state(round=self.round, state=Round.State.RELEASED, actor=actor)
        DatasetFile.objects.bulk_create(files)
        leases.finish_job(self.dataset, numbers=numbers)
        log(actor, "dataset.released", self.dataset, files={f.name: f.sha256 for f in files})


def build_version(dataset: Dataset, show: ShowProgress | None = None) -> None:
    """Build a claimed version. If this fails, store the reason on its row. Raises LeaseLost."""
    carry_through(dataset, lambda dataset, heartbeat: _build(dataset, show))


def _build(dataset: Dataset, show: ShowProgress | None) -> None:
    try:
        Build(dataset, show).run()
    except (RoundError, RoundChanged) as error:
        raise ImpossibleJob(str(error)) from None
    except leases.LeaseLost:
        raise
    except leases.DATABASE_AWAY as error:
        # Not the job's fault: another worker tries it again once the database is back.
        raise AttemptFailed("The database was away.") from error
    except Exception as error:
        # Not tried again by itself: the same rows would fail again, and the owner can ask.
        logger.exception("%s cannot be made", dataset)
        why = f"{type(error).__name__}. The worker's log says more; ask again."
        raise ImpossibleJob(why) from error


def strip_label(row: dict[str, Any], config: TaskConfig) -> dict[str, Any]:
    """Return a row as a model may see it, without answers, votes and target outputs."""
    if row["withdrawn"]:
        return row
    inputs = json.loads(row["input_json"])
    fields = pick(inputs, config.model_fields)
    return pick(row, FEATURES) | {"input_json": to_json(fields)}
