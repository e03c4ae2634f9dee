"""Data sets of others: which files hold a split, what the files hold, and how a hub is asked."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from pyarrow import parquet

from tasks.datasets import hub
from tasks.datasets.files import (
    find_converted_splits,
    find_label_names,
    find_splits,
    parse_card,
    pick_split,
)
from tasks.datasets.hub import PieceCache, Reference, parse_reference
from tasks.datasets.reading import RowsQuery, write_rows
from tasks.formats import reading
from tasks.line_files import FileError
from tests.support.hub import COMMIT, CONVERTED, dataset_hub

ENDPOINT = "https://huggingface.co"
LABELS = ["entailment", "neutral", "contradiction"]
FEATURES = Features(
    {
        "premise": Value("string"),
        "label": ClassLabel(names=LABELS),
        "answers": {"text": List(Value("string")), "start": List(Value("int32"))},
        "seen": Value("timestamp[s]"),
        "picture": Value("binary"),
    }
)
ROWS = [
    {
        "premise": "A cat.",
        "label": 2,
        "answers": {"text": ["cat"], "start": [2]},
        "seen": "2020-01-02",
    },
    {"premise": "A dog.", "label": -1, "answers": {"text": [], "start": []}, "picture": b"\x00"},
]
WRITTEN = [
    {
        "premise": "A cat.",
        "label": "contradiction",
        "answers.text": ["cat"],
        "answers.start": [2],
        "seen": "2020-01-02T00:00:00",
    },
    {"premise": "A dog.", "answers.text": [], "answers.start": []},
]
README = """---
license: [cc-by-4.0, mit]
configs:
- config_name: plain
  data_files:
  - split: train
    path: plain/train-*
  - split: validation
    path: [plain/dev.parquet]
- config_name: more
  data_dir: more
dataset_info:
- config_name: more
  features:
  - name: label
    dtype:
      class_label:
        names: {'0': bad, '1': good}
  - name: spans
    list:
    - name: kind
      dtype: {class_label: {names: [a, b]}}
---
# Pairs

