"""Nobody finds a sealed text or answer at any address of the site or of the API.

Each text and each answer of the site is marked. A visitor, somebody with an account, a writer and a
judge ask all addresses, with GET and with POST, and use the help with writing. An address that is
new fails here until the walk knows what its parameters stand for.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
import re

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client

from annotation.models import ShownExample
from core.web.throttles import ScopeThrottle
from dynabench.adversaries.models import AdversaryRun
from dynabench.adversaries.services import create_adversary
from tasks.models import TaskMember
from tests.support.adversaries import give_to, options_of, run_to_its_end
from tests.support.api_routes import routes
from tests.support.containers import play, with_image
from tests.support.factories import UserFactory
from tests.support.releases import _own_storage  # noqa: F401
from tests.support.sealed_world import OPEN, addresses_of, make_sealed_world, pages
from tests.support.writing import open_form, signed_in
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db
JUDGING = re.compile(r"/t/nli/judge/|/api/v1/tasks/nli/judging/next/|/judge/[^/]+/undo/")
"""Where the text that one is to judge stands."""
INPUTS = re.compile(
    r"/data/1/test-unlabelled\.|/files/test-unlabelled\.|/sets/\d+/inputs/"
    r"|/evaluation-sets/round-0/inputs/|/check-inputs/|/leaderboard/compare/|/comparisons?/"
)
"""Where models' inputs of a test split are public, without answers."""
PUBLIC = {"train", "dev", "left out"}


@pytest.fixture
def sealed(db, _own_storage, monkeypatch):
    monkeypatch.setattr(ScopeThrottle, "allow_request", lambda self, request, view: True)
    return make_sealed_world()


def client_of(sealed, role):
    """A visitor, somebody with an account, or a member with this role."""
    if role == "visitor":
        return Client()
    user = UserFactory(email=f"{role}@walk.example.com")
    if role != "person":
        TaskMember.objects.create(task=sealed.world.task, user=user, role=role)
    return signed_in(user)


def told(sealed, role, address, response):
    """What a response says that it must not."""
    for part, kind in sealed.found(response):
        is_text = kind == "TEXT"
        to_judge = part == OPEN and is_text and JUDGING.search(address) and role != "writer"
        is_input = part == "test" and is_text and INPUTS.search(address)
        if part not in PUBLIC and not to_judge and not is_input:
            yield f"{role} {address}: {kind} of {part}"


def ask(client, method, address, body=None):
    """The response; what it did is undone."""
    with transaction.atomic():
        sent = {} if method == "GET" else {"content_type": "application/json", "data": body or {}}
        if not address.startswith("/api/") and method == "POST":
            sent = {"data": body or {}}
        response = getattr(client, method.lower())(address, **sent)
        if response.streaming:
            response.content_read = b"".join(response.streaming_content)
            response.streaming_content = [response.content_read]
        transaction.set_rollback(True)
    return response


def everything(sealed):
    """(METHOD, address) of all pages and operations, and what queries ask for more."""
    for route in pages():
        for address in addresses_of(sealed.ids, route):
            yield "GET", f"/{address}"
            yield "POST", f"/{address}"
    for method, route in routes():
        if not route.startswith("^"):
            for address in addresses_of(sealed.ids, route):
                yield method, f"/api/v1/{address}"
    first, second = sealed.ids["pair"]
    for name in sealed.ids["evaluation-sets"]:
        yield "GET", f"/t/nli/leaderboard/compare/?a={first}&b={second}&set={name}"


def walk(sealed, role, client, methods=("GET", "POST", "PUT", "PATCH", "DELETE")):
    """{what is told that must not be}, and which parts the responses held at all."""
    wrong, seen = set(), set()
    for method, address in everything(sealed):
        if method in methods:
            response = ask(client, method, address)
            seen |= sealed.found(response)
            wrong |= set(told(sealed, role, address, response))
    return wrong, seen


@pytest.mark.parametrize("role", ["visitor", "person", "writer", "judge"])
def test_no_address_tells_what_is_sealed(sealed, role):
    wrong, seen = walk(sealed, role, client_of(sealed, role))
    assert not wrong, "\n".join(sorted(wrong))
    assert ("train", "TEXT") in seen


