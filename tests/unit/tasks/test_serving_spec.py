"""What may be served: the folder's settings, refusals that say how to mend them, arguments."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from serving.arguments import parse_model
from serving.errors import MisconfiguredError
from serving.fingerprint import FileHashes, compute_fingerprint
from serving.spec import ModelSpec, check_setting_keys, open_folder


def folder(path: Path, *, weights: str = "model.safetensors", **settings: object) -> ModelSpec:
    """A folder that looks like a model; no weights in it are ever read here."""
    path.mkdir(exist_ok=True)
    (path / weights).write_bytes(b"weights")
    config = {"architectures": ["BertForSequenceClassification"], "id2label": {"1": "b", "0": "a"}}
    (path / "config.json").write_text(json.dumps(config))
    (path / "tokenizer.json").write_text("{}")
    if settings:
        (path / "dynabench.json").write_text(json.dumps(settings))
    return ModelSpec("m", str(path))


def test_settings_come_from_the_spec_then_the_folder_then_the_config(tmp_path: Path) -> None:
    spec = folder(tmp_path / "plain")
    plain = open_folder(spec)
    assert (plain.kind, plain.fields, plain.output) == (
        "sequence-classification",
        ("text",),
        "label",
    )
    assert (plain.labels, plain.max_length) == (("a", "b"), None)
    spec = folder(
        tmp_path / "said",
        kind="pair-classification",
        fields=["passage", "claim"],
        output="verdict",
        labels=["yes", "no"],
        max_length=96,
    )
    said = open_folder(spec)
    assert (said.kind, said.fields) == ("pair-classification", ("passage", "claim"))
    assert (said.output, said.labels, said.max_length) == ("verdict", ("yes", "no"), 96)
    over = open_folder(replace(spec, labels=("x", "y"), max_length=8))
    assert (over.labels, over.max_length) == (("x", "y"), 8)
    (Path(spec.source) / "dynabench.json").unlink()
    over = open_folder(replace(spec, kind="pair-classification", fields=("a", "b")))
    assert (over.fields, over.truncated_field) == (("a", "b"), "a")


@pytest.mark.parametrize(
    ("own", "asked", "found", "cut"),
    [
        (["claim", "source"], ("source", "claim"), ("claim", "source"), "source"),
        (["source", "claim"], ("source", "claim"), ("source", "claim"), "source"),
        (["hypothesis", "premise"], ("source", "claim"), ("claim", "source"), "source"),
        (
            ["premise", "hypothesis"],
            ("hypothesis", "premise"),
            ("premise", "hypothesis"),
            "hypothesis",
        ),
        (["hypothesis", "premise"], None, ("hypothesis", "premise"), "premise"),
        (["b", "a"], None, ("b", "a"), "b"),
        (None, ("source", "claim"), ("source", "claim"), "source"),
    ],
)
def test_fields_are_read_in_the_models_order_and_the_context_is_cut(
    own: list[str] | None, asked: tuple[str, ...] | None, found: tuple[str, ...], cut: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    spec = folder(tmp_path, kind="pair-classification", fields=own)
    opened = open_folder(replace(spec, fields=asked))
    assert (opened.fields, opened.truncated_field) == (found, cut)


@pytest.mark.parametrize(
    ("settings", "asked", "named"),
    [
        ({"fields": ["text", "more"]}, None, "`fields`"),
        (
            {"fields": ["a", "b"], "kind": "pair-classification"},
            ("source", "claim"),
            "source, claim",
        ),
        ({"fields": ["a", "a"], "kind": "pair-classification"}, None, "`fields`"),
        ({"fields": "text"}, None, "`fields`"),
        ({"fields": [3]}, None, "`fields`"),
        ({"fields": ["passage", "question"], "kind": "extractive-qa"}, None, "question first"),
        ({"kind": "sequence-classification"}, ("source", "claim"), "`kind`"),
        ({"kind": ["pair-classification"]}, None, "`kind`"),
        ({"labels": {"0": "a", "1": "b"}}, None, "`labels`"),
        ({"labels": ["a", None]}, None, "`labels`"),
        ({"max_length": "128"}, None, "`max_length`"),
        ({"max_length": True}, None, "`max_length`"),
        ({"max_length": 7}, None, "`max_length`"),
        ({"output": 3}, None, "`output`"),
        ({"output": "verdict"}, ("text",), "`output`"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused_by_name(
    settings: dict[str, object], asked: tuple[str, ...] | None, named: str, tmp_path: Path
) -> None:
    spec = replace(folder(tmp_path, **settings), fields=asked, output=asked and "answer")
    with pytest.raises(MisconfiguredError) as refused:
        open_folder(spec)
    assert named in str(refused.value)


def test_what_says_nothing_is_no_setting(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("kind", "fields", "output", "labels", "max_length"))
    opened = open_folder(folder(tmp_path, trained_on="seeds", seed=0, **nothing))
    assert (opened.kind, opened.labels) == ("sequence-classification", ("a", "b"))
    check_setting_keys("m", tmp_path)


@pytest.mark.parametrize(
    ("key", "named"), [("max_lenght", "`max_length`"), ("colour", "labels, max_length")]
)
def test_unknown_settings_are_refused_where_a_model_arrives(
    key: str, named: str, tmp_path: Path
) -> None:
    spec = folder(tmp_path, **{key: 3})
    assert open_folder(spec)  # of a model that has arrived before
    with pytest.raises(MisconfiguredError) as refused:
        check_setting_keys("m", tmp_path)
    assert f"`{key}`" in str(refused.value)
    assert named in str(refused.value)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_pickled_weights_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(MisconfiguredError, match=rf"pickled weights \({name}\).*safetensors"):
        open_folder(folder(tmp_path / "m", weights=name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precision": "int4"}, "Choose onnx with fp32 or int8"),
        ({"backend": "onnx", "precision": "bf16"}, "Choose onnx with fp32 or int8"),
        ({"kind": "translation"}, "kind 'translation' is none of"),
        ({"kind": "pair-classification", "fields": ("text",)}, "`kind`"),
        ({"labels": ("a", "b", "c")}, "3 labels are named, but the model has 2"),
        ({"labels": ("a", "a")}, "two or more different labels"),
        ({"source": "no/such"}, "pin its revision"),
        ({"source": "no/such", "revision": "main"}, "pin its revision"),
        ({"source": "./no/such"}, "there is no folder"),
    ],
)
def test_what_cannot_be_served_says_why(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(MisconfiguredError, match=message):
        open_folder(replace(folder(tmp_path / "m"), **change))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["config.json", "dynabench.json"])
def test_a_broken_settings_file_is_named(tmp_path: Path, name: str) -> None:
    spec = folder(tmp_path / "m")
    (tmp_path / "m" / name).write_text("{")
    with pytest.raises(MisconfiguredError, match=f"{name} is not JSON"):
        open_folder(spec)


def test_arguments() -> None:
    assert parse_model("nli=var/models/nli") == ModelSpec("nli", "var/models/nli")
    assert parse_model(
        "s-1=org/name,revision=abc,backend=torch,precision=bf16,labels=a+b,max_length=64"
    ) == ModelSpec(
        "s-1",
        "org/name",
        revision="abc",
        labels=("a", "b"),
        backend="torch",
        precision="bf16",
        max_length=64,
    )


@pytest.mark.parametrize(
    "argument", ["nli", "=x", "nli=", "a/b=x", "a=x,speed=9", "a=x,backend", "a=x,max_length=0"]
)
def test_arguments_that_say_nothing(argument: str) -> None:
    with pytest.raises(ValueError, match=r"NAME=PATH|KEY=VALUE|whole number"):
        parse_model(argument)


def digest(spec: ModelSpec, tmp_path: Path, version: str = "1") -> str:
    hashes = FileHashes(tmp_path / "hashes.json")
    return compute_fingerprint(spec, open_folder(spec), backend_version=version, hashes=hashes)[
        "digest"
    ]


def test_the_fingerprint_is_of_the_content_not_of_the_place(tmp_path: Path) -> None:
    here, there = folder(tmp_path / "here"), folder(tmp_path / "there")
    assert digest(here, tmp_path) == digest(there, tmp_path)
    assert len(digest(here, tmp_path)) == 16


def test_the_fingerprint_changes_with_whatever_decides_an_answer(tmp_path: Path) -> None:
    spec = folder(tmp_path / "m")
    seen = {digest(spec, tmp_path), digest(spec, tmp_path, version="2")}
    for change in (
        {"precision": "int8"},
        {"backend": "torch"},
        {"labels": ("b", "a")},
        {"max_length": 7},
    ):
        seen.add(digest(replace(spec, **change), tmp_path))  # type: ignore[arg-type]
    for name in ("model.safetensors", "tokenizer.json", "config.json", "model-2.safetensors"):
        content = '{"id2label": {"0": "a", "1": "b"}, "architectures": ["XForQuestionAnswering"]}'
        (tmp_path / "m" / name).write_text(content)
        seen.add(digest(spec, tmp_path))
    assert len(seen) == 10


def test_a_file_is_hashed_again_only_when_it_changed(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"aaaa")
    hashes = FileHashes(tmp_path / "memory" / "hashes.json")
    before = hashes.hash_file(file)
    remembered = (tmp_path / "memory" / "hashes.json").read_text()
    assert before in remembered
    (tmp_path / "memory" / "hashes.json").write_text(remembered.replace(before, "kept"))
    assert hashes.hash_file(file) == "kept"
    file.write_bytes(b"aaaaa")
    assert hashes.hash_file(file) not in (before, "kept")


def test_models_that_are_loaded_at_once_share_the_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another load stores its hash between this one's writing and renaming."""
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    memory, replace = tmp_path / "hashes.json", Path.replace

    def replace_late(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        FileHashes(memory).hash_file(files[1])
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replace_late)
    digests = [FileHashes(memory).hash_file(file) for file in files]
    assert digests == [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "hashes.json"]
