"""Help with writing: found by itself, refused when a part is missing."""

import pytest

from annotation.aids.registry import AIDS, Aid, find_aid, list_allowed_aids
from tasks.config.loading import load_config
from tests.support.guide import registered_for_now
from tests.unit.tasks.config_texts import MINIMAL

PARTS = {
    "label": "Draw a word",
    "place": 50,
    "template": "annotation/ideas/_examples.html",
    "is_allowed": lambda self, config: True,
    "provide_help": lambda self, assignment, want, typed: None,
}


def add(name, **parts):
    return type("Thing", (Aid,), parts, name=name)


@pytest.mark.parametrize("part", Aid.PARTS)
def test_an_aid_without_a_part_is_refused_by_its_name(part):
    lacking = {name: value for name, value in PARTS.items() if name != part}
    with registered_for_now(), pytest.raises(TypeError, match=f"word lacks: {part}\\."):
        add("word", **lacking)


@pytest.mark.parametrize("more", [{"name": "examples"}, {"answers": ("ignore",)}])
def test_a_value_of_a_button_is_given_once(more):
    name = more.pop("name", "word")
    with registered_for_now(), pytest.raises(TypeError, match="already"):
        add(name, **PARTS | more)
    assert "word" not in AIDS


def test_a_new_aid_has_a_button_and_is_found_by_it():
    config = load_config(MINIMAL)
    before = list_allowed_aids(config)
    with registered_for_now():
        add("word", **PARTS)
        assert [aid.name for aid in list_allowed_aids(config) if aid not in before] == ["word"]
        assert find_aid(config, "word").template == PARTS["template"]
        assert find_aid(config, "suggestion") is None
