"""Paraphrases by a local model; the model of these tests says nothing sensible."""

from pathlib import Path

import pytest

from evaluation.contract import SetRow
from evaluation.paraphrase import Paraphraser, paraphrased
from tests.serving_models import tokenizer_files

HOW = {"fields": ("question", "passage"), "passage_field": None, "labels": (), "seed": 1}


class Says:
    """A paraphraser of a table."""

    def __init__(self, **table: str) -> None:
        self.table = table

    def text(self, text: str) -> str:
        return self.table.get(text.split()[0].lower(), text)


def row(question: str, passage: str = "A long walk", gold: str = "yes") -> SetRow:
    return SetRow("u1", {"question": question, "passage": passage}, (gold,), {"tag": ("a",)})


def test_a_field_in_other_words():
    twin = paraphrased(Says(who="Which man went"), row("Who went"), **HOW)
    assert twin.row.inputs == {"question": "Which man went", "passage": "A long walk"}
    assert (twin.kind, twin.row.gold, twin.row.slices) == ("paraphrase", ("yes",), {"tag": ("a",)})
    assert twin.distance == 7
    assert "u1" not in twin.row.uid
    assert twin == paraphrased(Says(who="Which man went"), row("Who went"), **HOW)


@pytest.mark.parametrize(
    ("question", "said", "more"),
    [
        ("went", "went", {}),
        ("went", "", {}),
        ("went to Paris", "went there", {}),
        ("went 3 times", "went three times", {}),
        ("went, neutral", "left", {"labels": ("neutral",)}),
    ],
)
def test_what_would_change_the_answer_is_dropped(question, said, more):
    assert paraphrased(Says(went=said, **{"went,": said}), row(question), **HOW | more) is None


def test_the_passage_of_answers_stays():
    says = Says(a="The walk", who="Which walk was long")
    twin = paraphrased(says, row("Who", gold="walk"), **HOW | {"passage_field": "passage"})
    assert twin.row.inputs == {"question": "Which walk was long", "passage": "A long walk"}
    assert paraphrased(says, row(""), **HOW | {"passage_field": "passage"}) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A T5 of one layer with random weights."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("t5")
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=30_522, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=0, max_new_tokens=5,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer_files(folder)
    return folder


def test_a_model_from_a_folder_says_the_same_each_time(folder, monkeypatch):
    monkeypatch.setattr("evaluation.paraphrase.MOST_TOKENS", 8)
    one, other = Paraphraser(folder), Paraphraser(folder, prefix="say: ")
    assert one.text("a cat sat on the mat") == Paraphraser(folder).text("a cat sat on the mat")
    assert isinstance(other.text("a cat"), str)


def test_there_must_be_a_model(tmp_path):
    with pytest.raises((OSError, ValueError)):
        Paraphraser(tmp_path)
