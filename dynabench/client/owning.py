"""The part of the client for a task's owners that reads files or compares texts."""

import base64
import codecs
import gzip
import zlib
from pathlib import Path

from dynabench.client import types
from dynabench.client.flow import Flow, method
from dynabench.client.http import Requesting

BINARY_FORMATS = ("xlsx", "xls", "ods", "zip")
FORMATS = {name: name for name in ("jsonl", "csv", "tsv", "txt", *BINARY_FORMATS)} | {
    "ndjson": "jsonl"
}
"""The API's format, by the ending of a file of contexts."""


class Owning(Requesting):
    """The client's methods for owners and editors, about contexts and configurations."""

    @method
    def compare_configs(self, task: str, older: int, newer: int | None = None) -> Flow[str]:
        """Return the lines that differ between two versions of the configuration.

        newer: None for the current version. Raises NotFound.
        """
        address = f"/tasks/{task}/config/versions/{older}/compare/"
        comparison: types.ComparedConfigs = yield from self._get(address, to=newer)
        return comparison["diff"]

    @method
    def import_contexts(
        self,
        task: str,
        round: int,
        path: str | Path,
        dry_run: bool = False,
        skip_bad: bool = False,
    ) -> Flow[types.ImportedContexts]:
        """Import the contexts of a file into a round; return what was imported.

        The file's name ends in .jsonl, .csv, .tsv, .txt, .xlsx, .xls, .ods or .zip, in upper or
        lower case. All but a .zip may be compressed (.jsonl.gz). Of a spreadsheet, the first sheet
        is read. A .txt has one context per line, if the task asks for a single text. Texts are
        UTF-8, or UTF-16 with a byte order mark. A .zip contains one table, and the pictures and
        recordings that it names; at most 20 MB.

        dry_run: only return what would be imported. skip_bad: store the good lines; otherwise a
        single bad line rejects the whole file. Raises FileNotFoundError, ValueError, and Invalid
        with each bad line.
        """
        format, text = _read_contexts(Path(path))
        body = {"format": format, "text": text, "dry_run": dry_run, "skip_bad": skip_bad}
        return self._write("POST", f"/tasks/{task}/rounds/{round}/contexts/", body)


def _read_contexts(file: Path) -> tuple[str, str]:
    """Return (format, text) of a file of contexts. The text of a binary file is base64.

    Raises FileNotFoundError or ValueError.
    """
    # Windows drops dots and spaces at the end of a name.
    name = file.name.lower().rstrip(". ")
    format = FORMATS.get(name.removesuffix(".gz").rpartition(".")[2])
    if format is None or name.endswith(".zip.gz"):
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        raise ValueError(f"{file}: unknown file type, use one of {endings}.")
    # At once: such files have at most 20 MB.
    data = file.read_bytes()
    if name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{file} is a damaged gzip file: {error}.") from None
    if not data:
        raise ValueError(f"{file} is empty.")
    if format in BINARY_FORMATS:
        return format, base64.b64encode(data).decode()
    # Excel saves "Unicode text" so; without a mark UTF-16 cannot be told from other bytes.
    is_utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return format, data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is not {error.encoding.upper()} (byte {error.start + 1})."
        ) from None
