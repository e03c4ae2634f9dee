"""The admin is the owners' other desk: the role opens it, and no door shows another task."""

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from core.accounts.models import Annotator, LogEntry
from core.accounts.people import get_shown_name
from core.accounts.services import get_annotator, log
from tasks.admin_site import find_table_name
from tasks.contexts.services import set_retired
from tasks.models import TargetModel, TaskMember
from tasks.permissions import READERS, REVIEWERS
from tasks.rounds.services import change_round
from tests.support.factories import UserFactory
from tests.web.admin.conftest import (
    MODELS,
    ROLES,
    SECRET_TEXT,
    Role,
    change_url,
    example_of,
    list_url,
    sees,
    sign_in,
)

OPERATORS = [
    *("accounts/user", "account/emailaddress", "mfa/authenticator", "usersessions/usersession"),
    "tasks/taskproposal",
]
ACTIONS = {"tasks_context": "retire", "tasks_contextbatch": "undo", "annotation_report": "resolve"}
LOG, PEOPLE = "/admin/accounts/logentry/", "/admin/accounts/annotator/"


@pytest.mark.parametrize("role", Role)
def test_the_role_alone_opens_it(client, nli, role):
    """Not even Django's own permissions open more."""
    user = UserFactory()
    user.user_permissions.set(Permission.objects.all())
    client.force_login(user)
    assert client.get("/admin/", follow=True).status_code == 403
    TaskMember.objects.create(task=nli.task, user=user, role=role)
    page = client.get("/admin/", follow=True)
    assert page.status_code == (200 if role in READERS else 403)
    for table in OPERATORS:
        assert client.get(f"/admin/{table}/", follow=True).status_code == 403, table
        assert f"/admin/{table}/" not in page.text


def test_operators_have_their_tables_and_nobody_raw_ones(boss, owner):
    page = boss.get("/admin/").text
    for table in OPERATORS:
        assert boss.get(f"/admin/{table}/").status_code == 200, table
        assert f"/admin/{table}/" in page
    about = ContentType.objects.get_for_model(Annotator).pk
    assert boss.get(f"/admin/r/{about}/1/").status_code == 404
    raw = ["auth/group", "django_q/schedule", "django_q/ormq", "validation/queueitem"]
    assert {boss.get(f"/admin/{table}/").status_code for table in raw} == {404}
    places = [page.index(f"/admin/tasks/{name}/") for name in ("task", "round", "targetmodel")]
    assert places == sorted(places)
    assert owner.get("/admin/password_change/")["Location"] == "/accounts/password/change/"


def doors(model, row):
    """Every address of a row, but for its own custom pages (test_rounds.py)."""
    yield from (reverse(f"admin:{model}_{one}", args=[row.pk]) for one in ("change", "delete"))
    yield reverse(f"admin:{model}_history", args=[row.pk])


def test_tables_have_the_names_of_the_owners_pages(boss):
    index, heading = boss.get("/admin/").text, find_table_name(TargetModel)
    assert f">{heading}</a>" in index
    assert f"<h1>{heading}</h1>" in boss.get("/admin/tasks/targetmodel/").text


def test_another_tasks_owner_gets_through_no_door(people, own, foreign):
    """By address, by form, by action, and with foreign ids in a form of one's own."""
    client = sign_in(people[Role.OWNER])
    before = {model: model_to_dict(foreign[model]) for model in MODELS}
    for model in MODELS:
        for url in doors(model, foreign[model]):
            for reply in (client.get(url), client.post(url, {"post": "yes"})):
                assert reply.status_code == 403 or reply["Location"] == "/admin/", url
        row = {"action": ACTIONS.get(model, ""), "_selected_action": [foreign[model].pk]}
        client.post(list_url(model), row)
    form = {"rule": "majority", "round_targets-TOTAL_FORMS": 1, "round_targets-INITIAL_FORMS": 0}
    form |= {"round_targets-0-target": foreign["tasks_targetmodel"].pk}
    client.post(change_url("tasks_round", own["tasks_round"]), form)
    assert not own["tasks_round"].targets.filter(task=foreign["tasks_task"]).exists()
    for model in MODELS:
        foreign[model].refresh_from_db()
        assert model_to_dict(foreign[model]) == before[model], model


def test_autocomplete_names_own_rows_alone(people, own, foreign):
    client = sign_in(people[Role.OWNER])
    shown = []
    for source in admin.site._registry:
        for field in source._meta.get_fields():
            if field.concrete and field.is_relation and field.related_model in admin.site._registry:
                about = source._meta
                query = {"app_label": about.app_label, "model_name": about.model_name}
                reply = client.get("/admin/autocomplete/", {**query, "field_name": field.name})
                assert reply.status_code in (200, 403, 404), field
                if reply.status_code == 200:
                    shown += [row["text"] for row in reply.json()["results"]]
    assert "nli" in shown
    assert not [text for text in shown if "foreign" in text or "@" in text or "w-" in text]


@pytest.mark.parametrize(
    "query",
    [
        "accounts/logentry/?data__user__startswith=b",
        "accounts/logentry/?actor__email__startswith=b",
        "accounts/annotator/?pseudonym__startswith=w",
        "accounts/annotator/?user__email__startswith=b",
        "annotation/example/?annotator__user__email__startswith=b",
        "tasks/targetmodel/?task__members__user__email__startswith=b",
        "tasks/targetmodel/?secret_env__startswith=T",
    ],
)
def test_nothing_is_guessed_letter_by_letter(owner, own, query):
    assert owner.get(f"/admin/{query}").status_code == 400


