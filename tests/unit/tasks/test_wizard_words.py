"""The words of questions to writers and judges, as the steps of a new task write them."""

from pathlib import Path

import pytest

from dynabench.manage.wizard.forms import AnswerForm, JudgingForm
from tasks.config.loading import check_config
from tasks.making.outline import format_data, parse_data

ROOT = Path(__file__).parents[3] / "tasks"
TALK = (ROOT / "making/gallery/red-teaming.yaml").read_text(encoding="utf-8")
SECRET = (ROOT / "official/secret/task.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("is_marked", [True, False])
def test_the_question_to_writers_is_written_and_shown_again(is_marked):
    data = parse_data(TALK)
    assert AnswerForm(data).initial["marked_is_wrong"]
    words = {"asked": "Broken?", "asked_correct": "Kept", "asked_incorrect": "Broken"}
    sent = {"rule": "ask_user", "main": "rouge_l", **words}
    form = AnswerForm(data, sent | ({"marked_is_wrong": "on"} if is_marked else {}))
    assert form.is_valid(), form.errors
    form.write(data)
    answers = {"correct": "Kept", "incorrect": "Broken"}
    rule = {"type": "ask_user", "question": "Broken?", "answers": answers}
    assert data["verdict"] == rule | ({"marked_is_wrong": True} if is_marked else {})
    again = AnswerForm(data).initial
    assert {name: again[name] for name in words} == words
    assert check_config(format_data(data))[0] is not None


def test_one_answer_without_the_other_is_refused():
    sent = {"rule": "ask_user", "main": "rouge_l", "asked_correct": "Kept"}
    assert "asked_incorrect" in AnswerForm(parse_data(TALK), sent).errors


def test_what_judges_are_asked_about_is_a_choice_where_a_rule_decides():
    assert "asks" not in JudgingForm(parse_data(TALK)).fields
    form = JudgingForm(parse_data(SECRET))
    assert form.initial["asks"] == "attempt"
