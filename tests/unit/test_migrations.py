"""Migrations since the last release run while it serves (docs/developers.md, "Change a model")."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState
from django.db.models.functions import Now, Random

from dynabench.operations.management.commands.migrate import skip_related_models
from tests.support.live import ROOT
from tests.support.migration_rules import problems
from tests.support.moved_migrations import released_name
from tests.support.old_databases import RELEASES

Key = tuple[str, str]

ALLOWED: dict[Key, str] = {
    ("adversaries", "0005_asked_targets"): "runs are few; 0.3.0 does not know the table it fills",
    ("annotation", "0017_shown_before"): "in batches; 0.3.0 does not know the table that it fills",
    ("tasks", "0028_allowed_folder"): "targets are few; what it writes the former release ignores",
    ("tasks", "0030_target_names_in_tasks"): "targets are few; the rule is wider than the former",
}
"""The reason why a migration that looks wrong is right."""


def in_order(loader: MigrationLoader) -> Iterator[Key]:
    """Every migration after those that it needs."""
    yield from dict.fromkeys(
        key for leaf in loader.graph.leaf_nodes() for key in loader.graph.forwards_plan(leaf)
    )


def found() -> dict[Key, list[str]]:
    """What is wrong with each of our migrations that the last release does not have."""
    released = json.loads((RELEASES[-1] / "release.json").read_text())["migrations"]
    loader = MigrationLoader(None, replace_migrations=False)
    keys = list(in_order(loader))
    modules = {key: sys.modules[loader.disk_migrations[key].__module__] for key in keys}
    files = {key: Path(module.__file__) for key, module in modules.items()}
    ours = {key for key in keys if files[key].is_relative_to(ROOT)}
    ours -= {key for key in keys if "site-packages" in files[key].parts}
    new = {key for key in ours if released_name(files[key]) not in released}
    known = {
        ".".join(key)
        for key in loader.project_state([key for key in keys if key not in new]).models
    }
    state, wrong = ProjectState(), {}
    for key in keys:
        migration = loader.disk_migrations[key]
        if key in new and (all := list(problems(key[0], migration.operations, state, known))):
            wrong[key] = all
        state = migration.mutate_state(state, preserve=False)
    return wrong


def test_the_last_release_serves_while_migrations_run():
    wrong = found()
    said = [f"{'.'.join(key)}: {why}" for key in wrong if key not in ALLOWED for why in wrong[key]]
    assert not said, "\n".join([*said, "If it is right after all, say why in ALLOWED."])
    assert ALLOWED.keys() <= wrong.keys()
    assert all(ALLOWED.values())


IDS = [("id", models.AutoField(primary_key=True))]


def of(**fields: models.Field) -> ProjectState:
    """A state with a large and a small table of these fields."""
    state = ProjectState()
    for app, name in (("annotation", "example"), ("tasks", "task")):
        state.add_model(ModelState(app, name, [*IDS, *fields.items()]))
    return state


def text(**options: object) -> models.CharField:
    return models.CharField(**{"max_length": 10} | options)


GOOD = [
    migrations.AddField("example", "new", text(null=True)),
    migrations.AddField("example", "new", text(db_default="")),
    migrations.AddField("example", "new", models.DateTimeField(db_default=Now())),
    migrations.AddField("example", "new", models.ManyToManyField("example")),
    migrations.AlterField("example", "word", text(max_length=20, null=True)),
    migrations.AlterField("example", "word", text(help_text="A word.")),
    migrations.AddIndex("task", models.Index(fields=["word"], name="by_word")),
    migrations.RemoveIndex("example", "by_word"),
    migrations.CreateModel("New", IDS),
    migrations.AlterModelOptions("example", {"ordering": ["word"]}),
    migrations.SeparateDatabaseAndState([], [migrations.RemoveField("example", "word")]),
]
BAD = [
    migrations.AddField("example", "new", text(default="")),
    migrations.AddField("example", "new", text(null=True, db_index=True)),
    migrations.AddField("example", "new", models.FloatField(db_default=Random())),
    migrations.AlterField("example", "maybe", text()),
    migrations.AlterField("example", "word", text(max_length=5)),
    migrations.AlterField("example", "word", models.IntegerField()),
    migrations.AlterField("task", "word", text(unique=True)),
    migrations.AlterField("example", "word", text(db_index=True)),
    migrations.AlterUniqueTogether("task", {("word", "maybe")}),
    migrations.AddIndex("example", models.Index(fields=["word"], name="by_word")),
    migrations.AddConstraint("task", models.UniqueConstraint(fields=["word"], name="one_word")),
    migrations.RemoveField("task", "word"),
    migrations.RenameField("task", "word", "said"),
    migrations.RenameModel("Task", "Question"),
    migrations.DeleteModel("Task"),
    migrations.RunSQL("SELECT 1"),
    migrations.SeparateDatabaseAndState([migrations.RemoveField("task", "word")]),
]  # fmt: skip
KNOWN = {"annotation.example", "tasks.task"}


@pytest.mark.parametrize("operation", GOOD, ids=lambda one: one.describe())
def test_what_the_former_release_survives(operation):
    assert wrong_with(operation, KNOWN) == []


@pytest.mark.parametrize("operation", BAD, ids=lambda one: one.describe())
def test_what_it_does_not_survive(operation):
    assert len(wrong_with(operation, KNOWN)) == 1


def test_a_table_that_it_does_not_know_may_change_freely():
    assert wrong_with(migrations.RemoveField("task", "word"), KNOWN - {"tasks.task"}) == []


def wrong_with(operation, known):
    app = "tasks" if "ask" in str(operation.deconstruct()) else "annotation"
    return list(problems(app, [operation], of(word=text(), maybe=text(null=True)), known))


def test_a_new_model_leaves_the_others_as_they_are() -> None:
    state = MigrationLoader(None).project_state()
    task = state.apps.get_model("tasks", "Task")
    fields = [
        ("id", models.AutoField(primary_key=True)),
        ("task", models.ForeignKey("tasks.Task", models.CASCADE, related_name="marks")),
    ]
    with skip_related_models():
        state.add_model(ModelState("tasks", "Mark", fields))
    assert state.apps.get_model("tasks", "Task") is task
    assert state.apps.get_model("tasks", "Mark")._meta.get_field("task").related_model is task
    assert "marks" in {one.name for one in task._meta.related_objects}
