"""What a model answers without a person: the question to it, its answer as read, and the share."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.studies.rules.model_alone import (
    build_alone_question,
    count_alone_share,
    is_key_met,
    read_alone_answer,
    read_key,
)
from dynabench.studies.rules.setup import build_arm_config
from tasks.config.components import Component
from tasks.config.loading import load_config
from tests.support.decisions import ALONE, CONFIG

CHOICE = Component(name="a", type="multiclass", labels=("true", "not true", "unknown"))
NUMBER = Component(name="n", type="number")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("True.", "true"),
        ("This is NOT TRUE, I think", "not true"),
        ("It is untrue", None),
        ("true or unknown", None),
        ("", None),
    ],
)
def test_a_reply_names_one_label_or_none(reply, answer):
    assert read_alone_answer(CHOICE, reply) == answer


def test_a_reply_has_a_number():
    assert read_alone_answer(NUMBER, "About -2,5 points") == -2.5
    assert read_alone_answer(NUMBER, "None") is None


@given(st.sampled_from(CHOICE.values), st.sampled_from(["{}", "I say: {}!", "**{}**\n", "“{}”"]))
def test_a_label_is_found_in_any_frame(label, frame):
    assert read_alone_answer(CHOICE, frame.format(label)) == label


@given(st.text())
def test_any_reply_is_read(reply):
    assert read_alone_answer(CHOICE, reply) in (None, *CHOICE.values)


@given(st.lists(st.booleans(), min_size=1))
def test_the_share_is_in_its_interval(results):
    share = count_alone_share(results)
    assert share.low <= share.share <= share.high
    assert (share.asked, share.right) == (len(results), sum(results))


def test_without_results_there_is_no_share():
    assert count_alone_share([]) is None


def test_all_parts_of_a_key_count():
    key = {"advice": "doctor", "days": 2}
    assert is_key_met(key, key | {"more": 1})
    assert not is_key_met(key, {"advice": "doctor", "days": None})


@pytest.mark.parametrize("key", ["true", None, [], {}, {"absent": 1}, {"advice": 1, "absent": 1}])
def test_a_key_that_nobody_can_meet_is_none(key):
    assert read_key({"key": key}, ("advice", "days")) is None
    assert read_key({}, ("advice",)) is None


def test_the_question_names_the_labels():
    config = load_config(json.dumps(CONFIG))
    question = build_alone_question(config, config.get_component("advice"))
    assert all(label in question for label in ("ambulance", "doctor", "rest"))
    assert "number" in build_alone_question(config, NUMBER)


def test_a_control_has_no_conversation():
    control = load_config(build_arm_config(CONFIG, has_model=False))
    assert control == load_config(json.dumps(ALONE))
    assert load_config(build_arm_config(CONFIG, has_model=True)) == load_config(json.dumps(CONFIG))
    # Other tasks have no conversation to remove: their round has no model.
    other = {**CONFIG, "verdict": {"type": "ask_user"}}
    assert load_config(build_arm_config(other, has_model=False)).talk is not None
