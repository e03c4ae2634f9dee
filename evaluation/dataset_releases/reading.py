"""Read released datasets: their rows and files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Max, Prefetch, prefetch_related_objects
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from annotation.answers import filter_open_answers
from annotation.models import Example
from core.data.adaptive_cache import read_or_count
from evaluation.dataset_releases.rows import Freezer, FrozenRow, to_json
from evaluation.models import Dataset, DatasetFile, DatasetItem
from tasks.access import find_task
from tasks.models import Round, Task
from tasks.permissions import can_read, can_take

JSON_FIELDS = ("input_json", "output_json", "metadata_json")


def find_latest_datasets(rounds: Iterable[Round]) -> Mapping[int, Dataset]:
    """Return the newest finished dataset of each round, by round id. One query."""
    rows = Dataset.objects.select_related("round__task")
    # In ascending order, so that the newest version of a round is the one that stays.
    done = rows.filter(round__in=rounds, state=Dataset.State.DONE)
    return {dataset.round_id: dataset for dataset in done.order_by("version")}


def find_public_datasets(rounds: Iterable[Round]) -> list[Dataset]:
    """Return the newest finished dataset of each round with its public files.

    The newest round comes first.
    """
    datasets = list(find_latest_datasets(rounds).values())
    public_files = DatasetFile.objects.filter(is_public=True)
    prefetch_related_objects(datasets, Prefetch("files", public_files))
    return sorted(datasets, key=lambda dataset: -dataset.round.number)


def find_released_failures(tasks: Iterable[Task]) -> list[Example]:
    """Return, for each task, an example of its newest release that fooled a model and may be shown.

    The examples come from `train`. At most four queries; none if no task has a release.
    """
    # Kept for a while: teasers on the first page ask for it at each request.
    newest = read_or_count("newest-datasets", _find_newest_ids)
    datasets = [newest[task.pk] for task in tasks if task.pk in newest]
    if not datasets:
        return []
    rows = DatasetItem.objects.filter(
        dataset__in=datasets,
        split=DatasetItem.Split.TRAIN,
        is_withdrawn=False,
        example__consensus__is_validated_error=True,
        example__in=filter_open_answers(Example.objects.all()),
    )
    # The newest fitting example of each dataset.
    chosen = rows.order_by().values("dataset").annotate(last=Max("example"))
    newest_ids = list(chosen.values_list("last", flat=True))
    examples = Example.objects.filter(pk__in=newest_ids)
    return list(examples.select_related("round").prefetch_related("target_outputs"))


def _find_newest_ids() -> dict[int, int]:
    """Return the id of the newest finished dataset of each task, by task id."""
    done = Dataset.objects.filter(state=Dataset.State.DONE).order_by("round__number", "version")
    return dict(done.values_list("round__task", "pk"))  # the last one of a task stays


def read_split_rows(dataset: Dataset, split: str) -> Iterator[Mapping[str, Any]]:
    """Stream the rows of `train`, `dev` or `test` in order, with labels and without tombstones.

    docs/datasets.md describes the fields. Here, `context` holds the context's own fields, and the
    JSON texts in `JSON_FIELDS` are parsed.
    """
    items = dataset.items.filter(split=split, is_withdrawn=False).order_by("position")
    for line in items.values_list("line", flat=True).iterator(chunk_size=2000):
        yield decode_row(json.loads(line))


def decode_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored row with its JSON texts parsed; `context` is the context's own fields."""
    values = {name: json.loads(row[name]) for name in JSON_FIELDS if row[name]}
    return {**row, **values, "context": json.loads(row["context"]["context_json"])}


def export_lines(round: Round) -> Iterator[str]:
    """Yield every example of a round that was not withdrawn, judged or not, as a line of JSON.

    The fields are those of a dataset, including people's pseudonyms. `split` is empty. `tags`,
    which datasets lack, are reviewers' tags.
    """
    for chunk in _freeze_standing(round, Freezer(round, is_tagged=True)):
        # One piece for each chunk: a piece for each line would make the response much slower.
        yield "".join([f"{to_json(frozen.row)}\n" for frozen in chunk])


def export_rows(round: Round) -> Iterator[Mapping[str, Any]]:
    """Yield the same rows as `export_lines`, as mappings.

    They include all corrections and everything that was imported with the rows.
    """
    for chunk in _freeze_standing(round, Freezer(round, is_whole=True)):
        for frozen in chunk:
            yield frozen.row


def _freeze_standing(round: Round, freezer: Freezer) -> Iterator[Iterator[FrozenRow]]:
    return freezer.chunks(Example.objects.filter(round=round, retracted_at__isnull=True))


def find_dataset_file(
    request: HttpRequest | Request, code: str, number: int, version: int, name: str
) -> DatasetFile:
    """Return a file of a released version. Raises Http404 if the reader may not have it."""
    task = find_task(request, code, can_take)
    files = DatasetFile.objects.select_related("dataset").filter(
        dataset__round__task=task,
        dataset__round__number=number,
        dataset__version=version,
        dataset__state=Dataset.State.DONE,
    )
    # Few files: all are read, and the name is compared here.
    for file in files:
        if file.name == name and (file.is_public or can_read(request.user, task)):
            return file
    raise Http404
