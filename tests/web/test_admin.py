"""The admin by role: own tasks only, in every list, page, form, action and button."""

import json
import os
import time

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Assignment, Example, Report
from dynabench.accounts.models import LogEntry
from dynabench.accounts.services import annotator_of
from tasks import context_imports, permissions
from tasks.admin_roles import EDITORS, MODERATORS, OWNERS
from tasks.models import Context, ContextBatch, Round, RoundTarget, TargetModel, Task, TaskMember
from tests.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)

Role = TaskMember.Role
ROLES = list(Role)
SECRET_TEXT = "Nobody of the other task may read this."
MODELS = [
    *("tasks_task", "tasks_round", "tasks_context", "tasks_contextbatch", "tasks_targetmodel"),
    *("annotation_example", "annotation_report"),
]


@pytest.fixture(autouse=True)
def _uploads(tmp_path, monkeypatch):
    monkeypatch.setattr(context_imports, "UPLOADS", tmp_path / "uploads")


def sign_in(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def people(nli):
    """One member of the NLI task for each role."""
    found = {}
    for role in ROLES:
        found[role] = UserFactory(email=f"{role}@example.com", is_staff=True)
        TaskMember.objects.create(task=nli.task, user=found[role], role=role)
    return found


@pytest.fixture
def owner(people):
    return sign_in(people[Role.OWNER])


@pytest.fixture
def editor(people):
    return sign_in(people[Role.EDITOR])


@pytest.fixture
def boss(db):
    return sign_in(UserFactory(email="boss@example.com", is_staff=True, is_superuser=True))


def example_of(context, person, **inputs):
    return Example.objects.create(
        round=context.round,
        context=context,
        annotator=annotator_of(person),
        inputs=inputs,
        digest=os.urandom(8).hex(),
        outcome="fooled",
    )


def fill(round, person):
    """One row of each model below a round."""
    context = ContextFactory(round=round, fields={"premise": SECRET_TEXT}, tag="hidden")
    batch = ContextBatch.objects.create(round=round, file_name="hidden.jsonl", imported_by=person)
    report = Report.objects.create(annotator=annotator_of(person), context=context, reason="broken")
    rows = {
        "tasks_task": round.task,
        "tasks_round": round,
        "tasks_context": context,
        "tasks_contextbatch": batch,
        "tasks_targetmodel": scripted_target(round, name=f"target-{round.pk}", label="neutral"),
        "annotation_example": example_of(context, person, hypothesis=SECRET_TEXT, label="neutral"),
        "annotation_report": report,
    }
    return rows


@pytest.fixture
def own(nli, alice):
    return fill(nli, alice)


@pytest.fixture
def foreign(people, alice):
    """Rows of a task in which none of the people has a role."""
    task = TaskFactory(code="foreign", config_text=Task.objects.get(code="nli").config_text)
    return fill(RoundFactory(task=task), alice)


def change_url(model, row):
    return reverse(f"admin:{model}_change", args=[row.pk])


def list_url(model):
    return reverse(f"admin:{model}_changelist")


def test_the_sets_of_roles_are_those_of_the_permissions(people, nli):
    checks = {
        permissions.can_own: OWNERS,
        permissions.can_edit: EDITORS,
        permissions.can_moderate: MODERATORS,
    }
    for check, roles in checks.items():
        assert {role for role, person in people.items() if check(person, nli.task)} == roles
        assert not check(AnonymousUser(), nli.task)


# --- Who sees what -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_people_from_outside_are_sent_to_the_sign_in_page(client, alice, own, model):
    for url in (list_url(model), change_url(model, own[model])):
        response = client.get(url)
        assert response.status_code == 302
        assert "login" in response["Location"]
    client.force_login(alice)
    for url in (list_url(model), change_url(model, own[model])):
        assert client.get(url).status_code in (302, 403)


@pytest.mark.parametrize("model", MODELS)
def test_staff_without_a_role_see_nothing(db, own, model):
    client = sign_in(UserFactory(is_staff=True))
    assert client.get(list_url(model)).status_code == 403
    assert client.get(change_url(model, own[model])).status_code in (302, 403)
    assert "Rounds" not in client.get("/admin/").text


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("role", ROLES)
def test_members_see_the_rows_of_their_own_tasks_only(people, own, foreign, role, model):
    client = sign_in(people[role])
    page = client.get(list_url(model))
    assert page.status_code == 200
    assert [row.pk for row in page.context["cl"].queryset if row.pk == foreign[model].pk] == []
    assert own[model].pk in [row.pk for row in page.context["cl"].queryset]
    assert client.get(change_url(model, own[model])).status_code == 200
    for suffix in ("change", "delete", "history"):
        url = reverse(f"admin:{model}_{suffix}", args=[foreign[model].pk])
        assert client.get(url).status_code in (302, 403), url


@pytest.mark.parametrize("model", MODELS)
def test_filters_and_choices_name_no_other_task(owner, own, foreign, model):
    for url in (list_url(model), change_url(model, own[model])):
        text = owner.get(url).text
        for word in ("foreign round", ">foreign<", f"target-{foreign['tasks_round'].pk}"):
            assert word not in text, (url, word)


@pytest.mark.parametrize("model", MODELS)
def test_superusers_see_everything(boss, own, foreign, model):
    rows = boss.get(list_url(model)).context["cl"].queryset
    assert {own[model].pk, foreign[model].pk} <= {row.pk for row in rows}
    assert boss.get(change_url(model, foreign[model])).status_code == 200


EDITED = {"tasks_task", "tasks_round", "tasks_context", "tasks_targetmodel"}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("role", ROLES)
def test_only_owners_and_editors_get_a_save_button(people, own, role, model):
    page = sign_in(people[role]).get(change_url(model, own[model]))
    assert ('name="_save"' in page.text) == (role in EDITORS and model in EDITED)
    posted = sign_in(people[role]).post(change_url(model, own[model]), {})
    assert (posted.status_code == 403) == (role not in EDITORS or model not in EDITED)


@pytest.mark.parametrize("role", ROLES)
def test_only_owners_delete_tasks_and_rounds(people, own, nli, role):
    empty = RoundFactory(task=nli.task, number=2, state="draft")
    ContextFactory(round=empty)
    url = reverse("admin:tasks_round_delete", args=[empty.pk])
    response = sign_in(people[role]).post(url, {"post": "yes"})
    assert response.status_code == (302 if role in OWNERS else 403)
    assert Round.objects.filter(pk=empty.pk).exists() == (role not in OWNERS)
    assert LogEntry.objects.filter(action="round.deleted").exists() == (role in OWNERS)


def test_a_round_with_examples_cannot_be_deleted(owner, own, nli):
    url = reverse("admin:tasks_round_delete", args=[nli.pk])
    assert "protected" in owner.get(url).text
    owner.post(url, {"post": "yes"})
    assert Round.objects.filter(pk=nli.pk).exists()


def test_bulk_deletion_asks_for_the_role_in_each_task(people, own, foreign, nli):
    """An owner of one task who only reads another cannot delete there."""
    person = people[Role.OWNER]
    TaskMember.objects.create(task=foreign["tasks_task"], user=person, role=Role.VIEWER)
    empty = RoundFactory(task=foreign["tasks_task"], number=2, state="draft")
    chosen = {"action": "delete_selected", "_selected_action": [empty.pk], "post": "yes"}
    assert sign_in(person).post(list_url("tasks_round"), chosen).status_code == 403
    assert Round.objects.filter(pk=empty.pk).exists()


# --- Tasks and members -------------------------------------------------------------------------


def task_form(task, **changes):
    """What the page of a task sends when nothing is changed."""
    members = list(task.members.order_by("pk"))
    form = {
        "config_text": task.config_text,
        "is_visible": "on",
        "allow_try_out": "on",
        "members-TOTAL_FORMS": len(members),
        "members-INITIAL_FORMS": len(members),
    }
    for place, member in enumerate(members):
        form |= {f"members-{place}-id": member.pk, f"members-{place}-role": member.role}
        form[f"members-{place}-task"] = task.pk
    return {**form, **changes}


def save_task(client, task, **changes):
    return client.post(change_url("tasks_task", task), task_form(task, **changes), follow=True)


def test_a_wrong_configuration_is_refused_with_place_and_cure(editor, nli):
    text = nli.task.config_text.replace("\nverdict:", "\nverdcit:")
    page = save_task(editor, nli.task, config_text=text)
    line = text[: text.index("\nverdcit:")].count("\n") + 2
    assert f"line {line}, column 1, `verdcit`" in page.text
    assert "did you mean" in page.text
    assert Task.objects.get(code="nli").config_text == nli.task.config_text


def test_a_configuration_gives_the_task_its_name_and_is_logged(editor, nli, people):
    text = nli.task.config_text.replace(nli.task.config.name, "Who follows whom")
    assert save_task(editor, nli.task, config_text=text).redirect_chain
    task = Task.objects.get(code="nli")
    assert task.name == "Who follows whom"
    entry = LogEntry.objects.get(action="task.changed")
    assert entry.actor == people[Role.EDITOR]
    assert "+name: Who follows whom" in entry.data["diff"]


def test_warnings_are_shown_but_do_not_refuse(editor, nli):
    text = nli.task.config_text.replace("language: en", "language: en", 1)
    start = text.index("examples:\n")
    end = text.index("\ngoal:")
    without = text[:start] + text[end + 1 :]
    page = save_task(editor, nli.task, config_text=without)
    assert Task.objects.get(code="nli").config_text.strip() == without.strip()
    assert [str(m) for m in page.context["messages"] if m.level_tag == "warning"]


def test_after_opening_the_meaning_of_examples_is_fixed(editor, nli):
    Round.objects.update(opened_at="2026-01-01T00:00Z")
    text = nli.task.config_text.replace("neutral", "unclear")
    page = save_task(editor, nli.task, config_text=text)
    assert "A round has been opened, so this is fixed." in page.text
    assert "stored values of `label` were chosen among" in page.text
    assert Task.objects.get(code="nli").config_text == nli.task.config_text


def test_contexts_fix_their_fields_before_the_opening(editor, nli):
    text = nli.task.config_text.replace("premise", "passage")
    assert "Undo their imports" in save_task(editor, nli.task, config_text=text).text
    nli.contexts.all().delete()
    save_task(editor, nli.task, config_text=text)
    assert Task.objects.get(code="nli").config.context[0].name == "passage"


def test_a_configuration_of_dynabench_1_is_converted(editor, nli):
    nli.contexts.all().delete()
    old = """
context:
- {name: context, type: string, placeholder: Enter context...}
input:
- {name: hypothesis, type: string, placeholder: Enter hypothesis...}
- {name: label, type: multiclass, labels: [entailed, neutral, contradictory], as_goal_message: true}
model_wrong_metric: {type: exact_match, reference_names: [label]}
output:
- {name: label}
- {name: prob, type: prob, reference_name: label}
perf_metric: {type: macro_f1, reference_name: label}
"""
    page = save_task(editor, nli.task, config_text=old)
    assert "Converted from Dynabench 1.0." in page.text
    task = Task.objects.get(code="nli")
    assert task.config.version == 1
    assert [c.name for c in task.config.input] == ["hypothesis", "label"]


def test_the_code_of_a_task_is_fixed(boss, nli):
    save_task(boss, nli.task, code="renamed")
    assert Task.objects.get().code == "nli"


def test_only_superusers_add_tasks(owner, boss, nli):
    url = reverse("admin:tasks_task_add")
    assert owner.get(url).status_code == 403
    form = task_form(nli.task, code="again") | {
        "members-TOTAL_FORMS": 0,
        "members-INITIAL_FORMS": 0,
    }
    assert boss.post(url, form).status_code == 302
    assert Task.objects.get(code="again").name == nli.task.config.name
    assert owner.get(change_url("tasks_task", Task.objects.get(code="again"))).status_code == 302


def new_member(task, email, role):
    count = task.members.count()
    return {
        "members-TOTAL_FORMS": count + 1,
        f"members-{count}-email": email,
        f"members-{count}-role": role,
        f"members-{count}-task": task.pk,
    }


@pytest.mark.parametrize("role", ROLES)
def test_only_owners_name_members(people, bob, nli, role):
    member = new_member(nli.task, "BOB@example.com", "owner")
    save_task(sign_in(people[role]), nli.task, **member)
    added = TaskMember.objects.filter(user=bob)
    assert added.exists() == (role == Role.OWNER)


def test_editors_cannot_make_themselves_owners(people, editor, nli):
    mine = TaskMember.objects.get(user=people[Role.EDITOR])
    place = [m.pk for m in nli.task.members.order_by("pk")].index(mine.pk)
    save_task(editor, nli.task, **{f"members-{place}-role": "owner"})
    mine.refresh_from_db()
    assert mine.role == Role.EDITOR


def test_members_are_named_by_address_and_logged(owner, people, bob, nli):
    page = save_task(owner, nli.task, **new_member(nli.task, "bob@example.com", "viewer"))
    assert "once an administrator marks them as staff" in page.text
    entry = LogEntry.objects.get(action="member.added")
    assert entry.actor == people[Role.OWNER]
    assert entry.data == {"user": "bob@example.com", "role": "viewer"}
    page = save_task(owner, nli.task, **new_member(nli.task, "none@example.com", "viewer"))
    assert "Nobody has this address here" in page.text
    page = save_task(owner, nli.task, **new_member(nli.task, "bob@example.com", "editor"))
    assert "A person is there twice" in page.text


def test_the_last_owner_stays(owner, people, nli):
    place = [m.role for m in nli.task.members.order_by("pk")].index("owner")
    page = save_task(owner, nli.task, **{f"members-{place}-DELETE": "on"})
    assert "A task needs an owner" in page.text
    assert nli.task.members.filter(role="owner").exists()


# --- Rounds ------------------------------------------------------------------------------------


def round_form(round, **changes):
    entries = list(round.round_targets.all())
    form = {
        "rule": round.rule,
        "show_target_name": "on",
        "description": round.description,
        "round_targets-TOTAL_FORMS": len(entries),
        "round_targets-INITIAL_FORMS": len(entries),
    }
    return {**form, **changes}


def new_targets(round, *targets):
    form = round_form(round) | {"round_targets-TOTAL_FORMS": len(targets)}
    for place, target in enumerate(targets):
        form[f"round_targets-{place}-target"] = target.pk
        form[f"round_targets-{place}-round"] = round.pk
    return form


def test_editors_add_rounds_to_their_own_tasks_only(editor, nli, foreign):
    url = reverse("admin:tasks_round_add")
    form = {"number": 2, "rule": "majority"}
    refused = editor.post(url, {**form, "task": foreign["tasks_task"].pk})
    assert "not one of the available choices" in refused.text
    assert editor.post(url, {**form, "task": nli.task_id}).status_code == 302
    assert Round.objects.get(task=nli.task, number=2).state == "draft"
    again = editor.post(url, {**form, "task": nli.task_id})
    assert "already exists" in again.text


def test_the_loop_takes_targets_of_the_same_task_only(editor, nli, foreign):
    own = [
        TargetModel.objects.create(task=nli.task, name=name, adapter="scripted")
        for name in ("first", "second")
    ]
    editor.post(change_url("tasks_round", nli), new_targets(nli, foreign["tasks_targetmodel"]))
    assert not RoundTarget.objects.filter(round=nli).exists()
    editor.post(change_url("tasks_round", nli), new_targets(nli, *own))
    entries = nli.round_targets.all()
    assert [(entry.target, entry.public_name) for entry in entries] == [
        (own[0], "Model A"),
        (own[1], "Model B"),
    ]
    assert LogEntry.objects.filter(action="round.changed").exists()


def test_the_parents_of_a_round_are_earlier_rounds_of_its_task(editor, nli, foreign):
    second = RoundFactory(task=nli.task, number=2, state="draft")
    for parents in ([second.pk], [foreign["tasks_round"].pk]):
        editor.post(change_url("tasks_round", second), round_form(second, parents=parents))
        assert not second.parents.exists()
    editor.post(change_url("tasks_round", second), round_form(second, parents=[nli.pk]))
    assert second.parents.get() == nli


def test_the_state_is_no_field_and_the_rule_is_fixed_after_opening(editor, nli):
    Round.objects.update(opened_at="2026-01-01T00:00Z")
    form = round_form(nli, state="released", rule="any", description="New words")
    assert editor.post(change_url("tasks_round", nli), form).status_code == 302
    nli.refresh_from_db()
    assert (nli.state, nli.rule, nli.description) == ("open", "majority", "New words")


@pytest.mark.parametrize("role", ROLES)
def test_owners_and_editors_move_a_round_by_button(people, nli, role):
    client = sign_in(people[role])
    page = client.get(change_url("tasks_round", nli))
    assert ("Nobody can write any more" in page.text) == (role in EDITORS)
    url = reverse("admin:tasks_round_state", args=[nli.pk])
    response = client.post(url, {"state": "closed"})
    nli.refresh_from_db()
    assert (nli.state == "closed") == (role in EDITORS)
    assert (response.status_code == 403) == (role not in EDITORS)


def test_a_step_that_cannot_be_says_why(editor, nli, people):
    draft = RoundFactory(task=nli.task, number=2, state="draft")
    url = reverse("admin:tasks_round_state", args=[draft.pk])
    page = editor.post(url, {"state": "open"}, follow=True)
    assert "Round 1 is open. Close it first." in page.text
    assert editor.get(url).status_code == 405
    page = editor.post(url, {"state": "ready"}, follow=True)
    assert "round 2 is ready now." in page.text
    assert LogEntry.objects.get(action="round.ready").actor == people[Role.EDITOR]


def test_closing_says_how_many_are_writing(editor, nli, alice):
    context = nli.contexts.first()
    Assignment.objects.create(
        annotator=annotator_of(alice), round=nli, context=context, draft_saved_at=timezone.now()
    )
    page = editor.get(change_url("tasks_round", nli))
    assert "Drafts saved in the last ten minutes: 1." in page.text


def test_custom_pages_of_other_tasks_do_not_exist(editor, foreign):
    round, target = foreign["tasks_round"].pk, foreign["tasks_targetmodel"].pk
    assert editor.post(reverse("admin:tasks_round_state", args=[round])).status_code == 404
    assert editor.get(reverse("admin:tasks_round_import", args=[round])).status_code == 404
    assert editor.post(reverse("admin:tasks_round_import_store", args=[round])).status_code == 404
    assert editor.get(reverse("admin:tasks_targetmodel_test", args=[target])).status_code == 404


@pytest.mark.parametrize("role", [Role.MODERATOR, Role.VIEWER])
def test_custom_pages_need_the_role(people, own, role):
    client = sign_in(people[role])
    round, target = own["tasks_round"].pk, own["tasks_targetmodel"].pk
    assert client.get(reverse("admin:tasks_round_import", args=[round])).status_code == 403
    assert client.post(reverse("admin:tasks_round_import_store", args=[round])).status_code == 403
    assert client.get(reverse("admin:tasks_targetmodel_test", args=[target])).status_code == 403


# --- Contexts ----------------------------------------------------------------------------------

LINES = [
    '{"premise": "The tram stops here.", "tag": "city"}',
    '{"premises": "Snow fell at noon."}',
    '{"premise": "The tram stops here."}',
    '{"premise": "Snow fell at noon."}',
]


def upload(client, round, text, name="new.jsonl"):
    raw = text if isinstance(text, bytes) else text.encode()
    url = reverse("admin:tasks_round_import", args=[round.pk])
    return client.post(url, {"file": SimpleUploadedFile(name, raw)})


def ticket_of(page):
    return page.context["ticket"].initial["ticket"]


def store(client, round, ticket):
    url = reverse("admin:tasks_round_import_store", args=[round.pk])
    return client.post(url, {"ticket": ticket}, follow=True)


def test_contexts_are_previewed_then_imported(editor, nli, people):
    ContextFactory(round=nli, fields={"premise": "Snow fell at noon."})
    page = upload(editor, nli, "\n".join(LINES))
    assert "line 2: there is no field `premises`; did you mean &quot;premise&quot;?" in page.text
    assert "line 3: the same as line 1" in page.text
    assert "line 4: the round has it already" in page.text
    assert page.context["histogram"] == [(20, 20, 1)]
    assert not nli.contexts.filter(tag="city").exists()
    done = store(editor, nli, ticket_of(page))
    assert "New contexts in nli round 1: 1." in done.text
    context = nli.contexts.get(tag="city")
    assert context.batch.imported_by == people[Role.EDITOR]
    assert not list(context_imports.UPLOADS.iterdir())


def test_a_second_click_imports_nothing_twice(editor, nli):
    ticket = ticket_of(upload(editor, nli, LINES[0]))
    store(editor, nli, ticket)
    assert "Choose the file again" in store(editor, nli, ticket).text
    assert nli.contexts.count() == 4


def test_csv_is_imported_too(editor, nli):
    ticket = ticket_of(upload(editor, nli, 'premise,tag\n"Rain, then sun.",sky\n', "a.csv"))
    store(editor, nli, ticket)
    assert nli.contexts.get(tag="sky").fields == {"premise": "Rain, then sun."}


def test_a_ticket_is_of_one_person_one_round_and_one_hour(editor, owner, nli, monkeypatch):
    second = RoundFactory(task=nli.task, number=2, state="draft")
    ticket = ticket_of(upload(editor, nli, LINES[0]))
    assert "another round or person" in store(owner, nli, ticket).text
    assert "another round or person" in store(editor, second, ticket).text
    assert "too old" in store(editor, nli, ticket + "x").text
    assert "too old" in store(editor, nli, "").text
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    assert "too old" in store(editor, nli, ticket).text
    assert nli.contexts.count() == 3


def test_old_uploads_are_swept(editor, nli):
    upload(editor, nli, LINES[0])
    (old,) = context_imports.UPLOADS.iterdir()
    assert old.stat().st_mode & 0o077 == 0
    os.utime(old, (0, 0))
    upload(editor, nli, LINES[0])
    assert old not in context_imports.UPLOADS.iterdir()


def test_files_that_cannot_be_read_are_refused(editor, nli, monkeypatch):
    assert "name the file .jsonl or .csv" in upload(editor, nli, "x", "a.xlsx").text
    assert not list(context_imports.UPLOADS.iterdir())
    monkeypatch.setattr("tasks.admin_rounds.MAX_BYTES", 10)
    assert "larger than 20 MB" in upload(editor, nli, LINES[0]).text


def test_finished_rounds_take_no_contexts(editor, nli):
    Round.objects.update(state="closed")
    assert "Import contexts" not in editor.get(change_url("tasks_round", nli)).text
    assert "nli round 1 is closed and takes no contexts" in upload(editor, nli, LINES[0]).text


def test_an_unused_import_is_undone_by_action(people, nli):
    editor, viewer = sign_in(people[Role.EDITOR]), sign_in(people[Role.VIEWER])
    store(editor, nli, ticket_of(upload(editor, nli, LINES[0])))
    batch = ContextBatch.objects.get()
    chosen = {"action": "undo", "_selected_action": [batch.pk]}
    viewer.post(list_url("tasks_contextbatch"), chosen)
    assert ContextBatch.objects.exists()
    page = editor.post(list_url("tasks_contextbatch"), chosen, follow=True)
    assert "contexts taken out: 1" in page.text
    assert nli.contexts.count() == 3


def test_actions_leave_rows_of_weaker_roles_alone(people, own, foreign):
    """An editor of one task who only reads another retires nothing there."""
    person = people[Role.EDITOR]
    TaskMember.objects.create(task=foreign["tasks_task"], user=person, role=Role.VIEWER)
    rows = [own["tasks_context"], foreign["tasks_context"]]
    chosen = {"action": "retire", "_selected_action": [row.pk for row in rows]}
    page = sign_in(person).post(list_url("tasks_context"), chosen, follow=True)
    assert "Contexts retired: 1" in page.text
    assert Context.objects.filter(is_retired=True).get() == rows[0]


def test_texts_of_sensitive_tasks_are_behind_a_click(boss, hate, alice):
    context = hate.contexts.get()
    example = example_of(context, alice, text="Send the Zorbians home.", label="hate")
    report = Report.objects.create(
        annotator=annotator_of(alice), context=context, reason="other", comment="Zorbians again"
    )
    pages = [
        *(
            list_url(model)
            for model in ("tasks_context", "annotation_example", "annotation_report")
        ),
        change_url("tasks_context", context),
        change_url("annotation_example", example),
        change_url("annotation_report", report),
    ]
    for url in pages:
        text = boss.get(url).text
        assert "Zorbians" in text
        for part in text.split("<details>")[:1] + [
            piece.split("</details>")[-1] for piece in text.split("<details>")[1:]
        ]:
            assert "Zorbians" not in part, url


# --- Targets -----------------------------------------------------------------------------------


def target_form(task, **changes):
    form = {"task": task.pk, "name": "mine", "adapter": "scripted", "url": "http://mine.test"}
    return {**form, "options": '{"label": "neutral"}', "serving": "{}", **changes}


def add_target(client, task, **changes):
    return client.post(reverse("admin:tasks_targetmodel_add"), target_form(task, **changes))


def test_editors_register_targets_of_their_own_tasks(editor, nli, foreign):
    refused = add_target(editor, foreign["tasks_task"])
    assert "not one of the available choices" in refused.text
    assert add_target(editor, nli.task).status_code == 302
    assert TargetModel.objects.get(name="mine").task == nli.task
    assert LogEntry.objects.filter(action="target.registered", target="mine").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": '{"lable": "neutral"}'}, "Unknown option &#x27;lable&#x27;"),
        ({"options": '{"fail": "often"}'}, "is one of"),
        ({"adapter": "open_inference_v2"}, "Unknown option"),
        ({"options": "[1]"}, "Write keys and values"),
        ({"serving": '"onnx"'}, "Write keys and values"),
        ({"adapter": "none"}, "is not one of the available choices"),
        ({"serving": '{"speed": 9}'}, "got an unexpected keyword argument &#x27;speed&#x27;"),
        ({"name": "not a slug"}, "valid"),
    ],
)
def test_settings_that_the_adapter_refuses_are_form_errors(editor, nli, changes, words):
    page = add_target(editor, nli.task, **changes)
    assert page.status_code == 200
    assert words in page.text
    assert not TargetModel.objects.exists()


