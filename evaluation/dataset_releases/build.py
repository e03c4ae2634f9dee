"""Build a version of a round's dataset: rows, then files, then publish everything at once."""

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

from annotation.machine_text.selectors import (
    build_machine_share_report,
    describe_machine_share,
)
from core.accounts.services import log
from core.days import get_today
from core.errors import Refused
from core.files.storage.stored import list_files
from evaluation.contract import AttemptFailed, ImpossibleJob
from evaluation.dataset_releases.anchors import holds_serving_anchors
from evaluation.dataset_releases.cards import write_cards
from evaluation.dataset_releases.census import take_census
from evaluation.dataset_releases.columns import FEATURE_NAMES
from evaluation.dataset_releases.files import SplitWriter, compute_digest
from evaluation.dataset_releases.forecast import Forecast, compute_forecast
from evaluation.dataset_releases.media_files import MediaFiles
from evaluation.dataset_releases.rows import (
    CHUNK_EXAMPLES,
    Freezer,
    convert_to_json,
    pick_entries,
    select_releasable_examples,
)
from evaluation.dataset_releases.splits import (
    DEV,
    HELD_SPLIT,
    PROGRAM_SPLIT,
    SPLITS,
    TEST,
    TRAIN,
    RowAssigner,
    RowCounts,
    SplitSizes,
)
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.models import Dataset, DatasetFile, DatasetItem
from tasks.config.schema import TaskConfig
from tasks.models import Round
from tasks.rounds.loop import RoundError
from tasks.rounds.states import set_round_state
from validation.bulk_insert import Table
from validation.statistics.report import build_task_report

logger = logging.getLogger(__name__)

BuildProgressCallback = Callable[[float, str], None]
COLUMNS = (
    *("dataset_id", "position", "split", "uid", "example_id", "line"),
    *("label", "is_validated", "is_withdrawn"),
)


