"""New tasks: who may make them, what they begin as, and what becomes of one that is not wanted."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json

import pytest
from django.core.management import call_command
from django.test import Client

from core.accounts.models import LogEntry, confirm_address
from core.errors import Refused
from tasks.config.loading import check_config
from tasks.making.services import delete_unopened_task, find_unopened_tasks, make_task
from tasks.making.templates import GALLERY_FOLDER, load_templates, rename_config
from tasks.models import SIMULATED_TASK_CODE, Media, Round, Task, TaskMember
from tasks.services import OFFICIAL_FOLDER, install_official_tasks
from tests.support.factories import UserFactory
from tests.support.new_tasks import NEW, ada, as_ada  # noqa: F401

FORM = {"name": "My names: all", "code": "my-names"}


@pytest.fixture(autouse=True)
def _everybody(settings):
    settings.NEW_TASKS = "everybody"


def make(maker, code="mine", template="entities", name="Mine"):
    return make_task(creator=maker, code=code, name=name, source=load_templates()[template])


@pytest.mark.parametrize("code", load_templates())
def test_every_template_is_a_configuration(code):
    config, problems = check_config(load_templates()[code].text)
    assert config
    assert config.summary
    assert config.instructions
    assert [p for p in problems if p.path not in ("examples.good", "examples.bad")] == []


def test_all_templates_have_codes_of_their_own():
    files = [*OFFICIAL_FOLDER.glob("*/task.yaml"), *GALLERY_FOLDER.iterdir()]
    assert len(load_templates()) == len(files)


@pytest.mark.parametrize("code", load_templates())
def test_every_template_becomes_a_private_task_of_its_maker(as_ada, ada, code):
    page = as_ada.get(f"/new/template/{code}/")
    assert page.status_code == 200
    response = as_ada.post(f"/new/template/{code}/", {"name": 'Ä "new" one', "code": "new-one"})
    assert response.url == "/own/new-one/"
    task = Task.objects.get()
    assert (task.name, task.config.name) == ('Ä "new" one', 'Ä "new" one')
    assert (task.is_visible, task.is_official, task.made_by) == (False, False, ada)
    assert [(m.user, m.role) for m in task.members.all()] == [(ada, "owner")]
    rounds = [] if task.config.kind == "arena" else [(1, "draft")]
    assert [*task.rounds.values_list("number", "state")] == rounds
    assert LogEntry.objects.get(action="task.created").actor == ada
    for path in ("/own/new-one/", "/own/new-one/config/", "/t/new-one/"):
        assert as_ada.get(path, follow=True).status_code == 200, path
        assert Client().get(path).status_code in (302, 404), path


@pytest.mark.parametrize(
    "code", [c for c, t in load_templates().items() if t.config.kind != "arena"]
)
@pytest.mark.parametrize("page", ["write", "judge"])
def test_every_template_shows_what_people_will_see(as_ada, code, page):
    response = as_ada.get(f"/new/template/{code}/preview/", {"page": page})
    assert response.status_code == 200
    assert "frame-ancestors 'self'" in response["Content-Security-Policy"]
    assert "no-preview" not in response.text


def test_the_gallery_lists_templates_and_what_one_edits(as_ada, ada, nli, qa):
    TaskMember.objects.create(task=qa.task, user=ada, role="reviewer")
    TaskMember.objects.create(task=nli.task, user=ada, role="editor")
    page = as_ada.get("/new/").text
    assert all(f'href="/new/template/{code}/"' in page for code in load_templates())
    assert 'href="/new/task/nli/"' in page
    assert 'href="/new/task/qa/"' not in page
    assert as_ada.get("/new/task/nli/").status_code == 200
    assert as_ada.get("/new/task/qa/").status_code == 403
    assert as_ada.get("/new/task/nli/preview/").status_code == 404
    assert as_ada.get("/new/template/nobody/").status_code == 404
    assert as_ada.get("/new/other/nli/").status_code == 404


def test_a_copy_brings_the_pictures_of_its_examples(ada):
    (vqa,) = [task for task in install_official_tasks() if task.code == "vqa"]
    TaskMember.objects.create(task=vqa, user=ada, role="viewer")
    copy = make_task(creator=ada, code="copy", name="Copy", source=vqa)
    assert copy.media.filter(is_used=True).count() == 3
    assert {m.digest for m in copy.media.all()} <= {m.digest for m in vqa.media.all()}
    drawn = make_task(creator=ada, code="drawn", name="Drawn", source=load_templates()["vqa"])
    assert drawn.media.filter(is_used=True).count() == 3


@pytest.mark.parametrize(
    ("setting", "confirmed", "gallery", "makes"),
    [
        ("everybody", True, 200, True),
        ("everybody", False, 200, False),
        ("nobody", True, 404, False),
    ],
)
def test_who_may_make_tasks(settings, setting, confirmed, gallery, makes, db, client):
    settings.NEW_TASKS = setting
    user = UserFactory()
    if confirmed:
        confirm_address(user)
    client.force_login(user)
    assert client.get("/new/").status_code == gallery
    assert ('href="/new/"' in client.get("/manage/").text) == (gallery == 200)
    assert ("<form" in client.get(NEW).text.partition("<main")[2].partition("</main>")[0]) == makes
    answer = client.post(NEW, FORM)
    assert answer.status_code == (302 if makes else 404 if gallery == 404 else 422)
    assert Task.objects.exists() == makes


def test_superusers_may_always_and_without_a_quota(settings, client, db):
    settings.NEW_TASKS, settings.NEW_TASKS_AT_ONCE = "nobody", 0
    client.force_login(UserFactory(is_superuser=True))
    assert client.post(NEW, {**FORM, "code": "entities"}).status_code == 302


def test_strangers_sign_up_on_the_way(client, db):
    assert 'href="/accounts/signup/?next=/new/"' in client.get("/").text.replace("%2F", "/")
    assert client.get("/new/").status_code == 302


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({**FORM, "code": "My names"}, "code"),
        ({**FORM, "code": "nli"}, "code"),
        ({**FORM, "code": SIMULATED_TASK_CODE}, "code"),
        ({**FORM, "code": "taken"}, "code"),
        ({**FORM, "name": " "}, "name"),
        ({**FORM, "name": "x" * 101}, "name"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_the_text_stays(as_ada, ada, form, field):
    make(UserFactory(is_superuser=True), "taken")
    response = as_ada.post(NEW, form)
    assert response.status_code == 422
    assert [*response.context["form"].errors] == [field]
    assert f'value="{form["code"]}"' in response.text
    assert not Task.objects.filter(made_by=ada).exists()


def test_a_person_begins_a_bounded_number(as_ada, ada, settings):
    settings.NEW_TASKS_AT_ONCE = 2
    first, second = make(ada, "first"), make(ada, "second")
    assert as_ada.post(NEW, FORM).status_code == 422
    TaskMember.objects.filter(task=first).delete()  # giving a task away makes no room
    assert as_ada.post(NEW, FORM).status_code == 422
    Round.objects.filter(task=second).update(state="open")
    assert as_ada.post(NEW, FORM).status_code == 302


def test_what_was_begun_can_be_deleted_by_its_owner_alone(as_ada, ada, as_alice, alice):
    task = make(ada, template="vqa")
    TaskMember.objects.create(task=task, user=alice, role="editor")
    assert as_alice.get("/own/mine/delete/").status_code == 403
    assert 'href="/own/mine/delete/"' in as_ada.get("/own/mine/").text
    assert as_ada.get("/own/mine/delete/").status_code == 200
    assert Task.objects.exists()
    assert as_ada.post("/own/mine/delete/").url == "/new/"
    assert not Task.objects.exists()
    assert not Media.objects.exists()
    assert LogEntry.objects.get(action="task.deleted").actor == ada


def test_where_somebody_may_have_written_nothing_is_deleted(as_ada, ada, nli):
    TaskMember.objects.create(task=nli.task, user=ada, role="owner")
    page = as_ada.get("/own/nli/delete/")
    assert (page.status_code, page.context["examples"]) == (409, 0)
    assert 'id="delete-task"' not in page.text
    assert as_ada.post("/own/nli/delete/").url == "/own/nli/"
    assert nli.task not in find_unopened_tasks()
    nli.delete()
    nli.task.snapshots.create(number=1, table={}, sha256="a" * 64)
    with pytest.raises(Refused):
        delete_unopened_task(task=nli.task, actor=ada)
    assert Task.objects.get() == nli.task


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: 1\nname: Old # which\ngoal: x\n", 'version: 1\nname: "A: b" # which\ngoal: x\n'),
        ("name: >-\n  Old\n  one\ngoal: x\n", 'name: "A: b"\ngoal: x\n'),
        ('{"goal":\t1, "name": "Old"}', '{"goal":\t1, "name": "A: b"}'),
    ],
)
def test_only_the_name_changes(text, expected):
    assert rename_config(text, "A: b") == expected


def test_rows_to_be_judged_fit_the_template_for_judging(as_alice, ada, tmp_path):
    make(ada, "answers", "judging")
    unknown = dict.fromkeys(("author", "author_label", "model_wrong"))
    asked = {"context": {"question": "Who built it?"}, "input": {}, "metadata": {}}
    said = {"model_prediction": {"model": "m", "label": "Ada", "probs": None}, "validations": []}
    row = {"task": "answers", "round": 2, "uid": "1", **unknown, **asked, **said}
    file = tmp_path / "rows.jsonl"
    file.write_text(f"{json.dumps(row)}\n")
    call_command("import_examples", str(file), "--task", "answers", "--judge")
    Task.objects.update(is_visible=True)
    assert "Who built it?" in as_alice.get("/t/answers/judge/").text
