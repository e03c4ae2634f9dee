"""Which examples of a set were there to train on."""

import pytest

from evaluation.models import EvaluationSetVersion
from evaluation.test_sets.overlap import (
    compute_digest,
    count_overlaps,
    index_sources,
    parse_source_names,
)

FIELDS = ("premise", "hypothesis")


def row(premise, hypothesis="So."):
    return {"premise": premise, "hypothesis": hypothesis}


def test_texts_are_the_same_whatever_their_case_spaces_and_end():
    assert compute_digest(row("A  heron\nstands."), FIELDS) == compute_digest(
        row("a heron stands"), FIELDS
    )
    assert compute_digest(row("a", "b"), FIELDS) != compute_digest(row("b", "a"), FIELDS)
    assert compute_digest(row("a b", ""), FIELDS) != compute_digest(row("a", "b"), FIELDS)


def test_each_row_counts_once_however_many_sources_have_it():
    sources = {"seed": [row("a"), row("b"), row("a")], "round1": [row("b"), row("c")]}
    rows = [row("A."), row("b"), row("b"), row("c"), row("d")]
    found = count_overlaps(rows, index_sources(sources, FIELDS), FIELDS)
    assert found == {"seed": 1, "round1 seed": 2, "round1": 1}
    overlap = {"sources": {"seed": 0, "round1": 7}, "rows": found}
    version = EvaluationSetVersion(size=5, overlap=overlap)
    assert version.compute_overlap() == 0.8
    assert version.compute_overlap({"seed"}) == 0.6
    assert version.compute_overlap({"round1", "seed"}) == 0.8
    assert version.compute_overlap({"round2"}) == 0
    assert EvaluationSetVersion(size=5, overlap={"sources": {}, "rows": {}}).compute_overlap() == 0
    assert EvaluationSetVersion(size=5).compute_overlap() is None


def test_what_a_card_names():
    assert parse_source_names("SNLI; seeds, round-1 and Round 12") == {"seed", "round1", "round12"}
    assert parse_source_names("MNLI, background 2") == set()


@pytest.mark.parametrize(
    ("one", "other"),
    [("cafe\u0301", "café"), ("北京。", "北京"), ("ΟΔΟΣ", "οδος"), ("क्या？", "क्या")],
)
def test_an_example_in_another_form_is_the_same(one, other):
    assert compute_digest({"text": one}, ["text"]) == compute_digest({"text": other}, ["text"])
