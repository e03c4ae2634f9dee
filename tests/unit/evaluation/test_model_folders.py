"""Folders of models: what may be in them, and headers of safetensors without a library."""

import json
import shutil
import struct
from codecs import BOM_UTF8

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.isolation.uploads import model_folders
from evaluation.isolation.uploads.model_folders import check_model_folder, remove_macos_files
from evaluation.isolation.uploads.safetensors_headers import BadTensors, read_tensor_names
from serving.errors import MisconfiguredError
from serving.spec import MAX_JSON_BYTES
from tasks.config.loading import load_config
from tasks.services import OFFICIAL_FOLDER
from tests.support.serving_models import tiny_model

CONFIGS = {
    code: load_config((OFFICIAL_FOLDER / code / "task.yaml").read_text()) for code in ("nli", "qa")
}
NLI = CONFIGS["nli"]
TENSORS = {
    "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "b": {"dtype": "I8", "shape": [], "data_offsets": [24, 25]},
}


def tensors(header=TENSORS, data=bytes(25)):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "model"
    (made / "more").mkdir(parents=True)
    labels = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    about = {"architectures": ["BertForSequenceClassification"], "id2label": labels}
    (made / "config.json").write_text(json.dumps(about))
    (made / "tokenizer.json").write_text("{}")
    (made / "README.md").write_text("A model.")
    (made / "model.safetensors").write_bytes(tensors())
    return made


def change(folder, name="config.json", **values):
    path = folder / name
    about = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(about | values))


def refused(folder, words, config=NLI):
    with pytest.raises(MisconfiguredError, match=words):
        check_model_folder(folder, config)


@pytest.mark.parametrize(
    ("code", "kind"), [("nli", "pair-classification"), ("qa", "extractive-qa")]
)
def test_what_transformers_saves_is_accepted(code, kind, tmp_path):
    folder = tiny_model(tmp_path, kind)
    assert check_model_folder(folder, CONFIGS[code]) == folder
    read_tensor_names(folder / "model.safetensors")


def test_the_model_may_be_in_one_single_folder(folder):
    assert check_model_folder(folder, NLI) == folder
    (folder.parent / "__MACOSX").mkdir()
    (folder.parent / "__MACOSX" / "._model.py").write_bytes(b"")
    (folder / ".DS_Store").write_bytes(b"")
    (folder / "__MACOSX").mkdir()
    for name in ("._code.py", "._model.safetensors"):
        (folder / "__MACOSX" / name).write_bytes(b"")
    assert check_model_folder(folder.parent, NLI) == folder
    assert (folder / ".DS_Store").exists()  # it may be the operator's own folder
    remove_macos_files(folder.parent)
    left = [path.name for path in folder.parent.rglob("*")]
    assert not {"__MACOSX", ".DS_Store", "._code.py"} & {*left}
    assert "config.json" in left
    (folder.parent / "other").mkdir()
    refused(folder.parent, "config.json is missing.*save_pretrained")


@pytest.mark.parametrize(
    "name",
    ["pytorch_model.bin", "training_args.bin", "more/x.PT", "a.pkl", "optimizer.pth", "w.npy"],
)
def test_pickled_files_are_refused_with_their_name(name, folder):
    (folder / name).write_bytes(b"x")
    refused(folder, f"^{name}: pickled files.*safe_serialization")


def test_all_strange_files_are_named_at_once(folder):
    for name in ("train.py", "training_args.bin"):
        (folder / name).write_bytes(b"x")
    with pytest.raises(MisconfiguredError) as caught:
        check_model_folder(folder, NLI)
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["train.py", "training_args.bin"]


@pytest.mark.parametrize(
    ("name", "is_read"),
    [("config.json", False), ("tokenizer.json", False), ("notes.txt", True)],
)
def test_a_byte_order_mark_is_named_where_transformers_reads_none(folder, name, is_read):
    text = (folder / name).read_bytes() if (folder / name).exists() else b"x"
    (folder / name).write_bytes(BOM_UTF8 + text)
    if is_read:
        assert check_model_folder(folder, NLI) == folder
    else:
        refused(folder, f"^{name}: .*byte order mark")


@pytest.mark.parametrize("start", [b"\x80\x04\x95", b"PK\x03\x04"])
def test_pickled_files_are_known_by_their_bytes(start, folder):
    (folder / "notes.txt").write_bytes(start)
    refused(folder, r"^notes.txt: pickled files")


