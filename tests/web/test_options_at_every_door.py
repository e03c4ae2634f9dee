"""Every option of every adapter can be given on the page, in the admin, by the API and the command.

What a door gives is what the others give: one value, of one kind.
"""

import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from core.accounts.tokens import create_token
from core.web import throttles
from tasks.models import TargetModel, TaskMember
from tests.support.adapter_options import GIVEN
from tests.support.admin_forms import target_form
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db
LABELS = ["neutral", "negative", "positive"]
OF_THREE_LABELS = {"label_order": (json.dumps(LABELS), LABELS)}
URL = "https://models.example.org/v1"


@pytest.fixture(autouse=True)
def asks_nobody(monkeypatch):
    monkeypatch.setitem(throttles.REQUESTS_PER_HOUR, "test", 0)


@pytest.fixture
def owner(client, sentiment):
    user = UserFactory(email="options@example.org", is_superuser=True)
    TaskMember.objects.create(task=sentiment.task, user=user, role="owner")
    client.force_login(user)
    return client


def by_page(client, fields, texts):
    form = {**fields, "options": json.dumps(fields["options"]), "serving": "{}"}
    return client.post("/own/sentiment/targets/new/", form)


def by_admin(client, fields, texts):
    task = TaskMember.objects.get(role="owner").task
    form = target_form(task, **{**fields, "options": json.dumps(fields["options"])})
    return client.post(reverse("admin:tasks_targetmodel_add"), form)


def by_api(client, fields, texts):
    user = TaskMember.objects.get(role="owner").user
    _, key = create_token(user=user, name="tests", scopes=["read", "own"], days=1)
    client.logout()
    return client.post(
        "/api/v1/tasks/sentiment/target-models/",
        json.dumps(fields),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )


def by_command(client, fields, texts):
    more = [word for one in texts for word in ("--option", one)]
    name, adapter = fields["name"], fields["adapter"]
    call_command(
        *("add_target", "sentiment", URL, "--name", name, "--adapter", adapter, "--no-ask", *more)
    )


@pytest.mark.parametrize("register", [by_page, by_admin, by_api, by_command])
@pytest.mark.parametrize("adapter", sorted(GIVEN))
def test_all_options_are_taken(owner, adapter, register):
    given = {**GIVEN[adapter], **(OF_THREE_LABELS if "label_order" in GIVEN[adapter] else {})}
    options = {name: value for name, (_, value) in given.items()}
    texts = [f"{name}={text}" for name, (text, _) in given.items()]
    fields = {"name": "mine", "adapter": adapter, "url": URL, "options": options}
    response = register(owner, fields, texts)
    assert response is None or response.status_code in (201, 302)
    assert TargetModel.objects.get().options == options
