"""Conversion of downloaded data for pandas and `datasets`, where these are installed."""

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datasets
    import pandas


def as_pandas(folder: str | Path, splits: Iterable[str] | None = None) -> "pandas.DataFrame":
    """Return the rows of a downloaded folder, or of a JSON lines file, as a data frame.

    folder: as `download_data` returns it; its rows get a column `split`. splits: by default all.
    Needs `pip install 'dynabench-client[pandas]'`.
    """
    frame: type[pandas.DataFrame] = _import_needed("pandas").DataFrame
    path = Path(folder)
    if path.is_file():
        return frame(_read_rows(path))  # read_json would guess at dates and numbers
    rows = []
    for split, file in _list_files(path, ".jsonl").items():
        if splits is None or split in splits:
            rows += [row | {"split": split} for row in _read_rows(file)]
    return frame(rows)


def _list_files(folder: Path, ending: str) -> dict[str, Path]:
    """Return the files with this ending, by split.

    A test split without answers is left out if there is one with answers.
    """
    files = {file.stem: file for file in sorted(folder.glob(f"*{ending}"))}
    # Questions for other tools, which repeat the test rows in other columns.
    files.pop("eval", None)
    # The file without the answers would repeat the same rows.
    if "test" in files:
        files.pop("test-unlabelled", None)
    return files


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def as_dataset(folder: str | Path) -> "datasets.DatasetDict":
    """Return the splits of a folder that `download_data` returned as a `DatasetDict`.

    Needs `pip install 'dynabench-client[datasets]'`.
    """
    # `datasets` allows no hyphens in names of splits.
    files = {
        split.replace("-", "_"): str(file)
        for split, file in _list_files(Path(folder), ".parquet").items()
    }
    library = _import_needed("datasets")
    splits: datasets.DatasetDict = library.load_dataset("parquet", data_files=files)
    return splits


def _import_needed(name: str) -> Any:
    """Import a package. Raises ImportError with the command that installs it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(
            f"{name} is not installed. Run: pip install 'dynabench-client[{name}]'", name=name
        ) from None
