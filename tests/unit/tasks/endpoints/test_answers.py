import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.targets.endpoints.answers import (
    expect_list,
    expect_number,
    parse_strict_json,
    read_output,
    read_prob,
)
from tasks.targets.endpoints.base import EndpointError

from .conftest import qa, sentiment

CONFIG = sentiment("http://127.0.0.1")
QA = qa("http://127.0.0.1")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"not json", b'{"a": NaN}', b"[Infinity]", b"[-Infinity]", b"[1e999]", b"\xff\xfe1",
        b"[" * 21 + b"]" * 21, b"[" * 100_000, b'{"a":' * 50_000, b'"\\u0000"', b'"\\ud800"',
        b'{"\\u0000": 1}', b"{'a': 1}", b"1 2", b"1" * 5000,
    ],
)  # fmt: skip
def test_json_that_is_refused(body: bytes) -> None:
    with pytest.raises(EndpointError) as caught:
        parse_strict_json(body)
    assert caught.value.reason == "rubbish"


def test_json_that_is_read() -> None:
    assert parse_strict_json(b'{"a": [1, 2.5, null, true, "\\ud83d\\ude00"]}') == {
        "a": [1, 2.5, None, True, "\U0001f600"]
    }
    assert parse_strict_json(b"[" * 20 + b"]" * 20)


@pytest.mark.parametrize("output", [None, [], "positive", {}, {"label": "good"}, {"label": 1},
                                    {"label": ["positive"]}, {"label": None}])  # fmt: skip
def test_outputs_that_are_no_label(output: object) -> None:
    with pytest.raises(EndpointError) as caught:
        read_output(CONFIG, {"text": "x"}, output)
    assert caught.value.reason == "rubbish"


def test_only_the_target_field_of_a_classification_is_kept() -> None:
    assert read_output(CONFIG, {}, {"label": "positive", "x": 1}) == {"label": "positive"}


@pytest.mark.parametrize(
    "prob",
    [
        [], 0.5, {"positive": 0.5}, {"positive": 0.5, "negative": 0.499 - 1e-4}, {},
        {"positive": 1.5, "negative": -0.5}, {"positive": True, "negative": 0},
        {"positive": "1"}, {"positive": math.nan}, {"positive": math.inf}, {"good": 1.0},
        {"positive": 10**400}, {"positive": None},
    ],
)  # fmt: skip
def test_probabilities_that_are_refused(prob: object) -> None:
    with pytest.raises(EndpointError) as caught:
        read_prob(CONFIG, prob)
    assert caught.value.reason == "rubbish"


@given(st.floats(0, 1), st.floats(-9e-4, 9e-4))
def test_probabilities_may_miss_one_by_a_thousandth(share: float, miss: float) -> None:
    other = 1 - share + miss
    if 0 <= other <= 1:
        prob = {"positive": share, "negative": other}
        assert read_prob(CONFIG, prob) == prob


def test_probabilities_may_name_some_labels_or_be_absent() -> None:
    assert read_prob(CONFIG, {"positive": 1}) == {"positive": 1.0}
    assert read_prob(CONFIG, None) is None


def test_the_confidence_of_a_span_need_not_sum_to_one() -> None:
    assert read_prob(QA, {"Paris": 0.25}) == {"Paris": 0.25}
    with pytest.raises(EndpointError):
        read_prob(QA, {"Paris": 0.75, "Rome": 0.75})


@given(st.text(min_size=1, max_size=40), st.data())
def test_every_true_span_is_accepted_and_every_shifted_one_refused(
    passage: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(passage) - 1))
    end = data.draw(st.integers(start + 1, len(passage)))
    item, answer = {"passage": passage}, passage[start:end]
    span = {"answer": answer, "start": start, "end": end}
    if not answer.strip():
        with pytest.raises(EndpointError):
            read_output(QA, item, span)
        return
    assert read_output(QA, item, span) == span
    for wrong in ((start + 1, end + 1), (start, end + 1), (start - 1, end), (end, start)):
        if passage[wrong[0] : wrong[1]] != answer or wrong[0] < 0:
            with pytest.raises(EndpointError):
                read_output(QA, item, span | {"start": wrong[0], "end": wrong[1]})


def test_a_span_without_offsets_is_located_when_it_is_unique() -> None:
    item = {"passage": "a rose is a rose"}
    assert read_output(QA, item, {"answer": "is"}) == {"answer": "is", "start": 7, "end": 9}
    with pytest.raises(EndpointError, match="more than once"):
        read_output(QA, item, {"answer": "rose"})
    located = read_output(QA, item, {"answer": "rose"}, use_first_occurrence=True)
    assert located == {"answer": "rose", "start": 2, "end": 6}
    with pytest.raises(EndpointError):
        read_output(QA, item, {"answer": "tulip"}, use_first_occurrence=True)


@pytest.mark.parametrize("offsets", [(0, None), (None, 1), (0.0, 1), (True, 1), ("0", 1), (-4, -3),
                                     (0, 10)])  # fmt: skip
def test_offsets_that_are_refused(offsets: tuple[object, object]) -> None:
    output = {"answer": "r", "start": offsets[0], "end": offsets[1]}
    with pytest.raises(EndpointError):
        read_output(QA, {"passage": "rose"}, output)


def test_free_outputs_are_kept_whole_but_not_null() -> None:
    free = sentiment("http://127.0.0.1", labels=None)
    assert read_output(free, {}, {"label": "anything", "more": 1}) == {
        "label": "anything",
        "more": 1,
    }
    with pytest.raises(EndpointError):
        read_output(free, {}, {"label": None})


def test_lists_must_have_the_right_length() -> None:
    assert expect_list([1, 2], 2, "x") == [1, 2]
    for value in ([1], [1, 2, 3], None, {"a": 1}):
        with pytest.raises(EndpointError):
            expect_list(value, 2, "x")


def test_numbers_must_be_finite() -> None:
    assert expect_number(3, "x") == 3.0
    for value in (True, "3", None, math.nan, -math.inf, 10**400):
        with pytest.raises(EndpointError):
            expect_number(value, "x")