def test_weights_whose_length_begins_like_a_pickle_are_fine(folder):
    header = json.dumps(TENSORS).encode().ljust(0x0280)
    (folder / "model.safetensors").write_bytes(tensors(header))
    assert (folder / "model.safetensors").read_bytes()[:2] == b"\x80\x02"
    assert check_model_folder(folder, NLI) == folder


@pytest.mark.parametrize("name", ["modeling.py", "more/lib.so", "run.SH"])
def test_code_is_refused_with_its_name(name, folder):
    (folder / name).write_bytes(b"x")
    refused(folder, f"^{name}: a model folder")


def test_programs_are_known_by_their_bytes(folder):
    (folder / "notes.txt").write_bytes(b"\x7fELF")
    refused(folder, "no code")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_of_the_models_own_is_refused(name, folder):
    change(folder, name, auto_map={"AutoModel": "modeling.Mine"})
    refused(folder, f"^{name}: `auto_map`")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_file", "/etc/passwd"),
        ("merges_file", "../merges.txt"),
        ("tokenizer_file", "more/tokenizer.json"),
        ("fast_tokenizer_files", ["tokenizer.json", "/etc/passwd"]),
        ("vocab", "/etc/passwd"),
        ("inner", [{"gguf_file": "missing.gguf"}]),
        ("vocab_file", "x" * 5000),
        ("vocab_file", "a\0b"),
    ],
)
def test_files_that_are_not_in_the_folder_are_refused(name, key, value, folder):
    change(folder, name, **{key: value})
    refused(folder, f"^{name}: `.*` does not name a file of the folder")


def test_files_of_the_folder_may_be_named(folder):
    named = {"tokenizer_file": "tokenizer.json", "vocab_file": None, "vocab": {"a": 0}}
    unread = {"special_tokens_map_file": "/home/me/special_tokens_map.json"}
    change(folder, "tokenizer_config.json", **named, **unread, name_or_path="org/model")
    assert check_model_folder(folder, NLI)


@pytest.mark.parametrize("text", ["[" * 100_000, '"' + "x" * MAX_JSON_BYTES + '"'])
def test_settings_have_bounds(text, folder):
    (folder / "dynabench.json").write_text(text)
    refused(folder, "dynabench.json")


