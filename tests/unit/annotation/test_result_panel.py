"""What the result panel shows of answers: each target field, and chances only of the first."""

import pytest

from annotation.models import Example, TargetOutput
from annotation.writing.result_panel import build_answers, find_own_chance, format_answer
from tasks.config.loading import load_config
from tasks.models import Context, Round, TargetModel, Task

TEXT = """
version: 1
name: Test
goal: {text: "Write a question."}
context: [{name: passage, type: text}]
input:
  - {name: question, type: long_text}
  - {name: label, type: multiclass, labels: [a, b], label: Your label}
  - SECOND
output: [{name: label}, {name: reply}]
verdict: {type: exact_match, fields: [label, reply]}
metrics: {main: accuracy}
"""
LABEL_ONLY = (
    TEXT.replace("  - SECOND\n", "").replace(", {name: reply}", "").replace(", reply]", "]")
)
SPAN = {"text": "Lund", "start": 5, "end": 9}


def described(text: str, inputs: dict, output: dict):
    """The answer of one target that gives the label b a chance of 0.7; nothing is saved."""
    task = Task(code="test", name="Test", config_text=text)
    round = Round(task=task)
    context = Context(round=round, fields={"passage": "From Lund to Tarn."})
    example = Example(round=round, context=context, inputs=inputs)
    row = TargetOutput(
        example=example, target=TargetModel(name="m"), position=0, output=output, fooled=True
    )
    row.prob = {"a": 0.3, "b": 0.7}
    return build_answers(example, load_config(text), [row])


@pytest.mark.parametrize(
    ("second", "author", "model", "marks"),
    [
        ("{name: reply, type: text}", "Lund", {"reply": "Tarn"}, 0),
        (
            "{name: reply, type: span, reference: passage}",
            SPAN,
            {"reply": "Tarn", "start": 13, "end": 17},
            5,
        ),
    ],
    ids=["text", "span"],
)
def test_every_target_field_is_shown_and_chances_stay_with_the_label(second, author, model, marks):
    text = TEXT.replace("SECOND", second)
    shown = described(text, {"label": "a", "reply": author}, {"label": "b", **model})
    (answer,) = shown
    assert answer.words == "Label: b; Reply: Tarn"
    assert format_answer(load_config(text), {"label": "a", "reply": author}) == (
        "Label: a; Reply: Lund"
    )
    assert [(row.label, row.is_mine) for row in answer.rows] == [("b", False), ("a", True)]
    assert find_own_chance(shown)
    assert len(answer.pieces) == marks
    assert answer.probability_text == ""


def test_a_single_target_field_needs_no_title():
    (answer,) = described(LABEL_ONLY, {"label": "a"}, {"label": "b"})
    assert (answer.words, bool(answer.probability_text), len(answer.rows)) == ("b", True, 2)
