"""What may change in a configuration after a round has been opened."""

import pytest

from tasks.config.changes import find_forbidden_changes
from tasks.config.loading import load_config

OLD = """
version: 1
name: Test
goal: {text: Write a statement}
context:
  - {name: premise, type: text}
  - {name: prompt, type: text}
input:
  - {name: hypothesis, type: long_text, max_length: 100}
  - {name: label, type: multiclass, labels: [yes, no]}
output:
  - {name: label, type: multiclass}
  - {name: prob, type: prob, reference: label}
metadata:
  create:
    - {name: why, type: multiclass, required: false, labels: [x, y]}
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
"""


def changed(before, after):
    assert before in OLD
    return find_forbidden_changes(load_config(OLD), load_config(OLD.replace(before, after)))


@pytest.mark.parametrize(
    ("before", "after", "loc"),
    [
        ("{name: prompt, type: text}", "{name: source, type: text}", ("context",)),
        ("{name: premise, type: text}", "{name: premise, type: long_text}", ("context", 0, "type")),
        ("labels: [yes, no]", "labels: [yes, maybe]", ("input", 1, "labels")),
        ("labels: [yes, no]", "labels: [yes, no, maybe]", ("input", 1, "labels")),
        ("labels: [x, y]", "labels: [x, z]", ("metadata", "create", 0, "labels")),
        (
            "  - {name: label, type: multiclass, l",
            "  - {name: more, type: text}\n  - {name: label, type: multiclass, l",
            ("input", 1),
        ),
        ("fields: [label]}", "fields: [label]}\nsupport: {prompt_field: prompt}", ("context", 1)),
        ("  - {name: prob, type: prob, reference: label}\n", "", ("output",)),
        ("prob, reference: label}", "prob, single: true}", ("output", 1, "single")),
        (
            "verdict: {type: exact_match, fields: [label]}",
            "verdict: {type: ask_user}",
            ("verdict",),
        ),
    ],
)
def test_a_change_of_meaning_is_found_where_it_is(before, after, loc):
    assert loc in [item.loc for item in changed(before, after)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: Test", "name: Another name"),
        ("max_length: 100", "max_length: 50, help: Be brief"),
        ("labels: [yes, no]", "labels: [no, {value: yes, display: sure}]"),
        ("text: Write a statement", "text: Write something"),
        ("    - {name: why, type: multiclass, required: false, labels: [x, y]}", "    []"),
        (
            "  - {name: label, type: multiclass, l",
            "  - {name: more, type: text, required: false}\n  - {name: label, type: multiclass, l",
        ),
        ("metrics: {main: accuracy}", "metrics: {main: macro_f1}\nlimits: {tries_per_day: 9}"),
    ],
)
def test_words_limits_and_optional_fields_may_change(before, after):
    assert changed(before, after) == []


def test_the_words_of_the_question_to_authors_may_change():
    old = OLD.replace("{type: exact_match, fields: [label]}", "{type: ask_user}")
    new = old.replace("ask_user}", "ask_user, question: Was it right, answers: A}")
    new = new.replace("answers: A", "answers: {correct: Right, incorrect: Wrong}")
    assert find_forbidden_changes(load_config(old), load_config(new)) == []
    assert find_forbidden_changes(load_config(OLD), load_config(old))[0].loc == ("verdict",)
