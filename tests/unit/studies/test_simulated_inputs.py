"""What simulated people write: values that the task's own checks accept, and no two texts alike."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.rules.near_duplicates import are_alike
from dynabench.studies.rules.simulated_inputs import (
    DRAWERS,
    draw_answers,
    draw_inputs,
    draw_text,
    draw_value,
    find_unwritable_field,
)
from tasks.config.components import FIELD_TYPES, Component
from tasks.config.loading import load_config
from tasks.config.values import find_value_errors
from tasks.services import OFFICIAL_FOLDER

TASKS = sorted(path.parent.name for path in OFFICIAL_FOLDER.glob("*/task.yaml"))
PASSAGE = "Nora opened the small shop at nine, and her brother came with fresh bread at ten."
UNWRITTEN = {"chat", "image", "audio"}
"""Types that nobody fills in as a value: conversations and files."""


def load(code):
    return load_config((OFFICIAL_FOLDER / code / "task.yaml").read_text())


def build_context(config):
    return {component.name: PASSAGE for component in config.context if component.kind.is_text}


@pytest.mark.parametrize("code", TASKS)
def test_the_tasks_own_checks_accept_what_is_written(code):
    config, random = load(code), Random(1)
    assert find_unwritable_field(config) is None
    context = build_context(config)
    for goal in [*config.goal_choices, ""]:
        inputs = draw_inputs(config, context, goal, random)
        for component in config.input:
            if component.name not in inputs:
                is_asked = component.when is None or component.when.is_met(inputs)
                assert component == config.talk or not component.required or not is_asked
                continue
            value = inputs[component.name]
            assert find_value_errors(component, value, {**context, **inputs}) == []
        if goal:
            assert inputs[config.goal.field] == goal
        for outcome in ("fooled", "not_fooled"):
            answers = draw_answers(config, context, inputs, outcome, random)
            for question in config.metadata.create:
                if question.name in answers:
                    value = answers[question.name]
                    assert find_value_errors(question, value, {**context, **inputs}) == []


def test_each_type_of_field_is_drawn_or_refused():
    texts = {name for name, kind in FIELD_TYPES.items() if kind.is_text}
    assert set(FIELD_TYPES) == texts | set(DRAWERS) | UNWRITTEN
    config = load("nli")
    image = Component(name="picture", type="image")
    changed = config.__class__.__dataclass_fields__  # a frozen dataclass is copied field by field
    values = {name: getattr(config, name) for name in changed}
    other = config.__class__(**values | {"input": (*config.input, image)})
    assert find_unwritable_field(other) == image


@settings(max_examples=60)
@given(
    st.integers(0, 10_000),
    st.one_of(st.none(), st.integers(1, 200)),
    st.integers(0, 150),
    st.text(max_size=80),
)
def test_texts_keep_the_fields_limits(seed, max_length, min_length, passage):
    if max_length is not None:
        min_length = min(min_length, max_length // 2)
    field = Component(name="text", type="text", min_length=min_length, max_length=max_length)
    text = draw_text(field, {"passage": passage}, Random(seed))
    assert text.strip() == text != ""
    assert max_length is None or len(text) <= max_length
    if max_length is None or max_length > 60:
        assert len(text) >= min_length


@settings(max_examples=60)
@given(
    st.integers(0, 10_000), st.integers(-20, 20), st.integers(0, 30), st.sampled_from([1, 0.5, 2])
)
def test_numbers_lie_on_the_fields_grid(seed, low, steps, step):
    field = Component.model_validate(
        {"name": "n", "type": "number", "minimum": low, "maximum": low + steps * step, "step": step}
    )
    value = draw_value(load("nli"), field, {}, Random(seed))
    assert find_value_errors(field, value, {}) == []


def test_a_persons_texts_are_not_alike():
    random = Random(7)
    field = Component(name="text", type="text")
    texts = [draw_text(field, {"passage": PASSAGE}, random) for _ in range(60)]
    pairs = [(a, b) for i, a in enumerate(texts) for b in texts[:i]]
    assert sum(are_alike(a, b) for a, b in pairs) / len(pairs) < 0.002