def test_only_superusers_tie_a_secret_to_an_address(editor, boss, nli):
    add_target(editor, nli.task, secret_env="TARGET_OTHER_SECRET")
    target = TargetModel.objects.get()
    assert target.secret_env == ""
    form = target_form(nli.task, secret_env="TARGET_MINE_SECRET")
    boss.post(change_url("tasks_targetmodel", target), form)
    moved = target_form(nli.task, url="http://thief.test", secret_env="TARGET_X", revision="v2")
    assert editor.post(change_url("tasks_targetmodel", target), moved).status_code == 302
    target.refresh_from_db()
    assert (target.url, target.secret_env) == ("http://mine.test", "TARGET_MINE_SECRET")
    assert target.revision == "v2"


def send_test(client, target, **inputs):
    return client.post(reverse("admin:tasks_targetmodel_test", args=[target.pk]), inputs)


def test_a_test_shows_answer_seconds_and_fingerprint(editor, nli):
    prob = {"entailment": 0.2, "neutral": 0.7, "contradiction": 0.1}
    target = scripted_target(nli, label="neutral", prob=prob)
    form = editor.get(reverse("admin:tasks_targetmodel_test", args=[target.pk])).context["form"]
    assert set(form.initial) >= {"premise", "hypothesis"}
    page = send_test(editor, target, premise="Rain fell.", hypothesis="It was wet.")
    assert json.loads(page.context["output"]) == {"label": "neutral"}
    assert "0.7" in page.text
    assert "seconds" in page.text
    assert "&quot;digest&quot;: &quot;scripted&quot;" in page.text


