"""A folder as `save_to_disk` of the library `datasets` writes it, or of files of splits."""

import json
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from core.files.damage import damage_of
from tasks.datasets.files import DEFAULT, Card, Splits, card_of, splits_of
from tasks.datasets.tables import ending_of
from tasks.line_files import FileError

WHOLE = "train"
"""The split of a dataset that was saved without one, as the library reads it."""


@dataclass(frozen=True)
class Local:
    """A dataset on this machine: its files by split, and its card."""

    name: str
    folder: Path
    splits: Splits
    card: Card
    origin: str = ""

    def open(self, name: str, pieces: object) -> BufferedReader:
        """Open a file of the folder."""
        return (self.folder / name).open("rb")


def find_folder(path: Path) -> Local:
    """Return the dataset in a folder, or in one file. Raises FileError, OSError."""
    if path.is_file():
        if not ending_of(path.name):
            raise FileError("Give a folder, or a file of Parquet, Arrow, JSON lines or CSV.")
        return Local(path.name, path.parent, {DEFAULT: {WHOLE: [path.name]}}, Card({}))
    if not path.is_dir():
        raise FileError("There is no such folder. A name of the hub needs --from hub.")
    # Saved by `save_to_disk` of several splits, of one, or a folder of plain files.
    if (path / "dataset_dict.json").exists():
        splits = {str(split): str(split) for split in _read(path / "dataset_dict.json")["splits"]}
    elif (path / "state.json").exists():
        splits = {str(_read(path / "state.json").get("_split") or WHOLE): ""}
    else:
        return _plain(path)
    files = {split: _shards(path, folder) for split, folder in splits.items()}
    infos = [path / folder / "dataset_info.json" for folder in splits.values()]
    return Local(
        path.name, path, {DEFAULT: files}, _info([info for info in infos if info.exists()])
    )


def _plain(path: Path) -> Local:
    names = []
    for file in sorted(path.rglob("*")):
        if file.is_file():
            names.append(file.relative_to(path).as_posix())
    readme = path / "README.md"
    card = card_of(readme.read_text("utf-8", "replace")) if readme.exists() else Card({})
    return Local(path.name, path, splits_of(names, card), card)


def _shards(path: Path, folder: str) -> list[str]:
    """Return the Arrow files listed by a saved split. Raises FileError."""
    try:
        named = []
        for data_file in _read(path / folder / "state.json")["_data_files"]:
            named.append(str(data_file["filename"]))
    except (KeyError, TypeError):
        raise FileError(
            f"{folder or path.name}: state.json names no files. Save it again."
        ) from None
    # A name with a slash could lead out of the folder.
    if any("/" in name or not (path / folder / name).is_file() for name in named):
        raise FileError(f"{folder or path.name}: a file of state.json is missing. Save it again.")
    return [f"{folder}/{name}" if folder else name for name in named]


def _info(files: list[Path]) -> Card:
    for file in files:
        info = _read(file)
        return Card(
            {}, str(info.get("license") or "")[:100], str(info.get("citation") or "")[:10_000]
        )
    return Card({})


def _read(path: Path) -> Any:
    """Parse a JSON file. Raises FileError."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise FileError(
            f"{path.name} cannot be read: {damage_of(error)}. Save the dataset again."
        ) from None
