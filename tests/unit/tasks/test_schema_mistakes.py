"""Every mistake in a configuration is named with its place, its path and its cure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.loading import check_config, load_config
from tasks.config.parsing import MAX_BYTES, ConfigError, format_path
from tests.unit.tasks.config_mistakes import MISTAKES
from tests.unit.tasks.config_texts import FULL, MINIMAL


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("old", "new", "path", "place", "message", "fix"),
    MISTAKES,
    ids=[f"{mistake[2]}: {mistake[4]}" for mistake in MISTAKES],
)
def test_every_mistake_is_named(
    old: str, new: str, path: str, place: str, message: str, fix: str
) -> None:
    assert FULL.count(old) == 1
    text = FULL.replace(old, new)
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    found = caught.value.problems
    match = [p for p in found if p.path == path and message in p.message and fix in p.fix]
    assert match, "\n".join(map(str, found))
    assert text.splitlines()[match[0].line - 1][match[0].column - 1 :].startswith(place)
    assert match[0].severity == "error"


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("answer, type: text", "p, type: prob, single: true", "output", "no output is an answer"),
        ("answer, type: text", "text", "input", "nothing to read"),
        ("text, type: text}]", "a, type: image}]\nsupport: {}", "support", "no text to write in"),
        (
            "text, type: text}]",
            "a, type: candidates, reference: b}]",
            "input[0].reference",
            '"b" is not candidates of the context',
        ),
        (
            "answer, type: text}]",
            "a, type: multiclass, labels: [a, b]}]\nvalidation: {corrections: true}",
            "validation.corrections",
            "is no free answer",
        ),
        (
            "input: [",
            "validation: {corrections: true}\ninput: [{name: correction, type: text}, ",
            "validation.corrections",
            'called "correction" already',
        ),
        ("main: bleu", "main: llm_judge", "metrics.main", "only as long as its judge is calibr"),
        (
            "main: bleu",
            "main: bleu, also: [llm_judge]",
            "metrics.also[0]",
            "whose verdicts llm_judge counts",
        ),
        ("main: bleu", "main: 'custom:safe'", "metrics.main", "only once a version of it"),
        ("main: bleu", "main: 'custom:Safe'", "metrics.main", "custom:Safe"),
        ("main: bleu", "main: bleu, judge: j-1", "metrics.judge", "no metric is of a judge"),
        (
            "answer, type: text}]\nverdict: {type: ask_user}\nmetrics: {main: bleu}",
            "a, type: number}]\nverdict: {type: ask_user}\n"
            "metrics: {main: accuracy, also: [llm_judge], judge: j}",
            "metrics.also[0]",
            "is for free-text answers",
        ),
        (
            "metrics: {main: bleu}",
            "metrics: {main: bleu, also: [llm_judge], judge: j}\n"
            "leaderboard: {weights: {llm_judge: 4, bleu: 0}}",
            "leaderboard.weights",
            "all weights are 0, llm_judge apart",
        ),
    ],
)
def test_mistakes_of_small_configurations(old: str, new: str, path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(MINIMAL.replace(old, new, 1))
    found = [problem.path for problem in caught.value.problems if message in problem.message]
    assert found == [path], str(caught.value)


def test_a_judge_and_ones_own_may_be_further_metrics() -> None:
    also = "main: bleu, also: [llm_judge, 'custom:safe'], judge: j"
    config, found = check_config(MINIMAL.replace("main: bleu", also))
    assert [one for one in found if one.severity == "error"] == []
    assert config is not None
    assert (config.metrics.computed_names, config.metrics.custom_names) == (
        ("bleu",),
        ("custom:safe",),
    )


def test_a_problem_reads_as_a_sentence() -> None:
    assert problems(FULL.replace("- not-hate", "- hate"))[0] == (
        'line 18, column 5, `input[1].labels`: two labels are equal ("hate"); '
        "give each label its own value"
    )


def test_all_problems_come_at_once_in_the_order_of_the_text() -> None:
    text = FULL.replace("name: Test task", "nam: Test task").replace("main: squad_f1", "mian: x")
    lines = [int(problem.split(",")[0].removeprefix("line ")) for problem in problems(text)]
    assert lines == sorted(lines)
    assert set(lines) == {1, 2, 39}


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "fix"),
    [
        ("", 1, 1, "keys and values", "begin with"),
        ("[1, 2]", 1, 1, "keys and values", "begin with"),
        ("a: 1\nb: x: y", 2, 5, "a colon inside a value", "in quotes"),
        ("a: 1\nb: {c: d?, e: f}", 2, 9, "got '?'", "in quotes"),
        ("a: @b", 1, 4, "cannot start", "in quotes"),
        ("a:\n\t- b", 2, 1, "a tab", "with spaces"),
        ("a: [1", 1, 6, "expected ','", "brackets"),
        ("a: 1\na: 2", 2, 1, 'the key "a" is there twice', "remove one"),
        ("a: &b [1]", 1, 4, "anchors and aliases", "write the value out"),
        ("a: 1\nb: *a", 2, 4, "anchors and aliases", "write the value out"),
        ("a: !!python/object/apply:os.getcwd []", 1, 4, "the tag", "remove the tag"),
        ("a: !!str 1", 1, 4, "the tag", "remove the tag"),
        ("a: 1\n---\nb: 2", 2, 1, "more than one document", "---"),
        ("? [a]\n: 1", 1, 3, "a key must be a word", "plain word"),
        ("a: 1\nb: \x07", 2, 4, "a character that is not allowed", "delete it"),
        ('{"a": "\\ud83d"}', 1, 7, "half a character", "write the character out"),
        ("a: 1e999", 1, 4, "too large", "smaller"),
        (f"a: {'9' * 400}", 1, 4, "too large", "smaller"),
        ("[" * 100_000, 1, 21, "more than 20 levels", "nest less deeply"),
        (f"a: {'b' * MAX_BYTES}", 1, 1, "configuration is too large", "keep it below"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_reading_stops_safely(text: str, line: int, column: int, message: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert fix in problem.fix
    assert (problem.line, problem.column, problem.path) == (line, column, "")


def test_advice_is_no_error() -> None:
    config, advice = check_config(MINIMAL)
    assert config == load_config(MINIMAL)
    assert {problem.severity for problem in advice} == {"warning"}
    assert [problem.path for problem in advice] == [
        "instructions",
        "examples.good",
        "examples.bad",
        "input[0]",
        "validation",
    ]
    assert check_config("a: 1")[0] is None
    found = check_config(f"{MINIMAL}validation: {{judge_not_fooled: 0}}\n")[1]
    assert (found[-1].path, found[-1].line) == ("validation.judge_not_fooled", 8)
    german = FULL.replace("language: en", "language: de-AT")
    assert "metrics.deltas" in {problem.path for problem in check_config(german)[1]}
    assert "metrics.deltas" not in {problem.path for problem in check_config(FULL)[1]}


def test_a_field_with_colours_can_be_kept_in_a_set() -> None:
    coloured = FULL.replace("labels: [x, y]", "labels: [x, y]\n    colours: {x: blue}")
    assert len({*load_config(coloured).input, *load_config(coloured).input}) == 5


@given(st.text(max_size=200) | st.text(st.sampled_from("ab:-[]{},&*!?|>'\"%@` \n#1."), max_size=60))
def test_any_text_is_a_configuration_or_a_problem_with_a_place(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    lines = text.split("\n")
    for problem in caught.value.problems:
        assert problem.message
        assert problem.fix
        assert 1 <= problem.line <= len(lines) + 1
        assert problem.column >= 1


def test_paths_read_like_code() -> None:
    assert format_path(()) == ""
    assert format_path(("input", 1, "labels", 0, "value")) == "input[1].labels[0].value"


LABELLED = """\
version: 1
name: Mood
goal: {text: Write}
input:
  - {name: text, type: text}
  - {name: label, type: multiclass, labels: [a, b]}
