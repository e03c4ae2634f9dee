"""Task configurations: what is accepted, and what others ask of them."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.config.components import FIELD_TYPES, Condition
from tasks.config.loading import build_json_schema, check_config, dump_config, load_config
from tasks.config.parsing import dump_yaml, read_yaml
from tests.unit.tasks.config_texts import FULL, MINIMAL

TASKS = Path(__file__).parents[3] / "tasks"
OFFICIAL = sorted(TASKS.glob("official/*/task.yaml"))


@pytest.mark.parametrize("path", OFFICIAL, ids=lambda path: path.parent.name)
def test_official_tasks_load(path: Path) -> None:
    config, advice = check_config(path.read_text())
    assert config is not None
    assert advice == []
    assert config.target_fields or config.talk
    assert load_config(dump_config(config)) == config


def test_all_official_tasks_are_tested() -> None:
    codes = ["grounded", "hate-speech", "nli", "qa", "secret", "sentiment", "vqa"]
    assert [path.parent.name for path in OFFICIAL] == codes


def test_a_likeness_may_leave_it_to_the_author_only_between_two_bounds() -> None:
    assert load_config(FULL).may_ask_author
    assert not load_config(FULL.replace(", ask_between: [0.3, 0.5]", "")).may_ask_author


def test_what_views_ask_of_a_configuration() -> None:
    config = load_config(FULL)
    assert config.target_fields == ("label", "answer")
    assert config.answer_field == "label"
    assert config.model_fields == ("passage", "offers", "text")
    assert config.goal_choices == ("hate", "not-hate")
    assert config.text_field == "text"
    assert config.challenges == {"count": "Count."}
    assert load_config(MINIMAL).challenges == {}
    assert [label.words for label in config.get_labels("label")] == ["hateful", "not-hate"]
    assert config.get_component("label").values == ("hate", "not-hate")
    assert config.get_component("answer").type == "span"
    assert config.get_component("better").type == "multiclass"
    assert config.get_component("prompt").title == "prompt"
    assert config.display("label", "hate") == "hateful"
    assert config.display("label", "unknown") == "unknown"
    assert config.display("kind", ["x", "y"]) == "x, y"
    assert config.display("answer", {"text": "red", "start": 4, "end": 7}) == "red"
    assert config.display("sure", 0.5) == "0.5"
    assert config.display("text", None) == ""
    assert config.weights == {"squad_f1": 4, "memory": 1}
    with pytest.raises(KeyError):
        config.get_component("nothing")


def test_a_stored_field_that_does_not_work_is_read_and_no_more_stored() -> None:
    text = FULL.replace("offers, type: candidates", "offers, type: spans, reference: passage")
    assert load_config(text).unsupported_input is None
    found, problems = check_config(text)
    problem, second = (one for one in problems if one.severity == "error")
    assert (found, problem.path) == (None, "context[2].type")
    assert problem.line == text[: text.index("{name: offers")].count("\n") + 1
    assert second.path == "output[2]"  # a second answer: see _unfit_outputs


def test_what_people_are_given_and_practise_on() -> None:
    full, small = load_config(FULL), load_config(MINIMAL)
    assert (full.context_role, small.context_role) == ("passage", "nothing")
    assert (full.context_title, small.context_title) == ("passage", "")
    assert (full.has_free_answers, small.has_free_answers) == (False, True)
    assert load_config(FULL.replace("  - {name: offers, type: candidates, required: false}\n", "")
                       ).practice_contexts == ({"passage": "The red fox."},)  # fmt: skip
    assert small.practice_contexts == ({},)
    prompt = MINIMAL + "context: [{name: prompt, type: text}]\nsupport: {prompt_field: prompt}\n"
    assert load_config(prompt).context_role == "prompt"
    assert load_config(prompt).context_title == ""
    assert load_config(prompt).practice_contexts == ()


def test_defaults_of_a_small_configuration() -> None:
    config = load_config(MINIMAL)
    assert config.target_fields == ()
    assert config.answer_field == "answer"
    assert config.model_fields == ("text",)
    assert config.goal_choices == ()
    assert config.weights == {"bleu": 4, "throughput": 1, "memory": 1}
    assert config.validation.votes.needed == 3
    assert config.limits.tries_per_context == 10
    assert config.slices == ("tag",)
    assert config.metrics.detail_columns[:2] == ("latency_p95", "memory_mean")
    of_deltas = [name.partition("_")[0] for name in config.metrics.detail_columns[2:]]
    assert of_deltas == [delta for delta in config.metrics.deltas for _ in range(2)]


@pytest.mark.parametrize(
    ("rule", "needed"),
    [("{rule: strict, of: 5}", 3), ("{rule: plurality, of: 4}", 3), ("{needed: 2}", 2)],
)
def test_a_majority_follows_from_the_number_of_votes(rule: str, needed: int) -> None:
    text = FULL.replace("{rule: at-least, needed: 3, of: 5}", rule)
    assert load_config(text).validation.votes.needed == needed


def test_json_is_read_too() -> None:
    config = load_config(MINIMAL)
    text = json.dumps({**read_yaml(MINIMAL).data, "name": "Small 😀"}, indent="\t")
    assert "\\ud83d" in text
    assert load_config(text).name == "Small 😀"
    assert load_config(text).input == config.input


def test_words_that_look_like_something_else_stay_words() -> None:
    text = FULL.replace("[x, y]", "[yes, 2024-01-01]").replace("kind: [x]", "kind: [yes]")
    assert load_config(text).get_component("kind").values == ("yes", "2024-01-01")


def test_a_condition_says_when_it_holds() -> None:
    assert Condition(outcome="fooled").is_met({}, outcome="fooled")
    assert not Condition(outcome="fooled").is_met({}, outcome="not_fooled")
    assert Condition(verdict="flagged").is_met({}, verdict="flagged")
    assert not Condition(verdict="flagged").is_met({}, outcome="fooled")
    assert Condition(field="a", equals="x").is_met({"a": "x"})
    assert not Condition(field="a", equals="x").is_met({})
    assert not Condition().is_met({})


WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Co", "Cn"]) | st.sampled_from(" \n:#-'\""),
    min_size=1,
    max_size=20,
).filter(lambda text: text.strip() == text and "{" not in text and "}" not in text)
TRICKY = st.sampled_from(
    ["no", "null", "~", "1", "1.0", "1e5", "08", "0x1", "2024-01-01", "1:30", "=", "<<", "- a", "y"]
)
LABELS = st.lists(WORDS | TRICKY, min_size=2, max_size=5, unique_by=str.strip)


@settings(max_examples=40, deadline=None)
@given(WORDS | TRICKY, LABELS, st.integers(1, 9), st.floats(0.01, 1), st.booleans())
def test_what_is_dumped_loads_as_the_same(
    words: str, labels: list[str], needed: int, threshold: float, single: bool
) -> None:
    data = read_yaml(FULL).data
    data["name"] = words
    data["instructions"] = words + "\n\n" + words
    data["input"][2]["labels"] = labels
    data["examples"]["good"][0]["input"]["kind"] = labels[:1]
    data["validation"] = {"votes": {"needed": needed}}
    data["verdict"] = {"type": "string_f1", "field": "answer", "threshold": threshold}
    data["output"][1] = {"name": "p", "type": "prob", "single": True} if single else "text"
    config = load_config(dump_yaml(data))
    assert config.get_component("kind").values == tuple(labels)
    assert config.name == words
    assert load_config(dump_config(config)) == config
    assert load_config(json.dumps(data)) == config


def test_the_reference_for_owners_names_every_key() -> None:
    reference = (TASKS.parent / "docs" / "task-config.md").read_text()
    schema = build_json_schema()
    parts = {"": schema, **schema["$defs"]}
    missing = {
        f"{name}.{key}"
        for name, part in parts.items()
        for key in part.get("properties", {})
        if f"`{key}`" not in reference and f"`{key}:" not in reference
    }
    assert missing == set()
    assert {kind for kind in FIELD_TYPES if f"`{kind}`" not in reference} == set()


def test_the_smallest_task_of_the_reference_loads() -> None:
    reference = (TASKS.parent / "docs" / "task-config.md").read_text()
    example = reference.partition("```yaml\n")[2].partition("```")[0]
    assert load_config(example).target_fields == ("same",)


def test_who_changes_what_was_read_changes_no_later_reading():
    read_yaml(MINIMAL).data["name"] = "Other"
    assert read_yaml(MINIMAL).data["name"] != "Other"


ARENA = "version: 1\nkind: arena\nname: Duel\nsummary: Which is better?\n"


def test_an_arena_needs_a_name_alone_and_stays_as_it_was_written():
    config, problems = check_config(ARENA)
    assert config is not None
    assert (config.kind, problems) == ("arena", [])
    assert load_config(dump_config(config)) == config
    assert "goal" not in dump_config(config)


@pytest.mark.parametrize("key", ["goal: {text: Write}", "limits: {}", "models: [a, b]"])
def test_an_arena_refuses_what_it_does_not_use(key):
    (problem,) = check_config(ARENA + key)[1]
    assert (problem.path, problem.line) == (key.partition(":")[0], 5)


def test_other_tasks_still_need_a_goal():
    paths = {problem.path for problem in check_config("version: 1\nname: T\n")[1]}
    assert {"goal", "input", "output", "verdict", "metrics"} <= paths


def test_only_an_arena_has_battles():
    (problem,) = check_config(MINIMAL + "battles: {}\n")[1]
    assert (problem.path, problem.line) == ("battles", 8)


def test_how_sure_a_model_is_is_no_answer_to_compare() -> None:
    text = """
version: 1
name: Sure
goal: {text: Write}
input:
  - {name: text, type: text}
  - {name: label, type: multiclass, labels: [a, b]}
  - {name: sure, type: prob, single: true}
output: [{name: label, type: multiclass}, {name: sure, type: prob, single: true}]
verdict: {type: exact_match, fields: [label, sure]}
metrics: {main: accuracy}
"""
    found, problems = check_config(text)
    assert found is None
    assert "output[1]" in [one.path for one in problems if one.severity == "error"]