@dataclass(frozen=True)
class Options:
    """The options of a release that its owner chooses.

    train: number of rows; None takes all rows that are not in dev or test. url: the URL of the
    public page, if known. canary: a text by which the data can be found in training corpora.
    held_until: the first day (ISO) on which new versions publish the held-back rows. confirmed: the
    number of rows of each split that the owner confirmed; None if the owner confirmed nothing.
    statements: texts by their names in `statements.RAI_PROPERTIES`; None for those of the previous
    version.
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
    statements: Mapping[str, str] | None = None

    def compute_sizes(self, counts: RowCounts) -> SplitSizes:
        """Return the requested size of each split.

        If `hold_back` is set, a fifth of the verified rows is held back.
        """
        held_row_count = counts.count_labels(True).total() // 5 if self.hold_back else 0
        return SplitSizes(self.train, self.dev, self.test, held_row_count)


class RoundChanged(Refused):
    """Raised when a release would differ from what its owner confirmed."""

    code = "changed"


def check_confirmed(planned_release: Forecast, options: Options) -> None:
    """Raise RoundChanged if the planned rows differ from the ones that the owner confirmed."""
    if options.confirmed is not None and dict(options.confirmed) != dict(planned_release.rows):
        raise RoundChanged(
            gettext(
                "The round has changed since you confirmed %(before)d rows. The "
                "release would now have %(now)d rows, or different ones. Check the "
                "numbers and release again."
            )
            % {"now": planned_release.total, "before": sum(options.confirmed.values())}
        )


class Build:
    """One attempt to build a claimed dataset. Readers see nothing of it before `run` ends.

    Each step that writes first renews the job's lease, and raises LeaseLost if it is lost. So a
    worker that was presumed dead cannot mix its rows with those of its successor.
    """

    def __init__(self, dataset: Dataset, report_progress: BuildProgressCallback | None = None):
        self.dataset, self.round = dataset, dataset.round
        self.options = Options(**dataset.options)
        self.report_progress = report_progress
        # Only finished versions: failed and running ones have no usable rows.
        finished_versions = self.round.datasets.filter(
            state=Dataset.State.DONE, version__lt=dataset.version
        )
        self.previous = finished_versions.order_by("-version").first()
        self.item_table = Table(DatasetItem, COLUMNS)
        held_until = self.options.held_until
        # Once the day of the held-back rows has come, a version includes them, but never while
        # they are anchors of a ruler.
        self.holds_back = bool(held_until) and (
            date.fromisoformat(held_until) > get_today() or holds_serving_anchors(self.round)
        )
        self.planned_release: Forecast | None = None  # of a first version, after splitting

    def run(self) -> None:
        """Build the version and release the round.

        1. Clear what an earlier attempt left.
        2. Store the rows: copy the previous version, or freeze the round's examples.
        3. Count the numbers that cards and pages show.
        4. Write the files of each split, then the cards, and store all of them.
        5. Publish: change files, round and dataset in one transaction.

        Raises RoundError if the round is open again, and RoundChanged.
        """
        self._clear_earlier_attempt()
        if self.previous:
            self._copy_rows(self.previous)
        else:
            self._freeze_rows()
        self._report(0.6, gettext_noop("computing the release's numbers"))
        numbers = self._compute_numbers()
        with TemporaryDirectory() as name:
            folder = Path(name)
            self._write_splits(folder, numbers["rows"])
            self._report(0.9, gettext_noop("writing the dataset card"))
            private_names = ["test.jsonl", "test.parquet"] if self.options.private_test else []
            write_cards(self.dataset, folder, numbers, private_names)
            dataset_files = []
            for path in sorted(folder.iterdir()):
                dataset_files.append(
                    self._store_file(path, is_public=path.name not in private_names)
                )
        self._publish(numbers, dataset_files)

    def _report(self, progress: float, message: str) -> None:
        """Record the progress and renew the lease. Raises LeaseLost."""
        leases.write_heartbeat(self.dataset, progress, message)
        if self.report_progress:
            self.report_progress(progress, message)

    def _clear_earlier_attempt(self) -> None:
        """Delete the rows and files that a failed attempt left."""
        self._report(0, gettext_noop("preparing the release"))
        # Rows and files of an attempt whose worker died; this one starts at position 0 again.
        self.dataset.items.all().delete()
        for name in list_files(f"releases/{self.dataset}"):
            default_storage.delete(name)

    def _store_rows(self, rows: Sequence[tuple[Any, ...]], progress: float) -> None:
        # One transaction, so that rows are stored only while this worker has the lease.
        with transaction.atomic():
            self._report(0.6 * progress, gettext_noop("copying the examples into the release"))
            self.item_table.insert(rows)

    def _freeze_rows(self) -> None:
        """Store the rows of a first version, split as forecast.

        Raises RoundChanged if votes or withdrawals have changed what the owner confirmed.
        """
        census, seed = take_census(self.round), self.options.seed
        self.planned_release = compute_forecast(
            census, self.options.compute_sizes(census.counts), seed=seed
        )
        check_confirmed(self.planned_release, self.options)
        assigner = RowAssigner(self.planned_release.plan, seed=seed)
        examples = select_releasable_examples(self.round)
        total, position = examples.count(), 0
        # In chunks, so that memory does not grow with the round. Each chunk renews the lease.
        for number, chunk in enumerate(Freezer(self.round).iterate_chunks(examples)):
            rows = []
            for frozen_row in chunk:
                row, label, is_verified = frozen_row.row, frozen_row.label, frozen_row.is_verified
                if row["by_program"]:
                    split: str | None = PROGRAM_SPLIT
                else:
                    split = assigner.assign_row(frozen_row.author, label, is_verified)
                row |= {"split": split, "canary": self.options.canary}
                if split:
                    line = convert_to_json(row)
                    values = (
                        split,
                        frozen_row.uid,
                        frozen_row.example_id,
                        line,
                        label,
                        is_verified,
                        False,
                    )
                    rows.append((self.dataset.pk, position, *values))
                    position += 1
            self._store_rows(rows, min(1, number * CHUNK_EXAMPLES / max(total, 1)))
        # Withdrawals are possible during a release.
        # Examples withdrawn while rows were read are left out.
        self.dataset.items.filter(example__retracted_at__isnull=False).delete()

    def _copy_rows(self, previous: Dataset) -> None:
        """Store the rows of a later version: copies of the previous rows.

        Rows whose examples were withdrawn become tombstones.
        """
        total, last_position = previous.items.count(), -1
        rows = previous.items.select_related("example").order_by("position")
        # By position: an offset would read all earlier rows again.
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
            line = convert_to_json(tombstone)
        values = (item.split, item.uid, item.example_id, line, label, is_validated, is_withdrawn)
        return (self.dataset.pk, item.position, *values)

    def _compute_numbers(self) -> dict[str, Any]:
        """Return the numbers that cards and pages show, counted from the version's rows."""
        public_items = self.dataset.items.all()
        if self.holds_back:
            public_items = public_items.exclude(split=HELD_SPLIT)
        split_names = public_items.order_by().values_list("split", flat=True)
        split_name_set = set(split_names.distinct())
        splits = list(SPLITS) + [
            split for split in (PROGRAM_SPLIT, HELD_SPLIT) if split in split_name_set
        ]
        held_items = self.dataset.items.filter(split=HELD_SPLIT, is_withdrawn=False)
        held_count = held_items.count() if self.holds_back else 0
        items = public_items.filter(is_withdrawn=False)
        # Programs also count as authors, but cards only count people.
        items_by_people = items.exclude(split=PROGRAM_SPLIT)
        labels: dict[str, Any] = {}
        for split in splits:
            labels[split] = {"validated": {}, "unjudged": {}}
        rows = dict.fromkeys(splits, 0)
        cells = items.order_by("label").values_list("split", "is_validated", "label")
        for split, is_validated, label, n in cells.annotate(n=Count("pk")):
            labels[split]["validated" if is_validated else "unjudged"][label] = n
            rows[split] += n
        author_counts = (
            items.order_by()
            .values_list("split")
            .annotate(n=Count("example__annotator", distinct=True))
        )
        authors_by_split = dict.fromkeys(splits, 0) | dict(author_counts)
        author_count = items_by_people.aggregate(n=Count("example__annotator", distinct=True))["n"]
        # Grouped below, to make one query for all splits.
        withdrawn_items = public_items.filter(is_withdrawn=True).order_by().values_list("split")
        # The next queries take long, and the lease must not expire.
        self._report(0.6, gettext_noop("comparing the splits"))
        train_contexts = items.filter(split=TRAIN).values("example__context")
        edits = items_by_people.filter(example__parent__dataset_items__dataset=self.dataset)
        examples_by_people = select_releasable_examples(self.round).filter(by_program=False)

        shared_contexts = {}
        for split in (DEV, TEST):
            sharing_items = items.filter(split=split, example__context__in=train_contexts)
            shared_contexts[split] = sharing_items.count()
        people_row_count = sum(rows.values()) - rows.get(PROGRAM_SPLIT, 0)
        author_count_sum = sum(authors_by_split.values()) - authors_by_split.get(PROGRAM_SPLIT, 0)
        split_edit_count = edits.exclude(example__parent__dataset_items__split=F("split")).count()
        self._report(0.6, gettext_noop("counting the votes"))
        # Held-back rows count as well: they are texts of the same people.
        texts = self.round.examples.filter(dataset_items__dataset=self.dataset)
        return {
            "rows": rows,
            "labels": labels,
            "authors": authors_by_split,
            "withdrawn": dict.fromkeys(splits, 0) | dict(withdrawn_items.annotate(n=Count("pk"))),
            "held": held_count,
            "left_out": max(0, examples_by_people.count() - people_row_count - held_count),
            "reasons": dict(self.planned_release.left_out) if self.planned_release else {},
            # Counted per split and in total; the difference is the number in several splits.
            "shared_authors": author_count_sum - author_count,
            "shared_contexts": shared_contexts,
            "parted_edits": split_edit_count,
            "machine_share": describe_machine_share(build_machine_share_report(texts))
            if not self.round.task.is_simulated
            else "",
            "report": build_task_report([self.round], code=self.round.task.code)["rounds"][0],
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
        writer_by_name = {}
        for name in names:
            writer_by_name[name] = SplitWriter(
                folder, name, config, media, is_public=name != private_split
            )
        # For a private test split, the public gets the texts without answers.
        unlabelled_file = writer_by_name.get("test-unlabelled")
        items = self.dataset.items.filter(split__in=list(splits))
        total, number = items.count(), 0
        lines = items.order_by("position").values_list("split", "line")
        # Files are written row by row, so that not all rows are in memory at once.
        for number, (split, line) in enumerate(lines.iterator(chunk_size=CHUNK_EXAMPLES)):
            writer_by_name[split].write(line)
            if unlabelled_file and split == TEST:
                unlabelled_file.write(convert_to_json(strip_label(json.loads(line), config)))
            # Not for each line, because renewing a lease is a query.
            if number % (10 * CHUNK_EXAMPLES) == 0:
                self._report(0.6 + 0.3 * number / total, gettext_noop("writing the files"))
        for file in writer_by_name.values():
            file.close()
        if media:
            media.close()

    def _store_file(self, path: Path, is_public: bool) -> DatasetFile:
        """Store a file and return its unsaved row."""
        self._report(0.95, f"storing {path.name}")
        dataset_file = DatasetFile(dataset=self.dataset, name=path.name, is_public=is_public)
        # Of the written file, so that damage during the upload to the storage is found.
        dataset_file.size, dataset_file.sha256 = path.stat().st_size, compute_digest(path)
        with path.open("rb") as file:
            dataset_file.file.save(path.name, File(file), save=False)
        return dataset_file

    @transaction.atomic
    def _publish(self, numbers: dict[str, Any], dataset_files: Sequence[DatasetFile]) -> None:
        """Publish files, round and dataset together. Locks the round, then the dataset."""
        actor = self.dataset.requested_by
        round = Round.objects.select_for_update(of=("self",)).get(pk=self.round.pk)
        # For later versions, the round is already released.
        if round.state != Round.State.RELEASED:
            set_round_state(round=self.round, state=Round.State.RELEASED, actor=actor)
        DatasetFile.objects.bulk_create(dataset_files)
        leases.finish_job(self.dataset, numbers=numbers)
        log(
            actor, "dataset.released", self.dataset, files={f.name: f.sha256 for f in dataset_files}
        )


def build_version(dataset: Dataset, report_progress: BuildProgressCallback | None = None) -> None:
    """Build a claimed version. If this fails, store the reason on its row. Raises LeaseLost."""
    do_job_work(dataset, lambda dataset, heartbeat: _build(dataset, report_progress))


def _build(dataset: Dataset, report_progress: BuildProgressCallback | None) -> None:
    try:
        Build(dataset, report_progress).run()
    except (RoundError, RoundChanged) as error:
        raise ImpossibleJob(str(error)) from None
    except leases.LeaseLost:
        raise
    except leases.DATABASE_AWAY_ERRORS as error:
        # Not the job's fault; another worker tries again once the database is back.
        raise AttemptFailed("The database was away.") from error
    except Exception as error:
        # Not tried again automatically: the same rows would fail again. The owner can retry.
        logger.exception("%s cannot be made", dataset)
        reason = f"{type(error).__name__}. The worker's log says more; ask again."
        raise ImpossibleJob(reason) from error


def strip_label(row: dict[str, Any], config: TaskConfig) -> dict[str, Any]:
    """Return a row as a model may see it, without answers, votes and target outputs.

    A tombstone is returned unchanged.
    """
    if row["withdrawn"]:
        return row
    inputs = json.loads(row["input_json"])
    fields = pick_entries(inputs, config.model_fields)
    return pick_entries(row, FEATURE_NAMES) | {"input_json": convert_to_json(fields)}
