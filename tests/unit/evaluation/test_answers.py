"""What a model's lines must be, and what is said when they are not."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.contract import Answer, InvalidOutput
from evaluation.isolation.inference.exchange import CollectedAnswers

LABELS = ("yes", "no")


def line(id="e1", label="yes", **more) -> bytes:
    return json.dumps({"id": id, "output": {"label": label}, **more}).encode()


def labelled(size=3, **more) -> CollectedAnswers:
    return CollectedAnswers("label", LABELS, [f"e{n}" for n in range(size)], **more)


def free(**more) -> CollectedAnswers:
    return CollectedAnswers("answer", None, ["e1"], **more)


def test_answers_come_back_in_the_order_of_the_ids():
    answers = labelled()
    answers.take(line("e2", "no", prob={"no": 0.75, "yes": 0.25}))
    answers.take(line("e0"))
    assert list(answers.iterate_in_order()) == [
        Answer("yes"),
        None,
        Answer("no", {"no": 0.75, "yes": 0.25}),
    ]
    assert (answers.line_count, answers.answered_count, answers.count_missing()) == (2, 2, 1)


def test_log_probabilities_and_tokens_are_kept_and_bounded():
    answers = labelled(size=2)
    answers.take(line("e0", logprob=-0.123456, tokens=[400, 3]))
    answers.take(line("e1", logprob=None))
    assert list(answers.iterate_in_order()) == [
        Answer("yes", None, -0.1235, [400, 3]),
        Answer("yes"),
    ]
    wrongs = [("logprob", bad) for bad in (0.1, "0", True, -1e9)]
    wrongs += [("tokens", bad) for bad in (3, [1], [1.0, 2], [-1, 2], [1, 10**9])]
    for key, bad in wrongs:
        with pytest.raises(InvalidOutput, match=key):
            labelled().take(line("e0", **{key: bad}))


def test_an_example_without_an_answer_is_told_once_and_counts_as_wrong():
    answers, useless = labelled(size=3), b'{"id": "e1", "output": null, "unanswered": "empty"}'
    answers.take(useless)
    for again in (useless, line("e1")):
        with pytest.raises(InvalidOutput, match="answered before"):
            answers.take(again)
    with pytest.raises(InvalidOutput, match="No example has an answer"):
        answers.check_missing()
    answers.take(line("e0"))
    with pytest.raises(InvalidOutput, match="1 of 3 answers are missing"):
        answers.check_missing()
    answers.take(line("e2"))
    assert "1 of 3" in answers.check_missing()
    assert answers.unanswered_counts == {"empty": 1}
    assert list(answers.iterate_in_order()) == [Answer("yes"), None, Answer("yes")]


@pytest.mark.parametrize(
    "told", [{"output": None, "unanswered": "lazy"}, {"unanswered": "empty"}, {"unanswered": ""}]
)
def test_a_reason_goes_with_no_output_and_is_one_of_the_known(told):
    with pytest.raises(InvalidOutput, match="unanswered"):
        labelled().take(line("e0", **told))


REFUSED = {
    b'{"id": "e1", "output": {"label": "yes"}': "not JSON (Expecting ',' delimiter, character 40)",
    b"\x00": "not JSON (Expecting value, character 1)",
    b"\xef\xbb\xbf{}": "not JSON (Unexpected UTF-8 BOM",
    b"\xff{}": "not UTF-8 (byte 1)",
    b"[" * 100_000: "nested too deeply",
    b"1" * 5000: "Exceeds the limit",
    b"[]": "the line must be a JSON object, not a list",
    b'"e1"': "the line must be a JSON object, not a text",
    b"true": "the line must be a JSON object, not true or false",
    b"7": "the line must be a JSON object, not a number",
    b"{}": '"id" must be the example\'s id, a text, not null',
    line(1): '"id" must be the example\'s id, a text, not a number',
    line("x"): 'no example has this "id"',
    line(extra=1): 'the line has the unknown field "extra". Leave it out.',
    b'{"id": "e1", "label": "yes"}': 'field "label". Write {"id": "…", "output": {"label": …}}.',
    b'{"uid": "e1", "output": {"label": "yes"}}': 'field "uid". Write {"id": "…", ',
    b'{"id": "e1", "output": "yes"}': 'not a text. Write {"id": "…", "output": {"label": …}}.',
    b'{"id": "e1", "output": {"pred": "yes"}}': 'field "pred". Write {"id": "…", ',
    b'{"id": "e1", "id": "e2"}': "appears twice",
    b'{"id": "e1"}': '"output" must be a JSON object, not null',
    b'{"id": "e1", "output": {}}': '"output" lacks the field "label"',
    b'{"id": "e1", "output": {"label": "yes", "start": 1}}': 'unknown field "start"',
    line(label=["yes"]): '"label" must be a text, not a list',
    line(label="LABEL_1"): '"LABEL_1" is not one of the labels: yes, no',
    line(label="x" * 41): '"' + "x" * 40 + "\\u2026",
    line(prob=[1]): '"prob" must be an object of numbers or null, not a list',
    line(prob={"maybe": 1}): '"prob" names "maybe"',
    line(prob={"yes": 0.5}): "sum to 0.5, not to 1",
    line(prob={"yes": "1"}): "must lie in 0 to 1",
    line(prob={"yes": True}): "must lie in 0 to 1",
    line(prob={"yes": 1.5}): "must lie in 0 to 1",
    line(prob={"yes": float("nan")}): "NaN is not a JSON number",
    line(prob={"yes": float("inf")}): "Infinity is not a JSON number",
    b'{"id": "e1", "output": {"label": "yes"}, "prob": {"yes": 1e999}}': "must lie in 0 to 1",
}


@pytest.mark.parametrize(("bad", "said"), REFUSED.items(), ids=lambda value: str(value)[:40])
def test_what_breaks_the_contract_is_named_with_its_line(bad, said):
    answers = labelled()
    answers.take(line("e0"))
    with pytest.raises(InvalidOutput, match=r"^Line 2: ") as error:
        answers.take(bad)
    assert said in str(error.value)
    assert answers.answered_count == 1


def test_an_example_is_answered_once():
    answers = labelled()
    answers.take(line())
    with pytest.raises(InvalidOutput, match='Line 2: this "id" was answered before'):
        answers.take(line(label="no"))


def test_a_line_has_a_cap():
    with pytest.raises(InvalidOutput, match="longer than 10 bytes"):
        labelled(line_bytes=10).take(line())


@pytest.mark.parametrize(
    "output",
    [
        {"answer": "Nuuk", "start": 3, "end": 7},
        {"answer": "Nuuk", "start": None, "end": None},
        {"answer": ""},
    ],
)
def test_a_span_may_say_where_it_stands(output):
    answers = free()
    answers.take(json.dumps({"id": "e1", "output": output, "prob": {"Nuuk": 0.87}}).encode())
    assert list(answers.iterate_in_order()) == [Answer(output["answer"], {"Nuuk": 0.87})]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"answer": "Nuuk", "start": 3}, '"start" and "end" must be whole numbers'),
        ({"answer": "Nuuk", "start": -1, "end": 3}, '"start" and "end" must be whole numbers'),
        ({"answer": "Nuuk", "start": 0, "end": 3}, "is 3, but the answer has 4 characters"),
        ({"answer": "N\0"}, "a NUL"),
        ({"answer": "\ud800"}, "half of a surrogate pair"),
        ({"answer": 4}, '"answer" must be a text, not a number'),
    ],
)
def test_a_free_answer_is_checked_too(output, said):
    with pytest.raises(InvalidOutput, match="Line 1") as error:
        free().take(json.dumps({"id": "e1", "output": output}).encode())
    assert said in str(error.value)


def test_half_a_character_is_refused_wherever_it_stands():
    with pytest.raises(InvalidOutput, match="surrogate"):
        free().take(b'{"id": "e1", "output": {"answer": "x"}, "prob": {"\\ud800": 0.5}}')


def test_other_values_have_their_own_check():
    def check(value):
        return [] if isinstance(value, int) else ["must be a number"]

    answers = free(check=check)
    with pytest.raises(InvalidOutput, match='"answer": must be a number'):
        answers.take(b'{"id": "e1", "output": {"answer": "x"}}')
    answers.take(b'{"id": "e1", "output": {"answer": 7}}')
    assert list(answers.iterate_in_order()) == [Answer(7)]


@given(st.floats(0, 1))
def test_no_message_fits_into_the_digits_of_a_probability(p):
    answers = labelled()
    answers.take(line(prob={"yes": p, "no": 1 - p}))
    kept = list(answers.iterate_in_order())[1].prob
    assert all(len(repr(value)) <= len("0.1234") for value in kept.values())
    assert kept["yes"] == pytest.approx(p, abs=0.00005)


@pytest.mark.parametrize(
    ("size", "answered", "warning"),
    [
        (200, 200, ""),
        (200, 199, "1 of 200 answers are missing; they count as wrong."),
    ],
)
def test_few_missing_answers_count_as_wrong(size, answered, warning):
    answers = labelled(size)
    for number in range(answered):
        answers.take(line(f"e{number}"))
    assert answers.check_missing() == warning


def test_one_percent_is_too_many():
    answers = labelled(100)
    for number in range(99):
        answers.take(line(f"e{number}"))
    with pytest.raises(InvalidOutput, match="1 of 100 answers are missing"):
        answers.check_missing()


def test_empty_lines_and_a_mark_are_no_answers():
    answers = labelled()
    for text in (b"\xef\xbb\xbf", b"", line("e0"), b" \r", b"", line("e1") + b"\r", line("e2")):
        answers.take(text)
    assert answers.check_missing() == ""
    assert answers.line_count == 7
    answers = labelled()
    answers.take(b"\xef\xbb\xbf" + line("e0"))
    assert answers.answered_count == 1


def test_line_ends_of_a_free_answer_are_lf():
    answers = free()
    answers.take(json.dumps({"id": "e1", "output": {"answer": "a\r\nb"}}).encode())
    assert next(answers.iterate_in_order()).value == "a\nb"


@given((st.binary(max_size=60) | st.text(max_size=60).map(str.encode)).filter(bytes.strip))
def test_nothing_but_an_answer_is_taken(junk):
    answers = labelled()
    with pytest.raises(InvalidOutput, match=r"^Line 1: "):
        answers.take(junk)
    assert answers.count_missing() == 3


def test_memory_follows_the_ids_and_not_the_answers():
    ids = [f"{n:020x}" for n in range(20_000)]
    tracemalloc.start()
    answers = CollectedAnswers("answer", None, iter(ids))
    for id in ids:
        answers.take(json.dumps({"id": id, "output": {"answer": "x" * 300}}).encode())
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 20_000 * 300  # and so a million take less than 300 MB


@pytest.mark.parametrize("said", ["YES", " yes\u00a0", "ｙｅｓ"])
def test_what_is_plainly_a_label_is_that_label(said):
    answers = labelled(size=1)
    answers.take(line("e0", said, prob={said: 0.75, "No": 0.25}))
    assert list(answers.iterate_in_order()) == [Answer("yes", {"yes": 0.75, "no": 0.25})]


@pytest.mark.parametrize("said", [1, 1.0, "1", "1.0"])
def test_a_whole_number_is_its_label(said):
    answers = CollectedAnswers("label", ("0", "1"), ["e1"])
    answers.take(line(label=said))
    assert list(answers.iterate_in_order()) == [Answer("1")]


def test_of_labels_that_differ_in_case_an_equal_one_counts():
    answers = CollectedAnswers("label", ("US", "us"), ["e1", "e2"])
    answers.take(line("e1", "us"))
    assert next(answers.iterate_in_order()) == Answer("us")
    with pytest.raises(InvalidOutput, match="Us"):
        answers.take(line("e2", "Us"))


def test_a_free_answer_is_kept_in_one_form_once_its_place_was_checked():
    answers = free()
    output = {"answer": "cafe\u0301", "start": 0, "end": 5}
    answers.take(json.dumps({"id": "e1", "output": output}).encode())
    assert list(answers.iterate_in_order()) == [Answer("café")]
