"""The files of a release in a folder, as they are published; with a DOI in what cites them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from core.files.whole import write_whole
from evaluation.contract import BeatCallback
from evaluation.dataset_releases.cards import make_bibtex
from evaluation.dataset_releases.files import compute_digest
from evaluation.dataset_releases.stored_files import BLOCK_BYTES, open_checked_file
from evaluation.heartbeat import skip_beat
from evaluation.models import Dataset, DatasetFile

SUMS_FILE = "SHA256SUMS"
BIBTEX_PATTERN = re.compile(r"^@misc\{.*?^\}", re.MULTILINE | re.DOTALL)
"""The citation in a dataset card."""


def list_public_files(dataset: Dataset) -> list[DatasetFile]:
    """Return the files that may leave. Labels that the owner keeps private are not among them."""
    return list(dataset.files.filter(is_public=True).select_related("dataset"))


def write_release_file(file: DatasetFile, path: Path, beat: BeatCallback = skip_beat) -> bool:
    """Write a file unless it is there already; return whether it was written.

    The file gets its name only once its bytes have the digest of the release. Calls `beat` at each
    block. Raises OSError, and the exceptions of `beat`.
    """
    # Digests instead of times, because a copied folder has other times.
    if path.exists() and compute_digest(path) == file.sha256:
        return False
    with write_whole(path) as unfinished_path:
        with open_checked_file(file) as source, unfinished_path.open("wb") as target:
            while block := source.read(BLOCK_BYTES):
                beat()
                target.write(block)
        # Read again from the disk, which may have stored something else than was written.
        if compute_digest(unfinished_path) != file.sha256:
            raise OSError(f"{path.name} was damaged on its way")
    return True


def write_cited_release(
    dataset: Dataset, folder: Path, doi: str, beat: BeatCallback = skip_beat
) -> Sequence[Path]:
    """Write the public files into an empty folder, and return them in order of their names.

    With a DOI, the dataset card and the Croissant metadata cite it, and SHA256SUMS has the digests
    of these two as they are published. All other files are those of the release. Calls `beat` at
    each block. Raises OSError, and the exceptions of `beat`.
    """
    for file in list_public_files(dataset):
        write_release_file(file, folder / file.name, beat)
    if doi:
        _cite(dataset, folder, doi)
    return sorted(folder.iterdir())


def _cite(dataset: Dataset, folder: Path, doi: str) -> None:
    bibtex = make_bibtex(dataset, dataset.options["url"], doi=doi)
    card, croissant = folder / "README.md", folder / "croissant.json"
    # As a function, because a backslash in a title would refer to a group.
    card_text = BIBTEX_PATTERN.sub(lambda _match: bibtex, card.read_text(encoding="utf-8"))
    card.write_text(card_text, encoding="utf-8")
    metadata = json.loads(croissant.read_text(encoding="utf-8"))
    metadata |= {"citeAs": bibtex, "identifier": f"https://doi.org/{doi}"}
    text = json.dumps(metadata, ensure_ascii=False, indent=1) + "\n"
    croissant.write_text(text, encoding="utf-8")
    sums = folder / SUMS_FILE
    lines = []
    for line in sums.read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        if name in (card.name, croissant.name):
            digest = compute_digest(folder / name)
        lines.append(f"{digest}  {name}\n")
    sums.write_text("".join(lines), encoding="utf-8")
