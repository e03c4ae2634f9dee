"""Configurations go out for Dynabench 1.0 and 2.0 and come back, or it is said why they do not."""

from pathlib import Path

import pytest

from tasks.config.dynabench1 import convert_config
from tasks.config.dynabench_export import NoCounterpart, export_to_dynabench
from tasks.config.loading import load_config
from tasks.config.parsing import read_yaml

SHAPES = Path(__file__).parents[2] / "fixtures"
FILES = {path.parent.name[-1] + path.stem: path for path in SHAPES.glob("dynabench[12]/*.yaml")}
OFFICIAL = Path(__file__).parents[3] / "tasks" / "official"
LABEL = ".label` is not carried over."


def of_file(name):
    return load_config(convert_config(FILES[name].read_text(), name="X").config_yaml_text)


def official(code):
    return load_config((OFFICIAL / code / "task.yaml").read_text())


def back(config, version):
    """The configuration after the way out and in, and what was said to be lost."""
    exported = export_to_dynabench(config, version)
    assert exported.text.startswith(f"# For Dynabench {version}.\n")
    assert all(f"\n# {note}\n" in exported.text for note in exported.notes)
    converted = convert_config(exported.text, name=config.name)
    assert not converted.notes[1:]
    return load_config(converted.config_yaml_text), exported.notes


@pytest.mark.parametrize("name", sorted(FILES))
def test_what_came_from_1_goes_back_whole(name):
    config = of_file(name)
    again, notes = back(config, "1.0")
    if name == "1flores":
        assert notes[0].startswith("`metrics.main`")
        assert again.metrics.main == config.metrics.main
        return
    assert again == config
    assert notes == [] or name == "1dataperf"


@pytest.mark.parametrize("name", ["1hate_speech", "1nli", "1qa", "1sentiment", "2nli", "2qa"])
def test_one_text_and_its_answer_go_to_2_but_for_the_words_above_the_fields(name):
    config = of_file(name)
    again, notes = back(config, "2.0")
    assert all(note.endswith(LABEL) for note in notes)
    assert bool(notes) == (name[0] == "1")
    assert [(one.name, one.type) for one in again.input] == [
        (one.name, one.type) for one in config.input
    ]
    for part in ("verdict", "metrics", "metadata", "target_fields", "answer_field", "weights"):
        assert getattr(again, part) == getattr(config, part), part


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("code", ["nli", "qa", "sentiment"])
def test_each_thing_that_an_official_task_loses_is_named(code, version):
    config = official(code)
    again, notes = back(config, version)
    assert again.target_fields == config.target_fields
    assert (again.verdict.type, again.metrics.main) == (config.verdict.type, config.metrics.main)
    assert again.goal.field == config.goal.field
    assert {"`instructions` is not carried over.", "`examples` is not carried over."} <= {*notes}
    assert any(note.startswith("`metadata.create.") for note in notes)


@pytest.mark.parametrize(
    ("code", "version", "parts"),
    [
        ("secret", "1.0", ("`input.talk` is of the type chat", "`verdict` is secret")),
        ("vqa", "2.0", ("`context`",)),
        ("hate-speech", "2.0", ("`input.hate_target`",)),
    ],
)
def test_what_would_be_another_task_is_refused(code, version, parts):
    with pytest.raises(NoCounterpart) as refused:
        export_to_dynabench(official(code), version)
    assert all(part in str(refused.value) for part in parts)


def test_an_arena_is_refused():
    arena = load_config("{version: 1, kind: arena, name: A}")
    with pytest.raises(NoCounterpart):
        export_to_dynabench(arena, "1.0")


def test_the_file_names_the_interfaces_of_2():
    said = read_yaml(export_to_dynabench(of_file("1qa"), "2.0").text).data
    assert said["context"]["type"] == "selectable-text"
    assert said["goal"]["type"] == "plain-text"
    assert [one["type"] for one in said["user_input"]] == ["text"]
    assert said["model_output"] == {"model_prediction_label": "answer"}