output: [label]
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
training_rows: 100
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("type: text}", "type: audio}"),
        ("type: multiclass, labels: [a, b]", "type: text"),
        ("- {name: text, type: text}", "- {name: x, type: text}\n  - {name: y, type: text}\n"
         "  - {name: z, type: text}"),
    ],
)  # fmt: skip
def test_training_rows_are_for_texts_or_a_picture_and_labels(old: str, new: str) -> None:
    for text in (LABELLED, LABELLED.replace("type: text}", "type: image}")):
        assert load_config(text).training_rows == 100
    text = LABELLED.replace(old, new).replace("main: accuracy", "main: exact_match")
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    assert "training_rows" in [problem.path for problem in caught.value.problems]


def test_a_label_that_models_read_keeps_them_from_being_trained() -> None:
    field = "{name: language, type: multiclass, label: Language, labels: [en, de]}"
    labelled = "input: [{name: text, type: text}, {name: label, type: multiclass, labels: [a, b]}]"
    changes = {
        "input: [{name: text, type: text}]": labelled,
        "output: [{name: answer, type: text}]": "output: [label]",
        "{type: ask_user}": "{type: exact_match, fields: [label]}",
        "bleu": "accuracy",
    }
    text = MINIMAL + f"\ncontext:\n  - {field}\n"
    for before, after in changes.items():
        text = text.replace(before, after)
    found = [one for one in check_config(text)[1] if one.path == "context[0]"]
    assert [one.severity for one in found] == ["warning"]
    hidden = text.replace("type: multiclass", "type: text").replace(", labels: [en, de]", "")
    assert not [one for one in check_config(hidden)[1] if one.path == "context[0]"]
