"""The wall of catches, their pages by consent, and the second beat for their authors."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from dynabench.catches import picture as pictures
from dynabench.catches.models import FirstCatch, SharedCatch
from dynabench.catches.selectors import select_public_catches
from dynabench.catches.services import show_catches, store_first_catches
from dynabench.people.deletion.services import delete_person
from evaluation.dataset_releases.undo_services import (
    UndoRefused,
    find_final_reasons,
    undo_release,
)
from evaluation.models import Dataset, DatasetItem
from tasks.models import TaskMember
from tests.support.factories import RoundFactory, UserFactory, scripted_target
from tests.support.judging import write
from tests.support.releases import _own_storage, closed, judge, people, released  # noqa: F401
from tests.support.writing import signed_in
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.models import Consensus

# ruff: noqa: F811  (fixtures are named where they are used)

WALL = "/t/nli/catches/"


@pytest.fixture
def wall(closed):
    """A released round whose first author is Alice; her catches of the training split."""
    alice = UserFactory(email="author@example.com")
    Annotator.objects.filter(user=alice).delete()
    Annotator.objects.filter(pk=closed.examples.earliest("pk").annotator_id).update(user=alice)
    released(closed)
    return closed


def make_sensitive(task):
    warning = "content_warning: {text: It hurts.}"
    task.config_text = task.config_text.replace("content_warning: null", warning)
    task.save()


def public_of(round):
    return list(select_public_catches(round.task))


def page_of(example):
    return f"{WALL}{example.uuid}/"


def author_of(example):
    """A client of somebody who wrote the example."""
    user = UserFactory()
    Annotator.objects.filter(user=user).delete()
    Annotator.objects.filter(pk=example.annotator_id).update(user=user)
    return signed_in(user)


def test_the_wall_has_the_public_catches_and_no_others(client, wall):
    page = client.get(WALL)
    assert page.status_code == 200
    shown = {line.uuid for line in page.context["lines"]}
    catches = Example.objects.filter(consensus__is_validated_error=True)
    sealed = DatasetItem.objects.exclude(split="train").values("example")
    expected = catches.exclude(pk__in=sealed).order_by("-pk")
    assert shown == {example.uuid for example in expected[:20]}
    assert catches.filter(pk__in=sealed).exists()
    line = page.context["lines"][0]
    assert list(line.models_said) == ["neither definitely true nor definitely false"]
    assert line.author == ""
    assert not line.is_shared


def test_nothing_is_on_the_wall_before_a_release(client, closed):
    page = client.get(WALL)
    assert page.context["lines"] == []
    assert 'id="no-catches"' in page.text


def test_the_wall_offers_to_write_while_a_round_is_open(client, wall):
    assert wall.state != "open"
    assert 'id="write-one"' not in client.get(WALL).text
    RoundFactory(task=wall.task, number=2)
    assert 'id="write-one"' in client.get(WALL).text


def test_the_wall_goes_on_by_pages(client, wall, monkeypatch):
    monkeypatch.setattr("dynabench.catches.views.WALL_SIZE", 2)
    first = client.get(WALL)
    second = client.get(f"{WALL}{first.context['page'].next}")
    lines = [*first.context["lines"], *second.context["lines"]]
    assert [line.uuid for line in lines] == [example.uuid for example in public_of(wall)[:4]]


@pytest.mark.parametrize("address", [WALL, "/api/v1/tasks/nli/catches/"])
def test_a_private_task_has_none_for_strangers(client, wall, address):
    assert client.get(address).status_code == 200
    wall.task.is_visible = False
    wall.task.save()
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("address", [WALL, "/api/v1/tasks/nli/catches/"])
def test_a_sensitive_task_has_none(client, wall, address):
    make_sensitive(wall.task)
    assert client.get(address).status_code == 404


def test_the_api_lists_the_same(client, wall):
    rows = client.get("/api/v1/tasks/nli/catches/?page_size=3").json()["results"]
    assert [row["uuid"] for row in rows] == [str(one.uuid) for one in public_of(wall)[:3]]
    assert rows[0]["author"] == ""


def test_a_catch_has_a_page_while_its_author_agrees(client, wall):
    example = public_of(wall)[0]
    assert client.get(page_of(example)).status_code == 404
    author = author_of(example)
    share = f"{page_of(example)}share/"
    assert author.post(share, {"share": "on"}).url == page_of(example)
    page = client.get(page_of(example))
    assert page.context["line"].author == Annotator.objects.get(pk=example.annotator_id).pseudonym
    assert "og:image" in page.text
    assert page["Cache-Control"] == "private, no-store"
    picture = client.get(f"{page_of(example)}picture.png")
    assert picture.content.startswith(b"\x89PNG")
    assert author.post(share, {"share": "off"}).status_code == 302
    assert client.get(page_of(example)).status_code == 404
    assert client.get(f"{page_of(example)}picture.png").status_code == 404
    assert author.get(page_of(example)).status_code == 404


def test_a_picture_is_drawn_once_and_gone_with_the_consent(client, wall, monkeypatch):
    drawn = []
    draw = pictures.draw_catch
    monkeypatch.setattr(pictures, "draw_catch", lambda *words: drawn.append(words) or draw(*words))
    example, other = public_of(wall)[:2]
    for one in (example, other):
        author_of(one).post(f"{page_of(one)}share/", {"share": "on"})
    first, again = (client.get(f"{page_of(example)}picture.png") for _ in range(2))
    assert (first.content, len(drawn)) == (again.content, 1)
    assert client.get(f"{page_of(other)}picture.png").content != first.content
    assert len(drawn) == 2
    author_of(example).post(f"{page_of(example)}share/", {"share": "off"})
    assert client.get(f"{page_of(example)}picture.png").status_code == 404


def test_a_sealed_catch_is_shown_to_its_author_only(client, wall):
    sealed = DatasetItem.objects.filter(split="test").values("example")
    catches = Example.objects.filter(consensus__is_validated_error=True)
    example = catches.filter(pk__in=sealed).first()
    author = author_of(example)
    author.post(f"{page_of(example)}share/", {"share": "on"})
    assert SharedCatch.objects.filter(example=example).exists()
    own = author.get(page_of(example))
    assert 'id="not-public"' in own.text
    assert "og:image" not in own.text
    assert client.get(page_of(example)).status_code == 404
    assert client.get(f"{page_of(example)}picture.png").status_code == 404


def test_nobody_shares_what_is_not_theirs_or_no_catch(client, wall, bob):
    example = public_of(wall)[0]
    assert signed_in(bob).post(f"{page_of(example)}share/", {"share": "on"}).status_code == 404
    assert client.post(f"{page_of(example)}share/", {"share": "on"}).status_code == 302
    mere = Example.objects.filter(consensus__is_validated_error=False).first()
    author_of(mere).post(f"{page_of(mere)}share/", {"share": "on"})
    assert not SharedCatch.objects.exists()


def test_programs_share_by_the_api(wall):
    example = public_of(wall)[0]
    author, address = author_of(example), f"/api/v1/tasks/nli/catches/{example.uuid}/sharing/"
    assert author.put(address).json() == {"page": page_of(example)}
    assert SharedCatch.objects.count() == 1
    assert author.delete(address).status_code == 204
    assert not SharedCatch.objects.exists()
    mere = Example.objects.filter(
        consensus__is_validated_error=False, annotator=example.annotator_id
    ).first()
    refused = author.put(f"/api/v1/tasks/nli/catches/{mere.uuid}/sharing/")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_shareable")


@pytest.mark.parametrize("door", ["page", "api"])
def test_consent_is_withdrawn_without_access_and_not_given(wall, door):
    example = public_of(wall)[0]
    author, api = author_of(example), f"/api/v1/tasks/nli/catches/{example.uuid}/sharing/"
    author.put(api)
    wall.task.is_visible = False
    wall.task.save()
    assert author.get(WALL).status_code == 404
    ways = {
        "page": lambda answer: author.post(f"{page_of(example)}share/", {"share": answer}),
        "api": lambda answer: author.put(api) if answer == "on" else author.delete(api),
    }
    assert ways[door]("off").status_code in (204, 302)
    assert not SharedCatch.objects.exists()
    assert ways[door]("on").status_code == 404
    assert not SharedCatch.objects.exists()


def test_my_work_lists_shared_catches_even_of_tasks_that_were_left(wall):
    example = public_of(wall)[0]
    author, form = author_of(example), f'action="{page_of(example)}share/"'
    assert 'id="shared"' not in author.get("/me/").text
    author.post(f"{page_of(example)}share/", {"share": "on"})
    wall.task.is_visible = False
    wall.task.save()
    page = author.get("/me/")
    assert form in page.text.split('id="shared"')[1]
    assert [shared.pk for shared, _text in page.context["shared"]] == [example.pk]
    author.post(f"{page_of(example)}share/", {"share": "off"})
    assert author.get("/me/").context["shared"] == []


def test_nobody_withdraws_for_others(wall, bob):
    example = public_of(wall)[0]
    author_of(example).post(f"{page_of(example)}share/", {"share": "on"})
    other, api = signed_in(bob), f"/api/v1/tasks/nli/catches/{example.uuid}/sharing/"
    assert other.post(f"{page_of(example)}share/", {"share": "off"}).status_code == 404
    assert other.delete(api).status_code == 404
    assert SharedCatch.objects.filter(example=example).exists()


def test_the_page_goes_with_its_author(client, wall):
    example = public_of(wall)[0]
    author_of(example).post(f"{page_of(example)}share/", {"share": "on"})
    assert client.get(page_of(example)).status_code == 200
    delete_person(user=Annotator.objects.get(pk=example.annotator_id).user)
    assert not SharedCatch.objects.exists()
    assert client.get(page_of(example)).status_code == 404


def test_the_overview_leads_to_the_wall(client, wall):
    page = client.get("/t/nli/")
    assert [line.uuid for line in page.context["newest_catches"]] == [
        example.uuid for example in public_of(wall)[:3]
    ]
    assert 'id="all-catches"' in page.text


# What was shown is used


def first_address(kind, wall):
    example = public_of(wall)[0]
    return {
        "wall": WALL,
        "page": page_of(example),
        "picture": f"{page_of(example)}picture.png",
        "api": "/api/v1/tasks/nli/catches/",
        "round": "/t/nli/rounds/1/",
        "overview": "/t/nli/",
        "home": "/",
    }[kind]


DOORS = ["wall", "page", "picture", "api", "round", "overview", "home"]


@pytest.mark.parametrize("door", DOORS)
def test_a_release_is_final_once_a_row_was_shown(client, wall, door):
    example = public_of(wall)[0]
    author_of(example).post(f"{page_of(example)}share/", {"share": "on"})
    # Visitors see quotes on the home page beside an example to try.
    scripted_target(RoundFactory(task=wall.task, number=2, state="open"))
    Dataset.objects.update(downloaded_at=None)
    assert client.get(first_address(door, wall)).status_code == 200
    assert find_final_reasons(Dataset.objects.get()) == ["downloaded"]
    noted = Dataset.objects.get().downloaded_at
    with pytest.raises(UndoRefused):
        undo_release(round=wall, actor=None)
    # The first time stays, and is written once.
    with CaptureQueriesContext(connection) as queries:
        assert client.get(first_address(door, wall)).status_code == 200
    assert not [one for one in queries if 'UPDATE "evaluation_dataset"' in one["sql"]]
    assert Dataset.objects.get().downloaded_at == noted


@pytest.mark.parametrize("door", ["wall", "api", "round", "overview"])
def test_members_who_read_the_answers_use_nothing(wall, alice, door):
    Dataset.objects.update(downloaded_at=None)
    TaskMember.objects.create(user=alice, task=wall.task, role="owner")
    owner = signed_in(alice)
    assert owner.get(first_address(door, wall)).status_code == 200
    assert Dataset.objects.get().downloaded_at is None
    # An owner who judges blind is a judge as others are.
    TaskMember.objects.update(is_blind=True)
    assert owner.get(first_address(door, wall)).status_code == 200
    assert Dataset.objects.get().downloaded_at is not None


def test_rows_of_an_undone_release_are_not_shown(wall):
    Dataset.objects.update(downloaded_at=None)
    rows = list(select_public_catches(wall.task))
    undo_release(round=wall, actor=None)
    assert rows
    assert show_catches(AnonymousUser(), wall.task, rows) == []


# The second beat


@pytest.fixture
def confirmed(nli, alice, people):
    """Alice's example, confirmed by three of three."""
    example = write(nli, alice, label="neutral")
    Example.objects.filter(pk=example.pk).update(goal="neutral")
    judge(example, people[:3], "neutral")
    assert Consensus.objects.get().is_validated_error
    return example


