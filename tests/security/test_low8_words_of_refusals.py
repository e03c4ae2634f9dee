"""Refusals of damaged files quoted the library that failed: “not enough values to unpack”.

Each reader gets files that are damaged at random or nest deeply, and says so in words of its own.
"""

import gzip
import io
import json
import lzma
import pickle
import tarfile
import zipfile
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.decoding import BadMedia, decode_picture
from evaluation.contract import InvalidOutput
from evaluation.isolation.uploads.archives import ArchiveRefused, check_archive
from evaluation.isolation.uploads.eval_logs import read_samples
from evaluation.isolation.uploads.model_folders import read_json_object
from evaluation.isolation.uploads.safetensors_headers import BadTensors, read_tensor_names
from evaluation.test_sets.parsing import read_set
from serving.errors import MisconfiguredError, ServingError
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tasks.contexts.files import summarise_file
from tasks.datasets.tables import iter_rows
from tasks.formats import FORMATS
from tasks.formats.reading import iter_record_lines
from tasks.line_files import BadRow, FileError, LineError
from tasks.targets.endpoints.base import EndpointError
from tests.support.archives import tar_of, zip_of
from tests.support.live import ROOT
from tests.support.media import png

NLI_CONFIG = load_config((ROOT / "tasks/official/nli/task.yaml").read_text())
OURS = (
    ArchiveRefused, BadMedia, BadTensors, ConfigError, EndpointError, FileError, InvalidOutput,
    MisconfiguredError, ServingError,
)  # fmt: skip
FILES = {"model/a.json": b"{}" * 400, "model/b.safetensors": bytes(range(256)) * 20}
DEEP = b"[" * 100_000
DEEPER = b'{"a":' * 100_000


def sparse() -> bytes:
    """A tar archive whose map of holes is not what it claims."""
    pax = {"GNU.sparse.major": "0", "GNU.sparse.map": "0", "GNU.sparse.size": "9"}
    return tar_of({"a": b"x"}, pax_headers=pax, format=tarfile.PAX_FORMAT)


def parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"premise": ["a", "b"] * 50, "label": [1, 2] * 50}), file)
    return file.getvalue()


def arrow() -> bytes:
    file = io.BytesIO()
    table = pa.table({"premise": ["a", "b"]})
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return file.getvalue()


def tensors() -> bytes:
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4)


ARCHIVES = {
    "tar": tar_of(FILES),
    "gnu": tar_of(FILES, format=tarfile.GNU_FORMAT),
    "sparse": sparse(),
    "tar.gz": gzip.compress(tar_of(FILES), mtime=0),
    "tar.xz": lzma.compress(tar_of(FILES)),
    "zip": zip_of(FILES),
}
LINES = b'{"premise": "a", "hypothesis": "b", "label": "neutral"}\n' * 5
READERS = {
    **{f"archive {kind}": (data, check_archive) for kind, data in ARCHIVES.items()},
    "log": (zip_of({"samples/a.json": b"{}" * 50}), lambda path: list(read_samples(path))),
    "json": (b'{"kind": "nli", "more": [1, 2]}', read_json_object),
    "tensors": (tensors(), read_tensor_names),
    "set jsonl": (LINES, lambda path: list(read_set(path, "a.jsonl", NLI_CONFIG))),
    "set gz": (gzip.compress(LINES), lambda path: list(read_set(path, "a.jsonl.gz", NLI_CONFIG))),
    "set csv": (b'premise,label\n"a",b\n', lambda path: list(read_set(path, "a.csv", NLI_CONFIG))),
    "set parquet": (parquet(), lambda path: list(read_set(path, "a.parquet", NLI_CONFIG))),
    "contexts": (LINES, lambda path: summarise_file(path.read_bytes(), "a.jsonl", NLI_CONFIG, ())),
    "sheet": (
        zip_of(FILES),
        lambda path: summarise_file(path.read_bytes(), "a.xlsx", NLI_CONFIG, ()),
    ),
    "parquet": (parquet(), lambda path: list(iter_rows("a.parquet", path.open("rb"), {}))),
    "arrow": (arrow(), lambda path: list(iter_rows("a.arrow", path.open("rb"), {}))),
    "rows": (LINES, lambda path: list(iter_rows("a.jsonl", path.open("rb"), {}))),
    "layout": (
        zip_of({"a.json": LINES}),
        lambda path: list(iter_record_lines(path, FORMATS["squad"])),
    ),
    "config": (b"name: a\nb: [c, {d: e}]\n", lambda path: load_config(path.read_text("latin-1"))),
    "picture": (png(), lambda path: decode_picture(path.read_bytes())),
}


def told(read, path) -> str:
    """What a reader says; none of it is what a library said, and every error is one of ours."""
    try:
        found = read(path)
    except OURS as error:
        said, inner = str(error), error.__context__
        while inner is not None:
            foreign = "" if isinstance(inner, (*OURS, BadRow, KeyError)) else str(inner)
            assert len(foreign) < 4 or foreign not in said, (foreign, said)
            inner = inner.__context__
        pickle.dumps(error)
        return said
    rows = getattr(found, "errors", found)
    wrong = [one for one in rows if isinstance(one, LineError)] if isinstance(rows, list) else []
    return " ".join(one.message for one in wrong)


FOREIGN = ("unpack", "recursion", "codec", "NoneType", "Errno", "Traceback", "<class", "__")


@pytest.mark.parametrize("name", READERS)
@given(drawn=st.data())
def test_a_damaged_file_is_refused_in_our_words(name, drawn, tmp_path_factory):
    whole, read = READERS[name]
    data = bytearray(whole)
    for _ in range(drawn.draw(st.integers(0, 4))):
        data[drawn.draw(st.integers(0, len(data) - 1))] = drawn.draw(st.integers(0, 255))
    if drawn.draw(st.booleans()):
        del data[drawn.draw(st.integers(0, len(data))) :]
    path = tmp_path_factory.mktemp("damaged") / "file"
    path.write_bytes(data)
    said = told(read, path)
    assert not any(word in said for word in FOREIGN), said


@pytest.mark.parametrize("deep", [DEEP, DEEPER], ids=["lists", "objects"])
@pytest.mark.parametrize("name", [n for n in READERS if "archive" not in n])
def test_deep_nesting_is_refused_in_our_words(name, deep, tmp_path):
    path = tmp_path / "file"
    length = len(deep).to_bytes(8, "little")
    packed = {"set gz": gzip.compress(deep), "tensors": length + deep}
    packed["layout"] = zip_of({"a.json": deep})
    path.write_bytes(packed.get(name, deep))
    said = told(READERS[name][1], path)
    assert not any(word in said for word in FOREIGN), said


def test_a_workbook_with_a_document_type_is_refused(tmp_path):
    """Its external entity was never fetched, and nothing honest has one."""
    dtd = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY % x SYSTEM "http://h/x"> %x;]><a/>'
    for text in (dtd.encode(), dtd.encode("utf-16"), dtd.lower().encode()):
        for name in ("xl/workbook.xml", "[Content_Types].xml", "xl/_rels/workbook.xml.rels"):
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w") as parts:
                parts.writestr(name, text)
            with pytest.raises(FileError, match="DTD"):
                summarise_file(file.getvalue(), "a.xlsx", NLI_CONFIG, ())
            with pytest.raises(FileError, match="DTD"):
                summarise_file(file.getvalue(), "a.ods", NLI_CONFIG, ())
    with suppress(FileError):
        summarise_file(b"PK\x03\x04", "a.xlsx", NLI_CONFIG, ())
