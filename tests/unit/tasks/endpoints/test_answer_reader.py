"""What a language model wrote, read as an answer."""

import json
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasks.targets.endpoints.answer_reader import (
    MAX_SENTENCE_CHARS,
    find_equal_label,
    fold_text,
    read_label,
    read_span,
    read_text,
    split_thoughts,
)

MOODS = ("positive", "negative", "neutral")
LABEL_SETS = [
    MOODS,
    ("entailment", "not_entailment"),
    ("yes", "no"),
    ("A", "B", "C"),
    ("0", "1"),
    ("very good", "good", "bad"),
    ("US", "us", "Great Britain"),
    ("正面", "负面", "中性"),
    ("긍정", "부정"),
    ("ポジティブ", "ネガティブ"),
    ("บวก", "ลบ"),
    ("सकारात्मक", "नकारात्मक"),
    ("إيجابي", "سلبي"),
    ("חיובי", "שלילי"),
    ("θετικός", "αρνητικός"),
    ("tích cực", "tiêu cực"),
    ("olumlu", "olumsuz"),
]
LABELLED = st.sampled_from(LABEL_SETS).flatmap(
    lambda labels: st.tuples(st.just(labels), st.sampled_from(labels))
)


def label_in(text: str, labels: tuple[str, ...] = MOODS) -> str | None:
    reading = read_label(text, labels, "label")
    return reading and reading.label


WRAPPED = [
    "{}",
    " {} \n",
    "{}.",
    "{}!",
    "{}。",
    "**{}**",
    "`{}`",
    '"{}"',
    "“{}”",
    "„{}“",
    "«{}»",
    "「{}」",
    "({})",
    "Answer: {}",
    "Label = {}",
    "**Answer:** {}",
    "<answer>{}</answer>",
    "\\boxed{{{}}}",
    "```\n{}\n```",
    "```text\n{}\n```",
    '{{"label": "{}"}}',
    '{{"Label": "{}."}}',
    '```json\n{{"label": "{}"}}\n```',
    'Here you are:\n```json\n{{"label": "{}", "why": "so"}}\n```\nGood luck!',
    '{{"label": "{}"}}\n\nThe tone is clear.',
]


@given(labelled=LABELLED, wrapping=st.sampled_from(WRAPPED))
def test_a_label_is_read_in_every_wrapping(labelled, wrapping):
    labels, label = labelled
    reading = read_label(wrapping.format(label), labels, "label")
    assert reading is not None
    assert (reading.label, reading.is_named) == (label, False)


@given(labelled=LABELLED, wrapping=st.sampled_from(WRAPPED), thoughts=st.sampled_from(LABEL_SETS))
@pytest.mark.parametrize(
    "thinking",
    [
        "<think>\n{}\n</think>\n\n",
        "<thinking>{}</thinking>",
        "{}</think>",
        "<Thought>{}</Thought>\n",
        "[THINK]{}[/THINK]",
        "◁think▷{}◁/think▷",
        "<|START_THINKING|>{}<|END_THINKING|>",
        "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
def test_thoughts_are_no_answer(thinking, labelled, wrapping, thoughts):
    labels, label = labelled
    text = thinking.format(f"It may be {' or '.join(thoughts)}.") + wrapping.format(label)
    written = split_thoughts(text)
    assert label_in(written.text, labels) == label
    assert thoughts[0] in written.thoughts
    assert not written.is_unfinished


@pytest.mark.parametrize("text", ["<think>It is positive", "<think>", "a</think><think>positive"])
def test_thoughts_without_an_end_hold_no_answer(text):
    assert split_thoughts(text) == split_thoughts(text)._replace(text="", is_unfinished=True)


@given(st.text())
def test_a_text_without_thoughts_is_itself(text):
    assume(not any(mark in text for mark in ("<", "[", "◁")))
    assert split_thoughts(text) == (text.strip(), "", False)


@given(text=st.text())
def test_what_is_left_has_no_thoughts(text):
    once = split_thoughts(f"<think>{text}</think>{text}").text
    assert split_thoughts(once).text == once


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The text is positive.", "positive"),
        ("The text is a negative example of a product review.", "negative"),
        ("I think it is positive", "positive"),
        ('{"answer": "positive"}', "positive"),
        ('{"label": ["positive"]}', "positive"),
        ("It is not positive, it is negative.", "negative"),
        ("positive positive", "positive"),
        ("positive or negative", None),
        ("It is not positive.", None),
        ("This is neither positive nor negative.", None),
        ("It isn't clearly positive", None),
        ("positivity", None),
        ("unpositive", None),
        ("", None),
        ("mixed", None),
        ("{", None),
        ('{"label": {"label": 7}}', None),
        ("positive " + "so " * MAX_SENTENCE_CHARS, None),
        ("non-positive", None),
        ("a negative-leaning text, but positive", "positive"),
        ('{"label": "positive"}{"label": "negative"}', None),
        ('{"label": "positive"} and {"label": "positive"}', "positive"),
    ],
)
def test_one_label_that_a_sentence_names_counts_and_two_do_not(text, label):
    assert label_in(text) == label


