"""Schemas of few values: each value that is read is valid by the schema, and none is missing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from serving.errors import BadRequestError
from serving.generation.requests import ChatRequest, read_request
from serving.generation.schemas import MAX_CHOICES, MAX_PARTS, find_choices

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
PATH = "response_format.json_schema.schema"
YES_NO = ('{"label": "yes"}', '{"label": "no"}')


def chosen(label: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An object whose property `label` is of this schema."""
    return {"type": "object", "properties": {"label": label}, "required": ["label"], **more}


# The same choice as clients write it.
WRITTEN = {
    "our own adapter": chosen(
        {"type": "string", "enum": ["yes", "no"]}, additionalProperties=False
    ),
    "OpenAI's parse": chosen(
        {"enum": ["yes", "no"], "title": "Label", "type": "string"},
        title="Answer", description="The answer.", additionalProperties=False,
    ),
    "an enum of Python": chosen(
        {"$ref": "#/$defs/Lab", "description": "what it is"},
        **{"$defs": {"Lab": {"enum": ["yes", "no"], "title": "Lab", "type": "string"}}},
    ),
    "an inlined enum": chosen(
        {"anyOf": [{"$ref": "#/$defs/Lab"}], "description": "what it is"},
        **{"$defs": {"Lab": {"enum": ["yes", "no"], "type": "string"}}},
    ),
    "pydantic 1": chosen(
        {"allOf": [{"$ref": "#/definitions/Lab"}], "default": "yes"},
        definitions={"Lab": {"enum": ["yes", "no"]}}, **{"$schema": "http://json-schema.org/#"},
    ),
    "constants": chosen(
        {"oneOf": [{"const": "yes", "title": "good"}, {"const": "no", "type": "string"}]}
    ),
    "zod": chosen({"anyOf": [{"type": "string", "enum": ["yes"]}, {"enum": ["no"]}]}),
    "without required": {"type": "object", "properties": {"label": {"enum": ["yes", "no"]}}},
    "more allowed": chosen({"enum": ["yes", "no", "yes"]}, additionalProperties=True),
    "a reference to the whole": {
        "$ref": "#/$defs/a~1b%20c~0", "$defs": {"a/b c~": chosen({"enum": ["yes", "no"]})},
    },
    "vendors' keywords": chosen(
        {"enum": ["yes", "no"], "x-order": 1, "nullable": False, "examples": ["yes"]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("around", [{}, {"strict": True}, {"strict": False}, {"strict": None}])
def test_a_choice_is_the_same_however_it_is_written(name: str, around: dict[str, object]) -> None:
    named = {"name": "answer", "description": None, "schema": WRITTEN[name], **around}
    asked = {"response_format": {"type": "json_schema", "json_schema": named}}
    assert read_request(ChatRequest, CHAT | asked).list_choices() == YES_NO


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"type": "boolean"}, [True, False]),
        ({"type": ["boolean", "null"]}, [True, False, None]),
        ({"type": "integer", "enum": [1, 2.5, 3, True]}, [1, 3]),
        ({"type": ["string", "null"], "enum": ["a", None, 1]}, ["a", None]),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, ["a", "b", None]),
        ({"enum": ["a", "b", "c"], "allOf": [{"enum": ["c", "b"]}]}, ["b", "c"]),
        ({"const": {"a": [1]}}, [{"a": [1]}]),
        (
            {"properties": {"a": {"type": "boolean"}, "b": {"enum": [1, 2]}}},
            [{"a": a, "b": b} for a in (True, False) for b in (1, 2)],
        ),
    ],
)
def test_other_values_than_texts_are_chosen(schema: Any, values: list[Any]) -> None:
    assert [json.loads(one) for one in find_choices(schema, "s")] == values


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ([], ""),
        (chosen({"type": "string"}), ".properties.label.enum"),
        (chosen({}), ".properties.label.enum"),
        (chosen({"type": "string", "enum": []}), ".properties.label.enum"),
        (chosen({"enum": "yes"}), ".properties.label.enum"),
        (chosen({"enum": ["a"], "pattern": "b"}), ".properties.label.pattern"),
        (chosen({"enum": ["a"], "type": "integer"}), ".properties.label"),
        (chosen({"enum": ["a"], "type": {}}), ".properties.label.type"),
        (chosen({"enum": ["a"], "nullable": True}), ".properties.label.nullable"),
        (chosen({"enum": [*range(MAX_CHOICES + 1)]}), ".properties.label"),
        (chosen({"$ref": "#/$defs/Label"}), ".properties.label.$ref"),
        (chosen({"$ref": "https://example.org/label.json"}), ".properties.label.$ref"),
        (chosen({"$ref": "#"}), None),
        (chosen({"oneOf": [{"enum": ["a"]}, {"enum": ["b", "a"]}]}), ".properties.label.oneOf"),
        (
            chosen({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}),
            ".properties.label.anyOf.1.enum",
        ),
        (chosen({"anyOf": [{"enum": ["a"]}, None]}), ".properties.label.anyOf.1"),
        (chosen({"enum": ["a"]}, required=["b"]), ".required"),
        (chosen({"enum": ["a"]}, required="label"), ".required"),
        (chosen({"enum": ["a"]}, additionalProperties=5), ".additionalProperties"),
        (chosen({"enum": ["a"]}, minProperties=2), ".minProperties"),
        ({"type": "object"}, ".properties"),
        ({"type": "object", "properties": {}}, ".properties"),
        ({"type": "array", "items": {"enum": ["a"]}}, ".type"),
        ({"properties": {name: {"type": "boolean"} for name in "abcdefg"}}, ""),
    ],
)
def test_other_schemas_are_refused_at_their_place(schema: Any, place: str | None) -> None:
    with pytest.raises(BadRequestError) as refused:
        find_choices(schema, PATH)
    (named,) = refused.value.fields
    assert named == f"{PATH}{place}" if place is not None else named.startswith(PATH)


def test_references_do_not_multiply_the_work() -> None:
    doubled = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(40)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": {**doubled, "d40": {"const": 1}}}
    with pytest.raises(BadRequestError, match=str(MAX_PARTS)):
        find_choices(schema, PATH)


LEAVES = st.sampled_from(["a", "b", "ü", "1", 1, 2.5, True, None])
PARTS = st.recursive(
    st.builds(lambda values: {"enum": values}, st.lists(LEAVES, min_size=1, max_size=3))
    | st.builds(lambda value: {"const": value, "title": "t"}, LEAVES)
    | st.just({"type": "boolean"}),
    lambda part: (
        st.builds(lambda parts: {"anyOf": parts}, st.lists(part, min_size=1, max_size=2))
        | st.builds(
            lambda properties: {"type": "object", "properties": properties},
            st.dictionaries(st.sampled_from("pq"), part, min_size=1, max_size=2),
        )
    ),
    max_leaves=4,
)


@given(PARTS)
def test_what_is_chosen_is_valid_by_the_schema_and_nothing_is_missing(schema: Any) -> None:
    """`jsonschema` is the reference."""
    valid = Draft202012Validator(schema).is_valid
    choices = find_choices(schema, PATH)
    assert len(set(choices)) == len(choices)
    assert all(valid(json.loads(one)) for one in choices)
    if "properties" not in json.dumps(schema):
        texts = {json.dumps(one) for one in ["a", "b", "ü", "1", 1, 2.5, True, False, None]}
        missing = texts - {json.dumps(json.loads(one)) for one in choices}
        assert not any(valid(json.loads(one)) for one in missing)
