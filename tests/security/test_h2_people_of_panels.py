"""Whoever invents ids of a campaign by link gets into that campaign's task and into nothing else.

The attack: an owner opens a campaign, comes by its link under made-up ids, and votes as so many
people in the tasks of others.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.apps import apps
from django.test import Client
from django.urls import URLPattern
from django.utils import timezone
from rest_framework.test import APIClient

from annotation.attempts.services import begin_attempt
from annotation.context_picking.services import assign
from annotation.models import Attempt
from annotation.refusals import NotAllowed
from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator
from core.accounts.tokens import create_token
from core.errors import Refused
from dynabench.campaigns.panel_pages import TASK_LOOKUP_BY_PAGE
from dynabench.campaigns.stray_vote_services import take_back_stray_votes
from dynabench.urls import urlpatterns
from leaderboard.arena.battles.turn_services import begin_turn
from leaderboard.models import Battle
from tasks import permissions
from tasks.models import TaskMember
from tasks.selectors import find_visible_tasks
from tasks.services import find_account
from tests.support.api_routes import address_of, routes, world  # noqa: F401
from tests.support.arenas import make_arena
from tests.support.campaigns import agree, open_campaign, take_part
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.judging.services import cast_validation, lease_next, skip_example
from validation.models import Consensus, JudgeLease, Skip, Validation

pytestmark = pytest.mark.django_db
OPEN = re.compile(r"/(c/elsewhere|help|privacy|me/news|i18n|status)/$|/status/incident/$")
"""Pages of no task that people of a panel need, and those of their own study."""
REFUSED = (400, 403, 404, 405, 410)
KEPT = {"session", "usersession", "digest"}
"""Rows that a browser makes by itself, and of the news that the person has read."""


@pytest.fixture
def visitor(world):
    """A browser of somebody of a panel, who works for a study of another task."""
    task = TaskFactory(code="sentiment")
    sentences = RoundFactory(task=task, number=1)
    ContextFactory(round=sentences, fields={"prompt": "It rained."})
    campaign = open_campaign(task, slug="elsewhere", kind="both", each=5)
    client, _page = take_part(campaign)
    return client


@pytest.fixture
def me(visitor):
    return Annotator.objects.get(user=visitor.session["_auth_user_id"])


def pages(patterns=urlpatterns, before="/"):
    """All addresses of the site but those of the API, as they are written."""
    for one in patterns:
        address = before + re.sub(r"^\^|\$$|\\Z$|\\", "", str(one.pattern))
        if address.startswith("/api/"):
            continue
        if isinstance(one, URLPattern):
            yield address
        else:
            yield from pages(one.url_patterns, address)


def filled(world, address, own):
    """An address of what is there in the task of others, by its parameters."""
    ids = world.ids
    known = {
        "code": "nli",
        "slug": "study",
        "uuid": own["uuid"],
        "number": 2,
        "version": 1,
        "digest": ids["media"][0],
        "pk": own.get(address.split("/<int:pk>")[0].rsplit("/", 1)[-1], 1),
    }

    def value(found):
        kind, name = found[1], found[2] or found[3] or found[4]
        return str(known["uuid"] if kind == "uuid" else known.get(name, "1"))

    return re.sub(r"<(\w+):(\w+)>|<(\w+)>|\(\?P<(\w+)>[^)]*\)+", value, address)


def rows():
    """How many rows there are of each model."""
    models = [one for one in apps.get_models() if one._meta.model_name not in KEPT]
    return {one.__name__: one._base_manager.count() for one in models}


def work_of(world, me):
    """What somebody could have in a task from before it was closed to them."""
    round = world.task.rounds.get(number=2)
    assignment = assign(annotator=me, round=round)
    example = write(round, me.user, "mine", hypothesis="Mine.", label="neutral")
    attempt = Attempt.objects.create(
        annotator=me, assignment=assignment, key=uuid4(), inputs={}, state="done",
        example=example, asked_at=timezone.now(),
    )  # fmt: skip
    others = write(round, world.owner, "theirs", hypothesis="Theirs.", label="neutral")
    return assignment, attempt, others


def test_no_page_of_another_task_is_open(world, visitor, me):
    """Each address with GET and POST, also of what the person would have in that task."""
    assignment, attempt, others = work_of(world, me)
    Validation.objects.create(example=others, validator=me, label="neutral", seconds=1)
    own = {"draft": assignment.pk, "talk": assignment.pk, "context": assignment.context_id}
    before, told = rows(), {}
    for uuid in (attempt.uuid, others.uuid):
        for address in pages():
            url = filled(world, address, own | {"uuid": uuid})
            for method in ("get", "post"):
                response = getattr(visitor, method)(url, {"label": "neutral"})
                if OPEN.search(url):
                    continue
                if response.status_code == 302:
                    to = response.headers["Location"]
                    assert to.startswith(("/c/", "/help/", "/accounts/login")), (url, to)
                elif response.status_code not in REFUSED:
                    told[url, method] = response.status_code
    assert told == {}
    assert rows() == before


def test_every_listed_page_is_there():
    """A name that no address has would be a door that nobody looks at."""
    names = {
        f"{space}:{one.name}"
        for space, rooms in (
            ("annotation", "annotation.urls"),
            ("validation", "validation.urls"),
            ("leaderboard", "leaderboard.urls"),
        )
        for one in __import__(rooms, fromlist=["urlpatterns"]).urlpatterns
    }
    assert set(TASK_LOOKUP_BY_PAGE) <= names


def test_the_api_is_closed(world, visitor):
    """By session and by a token."""
    user = User.objects.get(pk=visitor.session["_auth_user_id"])
    _token, key = create_token(user=user, name="t", scopes=["read", "annotate"], days=1)
    program, before = APIClient(HTTP_AUTHORIZATION=f"Bearer {key}"), rows()
    for method, route in routes():
        address = address_of(world, route) if not route.startswith("^") else "/api/v1/none/"
        answer = getattr(visitor, method.lower())(address)
        assert answer.status_code == 403, (method, route)
        assert answer.json()["error"]["code"] == "study"
        answer = getattr(program, method.lower())(address, {} if method != "GET" else None)
        public = answer.status_code == 401 or "schema" in route or "docs" in route
        assert public or route.startswith("^"), (method, route, answer.status_code)
    assert rows() == before


def test_services_refuse_other_tasks(world, me):
    """Where a new address forgot to ask."""
    assignment, _attempt, others = work_of(world, me)
    asked = dict.fromkeys([name for name in vars(permissions) if name.startswith("can_")])
    asked = [one for one in asked if not one.endswith("_tasks") and one != "can_make_tasks"]
    assert asked
    assert not any(getattr(permissions, one)(me.user, world.task) for one in asked)
    assert [one.code for one in find_visible_tasks(me.user)] == ["sentiment"]
    until = timezone.now() + timedelta(hours=1)
    JudgeLease.objects.create(
        example=others, validator=me, leased_at=timezone.now(), until=until, takes_place=False
    )
    with pytest.raises(NotAllowed):
        cast_validation(validator=me, example=others, vote=Vote(label="neutral"))
    with pytest.raises(NotAllowed):
        skip_example(validator=me, example=others)
    with pytest.raises(NotAllowed):
        begin_attempt(annotator=me, assignment=assignment, key=uuid4(), inputs={})
    with pytest.raises(NotAllowed):
        begin_turn(
            voter=me,
            task=world.task,
            battle=None,
            number=1,
            key=uuid4(),
            prompt="",
            drawn_pair=None,
        )
    assert lease_next(validator=me, task=world.task) is None
    assert not (Validation.objects.exists() and Validation.objects.filter(validator=me).exists())
    assert not Skip.objects.filter(validator=me).exists()
    assert not Battle.objects.filter(voter=me).exists()


def test_no_owner_lets_them_in(world, me):
    """Nobody names them by the address that they have without knowing; a role reads nothing."""
    with pytest.raises(Refused):
        find_account(me.user.email)
    TaskMember.objects.create(task=world.task, user=me.user, role="owner")
    assert not permissions.can_read(me.user, world.task)
    assert not permissions.can_own(me.user, world.task)


def test_their_own_task_is_open_while_they_work(visitor, me):
    """Until they submit or leave, in every browser that they use."""
    for page in ("write", "judge"):
        assert visitor.get(f"/t/sentiment/{page}/").status_code == 200
    other = Client()
    other.force_login(me.user)
    assert other.get("/t/sentiment/write/").status_code == 200
    visitor.post("/c/elsewhere/leave/")
    for client in (visitor, other):
        assert client.get("/t/sentiment/write/").status_code == 302
    assert lease_next(validator=me, task=TaskMember.objects.get(user=me.user).task) is None


def test_rounds_that_the_study_did_not_choose_are_not_offered(db, client):
    """Neither when somebody asks for another passage."""
    task = TaskFactory(code="nli")
    chosen = RoundFactory(task=task, number=1, state="closed")
    live = RoundFactory(task=task, number=2)
    ContextFactory.create_batch(2, round=live)
    campaign = open_campaign(task, kind="both", each=5)
    campaign.rounds.set([chosen])
    place = agree(campaign, "somebody")
    client.force_login(place.annotator.user)
    write(live, UserFactory(), 1)
    for want in ("context", "edit"):
        client.post("/t/nli/write/next/", {"want": want})
    assert not place.annotator.assignment_set.exists()
    assert lease_next(validator=place.annotator, task=task) is None


def test_accounts_of_the_site_go_where_they_please(world):
    """Whoever takes part with an account is bound to nothing."""
    task = TaskFactory(code="sentiment")
    campaign = open_campaign(task, slug="elsewhere", way="account")
    user = UserFactory()
    agree(campaign, user)
    client = Client()
    client.force_login(user)
    assert client.get("/t/nli/judge/").status_code == 200
    assert permissions.can_judge(user, world.task)
    assert not get_annotator(user).user.is_panel_participant


def test_votes_from_before_decide_no_more(world, me):
    """Those that people of a panel had cast in another task are gone after a day's work."""
    round = world.task.rounds.get(number=2)
    example = write(round, world.owner, "theirs", hypothesis="Theirs.", label="neutral")
    released = world.task.rounds.get(number=1)
    kept = write(released, world.owner, "kept", hypothesis="Kept.", label="neutral")
    people = [agree(me.places.get().campaign, "another").annotator, me]
    honest = get_annotator(UserFactory())
    for one in (*people, honest):
        Validation.objects.create(example=example, validator=one, label="entailment", seconds=1)
    Validation.objects.create(example=kept, validator=me, label="entailment", seconds=1)
    released.state = "released"
    released.save()
    mine = RoundFactory(task=TaskFactory(code="qa"))
    ContextFactory(round=mine, fields={"passage": "It rained."})
    study = open_campaign(mine.task, slug="here", kind="judge")
    asked = write(mine, world.owner, "asked", question="What?", answer="rained")
    voter = agree(study, "a person").annotator
    Validation.objects.create(example=asked, validator=voter, verdict="correct", seconds=1)
    derive_consensus_of_all([example])
    assert Consensus.objects.get(pk=example.pk).state == "decided"
    assert take_back_stray_votes() == 2
    found = Consensus.objects.get(pk=example.pk)
    assert (found.votes, found.state) == (1, "undecided")
    left = Validation.objects.order_by("pk").values_list("validator", flat=True)
    assert [*left] == [honest.pk, me.pk, voter.pk]
    assert take_back_stray_votes() == 0


def test_comparisons_from_before_count_no_more(world, me):
    arena = make_arena("arena")
    for name in ("one", "two"):
        arena.contestants.create(name=name)
    left, right = arena.contestants.all()[:2]
    honest = get_annotator(UserFactory())
    for one in (me, honest):
        arena.comparisons.create(uid=one.pk, voter=one, left=left, right=right, winner="left")
    assert take_back_stray_votes() == 1
    assert [one.voter for one in arena.comparisons.all()] == [honest]
