"""What an owner writes for the time before the work: a questionnaire and a guided tour."""

import pytest

from dynabench.campaigns.rules.questionnaire import list_question_types, read_questionnaire
from dynabench.campaigns.rules.tour import Placeholder, list_placeholders, parse_tour
from tasks.config.parsing import ConfigError

ASKED = """\
questions:
  - {name: years, type: number, minimum: 0, maximum: 80}
  - name: languages
    type: multilabel
    labels: [en, fr]
    required: false
about:
  - name: gender
    type: multiclass
    labels: [woman, man]
"""
UUID = "0b0c5f0e-8a44-4d0e-9b42-6a2d3f0a9c11"


def test_a_questionnaire_is_in_the_language_of_tasks():
    told = read_questionnaire(ASKED)
    assert [one.name for one in told.fields] == ["years", "languages", "gender"]
    assert [one.required for one in told.fields] == [True, False, False]  # nobody must tell
    assert read_questionnaire(" \n").fields == ()
    assert {*list_question_types()} == {
        "text",
        "long_text",
        "multiclass",
        "multilabel",
        "number",
        "slider",
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "path"),
    [
        ("questions:", "question:", 1, "question"),
        ("type: number", "type: nuber", 2, "questions[0].type"),
        ("type: number", "type: image", 2, "questions[0].type"),
        ("minimum: 0", "labels: [a, b]", 2, "questions[0].labels"),
        ("minimum: 0", "when: {outcome: fooled}", 2, "questions[0].when"),
        ("minimum: 0", "minimum: 90", 2, "questions[0].minimum"),
        ("[en, fr]", "[en]", 5, "questions[1].labels"),
        ("name: gender", "name: years", 8, "about[0].name"),
        ("multiclass", "text", 9, "about[0].type"),
        ("labels: [woman", "labels: [woman: x", 10, None),
    ],
)
def test_each_problem_names_its_line(old, new, line, path):
    with pytest.raises(ConfigError) as error:
        read_questionnaire(ASKED.replace(old, new))
    first = error.value.problems[0]
    assert first.line == line
    assert path is None or first.path == path


def test_a_text_that_is_no_questionnaire():
    with pytest.raises(ConfigError) as error:
        read_questionnaire("How old are you?")
    assert "questions:" in error.value.problems[0].fix


def test_steps_hold_words_and_places_of_items():
    tour = (
        f"First **this**:\r\n{{item}}\r\n---\r\n---\n{{item {UUID}}}\n{{context 12}}\nSo {{item}}."
    )
    steps = parse_tour(tour)
    assert steps == [
        ["First **this**:", Placeholder("item")],
        [Placeholder("item", UUID), Placeholder("context", "12"), "So {item}."],
    ]
    assert list_placeholders(steps) == [
        Placeholder("item"),
        Placeholder("item", UUID),
        Placeholder("context", "12"),
    ]
    assert parse_tour(" \n---\n") == []
