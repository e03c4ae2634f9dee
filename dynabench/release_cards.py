"""What the data page shows of a released version: rows and files of each split, code, citation."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from evaluation.dataset_releases.cards import make_bibtex
from evaluation.dataset_releases.loading_code import write_loading_code
from evaluation.dataset_releases.split_files import ReleaseSplit, list_splits
from evaluation.dataset_releases.splits import HELD_SPLIT
from evaluation.models import Dataset, DatasetFile


@dataclass(frozen=True)
class ReleaseCard:
    """The newest version of a released round as the data page shows it.

    other_files: the public files without rows, such as the README. total_rows: without those held
    back. total_bytes: the size of all public files. loading_code, bibtex: text to copy; empty if it
    cannot be written.
    """

    dataset: Dataset
    splits: list[ReleaseSplit]
    other_files: list[DatasetFile]
    total_rows: int
    total_bytes: int
    loading_code: str
    bibtex: str


def build_release_card(request: HttpRequest, dataset: Dataset) -> ReleaseCard:
    """Return the card of a finished version whose public files are prefetched. No query."""
    files = list(dataset.files.all())
    splits = list_splits(dataset, files)
    # Loaders, cards and digests are listed apart, so that the rows are found first.
    files_with_rows: set[int] = set()
    for split in splits:
        files_with_rows.update(split_file.file.pk for split_file in split.files)
    return ReleaseCard(
        dataset,
        splits,
        [file for file in files if file.pk not in files_with_rows],
        sum(split.rows for split in splits if split.name != HELD_SPLIT),
        sum(file.size for file in files),
        write_loading_code(request, dataset, files),
        _write_bibtex(request, dataset),
    )


def _write_bibtex(request: HttpRequest, dataset: Dataset) -> str:
    """Return the BibTeX entry of the version; "" if its digests are not public."""
    # This digest pins all other files, so the citation needs no other.
    digest = next((file.sha256 for file in dataset.files.all() if file.name == "SHA256SUMS"), "")
    if not digest:
        return ""
    address = reverse("evaluation:datasets", args=[dataset.round.task.code, dataset.round.number])
    return make_bibtex(dataset, request.build_absolute_uri(address), digest)
