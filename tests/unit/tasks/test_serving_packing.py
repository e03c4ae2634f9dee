"""Batches without padding give what batches with padding give."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from serving.arrays import NO_ROW, pack_rows
from serving.backends import Backend, load_backend
from serving.spec import PAIR, SPAN, ModelFolder, ModelSpec
from serving.tokens import ModelTokenizer

WORDS = {f"w{number}": number for number in range(90)}
SMALL = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "initializer_range": 0.5,
}
DISTIL = {
    "vocab_size": 100,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "initializer_range": 0.5,
}
SHORT = SMALL | {"embedding_size": 16}
WITHOUT_SEGMENTS = {"Roberta", "DistilBert"}
PACKED = {"Bert", "Roberta", "Electra", "DistilBert"}
EXPORTED = {("Bert", PAIR), ("DistilBert", SPAN), ("MPNet", PAIR)}
ONE_LAYER = {"num_hidden_layers": 1, "n_layers": 1}  # an export takes a second a layer
MODELS = [
    ("Bert", SMALL, PAIR),
    ("Bert", SMALL, SPAN),
    ("Roberta", SMALL, SPAN),
    ("Electra", SHORT, PAIR),
    ("DistilBert", DISTIL, SPAN),
    ("MPNet", SMALL, PAIR),  # the last two have attention of their own kind
    ("DebertaV2", SMALL, PAIR),
]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_every_token_has_one_spot_beside_its_own_row(sizes: list[int]) -> None:
    width, rows = max(sizes), pack_rows(sizes)
    assert [place // width for place in rows["places"]] == list(np.repeat(range(len(sizes)), sizes))
    assert [place % width for place in rows["places"]] == [n for size in sizes for n in range(size)]
    owners = rows["owners"]
    assert owners.shape[1] == width
    assert len(set(rows["spots"])) == sum(sizes) == (owners != NO_ROW).sum()
    assert list(owners.flatten()[rows["spots"]]) == list(np.repeat(range(len(sizes)), sizes))
    for number in range(len(sizes)):
        assert len({line for line, _ in np.argwhere(owners == number)}) == 1
    # Two lines that are half empty would have been one.
    assert sum(2 * (line != NO_ROW).sum() <= width for line in owners) <= 1


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str, dict[str, Any], str], ModelFolder]:
    """Saves a small model with chance weights."""

    def save(name: str, options: dict[str, Any], kind: str) -> ModelFolder:
        torch.manual_seed(0)
        head = "QuestionAnswering" if kind == SPAN else "SequenceClassification"
        labels = None if kind == SPAN else ("a", "b", "c")
        config = getattr(transformers, f"{name}Config")(**options, num_labels=len(labels or "se"))
        getattr(transformers, f"{name}For{head}")(config).save_pretrained(tmp_path)
        tokenizer = Tokenizer(WordLevel(WORDS, unk_token="w2"))
        tokenizer.pre_tokenizer = Whitespace()
        segments = [] if name in WITHOUT_SEGMENTS else ["token_type_ids"]
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            pad_token="w1",
            model_input_names=["input_ids", "attention_mask", *segments],
        ).save_pretrained(tmp_path)
        weights = (tmp_path / "model.safetensors",)
        return ModelFolder(tmp_path, weights, kind, ("one", "two"), "answer", labels, None)

    return save


def loaded(
    folder: ModelFolder, backend: str, precision: str = "fp32"
) -> tuple[Backend, ModelTokenizer]:
    spec = ModelSpec("m", str(folder.path), backend=backend, precision=precision)
    return load_backend(spec, folder, export_folder=folder.path / "exports")


def plain(name: str, folder: ModelFolder, batch: list[Encoding]) -> list[Any]:
    """What transformers itself makes of the encodings, one by one."""
    head = "QuestionAnswering" if folder.kind == SPAN else "SequenceClassification"
    model = getattr(transformers, f"{name}For{head}").from_pretrained(folder.path)
    segments = name not in WITHOUT_SEGMENTS
    found = []
    for one in batch:
        more = {"token_type_ids": torch.tensor([one.type_ids])} if segments else {}
        with torch.inference_mode():
            out = model(input_ids=torch.tensor([one.ids]), **more)
        spans = folder.kind == SPAN
        found.append(torch.stack([out.start_logits, out.end_logits], 1) if spans else out.logits)
    return [logits[0].numpy() for logits in found]


def batch_of(tokens: ModelTokenizer, texts: list[str]) -> list[Encoding]:
    return [tokens.tokenizer.encode(text, f"w{len(text)}") for text in texts]


TEXTS = ["w3 w4 w5 w6 w7 w8", "w9", "w10 w11 w12", "w13 w14", "w15 w16 w17 w18 w19"]


@pytest.mark.parametrize(("name", "options", "kind"), MODELS)
def test_batches_give_the_logits_of_the_plain_model_one_by_one(
    name: str, options: dict[str, Any], kind: str, saved: Any
) -> None:
    for kept in ("torch", "onnx") if (name, kind) in EXPORTED else ("torch",):
        folder = saved(name, options | (ONE_LAYER if kept == "onnx" else {}), kind)
        backend, tokens = loaded(folder, kept)
        assert (backend.max_size_ratio is None) == (name in PACKED)
        batch = batch_of(tokens, TEXTS)
        wanted = plain(name, folder, batch)
        assert all(np.ptp(one) > 0.1 for one in wanted)
        for size in (1, 2, len(batch)):
            for one, other in zip(backend.run(batch[:size]), wanted, strict=False):
                np.testing.assert_allclose(one, other, atol=1e-4)


def test_bf16_is_packed_too(saved: Any) -> None:
    folder = saved("Bert", SMALL | {"initializer_range": 0.1}, PAIR)
    backend, tokens = loaded(folder, "torch", "bf16")
    assert backend.max_size_ratio is None
    batch = batch_of(tokens, TEXTS)
    for one, other in zip(backend.run(batch), plain("Bert", folder, batch), strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)


def test_threads_do_not_see_the_batches_of_others(saved: Any) -> None:
    folder = saved("Bert", SMALL, PAIR)
    backend, tokens = loaded(folder, "torch")
    batches = [batch_of(tokens, TEXTS[start:]) for start in range(len(TEXTS))] * 40
    wanted = [backend.run(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(backend.run, batches))
    for ours, one_by_one in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, one_by_one, atol=1e-5)