@pytest.mark.parametrize("text", ["[]", "{", "1", "[" * 100_000, "\udcff"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_files_that_are_no_objects(name, text, folder):
    (folder / name).write_text(text, errors="surrogateescape")
    refused(folder, f"^{name}: (no JSON|not a JSON object)")


def test_sizes_have_caps(folder, monkeypatch):
    monkeypatch.setattr(model_folders, "MAX_JSON_BYTES", 10)
    refused(folder, "too large")
    monkeypatch.setattr(model_folders, "MAX_FOLDER_BYTES", 10)
    refused(folder, "at most")


def test_a_tokenizer_is_needed(folder):
    (folder / "tokenizer.json").unlink()
    refused(folder, "tokenizer's files are missing")
    (folder / "spiece.model").write_bytes(b"\n")
    assert check_model_folder(folder, NLI)


def test_weights_are_needed_at_the_top(folder):
    shutil.move(folder / "model.safetensors", folder / "more" / "model.safetensors")
    refused(folder, r"^model.safetensors: these weights are missing")


def test_weights_in_shards(folder):
    shutil.move(folder / "model.safetensors", folder / "one.safetensors")
    index = "model.safetensors.index.json"
    change(folder, index, weight_map={"a": "one.safetensors", "b": "one.safetensors"})
    assert check_model_folder(folder, NLI)
    for bad, words in (
        ({"a": "two.safetensors"}, r"^two.safetensors: these weights"),
        ({"a": "../model/one.safetensors"}, "these weights are missing"),
        ({"a": 1}, "an object"),
        ([], "an object"),
    ):
        change(folder, index, weight_map=bad)
        refused(folder, words)


def test_weights_that_were_cut_off(folder):
    (folder / "more" / "x.safetensors").write_bytes(tensors()[:-1])
    refused(folder, r"^more/x.safetensors: no safetensors file: its tensors take 25 bytes, but 24")


@pytest.mark.parametrize("architectures", [None, [], "x", ["BertForMaskedLM"], [1]])
def test_the_architecture_must_be_able_to_do_the_task(architectures, folder):
    change(folder, architectures=architectures)
    refused(folder, "needs a model with …ForSequenceClassification")
    refused(folder, "needs a model with …ForQuestionAnswering", CONFIGS["qa"])


def test_the_labels_are_those_of_the_task(folder):
    change(folder, id2label={"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})
    refused(folder, 'LABEL_0.*labels are entailment.*dynabench.json with {"labels": ."entailment"')
    change(folder, id2label=None)
    refused(folder, "LABEL_0, LABEL_1; the task's labels are entailment")
    change(folder, id2label={"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})
    change(folder, "dynabench.json", labels=["Contradiction", "ENTAILMENT", "neutral"])
    assert check_model_folder(folder, NLI)
    change(folder, "dynabench.json", labels=["entailment", "neutral"])
    refused(folder, "2 labels are named")


@pytest.mark.parametrize("numbers", ["013", "123"])
def test_labels_are_numbered_by_the_logits(folder, numbers):
    names = ("entailment", "neutral", "contradiction")
    change(folder, id2label=dict(zip(numbers, names, strict=True)))
    refused(folder, "id2label")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"labels": 5}, "`labels`"),
        ({"kind": "chat"}, "kind 'chat' is none"),
        ({"kind": "sequence-classification"}, "`kind`"),
        ({"kind": "extractive-qa"}, "the kind extractive-qa does not fit.*pair-classification"),
    ],
)
def test_settings_that_do_not_fit(values, words, folder):
    change(folder, "dynabench.json", **values)
    refused(folder, words)


def test_a_task_that_no_folder_can_do(folder):
    config = load_config("""
version: 1
name: Pictures
goal: {text: Ask about a picture}
context: [{name: picture, type: image}]
input: [{name: question, type: text}]
output: [{name: answer, type: text}]
verdict: {type: ask_user}
metrics: {main: vqa_accuracy}
""")
    refused(folder, "Submit an image", config)


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
BAD = [
    (b"", "header of 0 bytes"),
    (b"\1\0\0", "header of 1 bytes"),
    (struct.pack("<Q", 2**40), "header of 1099511627776"),
    (tensors(b"{ "), "JSON"),
    (tensors(b"[]"), "an object"),
    (tensors(b"{}"), "no tensor"),
    (tensors(b"[" * 100_000), "JSON"),
    (tensors(b'{"a": 1, "a": 1}'), "there twice"),
    (tensors({"__metadata__": 1}), "__metadata__"),
    (tensors({"a": 1}), "unknown dtype"),
    (tensors({"a": ONE | {"dtype": "PICKLE"}}), "unknown dtype"),
    (tensors({"a": ONE | {"dtype": []}}), "unknown dtype"),
    (tensors({"a": ONE | {"shape": None}}), "lacks a shape"),
    (tensors({"a": ONE | {"shape": [-1]}}), "lacks a shape"),
    (tensors({"a": ONE | {"shape": [True]}}), "lacks a shape"),
    (tensors({"a": ONE | {"shape": [1.0]}}), "lacks a shape"),
    (tensors({"a": ONE | {"data_offsets": [0]}}), "two offsets"),
    (tensors({"a": ONE | {"data_offsets": [4, 0]}}), "do not fit its shape"),
    (tensors({"a": ONE | {"data_offsets": [0, 8]}}), "do not fit its shape"),
    (tensors({"a": ONE | {"shape": [2**40, 2**40]}}), "do not fit its shape"),
    (tensors({"a": ONE, "b": ONE}, bytes(4)), "'b' overlaps"),
    (tensors({"a": ONE | {"data_offsets": [4, 8]}}, bytes(8)), "'a' leaves a hole"),
    (tensors({"a": ONE}, bytes(5)), "take 4 bytes, but 5"),
    (tensors({"a": ONE}, b""), "take 4 bytes, but 0"),
]


@pytest.mark.parametrize(("data", "words"), BAD, ids=[words for _, words in BAD])
def test_files_that_are_no_safetensors(data, words, tmp_path):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(BadTensors, match=words):
        read_tensor_names(tmp_path / "x")


def test_a_good_file_names_its_tensors(tmp_path):
    (tmp_path / "x").write_bytes(tensors(TENSORS | {"__metadata__": {"format": "pt"}}))
    assert read_tensor_names(tmp_path / "x") == ["a", "b"]


def test_a_tensor_of_nothing_takes_no_place(tmp_path):
    empty = {"dtype": "F32", "shape": [0, 3], "data_offsets": [4, 4]}
    (tmp_path / "x").write_bytes(tensors({"a": ONE, "z": empty}, bytes(4)))
    assert read_tensor_names(tmp_path / "x") == ["a", "z"]


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("tensors") / "x"
    for content in (data, tensors(data, b"")):
        path.write_bytes(content)
        with pytest.raises(BadTensors):
            read_tensor_names(path)
