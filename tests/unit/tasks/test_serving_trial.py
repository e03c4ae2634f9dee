"""How a model's rows share a batch is found by trying; what cannot be scored is refused."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving import backends
from serving.arrays import split_batch
from serving.backends import load_model_and_filling
from serving.errors import BadRequestError, CannotExportError, MisconfiguredError
from serving.registry import ServedModel
from serving.spec import ModelSpec, open_folder
from serving.tokens import (
    ModelTokenizer,
    build_codec,
    load_tokenizer,
    read_tokenizer,
    save_tokenizer,
)
from tests.support.architectures import VOCABULARY, make_model


@pytest.fixture
def gpt2(tmp_path: Path) -> Path:
    return make_model("gpt2", tmp_path / "model")


def tokens_of(folder: Path) -> ModelTokenizer:
    spec = ModelSpec("m", str(folder), backend="torch")
    return load_model_and_filling(spec, open_folder(spec))[1]


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def change_weights(folder: Path, to: Callable[[str, Any], Any]) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    changed = {name: to(name, values) for name, values in weights.items()}
    save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})


def refusal(folder: Path) -> str:
    with pytest.raises(MisconfiguredError) as refused:
        tokens_of(folder)
    return str(refused.value)


@given(
    st.lists(st.integers(1, 4), min_size=1), st.sampled_from(["right", "left", "equal", "alone"])
)
def test_each_row_is_in_one_part_and_padded_only_where_it_may_be(sizes: Any, fill: Any) -> None:
    found = split_batch(sizes, fill)
    assert sorted(number for part in found for number in part) == [*range(len(sizes))]
    widths = [{sizes[number] for number in part} for part in found]
    assert fill in ("right", "left") or all(len(width) == 1 for width in widths)
    assert fill != "alone" or all(len(part) == 1 for part in found)


def test_weights_that_are_no_numbers_are_refused_by_name(gpt2: Path) -> None:
    change_weights(gpt2, lambda name, values: values * float("nan" if "h.1.mlp" in name else 1))
    assert "transformer.h.1.mlp" in refusal(gpt2)


def test_answers_that_are_no_numbers_are_refused(gpt2: Path) -> None:
    change_weights(gpt2, lambda name, values: values * 1e30)  # each of them is one
    assert "NaN" in refusal(gpt2)


def test_a_tokenizer_with_more_words_than_the_model_has_is_refused(gpt2: Path) -> None:
    tokenizer = json.loads((gpt2 / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["new"] = len(VOCABULARY)
    (gpt2 / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert f"up to {len(VOCABULARY)}" in refusal(gpt2)


def test_a_model_that_fails_on_long_texts_is_refused_with_their_length(
    gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.capacity.POSITION_TABLES", ())
    change(gpt2 / "tokenizer_config.json", model_max_length=100)
    assert "100 tokens" in refusal(gpt2)


def test_the_least_of_all_limits_counts(gpt2: Path) -> None:
    assert tokens_of(gpt2).token_limit == 64  # its places
    change(gpt2 / "tokenizer_config.json", model_max_length=100)
    assert tokens_of(gpt2).token_limit == 64
    change(gpt2 / "tokenizer_config.json", model_max_length=40)
    assert tokens_of(gpt2).token_limit == 40
    (gpt2 / "dynabench.json").write_text(json.dumps({"max_length": 30}))
    opened = open_folder(ModelSpec("m", str(gpt2), backend="torch"))
    codec = build_codec(opened, tokens_of(gpt2))
    assert len(codec.encode({"text": "w1 " * 50})[0]) == 30


def test_a_limit_too_low_for_a_pair_of_words_is_refused(gpt2: Path) -> None:
    settings = {"kind": "pair-classification", "max_length": 8}
    (gpt2 / "dynabench.json").write_text(json.dumps(settings))
    assert "8 tokens" in refusal(gpt2)


def test_a_model_that_answers_by_chance_is_refused(
    gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import GPT2Model

    forward = GPT2Model.forward

    def noisy(self: Any, *inputs: Any, **more: Any) -> Any:
        out = forward(self, *inputs, **more)
        out.last_hidden_state = out.last_hidden_state + out.last_hidden_state.new_empty(1).normal_()
        return out

    monkeypatch.setattr(GPT2Model, "forward", noisy)
    assert "differently" in refusal(gpt2)


def test_a_text_without_any_token_is_refused_alone(gpt2: Path) -> None:
    spec = ModelSpec("m", str(gpt2), backend="torch")
    codec = build_codec(open_folder(spec), read_tokenizer(spec, open_folder(spec)))
    with pytest.raises(BadRequestError) as refused:
        codec.encode({"text": " "})
    assert set(refused.value.fields) == {"text"}


def test_what_feeds_a_model_is_kept_beside_its_graph(gpt2: Path, tmp_path: Path) -> None:
    tokens = replace(tokens_of(gpt2), filling="equal", cut_side="left")
    tokens.tokenizer.encode_special_tokens = True
    save_tokenizer(tokens, tmp_path)
    found = load_tokenizer(tmp_path)
    assert found.tokenizer.encode_special_tokens
    assert replace(found, tokenizer=tokens.tokenizer) == tokens


def test_what_onnx_cannot_run_is_served_by_torch_and_exported_once(
    gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def fail(*_: Any) -> None:
        tries.append(1)
        raise RuntimeError

    monkeypatch.setattr(backends, "write_onnx", fail)
    for _ in range(2):
        model = ServedModel(ModelSpec("m", str(gpt2)), tmp_path, max_queued=4)
        assert model.info["fingerprint"]["backend"] == "torch"
        answers = model.submit([{"text": "w1 w2"}], deadline=time.monotonic() + 60)
        assert len(answers.result()) == 1
        model.close()
    assert len(tries) == 1
    with pytest.raises(CannotExportError):
        ServedModel(ModelSpec("m", str(gpt2), precision="int8"), tmp_path, max_queued=4)


def test_a_graph_that_answers_differently_is_not_served(
    gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def run(self, batch: Any) -> Any:
            import numpy as np

            return [np.zeros(3, np.float32) for _ in batch]

    monkeypatch.setattr(backends, "write_onnx", lambda *_: None)
    monkeypatch.setattr(backends, "OnnxBackend", Wrong)
    spec = ModelSpec("m", str(gpt2))
    with pytest.raises(CannotExportError):
        backends.export_onnx(spec, open_folder(spec), export_folder=tmp_path / "exports")


@pytest.mark.parametrize(("part", "rows"), [("score.weight", 2), ("transformer.wpe.weight", 32)])
def test_weights_of_other_shapes_than_the_configuration_are_refused_by_name(
    part: str, rows: int, gpt2: Path
) -> None:
    change_weights(gpt2, lambda name, values: values[:rows].clone() if name == part else values)
    told = refusal(gpt2)
    assert part in told
    assert f"[{rows}, 32]" in told
