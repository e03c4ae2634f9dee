"""A questionnaire as rows without YAML, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.campaigns.rules.question_rows import (
    CHOICE_KINDS,
    QUESTION_KINDS,
    QuestionRow,
    format_questionnaire,
    parse_question_rows,
)
from dynabench.campaigns.rules.questionnaire import read_questionnaire

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
CHOICES = st.lists(WORDS, min_size=2, max_size=4, unique=True).map(tuple)


@st.composite
def drawn_rows(draw):
    kind = draw(st.sampled_from(QUESTION_KINDS))
    is_about = kind in CHOICE_KINDS and draw(st.booleans())
    choices = draw(CHOICES) if kind in CHOICE_KINDS else ()
    is_required = not is_about and draw(st.booleans())
    return QuestionRow(draw(WORDS), kind, choices, is_required, is_about)


@given(st.lists(drawn_rows(), max_size=5))
def test_what_rows_say_is_read_back(rows):
    found = parse_question_rows(format_questionnaire(rows))
    ordered = sorted(rows, key=lambda row: row.is_about)
    assert [vars(one) | {"name": ""} for one in found] == [vars(one) for one in ordered]
    assert len({one.name for one in found}) == len(rows)
    assert (
        parse_question_rows(format_questionnaire(found)) == found
    )  # names stay, by which answers are kept


def test_names_come_from_the_words_once():
    rows = [
        QuestionRow("How old?"),
        QuestionRow("How old!"),
        QuestionRow("Wie alt?", name="how_old"),
        QuestionRow("42"),
        QuestionRow("？"),
    ]
    names = [one.name for one in read_questionnaire(format_questionnaire(rows)).questions]
    assert names == ["how_old_2", "how_old_3", "how_old", "question_42", "question"]
    assert format_questionnaire([]) == ""


@pytest.mark.parametrize(
    "more",
    ["type: slider", "type: number, minimum: 3", "type: text, help: Say so",
     "type: multiclass, labels: [{value: a, display: A}, b]",
     "type: multiclass, labels: [{value: a, goal: an a}, b]"],
)  # fmt: skip
def test_what_no_row_can_say_stays_yaml(more):
    assert parse_question_rows(f"questions: [{{name: it, {more}}}]") is None


def test_a_choice_and_a_question_that_need_not_be_answered_come_back():
    rows = [
        QuestionRow("Which one?", "multiclass", ("red", "blue")),
        QuestionRow("Why?", is_required=False),
    ]
    found = parse_question_rows(format_questionnaire(rows))
    assert [(row.kind, row.choices, row.is_required) for row in found] == [
        ("multiclass", ("red", "blue"), rows[0].is_required),
        (rows[1].kind, (), False),
    ]
