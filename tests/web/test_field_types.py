"""Every type of field that the check takes works from writing to the release; no other is taken."""

import json
import re
from pathlib import Path

import pytest
from django.utils import timezone

from annotation.models import Assignment, Example
from core.accounts.services import get_annotator
from tasks.config.checks import list_types_for
from tasks.config.components import FIELD_TYPES, SECTIONS, FieldType, FormInput
from tasks.config.loading import check_config, load_config
from tasks.config.parsing import ConfigError
from tasks.config.values import find_value_errors
from tasks.config_changes import find_refused_changes
from tasks.models import Round, Task, TaskMember
from tasks.services import create_task
from tests.support import media
from tests.support.factories import ContextFactory, scripted_target
from tests.support.field_walk import (
    MEDIA,
    OFFERS,
    TASKS,
    TYPES,
    VALUES,
    Walk,
    config_text,
    kinds_in,
    opened,
    walk,
)
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX

REFUSED = {place: [k for k in FIELD_TYPES if k not in list_types_for(place)] for place in SECTIONS}


@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        *((place, kinds_in(place)) for place in SECTIONS if place != "output"),
        *(("output", [kind]) for kind in kinds_in("output")),  # a model gives one answer
    ],
)
@pytest.mark.django_db
def test_what_the_check_takes_works_everywhere(place, kinds, alice, bob, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    walk(place, kinds, alice, bob, tmp_path)


@pytest.mark.parametrize("place", SECTIONS)
def test_the_browser_walks_with_what_the_check_takes(place):
    """tests/browser/test_every_field.py has a value of each type."""
    tasks = [Walk(place, kinds) for kinds in TASKS[place]]
    assert {TYPES.get(kind, kind) for one in tasks for kind in one.kinds} == {
        *list_types_for(place)
    }
    for one in tasks:
        config, problems = check_config(one.text)
        assert config, problems
        for name, value in one.stored.items():
            assert not find_value_errors(config.get_component(name), value, one.texts)
        assert one.is_belief or {*one.stored} == {f"a_{kind}" for kind in one.kinds}


@pytest.fixture
def day(monkeypatch):
    """A type that only this class knows."""

    class Day(FieldType, name="day"):
        title = "Day"
        place = 99
        keys = ("placeholder",)
        sections = ("input", "metadata")

        def check(self, component, value, context):
            return [] if value > "1900" else [f"{component.title} is too long ago"]

        def build_form_input(self, component):
            return FormInput("DateField", "DateInput", {"type": "date"})

        def parse_typed_value(self, component, typed, context):
            return typed if isinstance(typed, str) else typed.isoformat()

        def display(self, component, value):
            return (value or "").replace("-", "/")

        def describe_value(self, component):
            return "a day, as YYYY-MM-DD"

    monkeypatch.setitem(VALUES, "day", ("2026-01-02", "2026-01-02"))
    yield "day"
    del FIELD_TYPES["day"]


@pytest.mark.parametrize("place", ["input", "metadata"])
@pytest.mark.django_db
def test_one_class_makes_a_type_that_works_everywhere(place, day, alice, bob, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    shown = walk(place, [day], alice, bob, tmp_path)
    assert ("2026/01/02" in shown) == (place == "input")


@pytest.mark.parametrize("sent", ["1850-05-05", "yesterday", ""])
@pytest.mark.django_db
def test_its_check_and_its_form_refuse_values(sent, day, alice):
    round, _ = opened(config_text("input", day))
    scripted_target(round, output={"label": "no"})
    client = signed_in(alice)
    page = ok(client.get("/t/walk/write/")).text
    assert re.search(r'<input type="date" name="a_day"', page)
    form = {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "goal": "", "a_day": sent}
    form |= {"assignment": Assignment.objects.get().pk, "text": "Something.", "label": "yes"}
    refused = client.post("/t/walk/write/", form, **HTMX)
    assert 'id="id_a_day_error"' in refused.text
    assert not Example.objects.exists()


@pytest.mark.parametrize(
    ("place", "kind"), [(place, kind) for place in SECTIONS for kind in REFUSED[place]]
)
def test_no_other_type_passes_the_check(place, kind):
    config, problems = check_config(config_text(place, kind))
    assert config is None
    errors = [one for one in problems if one.severity == "error" and one.path.endswith(".type")]
    assert errors, problems
    lines = config_text(place, kind).splitlines()
    for one in errors:
        named = one.fix.partition(": ")[2].split(", ")
        assert named == list_types_for(one.path.partition("[")[0].partition(".")[0])
        assert kind in lines[one.line - 1]


BAD = config_text("input", "chat")


def test_no_door_takes_such_a_task(alice, bob, nli, as_alice, tmp_path):
    """The page, the API, the admin and the service that makes tasks."""
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    base = re.search(r'name="base" value="([^"]+)"', as_alice.get("/own/nli/config/").text)[1]
    for step in ("review", "save"):
        sent = {"text": BAD, "base": base, "step": step}
        assert as_alice.post("/own/nli/config/", sent).status_code == 422
    checked = as_alice.post("/own/nli/config/check/", {"text": BAD})
    assert 'data-errors="1"' in checked.text
    told = as_alice.get("/api/v1/tasks/nli/config/").json()
    sent = {"text": BAD, "version": told["version"]}
    api = as_alice.put("/api/v1/tasks/nli/config/", sent, content_type="application/json")
    assert api.status_code in (400, 422), api.text
    alice.is_superuser = True
    alice.save()
    form = {"code": "new", "config_text": BAD, "is_visible": "on"}
    assert as_alice.post("/admin/tasks/task/add/", form).status_code == 200  # the form again
    with pytest.raises(ConfigError):
        create_task(code="new", config_text=BAD, actor=alice)
    assert not Task.objects.filter(code="new").exists()
    nli.task.refresh_from_db()
    assert nli.task.config_text != BAD


def test_pictures_of_dynabench_1_become_a_task_that_works(alice, bob, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    old = (Path(__file__).parents[1] / "fixtures" / "dynabench1" / "vqa.yaml").read_text()
    task, _ = create_task(code="walk", config_text=old, actor=None)
    assert task.config.context[0].type == "image"
    round = Round.objects.create(task=task, number=1, state="open")
    ContextFactory(round=round, fields={"image": media.stored(task, "image")})
    scripted_target(round, output={"answer": "blue"})
    client = signed_in(alice)
    page = ok(client.get("/t/walk/write/"))
    assert f'src="/media/{media.value("image")["digest"]}/"' in page.text
    form = {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "goal": ""}
    form |= {"assignment": Assignment.objects.get().pk, "question": "Which colour is it?"}
    ok(client.post("/t/walk/write/", form, **HTMX))
    example = Example.objects.get()
    ok(client.post(f"/attempt/{example.uuid}/answer/", {"model_right": "no"}, **HTMX))
    judging = ok(signed_in(bob).get("/t/walk/judge/")).text
    assert f'src="/media/{media.value("image")["digest"]}/"' in judging


@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        *(
            (place, [k for k in REFUSED[place] if k != "multilabel"])
            for place in SECTIONS
            if place != "input"
        ),
        *((place, ["multilabel"]) for place in SECTIONS if "multilabel" in REFUSED[place]),
    ],
)
@pytest.mark.django_db
def test_stored_before_it_can_still_be_read(place, kinds, alice, bob):
    """A task of an earlier release: nobody meets an error of ours, and its owner reads why."""
    values = {"chat": [{"role": "user", "text": "Hello?"}], "candidates": ["one", "two"]}
    fields = {f"a_{kind}": values.get(kind, "x") for kind in kinds}
    text = config_text(place, *kinds)
    round, as_owner = opened(text, **(fields if place == "context" else {}))
    example = Example.objects.create(
        round=round,
        context=round.contexts.get(),
        annotator=get_annotator(bob),
        inputs={"text": "Something.", "label": "yes", **dict.fromkeys(fields)},
        outcome="fooled",
    )
    page = ok(as_owner.get("/own/walk/config/"))
    for kind in kinds:
        assert any(kind in one.line for one in page.context["problems"])
    for path in ("", "review/", f"review/{example.uuid}/", "rounds/", "annotators/"):
        ok(as_owner.get(f"/own/walk/{path}"))
    for page in ("write", "judge"):
        ok(as_owner.post("/own/walk/config/preview/", {"page": page}))
    client = signed_in(alice)
    asks_for_it = place in ("input", "output") and kinds != ["multilabel"]
    for path in ("", "write/", "try/", "judge/"):
        reply = client.get(f"/t/walk/{path}")
        is_closed = asks_for_it and path in ("write/", "try/")
        assert reply.status_code == (403 if is_closed else 200), reply.text
        assert "{&#x27;" not in reply.text  # nobody reads Python
        assert "[&#x27;" not in reply.text
    assert Assignment.objects.exists() == (not asks_for_it)
    by_themselves = [kind for kind in kinds if kind not in MEDIA]  # people can fill these
    for kind in by_themselves if asks_for_it else ():
        assert load_config(config_text(place, kind)).unsupported_input.name == f"a_{kind}"


def test_what_an_opened_task_has_stays_fixed_even_if_it_is_refused_now(nli):
    text = config_text("context", "chat")
    Task.objects.filter(pk=nli.task_id).update(config_text=text)
    nli.task.refresh_from_db()
    Round.objects.update(opened_at=timezone.now())
    other = load_config(config_text("context", "text"))
    assert find_refused_changes(nli.task, text, other)[1]
    assert not find_refused_changes(nli.task, text, load_config(text))[1]


@pytest.mark.parametrize(
    ("place", "old", "new", "path"),
    [
        ("output", '"type": "rank"', '"type": "rank", "threshold": 0', "verdict.threshold"),
        ("output", '"pair_accuracy"', '"accuracy"', "metrics.main"),
        ("input", '"accuracy"', '"pair_accuracy"', "metrics.main"),
        ("input", '"main": "accuracy"', '"main": "accuracy", "also": ["pair_accuracy"]',
         "metrics.also[0]"),
        ("input", '"reference": "offers"', '"reference": "passage"', "input[2].reference"),
        ("input", '"reference": "offers",', "", "input[2]"),
        ("input", '"label": "Offers"', '"label": "Offers", "required": false',
         "input[2].reference"),
        ("input", '"label": "Offers"', '"label": "Offers", "rank": true', "context[1].rank"),
        ("output", '"type": "rank",', '"type": "exact_match",', "verdict.field"),
    ],
)  # fmt: skip
def test_a_ranking_that_cannot_work_is_refused(place, old, new, path):
    text = config_text(place, "ranking")
    assert old in text
    config, problems = check_config(text.replace(old, new))
    assert config is None
    assert path in [one.path for one in problems if one.severity == "error"]


@pytest.mark.parametrize(
    ("place", "path"), [("input", "input[2]"), ("metadata", "metadata.create[0]")]
)
def test_people_give_one_probability(place, path):
    text = config_text(place, "prob").replace('"single": true', '"reference": "label"')
    config, problems = check_config(text)
    assert config is None
    assert path in [one.path for one in problems if one.severity == "error"]


@pytest.mark.parametrize("kind", ["text", "prob"])
def test_what_a_model_answers_is_one_field(kind):
    text = json.loads(config_text("input", kind))
    config, problems = check_config(json.dumps(text | {"output": ["label", f"a_{kind}"]}))
    assert config is None
    assert [one.path for one in problems if one.severity == "error"] == ["output[1]"]


@pytest.mark.django_db
def test_a_model_that_answers_no_candidate_fails_the_attempt(alice):
    round, _ = opened(config_text("output", "candidates"))
    scripted_target(round, output={"a_candidates": "By boat."})
    client = signed_in(alice)
    ok(client.get("/t/walk/write/"))
    form = {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "goal": "", "text": "Some."}
    form |= {"assignment": Assignment.objects.get().pk, "a_candidates": OFFERS[0]}
    assert 'id="failed"' in client.post("/t/walk/write/", form, **HTMX).text
    assert not Example.objects.exists()


@pytest.mark.django_db
def test_places_that_make_no_order_are_refused_and_kept(alice):
    round, _ = opened(config_text("input", "ranking"))
    scripted_target(round, output={"label": "no"})
    client = signed_in(alice)
    ok(client.get("/t/walk/write/"))
    assignment = Assignment.objects.get()
    form = {"attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10", "goal": "", "text": "Some."}
    form |= {"assignment": assignment.pk, "label": "yes", "a_ranking": ["2", "2"]}
    shown = client.post("/t/walk/write/", form, **HTMX).text
    assert 'id="id_a_ranking_error"' in shown
    assert shown.count('value="2" selected') == 2
    ok(client.post(f"/draft/{assignment.pk}/", form))
    assert client.get("/t/walk/write/").text.count('value="2" selected') == 2
    assert not Example.objects.exists()


def test_training_files_of_what_has_no_label_are_refused_with_a_reason(alice):
    old = "input:\n  - {name: q, type: string}\noutput:\n  - {name: a, type: string}\n"
    text = f"{old}train_file_metric: {{type: dataperf}}\n"
    with pytest.raises(ConfigError) as caught:
        create_task(code="dataperf", config_text=text, actor=alice)
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (5, "train_file_metric")
    assert problem.fix