EXPLAINED = "\n\nIt is praise, neither negative nor neutral. " + "So it goes on. " * 40


@given(labelled=LABELLED, wrapping=st.sampled_from(["{}", "**{}**", "Answer: {}", "{}."]))
def test_a_label_on_a_line_of_its_own_counts_beside_an_explanation(labelled, wrapping):
    labels, label = labelled
    line = wrapping.format(label)
    for text in (line + EXPLAINED, EXPLAINED + "\n" + line):
        assert read_label(text, labels, "label") == (label, True)


@pytest.mark.parametrize(
    "text",
    [
        "positive\nnegative\nneutral",
        "positive\n\nIt may be:\nnegative",
        "It is.\n" * 200 + "positive\n" + "It is.\n" * 200,
    ],
)
def test_lines_of_several_labels_and_lines_in_the_middle_give_none(text):
    assert label_in(text) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I'd rate it 4 out of 5", "4"),
        ("4/5", "4"),
        ("4 / 5", "4"),
        ("5/5", "5"),
        ("Note : 3 sur 5", "3"),
        ("4 stars", "4"),
        ("4星", "4"),
        ("Between 3 and 4", None),
        ("It has 3 parts", None),
        ("45", None),
        ("I would rate it 4, out of 5.", "4"),
        ("4 (out of 5)", "4"),
        ("The rating is 4, in total, so it is good.", "4"),
        ("On a scale from 1 to 5: 4.", "4"),
        ("- 4", "4"),
        ("Four out of 5 stars", None),
        ("-4", None),
        ("Score: −4", None),
        ("1-5", None),
        ("Score: 4.5", None),
        ("\\boxed{4.5}", None),
        ("\\boxed{4:30}", None),
    ],
)
def test_a_rating_is_the_number_before_its_scale(text, label):
    assert label_in(text, ("1", "2", "3", "4", "5")) == label


@pytest.mark.parametrize(
    ("labels", "text", "label"),
    [
        (("yes", "no"), "Yes and no", None),
        (("A", "B"), "A and a half: B", "B"),
        (("good", "good!"), '{"label": "good!"}', "good!"),
        (("positive", "negative"), "这句话的情感是positive。", "positive"),
        (("긍정", "부정"), "긍정적입니다", "긍정"),
        (("yes", "no"), "No, it isn't.", "no"),
        (("yes", "no"), "There is no evidence for that", None),
        (("yes", "no"), "The answer is yes", "yes"),
        (("yes", "no"), "The answer is **no**, as it says so.", "no"),
        (("A", "B"), "B) because a thing", "B"),
        (("A", "B"), "A thing that I like", None),
        (("A", "B"), "The answer is B.", "B"),
        (("entailment", "not_entailment"), "not entailment", "not_entailment"),
        (("entailment", "not_entailment"), "It is entailment.", "entailment"),
        (("very good", "good"), "That is very good work", "very good"),
        (("正面", "负面"), "这条评论是正面的。", "正面"),
        (("正面", "负面"), "不是正面", None),
        (("긍정", "부정"), "긍정입니다", "긍정"),
        (("บวก", "ลบ"), "ข้อความนี้เป็นบวกมาก", "บวก"),
        (("0", "1"), '{"label": 1.0}', "1"),
        (("0", "1"), '{"label": 1}', "1"),
        (("0", "1"), "10", None),
        (("true", "false"), '{"label": true}', "true"),
        (("US", "us"), "us", "us"),
        (("US", "us"), "US", "US"),
        (("US", "us"), "Us", None),
        (("STRASSE", "WEG"), "Straße", "STRASSE"),
        (("ﬁne", "bad"), "FINE", "ﬁne"),
        (('"quoted"', "quoted"), '"quoted"', '"quoted"'),
        (("a\nb", "c"), r'"a\nb"', "a\nb"),
        (("Apple", "apple"), "It is an Apple, really", "Apple"),
        (("Apple", "apple"), "It is an Apple, or an apple", None),
        (("positive", "negative"), "{}" * 60 + '{"label": "positive"}', "positive"),
        (("positive", "negative"), '{"label": null}', None),
    ],
)
def test_labels_of_every_kind(labels, text, label):
    assert label_in(text, labels) == label


