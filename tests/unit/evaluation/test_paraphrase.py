"""Paraphrases by a local model; the model of these tests says nothing sensible."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.contract import SetRow
from evaluation.scoring.paraphrase import Paraphraser, make_paraphrase
from evaluation.scoring.perturb import PerturbationScope
from tests.support.serving_models import tiny_seq2seq

READING = PerturbationScope(("question", "passage"), "label", None, (), "en")
IN_PASSAGE = replace(READING, passage_field="passage")


def says(**table: str):
    """A paraphrase by a table."""
    return lambda text: table.get(text.split()[0].lower(), text)


def row(question: str, passage: str = "A long walk", gold: str = "yes") -> SetRow:
    return SetRow("u1", {"question": question, "passage": passage}, (gold,), {"tag": ("a",)})


def test_a_field_in_other_words():
    variant = make_paraphrase(says(who="Which man went"), row("Who went"), READING, seed=1)
    assert variant.row.inputs == {"question": "Which man went", "passage": "A long walk"}
    assert (variant.kind, variant.row.gold, variant.row.slices) == (
        "paraphrase",
        ("yes",),
        {"tag": ("a",)},
    )
    assert variant.distance == 7
    assert "u1" not in variant.row.uid
    assert variant == make_paraphrase(says(who="Which man went"), row("Who went"), READING, seed=1)


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
    reading = replace(READING, **more)
    assert (
        make_paraphrase(says(went=said, **{"went,": said}), row(question), reading, seed=1) is None
    )


def test_the_passage_of_answers_stays():
    other = says(a="The walk", who="Which walk was long")
    variant = make_paraphrase(other, row("Who", gold="walk"), IN_PASSAGE, seed=1)
    assert variant.row.inputs == {"question": "Which walk was long", "passage": "A long walk"}
    assert make_paraphrase(other, row(""), IN_PASSAGE, seed=1) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_seq2seq(tmp_path_factory.mktemp("t5"))


def test_a_model_from_a_folder_says_the_same_each_time(folder, monkeypatch):
    monkeypatch.setattr("evaluation.scoring.paraphrase.MAX_TOKENS", 8)
    one, other = Paraphraser(folder), Paraphraser(folder, prefix="say: ")
    assert one("a cat sat on the mat") == Paraphraser(folder)("a cat sat on the mat")
    assert isinstance(other("a cat"), str)


def test_there_must_be_a_model(tmp_path):
    with pytest.raises((OSError, ValueError)):
        Paraphraser(tmp_path)
