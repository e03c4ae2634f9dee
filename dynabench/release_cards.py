"""What the data page shows of a released version: rows and files of each split, code, citation."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from evaluation.dataset_releases.cards import make_bibtex
from evaluation.models import Dataset, DatasetFile

FORMATS = {"jsonl": "JSONL", "parquet": "Parquet"}
"""The displayed names of the formats of rows, by file name extension."""
UNLABELLED = "-unlabelled"
"""The end of a split's file name if the file contains no labels."""


@dataclass(frozen=True)
class SplitFile:
    """A file with a split's rows, and its displayed name."""

    file: DatasetFile
    words: str


@dataclass(frozen=True)
class ReleaseSplit:
    """A split of a released version: its name, its number of rows, its public files."""

    name: str
    rows: int
    files: list[SplitFile]


@dataclass(frozen=True)
class ReleaseCard:
    """The newest version of a released round as the data page shows it.

    other_files: the public files without rows, such as the README. total_bytes: the size of all
    public files. loading_code, bibtex: text to copy; empty if it cannot be written.
    """

    dataset: Dataset
    splits: list[ReleaseSplit]
    other_files: list[DatasetFile]
    total_bytes: int
    loading_code: str
    bibtex: str


def build_release_card(request: HttpRequest, dataset: Dataset) -> ReleaseCard:
    """Return the card of a finished version whose public files are prefetched. No query."""
    files = list(dataset.files.all())
    splits = [
        ReleaseSplit(name, rows, _find_split_files(files, name))
        for name, rows in dataset.numbers.get("rows", {}).items()
    ]
    # Loaders, cards and digests are listed apart, so that the rows are found first.
    files_with_rows = {split_file.file.pk for split in splits for split_file in split.files}
    return ReleaseCard(
        dataset,
        splits,
        [file for file in files if file.pk not in files_with_rows],
        sum(file.size for file in files),
        _write_loading_code(request, dataset),
        _write_bibtex(request, dataset),
    )


def _find_split_files(files: list[DatasetFile], split: str) -> list[SplitFile]:
    split_files = []
    for file in files:
        stem, _dot, ending = file.name.partition(".")
        # A private test split has labels for members alone, and a public file without them.
        if ending not in FORMATS or stem.removesuffix(UNLABELLED) != split:
            continue
        words = FORMATS[ending]
        if stem.endswith(UNLABELLED):
            words = _("%(format)s without labels") % {"format": words}
        split_files.append(SplitFile(file, words))
    return split_files


def _write_bibtex(request: HttpRequest, dataset: Dataset) -> str:
    """Return the BibTeX entry of the version; "" if its digests are not public."""
    # This digest pins all other files, so the citation needs no other.
    digest = next((file.sha256 for file in dataset.files.all() if file.name == "SHA256SUMS"), "")
    if not digest:
        return ""
    address = reverse("evaluation:datasets", args=[dataset.round.task.code, dataset.round.number])
    return make_bibtex(dataset, request.build_absolute_uri(address), digest)


def _write_loading_code(request: HttpRequest, dataset: Dataset) -> str:
    """Return Python code that loads the dataset's public splits; "" if it has none."""
    round = dataset.round
    lines = []
    for file in dataset.files.all():
        split, _dot, ending = file.name.partition(".")
        if ending == "jsonl":
            arguments = (round.task.code, round.number, dataset.version, file.name)
            url = request.build_absolute_uri(reverse("evaluation:dataset-file", args=arguments))
            lines.append(f'    "{split}": "{url}",')
    if not lines:
        return ""
    return "\n".join(
        [
            "from datasets import load_dataset",
            "",
            'rows = load_dataset("json", data_files={',
            *lines,
            "})",
        ]
    )
