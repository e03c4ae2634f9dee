"""Downloaded data for pandas and for `datasets`, where these are installed."""

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datasets
    import pandas


def as_pandas(folder: str | Path, splits: Iterable[str] | None = None) -> "pandas.DataFrame":
    """The rows of a folder of `download_data`, or of one JSON lines file, as a data frame.

    A column `split` is added for a folder. splits: all, unless told. Needs
    `pip install 'dynabench-client[pandas]'`.
    """
    frame: type[pandas.DataFrame] = _needed("pandas").DataFrame
    path = Path(folder)
    if path.is_file():
        return frame(_rows(path))  # read_json would guess at dates and numbers
    rows = [
        {**row, "split": split}
        for split, file in _files(path, ".jsonl").items()
        if splits is None or split in splits
        for row in _rows(file)
    ]
    return frame(rows)


def _files(folder: Path, ending: str) -> dict[str, Path]:
    """Files by their split; a test split without its answers only where it is not here whole."""
    files = {file.stem: file for file in sorted(folder.glob(f"*{ending}"))}
    if "test" in files:
        files.pop("test-unlabelled", None)
    return files


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def as_dataset(folder: str | Path) -> "datasets.DatasetDict":
    """The splits of a folder of `download_data`.

    Needs `pip install 'dynabench-client[datasets]'`.
    """
    found = _files(Path(folder), ".parquet")
    files = {split.replace("-", "_"): str(file) for split, file in found.items()}
    splits: datasets.DatasetDict = _needed("datasets").load_dataset("parquet", data_files=files)
    return splits


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(
            f"This needs {name}: pip install 'dynabench-client[{name}]'", name=name
        ) from None