@pytest.mark.parametrize("address", ["/", "/me/"])
def test_a_confirmed_catch_is_the_first_card(as_alice, confirmed, address):
    page = as_alice.get(address)
    card = page.context["confirmed"]
    assert (card.example, card.agreeing_count, card.vote_count, card.position) == (
        confirmed,
        3,
        3,
        1,
    )
    assert 'id="confirmed-catch"' in page.text
    assert 'id="share-catch"' in page.text
    Consensus.objects.update(decided_at=timezone.now() - timedelta(days=8))
    assert as_alice.get(address).context["confirmed"] is None


def test_an_owner_who_decided_is_named_without_votes(as_alice, nli, alice, bob):
    example = write(nli, alice, label="neutral")
    override_consensus(example=example, owner=bob, choice=Vote(label="neutral"))
    card = as_alice.get("/me/").context["confirmed"]
    assert (card.agreeing_count, card.vote_count) == (0, 0)


def test_a_confirmed_catch_is_told_once_at_the_next_page(client, alice, confirmed):
    client.force_login(alice)
    session = client.session
    session["inbox"] = (0, (timezone.now() - timedelta(hours=1)).isoformat())
    session.save()
    told = [str(message) for message in client.get("/help/").context["messages"]]
    told += [str(message) for message in client.get("/help/").context["messages"]]
    assert len(told) == 1
    session = client.session
    session["inbox"] = (0, (timezone.now() - timedelta(hours=1)).isoformat())
    session.save()
    again = [*client.get("/help/").context["messages"], *client.get("/help/").context["messages"]]
    assert not again