def test_no_address_tells_an_adversarys_program_what_is_sealed(sealed):
    """By an account without a role whose program attacks: it claims, asks and reads the answers."""
    person = UserFactory(email="program@walk.example.com")
    run = AdversaryRun.objects.get()
    give_to(run.adversary, person)
    walker = signed_in(person)
    wrong, seen = walk(sealed, "person", walker)
    assert not wrong, "\n".join(sorted(wrong))
    assert ("train", "TEXT") in seen
    client = signed_in(person)  # the walk has signed the other one out
    claim = f"/api/v1/tasks/nli/adversaries/{run.adversary.pk}/claim/"
    asked = {"text": "It is so, as everybody says.", "label": "neutral"}
    attack = f"/api/v1/attacks/{run.lease_token}/"
    context = run.round.contexts.first()
    told_texts = [
        ask(client, "POST", f"{attack}ask/", asked | {"context": context.pk}),
        ask(client, "POST", f"{attack}end/"),
    ]
    AdversaryRun.objects.update(state="done")
    told_texts.append(ask(client, "POST", claim))
    assert [one.status_code for one in told_texts][1:] == [200, 201]
    for response in told_texts:
        assert not sealed.found(response)


def test_no_line_tells_an_adversarys_container_what_is_sealed(sealed, monkeypatch):
    """It reads its run, and asks about each text that it is given, and about ids of others."""
    told, owner = [], sealed.world.owner
    task = sealed.world.task
    texts = list(task.rounds.exclude(state="open").values_list("contexts__pk", flat=True))

    def program(run):
        told.append(run)
        pks = [context["id"] for context in run["contexts"]]
        for pk in pks[:3] + texts:
            question = {"text": "It is so, as everybody says.", "label": "neutral", "context": pk}
            told.append((yield {"propose": question}))

    play(monkeypatch, program)
    columns = {"name": "Container", "options": options_of("container")}
    adversary = create_adversary(task=task, actor=owner, kind="container", **columns)
    run_to_its_end(with_image(adversary, owner), owner)
    assert {"contexts", "answer", "error"} <= {key for one in told for key in one}
    assert not sealed.found(HttpResponse(json.dumps(told)))


def test_the_walk_finds_what_an_owner_may_read(sealed):
    """Else it would find nothing sealed because it looks at nothing."""
    _wrong, seen = walk(sealed, "owner", signed_in(sealed.world.owner), ["GET"])
    assert {(part, "ANSWER") for part in ("test", "held", OPEN)} <= seen


@pytest.mark.parametrize("role", ["person", "writer"])
def test_no_help_with_writing_tells_what_is_sealed(sealed, role):
    """Each button of the write page, again and again, and the same by the API."""
    client, wrong = client_of(sealed, role), []

    def post(address, body, **how):
        response = client.post(address, body, **how)
        wrong.extend(told(sealed, role, f"{address} {body}", response))

    for _ in range(8):
        for want in ("context", "edit", "goal"):
            post("/t/nli/write/next/", {"want": want}, **HTMX)
            for aid in ("examples", "suggestion", "use", "edit"):
                post("/t/nli/write/support/", open_form(client) | {"want": aid}, **HTMX)
            wrong += told(sealed, role, "/t/nli/write/", client.get("/t/nli/write/"))
            api = {"content_type": "application/json"}
            post("/api/v1/tasks/nli/assignment/", {"want": want}, **api)
    assert not wrong, "\n".join(sorted(set(wrong)))
    shown = ShownExample.objects.values_list("way", flat=True)
    assert {*shown} == {"edit", "gallery"}


def test_judges_read_what_they_are_given_and_nothing_else(sealed):
    client, wrong, judged = client_of(sealed, "judge"), [], 0
    while found := re.search(r'name="example" value="([^"]+)"', client.get("/t/nli/judge/").text):
        sent = {"example": found[1], "answer": "label:neutral"}
        response = client.post("/t/nli/judge/", sent, **HTMX)
        wrong += told(sealed, "judge", "/t/nli/judge/", response)
        after = client.get(f"/judge/{found[1]}/after/")
        wrong += told(sealed, "judge", f"/judge/{found[1]}/after/", after)
        judged += 1
    assert judged > 3
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_an_address_that_nobody_knows_fails_the_walk(sealed):
    with pytest.raises(KeyError):
        addresses_of(sealed.ids, "t/<slug:code>/treasure/<int:pk>/")
