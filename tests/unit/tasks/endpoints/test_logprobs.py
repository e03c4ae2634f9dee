"""The probability of what a chat model wrote, and of the label in it."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.targets.endpoints.completions import read_logprob


def reply(*tokens: tuple[str | None, Any]) -> dict[str, Any]:
    rows = [
        {"logprob": logprob} | ({} if text is None else {"token": text}) for text, logprob in tokens
    ]
    return {"choices": [{"logprobs": {"content": rows}}]}


BY_SCHEMA = (('{"', -3.0), ("choice", -2.0), ('":', -1.0), (' "', -0.5), ("B", -0.25), ('"}', -4.0))


@pytest.mark.parametrize(
    ("tokens", "label", "logprob"),
    [
        (BY_SCHEMA, "", -10.75),
        (BY_SCHEMA, "B", -0.25),
        # The last one is the answer: the first stands in the name of the field.
        ((("c", -9.0), ("hoice: ", -9.0), ("c", -0.5)), "c", -0.5),
        # A label of two tokens, the first of which holds a mark, too.
        ((('"ent', -0.5), ("ail", -0.25), ('"', -3.0)), "entail", -0.75),
        (BY_SCHEMA, "Z", None),
        # Without texts only the whole is known.
        (((None, -1.0), (None, -2.0)), "", -3.0),
        (((None, -1.0), (None, -2.0)), "B", None),
        ((), "", None),
        ((("B", 0.5),), "B", None),
        ((("B", None),), "B", None),
    ],
)
def test_the_logprob_of_a_label_is_that_of_its_tokens(
    tokens: tuple[tuple[str | None, Any], ...], label: str, logprob: float | None
) -> None:
    assert read_logprob(reply(*tokens), label) == logprob


@pytest.mark.parametrize("logprobs", [None, [], {}, {"content": None}, {"content": ["B"]}])
def test_what_reports_nothing_has_none(logprobs: Any) -> None:
    assert read_logprob({"choices": [{"logprobs": logprobs}]}, "B") is None


@given(st.lists(st.tuples(st.text(max_size=3), st.floats(-50, 0)), min_size=1), st.data())
def test_a_part_is_at_least_as_likely_as_the_whole(
    tokens: list[tuple[str, float]], data: st.DataObject
) -> None:
    text = "".join(part for part, _logprob in tokens)
    start = data.draw(st.integers(0, len(text)))
    label = text[start : data.draw(st.integers(start, len(text)))]
    whole, part = read_logprob(reply(*tokens)), read_logprob(reply(*tokens), label)
    assert whole is not None
    assert part is not None
    assert whole <= part <= 0 or math.isclose(whole, part)
