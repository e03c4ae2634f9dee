"""Put the pictures and recordings of a version into the Parquet files and one archive."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import orjson

from evaluation.dataset_releases.columns import Field
from tasks.config.schema import TaskConfig
from tasks.models import Media, Task

ARCHIVE_NAME = "media.zip"
COLUMN_PREFIX = "media_"
"""The prefix of the names of file columns. No other columns have it."""
MediaValues = dict[str, dict[str, Any] | None]
"""The files of a row by column, in the form of the library `datasets`: `{"bytes", "path"}`."""


def make_media_columns(config: TaskConfig) -> tuple[Field, ...]:
    """Return the columns for the task's media fields, which only Parquet files have.

    Their kind is image or audio.
    """
    columns = []
    for name, kind in config.media_fields.items():
        meaning = f"The file that `{name}` names, in Parquet alone."
        columns.append(Field(COLUMN_PREFIX + name, kind, meaning))
    return tuple(columns)


def encode_features(config: TaskConfig) -> bytes:
    """Return Parquet metadata with which `datasets` finds columns of pictures and recordings."""
    features = {}
    for column in make_media_columns(config):
        features[column.name] = {"_type": column.kind.capitalize()}
    return json.dumps({"info": {"features": features}}).encode()


class MediaFiles:
    """A reader of the files that rows name. It adds each public file once to one archive.

    folder: the folder in which the archive is created. task: the task whose files are read.
    """

    def __init__(self, folder: Path, task: Task) -> None:
        self._task, self._names = task, tuple(task.config.media_fields)
        self._packed: set[str] = set()
        self._archive = ZipFile(folder / ARCHIVE_NAME, "w", ZIP_STORED)

    def read_row(self, line: str, packs: bool) -> MediaValues:
        """Return a row's files by column; None if the row names no file or the file was erased.

        packs: whether to add the files to the public archive.
        """
        row = orjson.loads(line)
        # A tombstone has no fields.
        if row["withdrawn"]:
            return dict.fromkeys(COLUMN_PREFIX + name for name in self._names)
        values = orjson.loads(row["context"]["context_json"]) | orjson.loads(row["input_json"])
        return {
            COLUMN_PREFIX + name: self._read_file(values.get(name), packs) for name in self._names
        }

    def _read_file(self, value: Any, packs: bool) -> dict[str, Any] | None:
        digest = value.get("digest") if isinstance(value, Mapping) else None
        if not digest:
            return None
        media = Media.objects.filter(task=self._task, digest=digest).first()
        if media is None:
            return None
        try:
            with media.file.open("rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        name = f"{digest}.{media.ending}"
        if packs and name not in self._packed:
            self._packed.add(name)
            self._archive.writestr(ZipInfo(name), data)  # without a time, for equal bytes
        return {"bytes": data, "path": name}

    def close(self) -> None:
        """Finish the archive."""
        self._archive.close()
