"""The small YAML files of a folder: what is read means the same to a YAML parser, or is refused."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynabench.client.benchmarks.settings_text import SettingsError, read_settings

TEXT = """
# A comment.
name: my-model      # another one
number: 12
share: 0.25
is_open: true
nothing:
empty: null
quoted: "yes"
single: 'it''s'
address: https://mine.test/v1#part
day: 2027-03-01
list: ["a", 2, {"b": null}]
options:
  model: small
  deep:
      temperature: 0

  instructions: |
    Answer in one word.

      Indented: yes, # kept
    end

last: x
"""


def test_a_whole_file_is_read():
    settings = read_settings(TEXT)
    assert settings.values == {
        "name": "my-model",
        "number": 12,
        "share": 0.25,
        "is_open": True,
        "nothing": None,
        "empty": None,
        "quoted": "yes",
        "single": "it's",
        "address": "https://mine.test/v1#part",
        "day": "2027-03-01",
        "list": ["a", 2, {"b": None}],
        "options": {
            "model": "small",
            "deep": {"temperature": 0},
            "instructions": "Answer in one word.\n\n  Indented: yes, # kept\nend\n",
        },
        "last": "x",
    }
    assert settings.places["name"] == (3, 1)
    assert settings.places["last"] == (25, 1)
    assert read_settings("").values == read_settings("# nothing\n\n").values == {}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a", (1, 1)),
        ("a:b", (1, 1)),
        ("- a", (1, 1)),
        ("---\na: 1", (1, 1)),
        ("a: 1\na: 2", (2, 1)),
        ("a: 1\n b: 2", (2, 1)),
        ("a:\n  b: 1\n c: 2", (3, 2)),
        ("a:\n\tb: 1", (2, 1)),
        ("  a: 1", (1, 1)),
        ("yes: 1", (1, 1)),
        ("a: yes", (1, 4)),
        ("a: Off", (1, 4)),
        ("a: ~", (1, 4)),
        ("a: 012", (1, 4)),
        ("a: 1_000", (1, 4)),
        ("a: 1e3", (1, 4)),
        ("a: 0x1f", (1, 4)),
        ("a: 12:30", (1, 4)),
        ("a: .5", (1, 4)),
        ("a: -.inf", (1, 4)),
        ("a: &x 1", (1, 4)),
        ("a: *x", (1, 4)),
        ("a: !!python/object:os.system x", (1, 4)),
        ("a: >\n  b", (1, 4)),
        ("a: |", (1, 1)),
        ("a: |\n    b\n  c", (3, 3)),
        ("a: b: c", (1, 4)),
        ("a: 'b", (1, 4)),
        ("a: 'b' c", (1, 4)),
        ('a: "b" c', (1, 7)),
        ('a: "b', (1, 4)),
        ("a: {b: 1}", (1, 5)),
        ('a: {"b": 1, "b": 2}', (1, 4)),
        ('a: {"b": NaN}', (1, 4)),
        ("a: [" * 1, (1, 5)),
        ("a: " + "[" * 5000, (1, 4)),
        ("a: b\x00", (1, 5)),
        ("a: b\u2028c", (1, 5)),
        ("a: 1\n" + "".join("  " * n + "b:\n" for n in range(12)), (1, 1)),
        ("a: " + "b" * 300_000, (1, 1)),
    ],
)
def test_what_parsers_read_in_two_ways_is_refused_with_its_place(text, place):
    with pytest.raises(SettingsError) as refused:
        read_settings(text)
    if "\n" + "  " * 3 not in text:
        assert (refused.value.line, refused.value.column) == place


def load_as_yaml(text):
    """What PyYAML reads; days stay texts, as here."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if "timestamp" not in tag]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return yaml.load(text, Loader)


PIECES = st.sampled_from(
    [
        "a", "b", "c:", "a: ", "b: ", "- ", "|", "\n", "\n  ", "\n    ", " ", "#", " # x", ":", "'",
        '"', "''", "yes", "true", "null", "1", "0", "-", ".5", "e3", "[", "]", "{", "}", ",", "&",
        "*", "!", "é", "~", "2027-03-01", "%", "@", "?", "=", "<<", "0x", "_", "\t",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
def test_what_is_read_is_what_yaml_reads(text):
    """Of every text: refused, or read as PyYAML reads it."""
    try:
        values = read_settings(text).values
    except SettingsError:
        return
    assert (load_as_yaml(text) or {}) == values


NAMES = st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"yes", "no", "on", "off", "y", "n", "true", "false", "null"}
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_json_on_a_line_comes_back(values):
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in values.items())
    assert read_settings(text).values == values