@pytest.mark.parametrize("role", ROLES)
def test_the_log_is_told_as_on_the_page(people, nli, foreign, alice, role):
    for action in ("gold.marked", "member.added", "submission.handed_in"):
        log(alice, action, nli.task, user="carol@example.com")
    log(alice, "round.foreign", foreign["tasks_round"])
    LogEntry.objects.create(action="round.old", target="nli round 1", actor=alice)
    client = sign_in(people[role])
    text = client.get(LOG).text + "".join(
        client.get(f"{LOG}{row.pk}/change/").text for row in LogEntry.objects.all()
    )
    page = client.get("/own/nli/log/").text
    for words in ("gold.marked", "member.added", "submission.handed_in", "round.foreign"):
        assert (words in text) == (words in page), words
    for words in ("round.old", alice.email, "carol@example.com"):
        assert (words in text) == (words in page), words
    added = LogEntry.objects.get(action="member.added")
    assert client.post(f"{LOG}{added.pk}/change/", {"action": "x"}).status_code == 403
    assert (
        client.get(f"{LOG}{LogEntry.objects.get(action='round.foreign').pk}/change/").url
        == "/admin/"
    )


@pytest.mark.parametrize("role", ROLES)
def test_people_are_named_as_on_the_page(people, own, foreign, bob, role):
    worker = Annotator.objects.create(pseudonym="import-A1WORKER", source="import")
    example = example_of(own["tasks_context"], bob, hypothesis="x", label="neutral")
    type(example).objects.filter(pk=example.pk).update(annotator=worker)
    stranger = get_annotator(UserFactory())
    example_of(foreign["tasks_context"], stranger.user, hypothesis="y", label="neutral")
    client = sign_in(people[role])
    if role not in REVIEWERS:
        assert client.get(PEOPLE).status_code == 403
        return
    pages = client.get(PEOPLE).text + client.get(f"{PEOPLE}{worker.pk}/change/").text
    assert get_shown_name(worker) in pages
    assert "/own/nli/annotators/" in pages
    listed = client.get(f"/admin/annotation/example/?annotator={worker.pk}").text
    assert get_shown_name(worker) in listed
    assert client.get(f"{PEOPLE}{stranger.pk}/change/").status_code == 302
    for words in ("A1WORKER", stranger.pseudonym, "/own/foreign/", bob.email):
        assert words not in pages + listed


def test_people_and_log_need_no_query_for_each_row(owner, own):
    def count():
        with CaptureQueriesContext(connection) as queries:
            assert [owner.get(url).status_code for url in (PEOPLE, LOG)] == [200, 200]
        return len(queries)

    few = (count(), count())[1]  # content types are read once
    for _ in range(4):
        someone = UserFactory()
        example_of(own["tasks_context"], someone, hypothesis="x", label="neutral")
        log(someone, "round.changed", own["tasks_round"])
    assert count() == few


@pytest.mark.parametrize("role", ROLES)
def test_rows_lead_to_their_owner_pages(people, own, role):
    client = sign_in(people[role])
    for model in MODELS:
        if not sees(role, model):
            continue
        text = client.get(list_url(model)).text
        (url,) = re.findall(r'field-page_link"><a href="([^"]*)', text)[:1] or [""]
        if url or role in REVIEWERS:
            page = client.get(url)
            assert page.status_code == 200, (model, url)
            # Owners' pages link the task's row alone, once in the list beside them.
            links = re.findall(r'href="(/admin/[^"]+)"', page.text.split("<main")[1])
            assert {*links} <= {change_url("tasks_task", own["tasks_task"])}, model


def test_history_tells_what_pages_did_and_nothing_of_other_tasks(people, own, foreign, nli):
    owner = people[Role.OWNER]
    other = foreign["tasks_round"]
    TaskMember.objects.create(task=other.task, user=owner, role=Role.OWNER)
    for round in (nli, other):
        change_round(round=round, actor=owner, fields={"description": "x"})
        set_retired(contexts=round.contexts.all(), is_retired=True, actor=owner)
    client = sign_in(owner)
    for model, action in (("tasks_round", "round.changed"), ("tasks_context", "contexts.retired")):
        url = reverse(f"admin:{model}_history", args=[own[model].pk])
        rows = client.get(url, follow=True).context["cl"].queryset
        assert {(row.task, row.action) for row in rows} == {("nli", action)}


def test_a_target_in_use_stays_and_another_goes(editor, own, nli):
    used = own["tasks_targetmodel"]
    free = TargetModel.objects.create(task=nli.task, name="free", adapter="scripted")
    for target in (used, free):
        url = reverse("admin:tasks_targetmodel_delete", args=[target.pk])
        editor.post(url, {"post": "yes"})
    assert list(nli.task.targets.all()) == [used]
    assert LogEntry.objects.get(action="target.deleted").target == "free"


def test_texts_are_those_of_own_tasks(owner, foreign):
    assert SECRET_TEXT not in "".join(owner.get(list_url(model)).text for model in MODELS)
