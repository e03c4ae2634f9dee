"""The admin. Who sees what: own tasks only, in every list, page, form, action and button."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from core.accounts.models import LogEntry
from tasks import permissions
from tasks.admin.roles import EDITORS, OWNERS, REVIEWERS
from tasks.models import Round
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    UserFactory,
)
from tests.web.admin.conftest import (
    MODELS,
    ROLES,
    change_url,
    list_url,
    sees,
    sign_in,
)


def test_the_sets_of_roles_are_those_of_the_permissions(people, nli):
    checks = {
        permissions.can_own: OWNERS,
        permissions.can_edit: EDITORS,
        permissions.can_review: REVIEWERS,
    }
    for check, roles in checks.items():
        assert {role for role, person in people.items() if check(person, nli.task)} == roles
        assert not check(AnonymousUser(), nli.task)


def test_people_from_outside_are_sent_to_the_sign_in_page(client, alice, own):
    urls = [url for model in MODELS for url in (list_url(model), change_url(model, own[model]))]
    for url in urls:
        response = client.get(url)
        assert response.status_code == 302
        assert "login" in response["Location"]
    client.force_login(alice)
    for url in urls:
        assert client.get(url).status_code in (302, 403)


def test_who_has_no_role_sees_nothing(db, own):
    client = sign_in(UserFactory())
    for url in ["/admin/", *map(list_url, MODELS), *(change_url(m, own[m]) for m in MODELS)]:
        assert client.get(url, follow=True).status_code == 403, url


@pytest.mark.parametrize("role", ROLES)
def test_members_see_the_rows_of_their_own_tasks_only(people, own, foreign, role):
    client = sign_in(people[role])
    for model in MODELS:
        page = client.get(list_url(model))
        if not sees(role, model):
            assert page.status_code == 403, model
            assert client.get(change_url(model, own[model])).status_code in (302, 403), model
            continue
        assert page.status_code == 200, model
        shown = [row.pk for row in page.context["cl"].queryset]
        assert foreign[model].pk not in shown, model
        assert own[model].pk in shown, model
        assert client.get(change_url(model, own[model])).status_code == 200, model
        for suffix in ("change", "delete", "history"):
            url = reverse(f"admin:{model}_{suffix}", args=[foreign[model].pk])
            assert client.get(url).status_code in (302, 403), url


def test_filters_and_choices_name_no_other_task(owner, own, foreign):
    for url in [url for m in MODELS for url in (list_url(m), change_url(m, own[m]))]:
        text = owner.get(url).text
        for word in ("foreign round", ">foreign<", f"target-{foreign['tasks_round'].pk}"):
            assert word not in text, (url, word)


def test_superusers_see_everything(boss, own, foreign):
    for model in MODELS:
        rows = boss.get(list_url(model)).context["cl"].queryset
        assert {own[model].pk, foreign[model].pk} <= {row.pk for row in rows}, model
        assert boss.get(change_url(model, foreign[model])).status_code == 200, model


EDITED = {"tasks_task", "tasks_round", "tasks_context", "tasks_targetmodel", "tasks_generator"}


@pytest.mark.parametrize("role", ROLES)
def test_only_owners_and_editors_get_a_save_button(people, own, role):
    client = sign_in(people[role])
    for model in MODELS:
        if not sees(role, model):
            continue
        may_save = role in EDITORS and model in EDITED
        page = client.get(change_url(model, own[model]))
        assert ('name="_save"' in page.text) == may_save, model
        posted = client.post(change_url(model, own[model]), {})
        assert (posted.status_code == 403) == (not may_save), model


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
    Round.objects.update(state="closed")
    page = owner.post(url, {"post": "yes"}, follow=True)
    assert [message.level_tag for message in page.context["messages"]] == ["error"]
    assert Round.objects.filter(pk=nli.pk).exists()
    assert not LogEntry.objects.filter(action="round.deleted").exists()


def test_many_rows_are_not_deleted_at_once(owner, own, nli):
    empty = RoundFactory(task=nli.task, number=2, state="draft")
    chosen = {"action": "delete_selected", "_selected_action": [empty.pk], "post": "yes"}
    owner.post(list_url("tasks_round"), chosen)
    assert Round.objects.filter(pk=empty.pk).exists()
