"""No room reads a later one through a string of the ORM: imports alone do not show these arrows."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest
from django.apps import apps

from core.questions import QUESTIONS, UnansweredQuestion, declare_question
from tests.support.variables import APPS

ROOT = Path(__file__).parents[1]
ROOMS = (*(package for package in APPS if package != "dynabench"), "dynabench")
"""In the order in which they may read each other; the roof comes last."""
LOOKUPS = {
    *("filter", "exclude", "get", "values", "values_list", "annotate", "aggregate", "alias"),
    *("order_by", "select_related", "prefetch_related", "only", "defer", "F", "Q", "OuterRef"),
    *("Count", "Sum", "Max", "Min", "Avg", "Prefetch", "Coalesce", "FilteredRelation"),
}
"""Calls that take paths of fields, as names of arguments or as texts."""
METHODS = {
    *("all", "filter", "exclude", "exists", "first", "count", "order_by", "values", "values_list"),
    *("select_for_update", "select_related", "aggregate", "annotate", "create", "add", "set"),
}
"""Methods of a relation's manager."""


def room_of(model):
    return model.__module__.split(".")[0]


def relations_of_later_rooms():
    """Return by room the relations of its rows that only later rooms define."""
    earlier_names = defaultdict(set)
    reverse_names = defaultdict(set)
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.get_fields(include_hidden=True):
            if field.auto_created and not field.concrete:
                reverse_names[field.name].add(room_of(field.related_model))
                earlier_names[room_of(field.related_model)].add(field.name)
            else:
                earlier_names[room_of(model)].add(field.name)
    later = {}
    for place, room in enumerate(ROOMS):
        known = set().union(*(earlier_names[one] for one in ROOMS[: place + 1]))
        after = set(ROOMS[place + 1 :])
        later[room] = {name for name, rooms in reverse_names.items() if rooms & after} - known
    return later


def paths_in(code):
    """Yield line and text of each path of fields in a module."""
    for node in ast.walk(ast.parse(code)):
        # rows of a relation: `annotator.places.filter(…)`
        match node:
            case ast.Attribute(value=ast.Attribute(attr=relation), attr=method):
                if method in METHODS:
                    yield node.lineno, relation
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name not in LOOKUPS:
            continue
        for keyword in node.keywords:
            if keyword.arg:
                yield node.lineno, keyword.arg
        for argument in node.args if name != "get" else ():  # of a dict, mostly
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.lineno, argument.value.lstrip("-")


@pytest.mark.parametrize("room", ROOMS[:-1])
def test_no_path_of_fields_reaches_a_later_room(room):
    names = relations_of_later_rooms()[room]
    found = set()
    for file in sorted((ROOT / room).rglob("*.py")):
        path = str(file.relative_to(ROOT))
        # Formats and configurations have such words as keys of other tools' files.
        if "migrations" in file.parts or path.startswith(("tasks/formats", "tasks/config")):
            continue
        for line, text in paths_in(file.read_text()):
            if names & set(text.split("__")):
                found.add(f"{path}:{line}: {text}")
    assert not found, "\n".join(sorted(found))


# What Django looks for beside a room's own folders.
FOLDERS_OF_DJANGO = {"admin", "api", "management", "migrations", "models", "templatetags"}


@pytest.mark.parametrize("room", ["tasks", "annotation", "validation", "evaluation", "leaderboard"])
def test_the_architecture_names_each_folder_of_a_room_of_at_most_eight(room):
    packages = {file.parent.name for file in (ROOT / room).glob("*/__init__.py")}
    text = (ROOT / "docs/architecture.md").read_text()
    (row,) = re.findall(rf"(?m)^\| `{room}` \|.*\|(.*)\|$", text)
    named = re.findall(r"`(\w+)`", row)
    assert sorted(named) == sorted(packages - FOLDERS_OF_DJANGO)
    assert len(named) <= 8


def test_a_path_is_seen_in_both_forms():
    code = "rows.filter(consensus__is_verified=True).values_list('-attempt__state')"
    assert {text for _, text in paths_in(code)} == {"consensus__is_verified", "attempt__state"}
    assert "consensus" in relations_of_later_rooms()["annotation"]
    assert "consensus" not in relations_of_later_rooms()["validation"]


def test_each_question_of_a_room_has_an_answer():
    assert len(QUESTIONS) > 15
    unanswered = [asked.name for asked in QUESTIONS if not asked.is_answered]
    assert not unanswered


def test_a_question_has_one_answer_and_fails_without():
    @declare_question
    def are_ready() -> bool:
        """Return whether."""

    QUESTIONS.pop()
    with pytest.raises(UnansweredQuestion):
        are_ready()
    are_ready.answer(lambda: True)
    assert are_ready()
    with pytest.raises(ValueError, match="are_ready"):
        are_ready.answer(lambda: False)
