"""Chat models by the API: handed in, estimated, and what is told of them to whom."""

# ruff: noqa: F811  (fixtures are named where they are used)

from evaluation.models import Submission
from evaluation.runs.chat.settings import ChatSettings, make_chat_settings
from evaluation.submissions.services import withdraw_model
from tests.support.api_models import task  # noqa: F401
from tests.support.chat_models import (  # noqa: F401
    PRICES,
    _asks_this_machine,
    hand_in,
    server,
    version,
    worked,
)
from tests.support.submissions import url_of


def test_cap_and_spending_are_for_those_inside(task, alice, client, version, server, api_of):
    submission = worked(hand_in(task, alice, server, most_cost=1.0, **PRICES))
    Submission.objects.update(is_published=True)
    url = f"/api/v1/models/{submission.pk}/"
    mine, theirs = (api_of(one).get(url).json()["chat"] for one in (alice, None))
    assert (mine["most_cost"], theirs["most_cost"], theirs["spent"]) == (1.0, None, None)
    assert theirs["instructions"] == mine["instructions"] != ""
    page = client.get(url_of(submission)).text
    assert "1000" not in page
    assert "6,000 / 60" in page
    client.force_login(alice)
    assert client.post(url_of(submission, "cap/"), {"most_cost": "2"}).status_code == 302
    assert ChatSettings.from_stored(Submission.objects.get().chat).most_cost == 2.0
    Submission.objects.update(anonymous_until="2999-01-01")
    assert api_of(None).get(url).json()["chat"]["model"] == ""
    withdraw_model(submission=submission, actor=alice)
    assert Submission.objects.get().chat == {}


def test_the_api_takes_it_estimates_and_changes_the_cap(task, alice, api_of, version, server):
    api, chat = api_of(alice), {"model": "m", "most_cost": 1.0, **PRICES}
    body = {"kind": "chat", "name": "C", "source": server.url, "secret": "k", "chat": chat}
    found = api.post("/api/v1/tasks/nli/models/estimate/", chat, format="json").json()
    assert (found["requests"], found["over_cap"]) == (6, False)
    made = api.post("/api/v1/tasks/nli/models/", body, format="json").json()
    assert made["chat"]["instructions"] == make_chat_settings(task.config, model="m").instructions
    cap = f"/api/v1/models/{made['id']}/cap/"
    assert api.post(cap, {"most_cost": 3}, format="json").json()["most_cost"] == 3.0
    assert api.post(cap, {"most_cost": 0}, format="json").status_code == 422
    wrong = {**body, "name": "D", "chat": {**chat, "template": "{premise}"}}
    assert api.post("/api/v1/tasks/nli/models/", wrong, format="json").status_code == 422