LETTERS = tuple("ABCDEFGHIJ")
LONG = "We integrate over the whole range and note that the terms cancel. " * 8
OPTIONS = [
    "ANSWER: ${}$",
    "$${}$$",
    "**${}$**",
    LONG + "Therefore \\boxed{{{}: A polygenic risk score}}",
    LONG + "\\boxed{{{}. It is a film}}",
    LONG + "<answer>({}) A or B</answer>",
    LONG + "so \\boxed{{\\langle H\\rangle \\ll \\Delta E}}\n\n**Answer: {}**",
    "The answer is {}. Note that C is a distractor.",
    "ANSWER IS {}, whatever I said",
    "The correct answer is: {}) a film",
    "Die Antwort ist {}. Beachte das.",
    "答案是{}。注意。",
]


@given(label=st.sampled_from(LETTERS), wrapping=st.sampled_from(OPTIONS))
def test_an_option_is_read_with_its_text_in_formulas_and_before_explanations(label, wrapping):
    assert label_in(wrapping.format(label), LETTERS) == label


@pytest.mark.parametrize(
    "text",
    [
        "The answer is a bit unclear.",
        "The answer is not B.",
        "The answer is B, C.",
        "ANSWER: None of the above",
        "I don't know.",
    ],
)
def test_words_of_one_letter_are_no_option(text):
    assert label_in(text, LETTERS) is None


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.data())
def test_any_label_alone_is_that_label(labels, data):
    label = data.draw(st.sampled_from(labels))
    assert label_in(label, tuple(labels)) == label


@given(labelled=LABELLED, other=st.sampled_from([str.upper, str.title, str.swapcase, str.casefold]))
def test_a_label_in_other_letters_is_that_label_where_it_is_the_only_one(labelled, other):
    labels, label = labelled
    alike = [one for one in labels if fold_text(one) == fold_text(label)]
    expected = label if len(alike) == 1 else find_equal_label(other(label), labels)
    assert find_equal_label(other(label), labels) == expected


@given(text=st.text(), labels=st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_whatever_is_read_is_a_label(text, labels):
    assert label_in(text, tuple(labels)) in (None, *labels)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a rose", "a rose"),
        ('{"answer": "a rose"}', "a rose"),
        ('```json\n{"answer": "a rose"}\n```', "a rose"),
        ("“a rose”", "a rose"),
        ("Answer: a rose.", "a rose"),
        ("a rose is a rose.", "a rose is a rose."),
        ("tulip", "tulip"),
        ("", ""),
    ],
)
def test_a_span_is_the_least_changed_part_that_the_passage_has(text, span):
    assert read_span(text, "It says: a rose is a rose.", "answer") == span


def test_a_text_may_be_json_of_its_field():
    assert read_text('{"text": "A new one."}', "text") == "A new one."
    assert read_text("A new one.", "text") == "A new one."
    assert read_text('He said {"text": "x"}', "text") == 'He said {"text": "x"}'
    assert read_text('{"other": "x"}', "text") == '{"other": "x"}'


@pytest.mark.parametrize(
    "piece", ['{"a":', "{", "<answer>", "```\n", "<think>", "\\boxed{", "not ", "((", "[", '"']
)
def test_hostile_texts_are_read_in_time_that_grows_with_them(piece):
    """Compare a text with one of ten times its length: quadratic work would take a hundredfold."""

    def seconds(count: int) -> float:
        text = piece * (count // len(piece))
        began = time.process_time()
        split_thoughts(text)
        label_in(text)
        return time.process_time() - began

    short = max(min(seconds(30_000) for _ in range(3)), 1e-3)
    assert seconds(300_000) < 60 * short


def test_deep_json_is_no_answer():
    assert label_in('{"a":' * 100_000) is None
    assert label_in(json.dumps({"label": "positive"}) + "{" * 1000) == "positive"
