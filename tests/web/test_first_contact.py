"""What is registered is asked once, at each door, and its own words are shown and stored there."""

import io
import json
import re

import pytest
from django.contrib.messages import get_messages
from django.core.management import call_command
from django.db import connection
from django.urls import reverse

from core.web import throttles
from tasks.models import Generator, TargetModel, TaskMember
from tasks.targets import first_contact
from tasks.targets.contact_services import Contact, note_contact
from tasks.targets.endpoints import openai_chat
from tasks.targets.first_contact import try_target
from tests.support.admin_forms import target_form
from tests.support.battles import battle_arena
from tests.support.chat_server import chat_server
from tests.support.factories import UserFactory, scripted_target
from tests.support.parts import free_port

SECRET = "tarn0123-middle-of-it-4567lund"
MISSING = "The model `tarn` does not exist"


@pytest.fixture
def server(settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    openai_chat._quirks_by_server.clear()
    with chat_server({"m": lambda messages: "neutral"}) as server:
        yield server


@pytest.fixture
def owner(db, client, nli):
    user = UserFactory(email="contact@example.org")
    TaskMember.objects.create(task=nli.task, user=user, role="owner")
    client.force_login(user)
    return client


def settings_of(server, model="tarn", **changes):
    options = json.dumps({"model": model})
    form = {"name": "mine", "adapter": "openai_chat", "url": server.url, "options": options}
    return {**form, "serving": "{}", **changes}


def by_page(client, task, form):
    return client.post(f"/own/{task.code}/targets/new/", form)


def by_choice(client, task, form):
    chosen = {"kind": "described", "instructions": "Say which.", "model": "tarn"}
    model = json.loads(form["options"])["model"]
    return client.post(f"/own/{task.code}/targets/choose/", {**form, **chosen, "model": model})


def by_admin(client, task, form):
    boss = UserFactory(email="boss@example.org", is_superuser=True)
    client.force_login(boss)
    return client.post(reverse("admin:tasks_targetmodel_add"), target_form(task, **form))


def by_arena(client, task, form):
    return client.post(f"/own/{task.code}/arena/", form)


def told(response):
    return " ".join(str(one) for one in get_messages(response.wsgi_request))


@pytest.mark.django_db
@pytest.mark.parametrize("register", [by_page, by_choice])
@pytest.mark.parametrize(
    ("model", "reason", "words"), [("tarn", "misconfigured", MISSING), ("m", "", "neutral")]
)
def test_each_page_shows_and_stores_what_came_back(
    owner, nli, server, register, model, reason, words
):
    response = register(owner, nli.task, settings_of(server, model))
    assert response.status_code == 302
    assert words in told(response)
    target = TargetModel.objects.get()
    assert (target.contact_reason, words in target.contact_detail) == (reason, True)
    assert words in owner.get("/own/nli/targets/").text
    assert words in owner.get(f"/own/nli/targets/{target.pk}/health/").text


@pytest.mark.django_db(transaction=True)
def test_the_admin_asks_when_its_transaction_has_ended(owner, nli, server):
    response = by_admin(owner, nli.task, settings_of(server))
    assert response.status_code == 302
    assert MISSING in told(response)
    target = TargetModel.objects.get()
    assert target.contact_reason == "misconfigured"
    assert MISSING in owner.get(reverse("admin:tasks_targetmodel_change", args=[target.pk])).text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("register", [by_page, by_choice, by_admin])
def test_nothing_is_asked_within_a_transaction(owner, nli, server, register, monkeypatch):
    seen, ask = [], first_contact.ask_within_budget

    def note(*arguments, **named):
        seen.append(connection.in_atomic_block)
        return ask(*arguments, **named)

    monkeypatch.setattr(first_contact, "ask_within_budget", note)
    register(owner, nli.task, settings_of(server, "m"))
    assert seen == [False]


def test_models_of_an_arena_are_asked_too(owner, server):
    task = battle_arena()
    TaskMember.objects.create(task=task, user=owner.get("/").wsgi_request.user, role="owner")
    response = by_arena(owner, task, settings_of(server))
    assert MISSING in told(response)
    assert task.targets.get(name="mine").contact_reason == "misconfigured"


def test_a_generator_is_asked_at_its_page(owner, nli, server):
    form = settings_of(server)
    response = owner.post("/own/nli/generator/", form)
    assert MISSING in told(response)
    assert Generator.objects.get().contact_reason == "misconfigured"
    assert MISSING in owner.get("/own/nli/generator/").text
    response = owner.post("/own/nli/generator/", settings_of(server, "m"))
    assert "neutral" in told(response)
    assert not Generator.objects.get().contact_reason


@pytest.mark.parametrize(("ask", "words"), [(True, MISSING), (False, "")])
def test_the_command_says_it_and_can_leave_it(nli, server, ask, words):
    out, err = io.StringIO(), io.StringIO()
    more = [] if ask else ["--no-ask"]
    call_command(
        *("add_target", "nli", server.url, "--adapter", "openai_chat", "--name", "mine"),
        *("--option", "model=tarn", *more),
        stdout=out,
        stderr=err,
    )
    assert words in err.getvalue()
    assert bool(server.seen) is ask
    target = TargetModel.objects.get()
    assert (target.contact_at is not None) is ask
    assert words in target.contact_detail


def test_who_asks_too_often_registers_without_an_answer(owner, nli, server, monkeypatch):
    monkeypatch.setitem(throttles.REQUESTS_PER_HOUR, "test", 0)
    assert by_page(owner, nli.task, settings_of(server)).status_code == 302
    assert TargetModel.objects.get().contact_at is None
    assert not server.seen


def test_a_server_that_is_away_is_registered_with_a_warning(owner, nli, settings):
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    form = {"name": "mine", "adapter": "http", "url": "http://127.0.0.1:1/", "options": "{}"}
    assert by_page(owner, nli.task, {**form, "serving": "{}"}).status_code == 302
    assert TargetModel.objects.get().contact_reason == "down"


def test_of_our_own_model_server_that_is_away_nothing_is_stored(owner, nli, settings):
    settings.MODEL_SERVER_URL = f"http://127.0.0.1:{free_port()}"
    form = {"name": "mine", "adapter": "http", "source": "org/name", "revision": "a" * 40}
    response = by_page(owner, nli.task, {**form, "options": "{}", "serving": "{}"})
    assert response.status_code == 302
    assert "cannot be reached" in told(response)
    assert TargetModel.objects.get().contact_at is None


def test_private_addresses_stay_closed(owner, nli, server, settings):
    settings.TARGET_PRIVATE_HOSTS = []
    by_page(owner, nli.task, settings_of(server))
    assert not server.seen
    assert TargetModel.objects.get().contact_reason == "misconfigured"


def test_a_key_is_never_repeated(owner, nli, server):
    server.key = "the right one"
    response = by_page(owner, nli.task, settings_of(server, "m", secret=SECRET))
    target = TargetModel.objects.get()
    assert target.contact_reason == "misconfigured"
    assert "is no API key of this server" in target.contact_detail
    for said in (told(response), target.contact_detail, owner.get("/own/nli/targets/").text):
        assert not any(part in said for part in (SECRET[:8], SECRET[-8:]))


def test_what_is_mended_elsewhere_is_seen_by_the_next_test(owner, nli, server):
    by_page(owner, nli.task, settings_of(server))
    target = TargetModel.objects.get()
    server.behaviours["tarn"] = lambda messages: "neutral"
    owner.post(f"/own/nli/targets/{target.pk}/health/")
    target.refresh_from_db()
    assert target.contact_reason == ""


def test_another_address_forgets_what_the_old_one_said(owner, nli, server, monkeypatch):
    by_page(owner, nli.task, settings_of(server))
    target = TargetModel.objects.get()
    monkeypatch.setitem(throttles.REQUESTS_PER_HOUR, "test", 0)
    url = f"/own/nli/targets/{target.pk}/"
    form = {name: v for name, v in settings_of(server, "other").items() if name != "name"}
    assert owner.post(url, form).status_code == 302
    target.refresh_from_db()
    assert (target.contact_at, target.contact_reason, target.contact_detail) == (None, "", "")


def test_a_task_that_needs_more_than_texts_asks_what_the_target_is(nli, server, monkeypatch):
    monkeypatch.setattr("tasks.targets.first_contact.fill_inputs", lambda task, known: None)
    target = scripted_target(nli, name="far")
    target.adapter, target.url, target.options = "openai_chat", server.url, {"model": "m"}
    target.save()
    assert try_target(target, None) == ("", "m")
    target.options = {"model": "tarn"}
    assert try_target(target, None).reason == "misconfigured"
    assert not server.seen


def test_what_an_old_address_answers_is_not_stored_with_the_new_one(nli):
    target = scripted_target(nli)
    TargetModel.objects.update(url="http://elsewhere.test")
    note_contact(target, Contact("down", "It is away."))
    target.refresh_from_db()
    assert target.contact_at is None


@pytest.mark.parametrize(("fail", "stored"), [("refused", "down"), ("misconfigured", None)])
def test_a_refused_text_says_nothing_of_the_target(owner, nli, fail, stored):
    target = scripted_target(nli, fail=fail)
    note_contact(target, Contact("down", "It is away."))
    owner.post(f"/own/nli/targets/{target.pk}/test/", {"premise": "Rain.", "hypothesis": "Wet."})
    target.refresh_from_db()
    assert target.contact_reason == (stored or fail)


def test_expert_options_unfold_where_one_is_set(owner, nli, server):
    folded = re.compile(r'<details id="expert-options"\s*>')
    assert folded.search(owner.get("/own/nli/targets/new/").text)
    page = by_page(owner, nli.task, settings_of(server, options="[]"))
    assert page.status_code == 422
    assert not folded.search(page.text)
    by_page(owner, nli.task, settings_of(server))
    page = owner.get(f"/own/nli/targets/{TargetModel.objects.get().pk}/")
    assert not folded.search(page.text)