```bibtex
@inproceedings{pairs,
  title = {Pairs}
}
```
```python
load_dataset("org/pairs")
```
"""


@pytest.fixture(scope="module")
def saved():
    return Dataset.from_list(
        [{name: row.get(name) for name in FEATURES} for row in ROWS], features=FEATURES
    )


@pytest.fixture
def read(tmp_path):
    """The rows of a folder or of a hub, and what they are."""

    def read(where, endpoint="", most=0, pieces=None, **told):
        into = tmp_path / "rows.jsonl"
        pieces = pieces or PieceCache(tmp_path / "pieces")
        found = write_rows(RowsQuery(str(where), **told), endpoint, pieces, into, most)
        return found, [*map(json.loads, into.read_text().splitlines())]

    return read


def parquet_of(saved, path):
    saved.to_parquet(path)
    return Path(path).read_bytes()


# Which files


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (
            ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "x.json"],
            {"train": ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"]},
        ),
        (["data/dev_r1-00000-of-00001.csv"], {"dev_r1": ["data/dev_r1-00000-of-00001.csv"]}),
        (
            ["dev.jsonl.gz", "my-train.jsonl", "training_notes.txt"],
            {"validation": ["dev.jsonl.gz"], "train": ["my-train.jsonl"]},
        ),
        (["test/a.csv", "test/b.csv"], {"test": ["test/a.csv", "test/b.csv"]}),
        (["a.csv", "b.csv"], {"train": ["a.csv", "b.csv"]}),
        ([".cache/a.csv", "dataset_infos.json", "model.py", "a.parquet.gz"], None),
    ],
)  # fmt: skip
def test_splits_follow_from_names(names, splits):
    assert find_splits(names, parse_card("")) == ({"default": splits} if splits else {})


def test_a_card_names_splits_labels_licence_and_citation():
    card = parse_card(README)
    names = ["plain/train-00000-of-00001.parquet", "plain/dev.parquet", "more/a.csv"]
    splits = find_splits(names, card)
    assert splits == {
        "plain": {"train": names[:1], "validation": names[1:2]},
        "more": {"train": names[2:]},
    }
    assert card.license == "cc-by-4.0, mit"
    assert card.citation == "@inproceedings{pairs,\n  title = {Pairs}\n}"
    assert find_label_names(card, "more") == {"label": ["bad", "good"], "spans.kind": ["a", "b"]}
    assert find_label_names(card, "plain") == {}
    assert pick_split(splits, "more", "", "org/pairs").files == ["more/a.csv"]
    for config, split in (("", ""), ("plain", ""), ("most", ""), ("plain", "test")):
        with pytest.raises(FileError, match="Name one of: "):
            pick_split(splits, config, split, "org/pairs")
    assert parse_card("---\n{\n---\n").data == {}
    for label in ("[a, b]", "{names: 5}", "{names: a}"):
        told = f"dataset_info: {{features: [{{name: a, dtype: {{class_label: {label}}}}}]}}"
        assert find_label_names(parse_card(f"---\n{told}\n---\n"), "default") == {"a": []}
    outside = parse_card("---\nconfigs: [{data_files: [/etc/*, https://example.org/a.csv]}]\n---\n")
    assert find_splits(["a.csv"], outside) == {"default": {"train": ["a.csv"]}}


def test_the_hubs_own_files_are_by_configuration_and_split():
    names = ["plain/train/0000.parquet", "plain/partial-dev/0000.parquet", ".gitattributes"]
    assert find_converted_splits(names) == {"plain": {"train": names[:1], "dev": names[1:2]}}


# What they hold


def test_saved_folders_are_read(saved, read, tmp_path):
    saved.info.license, saved.info.citation = "mit", "@misc{pairs}"
    saved.save_to_disk(tmp_path / "one", num_shards=2)
    DatasetDict({"train": saved, "dev": saved}).save_to_disk(tmp_path / "both")
    found, rows = read(tmp_path / "one")
    assert (rows, found.row_count, found.title) == (WRITTEN, 2, "one (default, train)")
    assert found.terms == ("mit", "@misc{pairs}", "")
    assert "picture" not in found.columns
    assert read(tmp_path / "both", split="dev", rows=1)[1] == WRITTEN[:1]
    with pytest.raises(FileError, match=r"Name one of: train, dev\."):
        read(tmp_path / "both")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda folder: (folder / "state.json").write_text("{}"), "names no files"),
        (lambda folder: (folder / "state.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "data-00000-of-00001.arrow").unlink(), "is missing"),
        (lambda folder: (folder / "data-00000-of-00001.arrow").write_bytes(b"ARROW"), "cannot be"),
        (
            lambda folder: (folder / "state.json").write_text(
                '{"_data_files": [{"filename": "../../secret.arrow"}]}'
            ),
            "is missing",
        ),
    ],
)
def test_a_broken_folder_is_refused(broken, why, saved, read, tmp_path):
    saved.save_to_disk(tmp_path / "one")
    broken(tmp_path / "one")
    with pytest.raises(FileError, match=why):
        read(tmp_path / "one")


def test_plain_files_are_read(saved, read, tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "README.md").write_text(README.replace("data_dir: more", "data_files: '*.jsonl.gz'"))
    lines = [{"text": "a", "label": 1, "spans": [{"kind": 0}], "big": 2**62}, {"text": None}]
    packed = gzip.compress("\n".join(map(json.dumps, lines)).encode())
    (folder / "a.jsonl.gz").write_bytes(packed)
    found, rows = read(folder)
    assert rows == [{"text": "a", "label": "good", "spans": [{"kind": 0}], "big": 2**62}, {}]
    assert found.terms.license == "cc-by-4.0, mit"
    (folder / "a.csv").write_text("text,label\nx,1\ny,\n")
    assert read(folder / "a.csv")[1] == [{"text": "x", "label": "1"}, {"text": "y"}]
    assert read(folder / "a.csv", columns={"said": "text"})[1] == [{"said": "x"}, {"said": "y"}]
    with pytest.raises(FileError, match=r"no column words. It has text, label"):
        read(folder / "a.csv", columns={"said": "words"})
    for name in ("none", "README.md"):
        with pytest.raises(FileError):
            read(folder / name)


def test_lists_become_texts_where_people_judge(saved, read, tmp_path):
    saved.to_parquet(tmp_path / "a.parquet")
    columns = {"text": "premise", "label": "answers.text", "start": "answers.start"}
    rows = read(tmp_path / "a.parquet", columns=columns, is_plain=True)[1]
    assert rows == [{"text": "A cat.", "label": "cat", "start": "[2]"}, {"text": "A dog."}]
    columns = {"text": "answers.text"}
    assert read(tmp_path / "a.parquet", columns=columns, is_plain=True)[1][0] == {"text": "cat"}


def test_argillas_responses_are_no_rows_to_be_judged(read, tmp_path):
    row = {"text": "a", "tone.responses": ["good"], "tone.responses.users": ["u1"]}
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(FileError, match="argilla"):
        read(path)
    assert read(path, columns={"text": "text"})[1] == [{"text": "a"}]


def test_what_no_row_may_be(saved, read, tmp_path, monkeypatch):
    folder = tmp_path / "odd"
    folder.mkdir()
    parquet.write_table(pa.table({"text": ["a"], "extra": [1]}), folder / "b.parquet")
    parquet.write_table(pa.table({"text": ["a"]}), folder / "a.parquet")
    with pytest.raises(FileError, match=r"b.parquet has other columns than a.parquet \(extra\)"):
        read(folder)
    whole = (folder / "a.parquet").read_bytes()
    for data in (whole[:-9], whole[:4] + bytes(len(whole) - 8) + whole[-4:], b""):
        (folder / "c.parquet").write_bytes(data)
        with pytest.raises(FileError, match=r"c\.parquet"):
            read(folder / "c.parquet")
    for text in ('["a"]', "{", '{"a": 1, "a": 2}', r'{"a": "\ud800"}'):
        (folder / "c.jsonl").write_text(text)
        with pytest.raises(FileError, match=r"c\.jsonl.*: row 1"):
            read(folder / "c.jsonl")
    strange = pa.table({"a": [1]}).replace_schema_metadata({"huggingface": '{"info": 5}'})
    parquet.write_table(strange, folder / "c.parquet")
    with pytest.raises(FileError, match=r"c\.parquet cannot be read"):
        read(folder / "c.parquet")
    ids = pa.array([bytes(16)], pa.uuid())
    odd = pa.table({"id": ids, "picture": pa.array([b"a"], pa.binary_view())})
    parquet.write_table(odd, folder / "c.parquet")
    assert read(folder / "c.parquet")[1] == [{"id": "00000000-0000-0000-0000-000000000000"}]
    wide = pa.table({f"c{number}": [1] for number in range(101)})
    parquet.write_table(wide, folder / "c.parquet")
    with pytest.raises(FileError, match="more than 100 columns"):
        read(folder / "c.parquet")
    bomb = pa.table({"text": pa.array(["a" * 2**16] * 100).dictionary_encode()})
    parquet.write_table(bomb, folder / "c.parquet", compression="zstd")
    assert (folder / "c.parquet").stat().st_size < 2**15
    with pytest.raises(FileError, match="take more than 1 MB"):
        read(folder / "c.parquet", most=2**20)
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 2**10)
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "' + b"a" * 2**12 + b'"}'))
    with pytest.raises(FileError, match=r"c\.jsonl\.gz: row 1"):
        read(folder / "c.jsonl.gz")


# The hub


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("stanfordnlp/snli", Reference("stanfordnlp/snli")),
        (" squad ", Reference("squad")),
        ("org/pairs@v1.0", Reference("org/pairs", "v1.0")),
        (f"{ENDPOINT}/datasets/org/pairs", Reference("org/pairs")),
        (f"{ENDPOINT}/datasets/org/pairs?row=3#top", Reference("org/pairs")),
        (f"{ENDPOINT}/datasets/a/b/viewer/a%20b/train", Reference("a/b", "", "a b", "train")),
        (f"{ENDPOINT}/datasets/org/pairs/tree/{COMMIT}/data", Reference("org/pairs", COMMIT)),
        ("hf://datasets/org/pairs@main/data/a.parquet", Reference("org/pairs", "main")),
    ],
)  # fmt: skip
def test_a_name_or_address_is_a_reference(text, reference):
    assert parse_reference(text, ENDPOINT) == reference


@pytest.mark.parametrize(
    "text",
    [
        *("", "../pairs", "org/../pairs", "a b", "https://example.org/datasets/org/pairs"),
        *(f"{ENDPOINT}/org/model", "ftp://huggingface.co/datasets/a/b", f"{ENDPOINT}/datasets/.."),
        *("file:///etc/passwd", "https://[bad/datasets/a", f"{ENDPOINT}\u2100/datasets/a"),
    ],
)
def test_what_is_no_reference(text):
    with pytest.raises(FileError):
        parse_reference(text, ENDPOINT)


def test_a_hub_is_read_piece_by_piece_and_each_once(saved, read, tmp_path, monkeypatch):
    data = parquet_of(saved, tmp_path / "a.parquet")
    files = {"README.md": README.encode(), "plain/train-00000-of-00001.parquet": data}
    monkeypatch.setattr(hub, "BLOCK_BYTES", 1000)
    with dataset_hub(files) as (url, asked):
        found, rows = read("org/pairs", url, config="plain", split="train")
        assert rows == WRITTEN
        assert found.title == "org/pairs (plain, train)"
        assert found.terms.license == "cc-by-4.0, mit"
        assert found.terms.origin == f"{url}/datasets/org/pairs/tree/{COMMIT}"
        pieces = [span for path, span in asked if path.endswith(".parquet")]
        assert len(pieces) == len({*pieces}) > 1
        assert all(f"/resolve/{COMMIT}/" in path for path, span in asked if span)
        asked.clear()
        address = f"{url}/datasets/org/pairs/viewer/plain/train"
        assert read(address, url, rows=1)[1] == WRITTEN[:1]
        assert not [path for path, _ in asked if path.endswith(".parquet")]
        with pytest.raises(FileError, match="lie in more than"):
            read(address, url, pieces=PieceCache(tmp_path / "few", 1))


def test_a_script_never_runs_and_the_hubs_own_files_stand_in(saved, read, tmp_path):
    data = parquet_of(saved, tmp_path / "a.parquet")
    script = {"README.md": b"", "pairs.py": b"raise SystemExit"}
    with dataset_hub(script, converted={"default/train/0000.parquet": data}) as (url, asked):
        found, rows = read("org/pairs", url)
        assert rows == WRITTEN
        assert found.terms.origin.endswith(CONVERTED)
        assert not [path for path, _ in asked if path.endswith(".py")]
        with pytest.raises(FileError, match="no readable Parquet"):
            read("org/pairs", url, revision="main")
    with dataset_hub(script) as (url, _), pytest.raises(FileError, match="no readable Parquet"):
        read("org/pairs", url)


@pytest.mark.parametrize(
    ("more", "wanted", "why"),
    [
        ({"gated": "auto"}, {}, "gated or private.*--from datasets"),
        ({"private": True}, {}, "gated or private"),
        ({"sha": "main"}, {}, "no commit"),
        ({"id": "../x"}, {}, "names no dataset"),
        ({"redirect": "http://10.0.0.1/x"}, {}, "not a public address"),
        ({"redirect": "http://169.254.169.254/latest"}, {}, "not a public address"),
        ({}, {"where": "org/other"}, "gated or private"),
        ({}, {"revision": "v9"}, "no org/pairs at this revision"),
        ({}, {"revision": "../.."}, "isn't a revision"),
        ({}, {"split": "dev"}, "Name one of: train"),
    ],
)
def test_a_hub_that_gives_nothing_says_why(more, wanted, why, read, caplog):
    hub = dataset_hub({"train.csv": b"text\na\n"}, **more)
    with hub as (url, _), pytest.raises(FileError, match=why):
        read(**{"where": "org/pairs", "endpoint": url, **wanted})


def test_a_file_that_is_cut_is_not_taken(read):
    told = [{"rfilename": "train.csv", "size": 99}]
    hub = dataset_hub({"train.csv": b"text\na\n"}, siblings=told)
    with hub as (url, _), pytest.raises(FileError, match="another number of bytes"):
        read("org/pairs", url)
    with pytest.raises(FileError, match="cannot be read now"):
        read("org/pairs", url)


def test_two_requests_that_fetch_one_piece_share_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_fetch_reply", lambda *about, **more: Body(b"abc"))
    files = [hub._HubFile("https://hub.test/a", "a", 3, PieceCache(tmp_path)) for _ in range(2)]
    write, others = Path.write_bytes, []

    def interrupted(part, data):
        write(part, data)
        if not others:
            others.append(part)
            others.append(files[1].read())

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    assert (files[0].read(), others[1]) == (b"abc", b"abc")
    assert [one.name for one in tmp_path.glob("*/*")] == ["0"]


class Body:
    """An answer of the hub."""

    def __init__(self, body):
        self.body = body
