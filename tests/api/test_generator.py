"""A task's generator in the API: the rules of its form, and nobody moves one that has a secret."""

import pytest

from core.accounts.models import LogEntry
from tasks.models import Generator, TaskMember
from tests.support.factories import UserFactory

URL = "/api/v1/tasks/nli/generator/"
NEW = {"name": "muse", "adapter": "scripted", "url": "http://muse.test"}
WHOLE = {**NEW, "options": {}, "secret_env": ""}


@pytest.fixture
def editor(api, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    return api


@pytest.fixture
def boss(api_of, db):
    return api_of(UserFactory(email="boss@example.com", is_superuser=True))


def put(client, body):
    return client.put(URL, body, content_type="application/json")


@pytest.mark.parametrize(
    ("role", "read", "write"),
    [("owner", 200, 200), ("editor", 200, 200), ("reviewer", 403, 403), ("viewer", 403, 403),
     (None, 404, 404)],
)  # fmt: skip
def test_who_may_read_and_set_it(api, alice, nli, role, read, write):
    Generator.objects.create(task=nli.task, **NEW)
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    assert api.get(URL).status_code == read
    assert put(api, NEW).status_code == write


def settings_in(response):
    """Of an answer, without what came of asking."""
    return {name: value for name, value in response.json().items() if name != "contact"}


def test_it_is_made_changed_and_taken_away(editor, alice):
    assert editor.get(URL).status_code == 404
    assert settings_in(put(editor, NEW)) == WHOLE
    moved = {**WHOLE, "url": "http://other.test", "options": {"fail": "down"}}
    assert settings_in(put(editor, moved)) == moved == settings_in(editor.get(URL))
    assert editor.get(URL).json()["contact"]["reason"] == "down"
    assert editor.delete(URL).status_code == editor.delete(URL).status_code == 204
    assert not Generator.objects.exists()
    noted = LogEntry.objects.filter(action__startswith="generator.").order_by("pk")
    actions = list(noted.values_list("action", "actor"))
    assert actions == [
        (f"generator.{one}", alice.pk) for one in ("registered", "changed", "removed")
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"adapter": "dynalab"}, "adapter"), ({"url": "nowhere"}, "url"), ({"url": None}, "url"),
     ({"name": "a b"}, "name"), ({"options": {"x": "\0"}}, "options"), ({"options": []}, "options"),
     ({"secret_env": "PATH"}, "secret_env"), ({"adapter": "openai_chat"}, "")],
)  # fmt: skip
def test_what_it_cannot_be(editor, changes, field):
    response = put(editor, {**NEW, **changes})
    assert response.status_code == 422
    assert set(response.json()["error"]["fields"]) == {field}
    assert not Generator.objects.exists()


def test_only_an_administrator_ties_a_secret_to_an_address(editor, boss):
    secret = {**WHOLE, "secret_env": "TARGET_MUSE_SECRET"}
    assert put(editor, secret).status_code == 409
    assert settings_in(put(boss, secret)) == secret
    assert put(editor, secret).status_code == 200
    for change in ({"url": "http://mine.test"}, {"options": {"fail": "down"}}, {"secret_env": ""}):
        response = put(editor, {**secret, **change})
        assert response.status_code == 409
        assert response.json()["error"]["code"] == "generator"
    assert put(boss, {**secret, "name": "other"}).status_code == 409
    assert put(boss, {**secret, "url": "http://mine.test"}).status_code == 200
