"""What an author is asked, and the fields that stand beside it."""

import pytest

from annotation.rules.prompt import list_fields_to_read, split_goal
from tasks.config.loading import load_config

TEXT = """
version: 1
name: Test
goal: {field: label, text: "Write a {label} statement."}
context:
  - {name: premise, type: text}
  - {name: source, type: text, required: false}
  - {name: year, type: number, required: false}
  - {name: prompt, type: text, required: false}
input:
  - {name: hypothesis, type: long_text}
  - {name: label, type: multiclass, labels: [{value: a, goal: true and short}, b]}
output: [{name: label}]
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
support: {prompt_field: prompt}
validation: {votes: {rule: at-least, needed: 2, of: 3}}
"""
DRAWN = load_config(TEXT)
BARE = load_config(
    TEXT.replace("{label} ", "").replace("field: label, ", "").replace("prompt_field: prompt", "")
)


@pytest.mark.parametrize(
    ("config", "goal", "parts"),
    [
        (DRAWN, "a", ("Write a ", "true and short", " statement.")),
        (DRAWN, "b", ("Write a ", "b", " statement.")),
        (DRAWN, "", ("Write a {label} statement.", "", "")),
        (BARE, "a", ("Write a statement.", "", "")),
    ],
)
def test_the_goal_in_a_sentence(config, goal, parts):
    assert split_goal(config, goal) == parts


def test_the_filled_fields_are_read_in_their_order_and_the_prompt_apart():
    context = {"prompt": "Negate it.", "year": 0, "premise": "A shop opened.", "source": ""}
    read = {"premise": "A shop opened.", "year": 0}
    assert [*list_fields_to_read(DRAWN, context).items()] == [*read.items()]
    assert list_fields_to_read(BARE, context) == {**read, "prompt": "Negate it."}
    assert list_fields_to_read(DRAWN, {"premise": None, "source": []}) == {}