def test_others_are_told_nothing(client, bob, confirmed):
    client.force_login(bob)
    assert client.get("/me/").context["confirmed"] is None


def test_sensitive_catches_make_no_card(as_alice, confirmed, nli):
    make_sensitive(nli.task)
    assert as_alice.get("/me/").context["confirmed"] is None
    assert get_annotator(confirmed.annotator.user).pk == confirmed.annotator_id
    as_alice.post(f"{page_of(confirmed)}share/", {"share": "on"})
    assert not SharedCatch.objects.exists()


# First catches


def catch(round, author, people, number, **about):
    """A confirmed catch of the author's."""
    example = write(round, author, number, label="neutral")
    Example.objects.filter(pk=example.pk).update(goal="neutral", **about)
    judge(Example.objects.get(pk=example.pk), people[:3], "neutral")
    return example


def test_the_first_catch_of_a_slice_is_marked_for_ever(as_alice, nli, alice, bob, people):
    first = catch(nli, alice, people, 1, challenge="several_steps")
    assert store_first_catches() == 1
    assert store_first_catches() == 0
    catch(nli, bob, people, 2, challenge="several_steps")
    assert store_first_catches() == 0
    row = FirstCatch.objects.get()
    assert (row.example_id, row.slice, row.value) == (first.pk, "challenge", "several_steps")
    assert "data-first" in as_alice.get("/me/").text
    assert "data-first" not in signed_in(bob).get("/me/").text
    override_consensus(example=first, owner=bob, choice=Vote(label="entailment"))
    store_first_catches()
    assert FirstCatch.objects.get() == row


