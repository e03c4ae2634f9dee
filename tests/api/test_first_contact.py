"""What is registered through the API is asked once, and `contact` has what came back."""

import pytest

from tasks.models import TaskMember
from tests.support.chat_server import chat_server
from tests.support.factories import UserFactory

MISSING = "The model `tarn` does not exist"


@pytest.fixture
def server(settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    with chat_server({"m": lambda messages: "neutral"}) as server:
        yield server


def test_the_api_answers_with_it(api_of, nli, server):
    user = UserFactory(email="contact@example.org")
    TaskMember.objects.create(task=nli.task, user=user, role="owner")
    api = api_of(user)
    form = {"name": "mine", "adapter": "openai_chat", "url": server.url}
    form |= {"options": {"model": "tarn"}}
    made = api.post("/api/v1/tasks/nli/target-models/", form).json()
    assert made["contact"]["reason"] == "misconfigured"
    assert MISSING in made["contact"]["detail"]
    url = f"/api/v1/tasks/nli/target-models/{made['id']}/"
    calls = len(server.seen)
    again = api.patch(url, {"revision": "v2"}).json()["contact"]  # it may be another model
    assert (again["reason"], len(server.seen)) == ("misconfigured", calls + 1)
    mended = api.patch(url, {"options": {"model": "m"}}).json()["contact"]
    assert (mended["reason"], "neutral" in mended["detail"]) == ("", True)
    calls = len(server.seen)
    assert api.patch(url, {"options": {"model": "m"}}).json()["contact"] == mended
    assert len(server.seen) == calls
    generator = {name: form[name] for name in ("name", "adapter", "url", "options")}
    answer = api.put("/api/v1/tasks/nli/generator/", generator).json()["contact"]
    assert answer["reason"] == "misconfigured"
    assert api.get("/api/v1/tasks/nli/generator/").json()["contact"] == answer
