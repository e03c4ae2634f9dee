"""Each line is a row or has a reason; a task can be made from what rows show."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.loading import load_config
from validation.consensus.consensus import Policy
from validation.imports.columns import NewFields
from validation.imports.config import MAX_LABELS, create_config
from validation.imports.rows import BadRow, HistoryRow, ModelPrediction, parse_line, spell_row

ROW = {
    "task": "mood",
    "round": 1,
    "uid": "m-1",
    "context": {"prompt": "The bread was dry."},
    "input": {"text": "Хлеб 🍞 was fine."},
    "author": "w1",
    "author_label": "positive",
    "model_prediction": {"model": "m0", "label": "negative", "probs": {"negative": 0.75}},
    "model_wrong": True,
    "validations": [
        {"worker": "w2", "label": "positive"},
        {"worker": None, "label": "mixed"},
        {"worker": "w2", "verdict": "flagged"},
    ],
    "metadata": {"split": "dev"},
}
POLICIES = ("n-equal:3", "at-least:3", "strict", "plurality", "dawid-skene:0.8")


def encoded(**changes):
    return json.dumps({**ROW, **changes}, ensure_ascii=False).encode()


def test_a_whole_row():
    row = parse_line(encoded())
    assert (row.task, row.round, row.uid, row.author) == ("mood", 1, "m-1", "w1")
    assert row.input == {"text": "Хлеб 🍞 was fine."}
    assert row.answer == ModelPrediction(model="m0", label="negative", probs={"negative": 0.75})
    votes = [(vote.worker, vote.label, vote.verdict) for vote in row.votes]
    assert votes == [("w2", "positive", ""), (None, "mixed", ""), ("w2", "", "flagged")]
    assert row.is_fooled is True


def test_what_a_source_does_not_tell():
    unknown = {"author": None, "author_label": None, "model_prediction": None}
    row = parse_line(
        encoded(
            **unknown, model_wrong=None, context={}, input={}, validations=[], metadata={}, round=0
        )
    )
    assert (row.author, row.author_label, row.answer, row.is_fooled) == (None, None, None, None)
    assert (row.votes, row.round) == ([], 0)


def test_a_plain_row_is_what_judges_read():
    plain = {"text": "Go away.", "stars": 4, "kind": True, "note": None}
    row = parse_line(json.dumps(plain).encode(), "tone")
    assert (row.task, row.round, row.author_label, row.votes) == ("tone", 1, None, [])
    assert row.input == {"text": "Go away.", "stars": "4", "kind": "true"}
    assert row.uid == parse_line(b'{"kind": "true", "stars": "4", "text": "Go away."}', "tone").uid
    named = parse_line(b'{"uid": "a", "text": "Go away.", "label": "rude"}', "tone")
    assert (named.uid, named.author_label) == ("a", "rude")
    assert parse_line(encoded(), "tone") == parse_line(encoded())  # a whole row stays one


@pytest.mark.parametrize(
    "line",
    [
        b'{"uid": "a", "label": "rude"}',
        b'{"text": " "}',
        b"{}",
        '{"text": "\u200b\ufeff"}'.encode(),
    ],
)
def test_a_plain_row_has_something_to_judge(line):
    with pytest.raises(BadRow, match="nothing to judge"):
        parse_line(line, "tone")


def test_escapes_and_a_byte_order_mark_are_fine():
    line = b"\xef\xbb\xbf" + json.dumps(ROW).encode() + b"\r\n"
    assert parse_line(line) == parse_line(encoded())
    assert parse_line(encoded(input={"text": "a\\u0000"})).input == {"text": "a\\u0000"}


MODEL = ROW["model_prediction"]
BAD = [
    ({"task": "Mood"}, "task: ", '"Mood"'),
    ({"round": -1}, "round: ", "-1"),
    ({"round": True}, "round: ", "true"),
    ({"round": "1"}, "round: ", '"1"'),
    ({"round": 2**31}, "round: ", "2147483648"),
    ({"uid": ""}, "uid: ", '""'),
    ({"uid": "x" * 201}, "uid: ", "200"),
    ({"context": None}, "context: ", "null"),
    ({"input": "text"}, "input: ", '"text"'),
    ({"metadata": []}, "metadata: ", "[]"),
    ({"author": 7}, "author: ", "7"),
    ({"author": ""}, "author: ", '""'),
    ({"author_label": [1]}, "author_label: ", "[1]"),
    ({"model_prediction": "m0"}, "model_prediction: ", "object"),
    ({"model_prediction": {"model": "m", "label": "a"}}, "model_prediction ", "`probs`"),
    ({"model_prediction": {**MODEL, "model": ""}}, "model_prediction.model: ", '""'),
    ({"model_prediction": {**MODEL, "label": None}}, "model_prediction.label: ", "null"),
    ({"model_prediction": {**MODEL, "probs": []}}, "model_prediction.probs: ", "[]"),
    ({"model_prediction": {**MODEL, "probs": {"a": 1.5}}}, "model_prediction.probs.a: ", "1.5"),
    ({"model_prediction": {**MODEL, "probs": {"a": True}}}, "model_prediction.probs.a: ", "true"),
    ({"model_wrong": False}, "model_wrong ", "different"),
    ({"model_wrong": "yes"}, "model_wrong: ", '"yes"'),
    ({"author_label": "negative"}, "model_wrong ", "the same"),
    ({"author_label": None}, "model_wrong ", "null"),
    ({"validations": {}}, "validations: ", "{}"),
    ({"validations": ["positive"]}, "validations.0: ", "object"),
    ({"validations": [{"label": "a"}]}, "validations.0 ", "`worker`"),
    ({"validations": [{"worker": "w"}]}, "validations.0 ", "label"),
    ({"validations": [{"worker": 3, "label": "a"}]}, "validations.0.worker: ", "3"),
    ({"validations": [{"worker": "w", "label": ""}]}, "validations.0.label: ", '""'),
    ({"validations": [{"worker": "w", "label": None}]}, "validations.0.label: ", "null"),
    (
        {"validations": [{"worker": "w", "label": "a", "verdict": "correct"}]},
        "validations.0 ",
        "either",
    ),
    (
        {"validations": [{"worker": "w", "label": "a", "verdict": ""}]},
        "validations.0.verdict: ",
        '""',
    ),
    ({"validations": [{"worker": "w", "verdict": "right"}]}, "validations.0.verdict: ", '"right"'),
    ({"autor": "w"}, "the line ", "`author`"),
    ({"secret": 1}, "the line ", "metadata"),
    ({"input": {"text": "a\0b"}}, "input ", "U+0000"),
]


@pytest.mark.parametrize(("changes", "place", "told"), BAD)
def test_a_reason_names_the_field_and_what_is_wrong(changes, place, told):
    with pytest.raises(BadRow) as refused:
        parse_line(encoded(**changes))
    assert str(refused.value).startswith(place)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{'task': 1}", "JSON at column 2"),
        (encoded()[:-9], "JSON at column"),
        (b'{"task": "\xff"}', "byte 11"),
        (b"[]", "object"),
        (b"{}", "`task`"),
        (b'{"task": "a", "task": "b"}', "`task`"),
        (b'{"task": "a", "input": {"text": "b", "text": "c"}}', "`text`"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "1e999"),
        (b'{"a": ' + b"1" * 5000 + b"}", "digits"),
        (b"[" * 100_000, "nested"),
        (b'{"task": "\\ud800"}', "task contains"),
    ],
)
def test_lines_that_are_no_rows(line, told):
    with pytest.raises(BadRow) as refused:
        parse_line(line)
    assert told in str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*ROW, "other"]), json_values)
def test_any_value_gives_a_row_or_a_reason(name, value):
    line = json.dumps({**ROW, name: value}).encode()
    with suppress(BadRow):
        row = parse_line(line)
        json.dumps([row.context, row.input, row.metadata], ensure_ascii=False).encode()


@given(st.binary(max_size=40))
def test_any_bytes_give_a_reason(line):
    with pytest.raises(BadRow):
        parse_line(line)


names = st.lists(st.text(max_size=5) | st.sampled_from(["text", "label", "id", "uid"]), unique=True)


@given(
    names, names, st.sets(st.text(max_size=5), max_size=MAX_LABELS + 5),
    st.sampled_from(POLICIES), st.integers(0, 9),
)  # fmt: skip
def test_a_task_can_be_made_of_anything(context, inputs, labels, policy, votes):
    fields = NewFields("label")
    row = {**ROW, "context": dict.fromkeys(context, "a"), "input": dict.fromkeys(inputs, "b")}
    fitted = fields.rename_columns(HistoryRow.model_validate(row))
    told = fields.get_columns("context"), fields.get_columns("input")
    config = load_config(create_config("my-task", *told, labels, Policy.parse(policy), votes))
    assert {one.name for one in config.context} == {*fitted.context}
    assert len(fitted.context) + len(fitted.input) == len(context) + len(inputs)
    assert config.answer_field == "label"
    assert config.name == "My task"


def test_a_made_task_has_the_fields_and_labels_that_were_seen():
    labels = ["positive", "negative", "mixed"]
    config = load_config(
        create_config(
            "mood", {"prompt": "prompt"}, {"text": "text"}, labels, Policy.parse("at-least:3"), 5
        )
    )
    assert config.get_component("label").values == tuple(labels)
    assert config.model_fields == ("prompt", "text")
    assert (config.validation.mode, config.verdict.type) == ("label", "exact_match")
    assert Policy.from_votes(config.validation.votes) == Policy("at-least", 3, 5)


def test_many_answers_are_free_text():
    answers = [f"answer {n}" for n in range(MAX_LABELS + 1)]
    config = load_config(
        create_config("qa", {"passage": "passage"}, {"question": "Q?"}, answers, None, 0)
    )
    assert (config.validation.mode, config.verdict.type) == ("verdict", "string_f1")


@pytest.mark.parametrize("said", [" good ", "\u00a0good", "good\n"])
def test_a_vote_has_no_spaces_around_it(said):
    row = parse_line(encoded(validations=[{"worker": "w", "label": said}], author_label=said))
    assert (row.votes[0].label, row.author_label) == ("good", "good")


@pytest.mark.parametrize(("said", "label"), [(1, "1"), (1.0, "1"), (True, "true"), (0.5, "0.5")])
def test_a_number_is_a_label(said, label):
    assert parse_line(encoded(validations=[{"worker": "w", "label": said}])).votes[0].label == label


def test_labels_are_those_of_the_task():
    votes = [{"worker": "w", "label": label} for label in ("POSITIVE", "other")]
    answer = {"model": "m", "label": "Negative", "probs": {"NEGATIVE": 0.5}}
    read = parse_line(encoded(validations=votes, model_prediction=answer, author_label=None,
                              model_wrong=None))  # fmt: skip
    row = spell_row(read, ("positive", "negative"))
    assert [vote.label for vote in row.votes] == ["positive", "other"]
    assert row.answer == ModelPrediction(model="m", label="negative", probs={"negative": 0.5})
    assert row.author_label is None
    unknown = read.model_copy(update={"answer": None, "author_label": "Positive"})
    assert spell_row(unknown, ("positive",)).author_label == "positive"


def test_texts_are_kept_in_nfc_and_stretches_in_their_place():
    passage, words = "Zoe\u0308 lives in A\u030a", "lives"
    at = passage.index(words)
    mark = {"text": words, "start": at, "end": at + len(words)}
    read = encoded(
        uid="e\u0301",
        context={"passage": passage, "year": 1},
        input={"mark": mark},
        author_label=words,
        model_wrong=None,
        metadata={"label_start": at, "other_start": 99},
    )
    row = parse_line(read)
    assert row.uid == "e\u0301"  # a name by which others know it
    assert row.context == {"passage": "Zoë lives in Å", "year": 1}
    assert row.input["mark"] == {"text": words, "start": at - 1, "end": at - 1 + len(words)}
    assert row.metadata == {"label_start": at - 1, "other_start": 99}
