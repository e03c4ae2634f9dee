"""Read a dataset from a folder: one that `save_to_disk` wrote, or one with a file per split."""

import json
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from core.files.damage import describe_damage
from tasks.datasets.files import DEFAULT_CONFIG, Card, Splits, find_splits, parse_card
from tasks.datasets.tables import find_format
from tasks.line_files import FileError

WHOLE_SPLIT = "train"
"""The split name for a dataset that was saved without splits, as in the library."""


@dataclass(frozen=True)
class LocalDataset:
    """A dataset on this machine: its files by split, and its card."""

    name: str
    folder: Path
    splits: Splits
    card: Card
    origin: str = ""

    def open(self, name: str, pieces: object) -> BufferedReader:
        """Open a file of the folder.

        pieces: not used. It exists because `HubDataset.open` needs it.
        """
        return (self.folder / name).open("rb")


def find_folder(path: Path) -> LocalDataset:
    """Return the dataset in a folder or a single file. Raises FileError, OSError."""
    if path.is_file():
        if not find_format(path.name):
            raise FileError("Give a folder, or a file of Parquet, Arrow, JSON lines or CSV.")
        return LocalDataset(
            path.name, path.parent, {DEFAULT_CONFIG: {WHOLE_SPLIT: [path.name]}}, Card({})
        )
    if not path.is_dir():
        raise FileError("This folder doesn't exist. For a name on the hub, use --from hub.")
    # Saved by `save_to_disk` of several splits, of one, or a folder of plain files.
    if (path / "dataset_dict.json").exists():
        splits = {
            str(split): str(split) for split in _read_json(path / "dataset_dict.json")["splits"]
        }
    elif (path / "state.json").exists():
        splits = {str(_read_json(path / "state.json").get("_split") or WHOLE_SPLIT): ""}
    else:
        return _read_plain_folder(path)
    files = {split: _list_shards(path, folder) for split, folder in splits.items()}
    infos = [path / folder / "dataset_info.json" for folder in splits.values()]
    return LocalDataset(
        path.name,
        path,
        {DEFAULT_CONFIG: files},
        _read_info([info for info in infos if info.exists()]),
    )


def _read_plain_folder(path: Path) -> LocalDataset:
    names = []
    for file in sorted(path.rglob("*")):
        if file.is_file():
            names.append(file.relative_to(path).as_posix())
    readme = path / "README.md"
    card = parse_card(readme.read_text("utf-8", "replace")) if readme.exists() else Card({})
    return LocalDataset(path.name, path, find_splits(names, card), card)


def _list_shards(path: Path, folder: str) -> list[str]:
    """Return the names of the Arrow files of a saved split. Raises FileError."""
    try:
        shard_names = []
        for data_file in _read_json(path / folder / "state.json")["_data_files"]:
            shard_names.append(str(data_file["filename"]))
    except (KeyError, TypeError):
        raise FileError(
            f"{folder or path.name}: state.json names no files. Save it again."
        ) from None
    # A name with a slash could lead out of the folder.
    if any("/" in name or not (path / folder / name).is_file() for name in shard_names):
        raise FileError(f"{folder or path.name}: a file of state.json is missing. Save it again.")
    return [f"{folder}/{name}" if folder else name for name in shard_names]


def _read_info(files: list[Path]) -> Card:
    for file in files:
        info = _read_json(file)
        return Card(
            {}, str(info.get("license") or "")[:100], str(info.get("citation") or "")[:10_000]
        )
    return Card({})


def _read_json(path: Path) -> Any:
    """Parse a JSON file. Raises FileError."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise FileError(
            f"{path.name} cannot be read: {describe_damage(error)}. Save the dataset again."
        ) from None
