"""Read released datasets: their rows and files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Max, OuterRef, Prefetch, QuerySet, prefetch_related_objects
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from annotation.answers import filter_open_answers
from annotation.models import Example
from core.data.adaptive_cache import read_or_count
from evaluation.dataset_releases.rows import Freezer, FrozenRow, convert_to_json
from evaluation.models import Dataset, DatasetFile, DatasetItem
from tasks.access import find_task
from tasks.models import Round, Task
from tasks.permissions import can_download, can_read

JSON_FIELDS = ("input_json", "output_json", "metadata_json")


def find_latest_datasets(rounds: Iterable[Round]) -> Mapping[int, Dataset]:
    """Return the newest finished dataset of each round, by round id. One query."""
    rows = Dataset.objects.select_related("round__task")
    # In ascending order, so that the newest version of a round replaces the others.
    finished_datasets = rows.filter(round__in=rounds, state=Dataset.State.DONE)
    return {dataset.round_id: dataset for dataset in finished_datasets.order_by("version")}


def select_finished_releases(round: Round) -> QuerySet[Dataset]:
    """Select the finished datasets of a round. The first one made its rows public."""
    finished_datasets = round.datasets.filter(state=Dataset.State.DONE, finished_at__isnull=False)
    return finished_datasets.order_by("version")


def find_datasets_with_public_files(rounds: Iterable[Round]) -> list[Dataset]:
    """Return the newest finished dataset of each round with its public files.

    The newest round comes first.
    """
    datasets = list(find_latest_datasets(rounds).values())
    public_files = DatasetFile.objects.filter(is_public=True)
    prefetch_related_objects(datasets, Prefetch("files", public_files))
    return sorted(datasets, key=lambda dataset: -dataset.round.number)


def mark_unused_releases(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Annotate the examples with `unused_release`, for `undo_services.note_shown_examples`.

    `unused_release` is the id of a finished release that contains the example and that nobody has
    used yet, or None.
    """
    items = DatasetItem.objects.filter(
        example=OuterRef("pk"), dataset__state=Dataset.State.DONE, dataset__downloaded_at=None
    )
    return examples.annotate(unused_release=items.order_by("dataset").values("dataset")[:1])


def find_released_failures(tasks: Iterable[Task]) -> list[Example]:
    """Return, for each task, an example of its newest release that fooled a model and may be shown.

    The examples come from `train`. Callers that show one must call
    `undo_services.note_shown_examples`. At most four queries; none if no task has a release.
    """
    # Cached for a while, because teasers on the home page need it on each request.
    newest_dataset_ids = read_or_count("newest-datasets", _find_newest_ids)
    dataset_ids = [newest_dataset_ids[task.pk] for task in tasks if task.pk in newest_dataset_ids]
    if not dataset_ids:
        return []
    rows = DatasetItem.objects.filter(
        dataset__in=dataset_ids,
        split=DatasetItem.Split.TRAIN,
        is_withdrawn=False,
        example__consensus__is_validated_error=True,
        example__in=filter_open_answers(Example.objects.all()),
    )
    # The newest fitting example of each dataset.
    newest_by_dataset = rows.order_by().values("dataset").annotate(last=Max("example"))
    example_ids = list(newest_by_dataset.values_list("last", flat=True))
    examples = mark_unused_releases(Example.objects.filter(pk__in=example_ids))
    return list(examples.select_related("round").prefetch_related("target_outputs"))


def _find_newest_ids() -> dict[int, int]:
    """Return the id of the newest finished dataset of each task, by task id."""
    finished_datasets = Dataset.objects.filter(state=Dataset.State.DONE).order_by(
        "round__number", "version"
    )
    return dict(finished_datasets.values_list("round__task", "pk"))  # the last one of a task wins


def read_split_rows(dataset: Dataset, split: str) -> Iterator[Mapping[str, Any]]:
    """Stream the rows of `train`, `dev` or `test` in order, with labels and without tombstones.

    docs/datasets.md describes the fields. Here, `context` holds the context's own fields, and the
    JSON texts in `JSON_FIELDS` are parsed.
    """
    items = dataset.items.filter(split=split, is_withdrawn=False).order_by("position")
    # In chunks, because a release may have too many rows for memory.
    for line in items.values_list("line", flat=True).iterator(chunk_size=2000):
        yield decode_row(json.loads(line))


def decode_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored row with its JSON texts parsed; `context` is the context's own fields."""
    values = {name: json.loads(row[name]) for name in JSON_FIELDS if row[name]}
    return {**row, **values, "context": json.loads(row["context"]["context_json"])}


def export_lines(round: Round) -> Iterator[str]:
    """Yield all examples of a round that were not withdrawn, judged or not, as lines of JSON.

    Each yielded text contains the lines of many examples. The fields are those of a dataset,
    including people's pseudonyms. `split` is empty. `tags` are reviewers' tags, which datasets do
    not have.
    """
    for chunk in _freeze_current_examples(round, Freezer(round, includes_tags=True)):
        # One piece per chunk, because one per line would make the response much slower.
        yield "".join([f"{convert_to_json(frozen_row.row)}\n" for frozen_row in chunk])


def export_rows(round: Round) -> Iterator[Mapping[str, Any]]:
    """Yield the same rows as `export_lines`, as mappings.

    They include all corrections and everything that was imported with the rows.
    """
    for chunk in _freeze_current_examples(round, Freezer(round, includes_imported_data=True)):
        for frozen_row in chunk:
            yield frozen_row.row


def _freeze_current_examples(round: Round, freezer: Freezer) -> Iterator[Iterator[FrozenRow]]:
    return freezer.iterate_chunks(Example.objects.filter(round=round, retracted_at__isnull=True))


def find_dataset_file(
    request: HttpRequest | Request, code: str, number: int, version: int, name: str
) -> DatasetFile:
    """Return a file of a released version.

    Raises Http404 if the file does not exist or the reader may not download it.
    """
    for file in find_dataset_files(request, code, number, version):
        if file.name == name:
            return file
    raise Http404


def find_dataset_files(
    request: HttpRequest | Request, code: str, number: int, version: int
) -> list[DatasetFile]:
    """Return the files of a released version that the reader may download, with their dataset.

    Raises Http404 if the reader may not download the task's data. One query for the files.
    """
    task = find_task(request, code, can_download)
    files = DatasetFile.objects.select_related("dataset__round__task").filter(
        dataset__round__task=task,
        dataset__round__number=number,
        dataset__version=version,
        dataset__state=Dataset.State.DONE,
    )
    # There are few files, so all are read and filtered here.
    return [file for file in files if file.is_public or can_read(request.user, task)]