def test_a_test_that_fails_says_why_in_words(editor, nli):
    target = scripted_target(nli, fail="down")
    page = send_test(editor, target, premise="Rain fell.", hypothesis="It was wet.")
    assert "The target cannot be reached." in page.text
    assert "fails as scripted" in page.text
    assert "This field is required" in send_test(editor, target, premise="Rain fell.").text


def test_a_test_never_shows_the_secret(boss, nli, monkeypatch):
    monkeypatch.setenv("TARGET_MINE_SECRET", "opensesame")
    target = scripted_target(nli, output={"label": "opensesame"})
    TargetModel.objects.update(secret_env="TARGET_MINE_SECRET")
    page = send_test(boss, target, premise="Rain fell.", hypothesis="It was wet.")
    assert "opensesame" not in page.text
    assert "[secret]" in page.text


# --- Reports -----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_moderators_resolve_reports(people, own, foreign, role):
    rows = [own["annotation_report"], foreign["annotation_report"]]
    chosen = {"action": "resolve", "_selected_action": [row.pk for row in rows]}
    sign_in(people[role]).post(list_url("annotation_report"), chosen)
    resolved = set(Report.objects.filter(resolved_at__isnull=False))
    assert resolved == ({rows[0]} if role in MODERATORS else set())
    assert LogEntry.objects.filter(action="reports.resolved").exists() == (role in MODERATORS)


# --- Queries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_pages_ask_the_same_number_of_queries_for_more_rows(owner, own, people, alice, model):
    def count(url):
        with CaptureQueriesContext(connection) as queries:
            assert owner.get(url).status_code == 200
        return len(queries)

    urls = [list_url(model), change_url(model, own[model])]
    before = [count(url) for url in urls * 2][2:]  # content types are read once a process
    for number in range(2, 6):
        task = TaskFactory(code=f"more-{number}", config_text=own["tasks_task"].config_text)
        TaskMember.objects.create(task=task, user=people[Role.OWNER], role="owner")
        TaskMember.objects.create(
            task=own["tasks_task"], user=UserFactory(is_staff=True), role="viewer"
        )
        fill(RoundFactory(task=task), alice)
        fill(RoundFactory(task=own["tasks_task"], number=number, state="draft"), alice)
        scripted_target(own["tasks_round"], name=f"more-{number}", label="neutral")
    assert [count(url) for url in urls] == before
