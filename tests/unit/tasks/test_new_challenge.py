"""A challenge is added to a configuration's text, and nothing else of it changes."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.new_challenge import add_challenge
from tasks.config.parsing import ConfigError

FURTHER = {"name": "numbers", "text": 'Try one with "numbers": 3 # of them'}
SHAPES = {
    "no support": "name: A\nversion: 1\n",
    "no end of line": "name: A",
    "empty support": "support:\nname: A\n",
    "null support": "name: A\nsupport: null  # none yet\nsummary: B\n",
    "other aids": "support:\n  # an aid\n  examples: true\nname: A\n",
    "deep aids": "support:\n      examples: true\n      minimal_edit: true\nname: A\n",
    "one challenge": "support:\n  challenges:\n    - {name: irony, text: Try irony.}\nname: A\n",
    "same column": (
        "support:\n  challenges:\n  - name: irony\n    text: |\n      Try irony.\nname: A\n"
    ),
    "comment first": (
        "support:\n  challenges:\n    # the thin ones\n    - name: irony\n      text: Try irony.\n"
    ),
}
REFUSED_SHAPES = {
    "JSON": '{"name": "A"}',
    "aids in one line": "support: {examples: true}\n",
    "challenges in one line": "support:\n  challenges: [{name: irony, text: Try irony.}]\n",
    "challenges beside a colon": (
        "support:\n  ? challenges\n  : - {name: irony, text: Try irony.}\n"
    ),
}


def read_without_challenges(text):
    data = yaml.safe_load(text)
    support = data.pop("support", None) or {}
    return data, support, support.pop("challenges", [])


@pytest.mark.parametrize("shape", SHAPES)
def test_adds_one_challenge_and_changes_nothing_else(shape):
    former_data, former_support, former_challenges = read_without_challenges(SHAPES[shape])
    text = add_challenge(SHAPES[shape], FURTHER["name"], FURTHER["text"])
    data, support, challenges = read_without_challenges(text)
    assert (data, support) == (former_data, former_support)
    assert challenges == [FURTHER, *former_challenges]


@pytest.mark.parametrize("shape", ["other aids", "comment first", "null support"])
def test_keeps_the_other_lines(shape):
    lines = add_challenge(SHAPES[shape], "numbers", "Try a number.").split("\n")
    kept_lines = [line for line in SHAPES[shape].split("\n") if "null" not in line]
    assert [line for line in lines if line in kept_lines] == kept_lines


@pytest.mark.parametrize("shape", REFUSED_SHAPES)
def test_refuses_what_has_no_line_for_it(shape):
    with pytest.raises(ConfigError) as refusal:
        add_challenge(REFUSED_SHAPES[shape], "numbers", "Try a number.")
    assert refusal.value.problems[0].path == "support.challenges"


@given(
    st.text(st.characters(exclude_categories=("C", "Z")), min_size=1), st.sampled_from([*SHAPES])
)
def test_any_sentence_is_kept(sentence, shape):
    text = add_challenge(SHAPES[shape], "numbers", sentence)
    challenges = read_without_challenges(text)[2]
    assert challenges[0] == {"name": "numbers", "text": sentence}
