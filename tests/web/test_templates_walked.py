"""Each template becomes a task in whose round somebody writes and somebody else judges."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

import pytest

from annotation.models import Assignment, Example
from tasks.making.services import make_task
from tasks.making.templates import load_templates
from tests.support import media
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.new_tasks import ada  # noqa: F401
from tests.support.picture_tasks import own_storage  # noqa: F401
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX
from validation.models import Validation

CODES = [code for code, one in load_templates().items() if one.config.kind != "arena"]


def wrong_answer(config, context, inputs):
    """What a model answers that is fooled by these inputs."""
    answer = config.get_component(config.answer_field)
    if answer.labels:
        return next(one for one in answer.values if one != inputs[answer.name])
    if answer.type == "span":
        return context[answer.reference].split()[-1]
    if answer.type == "spans":
        return []
    return "wholly another thing"


def stored_value(task, component, value):
    """A value of a context, with the files that it names; a plain one where none is known."""
    if component.is_media:
        return media.stored(task, component.type)
    return (
        value if value is not None else component.kind.build_placeholder(component) or "Some text."
    )


def typed(config, form, context, inputs):
    """What the write page sends of these inputs."""
    sent = {one.html_name: one.value() for one in form if one.value() not in (None, False)}
    for name, value in inputs.items():
        component = config.get_component(name)
        if component.type == "spans":
            value = "\n".join(f"{one['text']} @{one['start']} = {one['tag']}" for one in value)
        elif component.type == "span":
            text = value["text"] if isinstance(value, dict) else value
            sent[f"{name}_start"] = context[component.reference].find(text)
            value = text
        sent[name] = value
    return sent


@pytest.mark.parametrize("code", CODES)
def test_a_template_is_opened_written_and_judged(settings, ada, own_storage, code):
    settings.NEW_TASKS = "everybody"
    task = make_task(creator=ada, code="mine", name="Mine", source=load_templates()[code])
    # A scripted model tells no secret, so what fooled nobody is judged, too.
    task.config_text = re.sub(r"judge_not_fooled: [\d.]+", "judge_not_fooled: 1", task.config_text)
    task.is_visible = True
    task.save()
    config, owner = task.config, signed_in(ada)
    shown = next(iter(config.examples.good), None)
    inputs = dict(shown.input) if shown else {}
    if shown is None:
        fill = {"text": "Which one is nearer?", "long_text": "Which one is nearer?"}
        inputs = {one.name: fill[one.type] for one in config.input}
    given = shown.context if shown else {}
    context = {one.name: stored_value(task, one, given.get(one.name)) for one in config.context}
    round = task.rounds.get()
    ContextFactory(round=round, fields=context)
    answer = wrong_answer(config, context, inputs)
    scripted_target(round, output={config.answer_field: answer})
    assert owner.post("/own/mine/rounds/1/open/").status_code == 302
    round.refresh_from_db()
    assert round.state == "open"

    writer = signed_in(UserFactory())
    write = "/t/mine/write/"
    page = writer.get(write)
    if page.status_code == 302:  # past the content warning
        writer.post(page.url, {"agree": "on", "next": write})
    ok(writer.get(write))
    if config.goal.field:
        Assignment.objects.update(goal=inputs[config.goal.field])
    if config.talk:
        assignment = Assignment.objects.get().pk
        at = re.search(r'name="at" value="(\d+)"', writer.get(write).text)[1]
        said = {"assignment": assignment, "say": "Tell me.", "at": at}
        ok(writer.post(f"{write}talk/", said, **HTMX))
    form = ok(writer.get(write)).context["form"]
    if config.talk:
        inputs[config.talk.name] = form.fields[config.talk.name].choices[-1][0]
    ok(writer.post(write, typed(config, form, context, inputs), **HTMX))
    example = Example.objects.get()
    if example.outcome == "undecided":
        ok(writer.post(f"/attempt/{example.uuid}/answer/", {"model_right": "no"}, **HTMX))
        example.refresh_from_db()
    assert example.outcome == ("not_fooled" if code == "secret" else "fooled")

    judge, url = signed_in(UserFactory()), "/t/mine/judge/"
    page = judge.get(url)
    if page.status_code == 302:
        judge.post(page.url, {"agree": "on", "next": url})
    page = ok(judge.get(url))
    sent = {"example": str(example.uuid), "answer": page.context["answers"][0][0]}
    ok(judge.post(url, sent, **HTMX))
    assert Validation.objects.get().example == example
