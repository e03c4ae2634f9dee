"""The form reads a hub's model card, from a small server that speaks the hub's API."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from core.errors import Invalid
from evaluation.models import Submission
from evaluation.submissions import hub_card
from evaluation.submissions.forms import CardForm
from evaluation.submissions.hub_card import fetch_card, read_card_fields
from tests.support.factories import TaskFactory
from tests.support.outside import held

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOLD = {
    "id": "org/name",
    "sha": COMMIT,
    "tags": ["arxiv:2005.14165", "nli"],
    "safetensors": {"total": 135_000_000},
    "cardData": {
        "license": "apache-2.0", "language": ["en", "de"], "datasets": ["snli", "org/own"],
        "base_model": "org/base", "knowledge_cutoff": "2025-03-31",
    },
}  # fmt: skip
FOUND = {
    "name": "name", "revision": COMMIT, "license": "apache-2.0", "languages": "en, de",
    "trained_on": "snli, org/own", "trained_until": "2025-03-31", "parameters": "135000000",
    "description": "Base model: org/base.", "paper_url": "https://arxiv.org/abs/2005.14165",
}  # fmt: skip
URL = "/t/nli/submit/"


@contextmanager
def hub(status=200):
    class Hub(BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.path in ("/api/models/org/name", f"/api/models/org/name/revision/{COMMIT}")
            body = json.dumps(TOLD if known else {"error": "Repository not found"}).encode()
            self.send_response(status if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.mark.parametrize("kind", ["hub", "llm"])
@pytest.mark.parametrize("revision", ["", COMMIT])
def test_the_form_is_filled_and_then_sent(task, as_alice, settings, kind, revision):
    told = {"kind": kind, "source": "org/name", "revision": revision, "license": "mine",
            "prompt": "task", "template": "{premise} {hypothesis}"}  # fmt: skip
    with hub() as settings.HUB_ENDPOINT:
        page = as_alice.post(URL, told | {"read_card": "1"})
    form = page.context["form"]
    filled = {name: form[name].value() for name in FOUND}
    assert filled == FOUND | {"license": "mine"}  # what was typed stays
    assert not Submission.objects.exists()
    reply = as_alice.post(URL, told | filled)
    assert reply.status_code == 302
    submission = Submission.objects.get()
    assert (submission.name, submission.revision) == ("name", COMMIT)
    assert (submission.parameters, submission.license) == (135_000_000, "mine")
    assert str(submission.trained_until) == "2025-03-31"


def test_nothing_is_lost_where_the_hub_does_not_answer(task, as_alice, settings):
    told = {"kind": "hub", "name": "Mine", "source": "org/other", "revision": COMMIT}
    with hub() as settings.HUB_ENDPOINT:
        for source in ("org/other", "../x"):
            page = as_alice.post(URL, told | {"source": source, "read_card": "1"})
            assert [*page.context["messages"]]
            assert page.context["form"]["name"].value() == "Mine"
    page = as_alice.post(URL, told | {"read_card": "1"})  # it is offline now
    assert [*page.context["messages"]]
    assert as_alice.post(URL, told).status_code == 302


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"id": 3, "cardData": [], "safetensors": "many", "tags": None, "sha": "main"},
        {"cardData": {"language": {"a": 1}, "license": 3, "datasets": [1, None], "base_model": []}},
        {"safetensors": {"total": -1}, "cardData": {"knowledge_cutoff": "2025-03"}},
        {
            "cardData": {"language": ["x" * 999], "license": "y" * 999},
            "tags": ["arxiv:" + "1" * 999],
        },
    ],
)
def test_whatever_a_hub_says_fits_the_form(told):
    found = read_card_fields(told)
    card = {name: value for name, value in found.items() if name in CardForm.base_fields}
    assert CardForm(card).is_valid()
    assert "revision" not in found


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_hub_that_fails_has_not_lost_the_model(settings, status):
    with hub(status) as settings.HUB_ENDPOINT, pytest.raises(Invalid) as failed:
        fetch_card("org/name")
    with hub() as settings.HUB_ENDPOINT, pytest.raises(Invalid) as unknown:
        fetch_card("org/other")
    assert str(failed.value) != str(unknown.value)
    assert str(status) in str(failed.value)


def test_who_finds_no_place_at_the_hub_is_told_to_go_on_without(settings, monkeypatch):
    with held(monkeypatch, hub_card), hub() as settings.HUB_ENDPOINT, pytest.raises(Invalid):
        fetch_card("org/name")
    with hub() as settings.HUB_ENDPOINT:
        assert fetch_card("org/name")["name"] == "name"