def test_an_earlier_catch_than_those_of_today_is_the_first(nli, alice, bob, people):
    old = catch(nli, alice, people, 1, challenge="counting")
    week_ago = timezone.now() - timedelta(days=7)
    Consensus.objects.filter(example=old).update(decided_at=week_ago)
    assert store_first_catches() == 0  # nothing is new
    catch(nli, bob, people, 2, challenge="counting")
    assert store_first_catches() == 1
    assert FirstCatch.objects.get().example_id == old.pk


def test_sensitive_tasks_have_no_firsts(nli, alice, people):
    catch(nli, alice, people, 1, challenge="counting")
    make_sensitive(nli.task)
    assert store_first_catches() == 0


# The page of a finished round


def test_a_finished_round_has_a_page(client, wall):
    page = client.get("/t/nli/rounds/1/")
    assert page.status_code == 200
    best = page.context["catches"]
    assert len(best) == 3
    assert {line.uuid for line in best} <= {example.uuid for example in public_of(wall)}
    assert page.context["dataset"].round == wall
    assert page.context["numbers"]["authors"] == 12
    assert 'id="use"' in page.text


def test_its_best_catches_are_the_surest_mistakes(client, wall):
    surest = public_of(wall)[-1]
    surest.target_outputs.update(prob={"neutral": 0.99, "entailment": 0.01})
    assert client.get("/t/nli/rounds/1/").context["catches"][0].uuid == surest.uuid


def test_a_round_that_is_not_released_has_none(client, closed):
    assert client.get("/t/nli/rounds/1/").status_code == 404
    assert client.get("/t/nli/rounds/9/").status_code == 404


def test_a_sensitive_round_quotes_nothing(client, wall):
    make_sensitive(wall.task)
    page = client.get("/t/nli/rounds/1/")
    assert page.status_code == 200
    assert page.context["catches"] == []


def test_an_empty_wall_shows_what_people_write(client, nli):
    page = client.get("/t/nli/catches/").text
    assert 'id="no-catches"' in page
    assert 'id="sample-catch"' in page
    assert nli.task.config.examples.good[0].reason in page
