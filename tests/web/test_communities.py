"""Communities: who founds, sees and runs one, how tasks join, the board across tasks, people."""

# ruff: noqa: F811  (fixtures are named where they are used)

from datetime import date, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from django.core.cache import cache
from PIL import Image

from core.accounts.models import confirm_address
from dynabench.communities.board import compute_floor
from dynabench.communities.models import (
    Community,
    CommunityProposal,
    CommunityTask,
    JointSubmission,
    ProposedTask,
)
from dynabench.communities.services import ask_to_join
from tasks.models import Task, TaskMember, TaskProposal
from tests.support.boards import list_models, measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import TaskFactory, UserFactory
from tests.support.new_tasks import NEW, ada, as_ada  # noqa: F401
from tests.support.query_counts import check, count
from tests.support.writing import signed_in

ROOT = "/communities/"
PAGE = f"{ROOT}words/"


@pytest.fixture
def owner(db):
    user = UserFactory(email="owner@example.com")
    confirm_address(user)
    return user


@pytest.fixture
def as_owner(owner):
    return signed_in(owner)


@pytest.fixture
def words(owner):
    """A listed community of an open task and one that only its members see."""
    made = Community.objects.create(slug="words", name="Words", is_listed=True, text="We *meet*.")
    made.owners.add(owner)
    for code, is_visible in (("nli", True), ("qa", False)):
        task = TaskFactory(code=code, name=f"Task {code}", is_visible=is_visible)
        CommunityTask.objects.create(community=made, task=task, state="in")
    return made


def test_a_community_is_proposed_decided_and_listed_by_its_owner(
    as_ada, ada, client, mailoutbox, django_capture_on_commit_callbacks
):
    boss = UserFactory(email="boss@example.com", is_superuser=True)
    form = {"name": "Words", "slug": "words", "goal": "To compare."}
    with django_capture_on_commit_callbacks(execute=True):
        assert as_ada.post(f"{ROOT}new/", form).url == ROOT
    made = CommunityProposal.objects.get()
    address = f"{ROOT}proposals/{made.pk}/"
    assert address in mailoutbox[0].body
    yes = {"approve": "yes", "slug": "words", "reason": ""}
    for stranger in (as_ada, signed_in(UserFactory())):
        assert stranger.post(address, yes).status_code == 404
    as_boss = signed_in(boss)
    assert address in as_boss.get(ROOT).text
    assert as_boss.post(address, {**yes, "approve": "no"}).status_code == 422
    assert as_boss.post(address, yes).status_code == 302
    assert as_boss.post(address, yes).status_code == 422
    found = Community.objects.get()
    assert ([*found.owners.all()], found.is_listed) == ([ada], False)
    assert client.get(PAGE).status_code == 404
    assert "Words" not in client.get(ROOT).text
    page = {"name": "Words", "summary": "All.", "text": "<script>", "is_listed": "on"}
    tracks = {"tracks": "small\n  large  words \n\n"}
    assert as_ada.post(f"{PAGE}manage/", page | tracks).status_code == 302
    found.refresh_from_db()
    assert found.tracks == ["small", "large words"]
    assert "<script>" not in client.get(PAGE).text.split("<main")[1]
    assert client.get(PAGE).status_code == 200
    assert as_ada.post(f"{ROOT}new/", form).context["form"].errors.keys() == {"slug"}
    twice = as_ada.post(f"{PAGE}manage/", page | {"tracks": "a\na"})
    assert twice.context["form"].errors.keys() == {"tracks"}


def test_without_a_confirmed_address_nothing_is_proposed(as_alice):
    form = {"name": "Words", "slug": "words", "goal": "To compare."}
    assert as_alice.post(f"{ROOT}new/", form).status_code == 422
    assert not CommunityProposal.objects.exists()


@pytest.mark.parametrize("who", ["nobody", "stranger", "owner", "viewer", "annotator", "boss"])
def test_a_hidden_task_is_shown_to_those_alone_who_may_see_it(client, words, owner, who):
    """The community's own owner is none of them; nobody learns of it from any page."""
    secret = Task.objects.get(code="qa")
    version = set_version(secret, "round-1", size=40)
    measured(accepted_model(secret, name="Leaky", is_published=True), version, 0.5)
    user = UserFactory(is_superuser=who == "boss") if who != "nobody" else None
    user = owner if who == "owner" else user
    if who in ("viewer", "annotator"):
        TaskMember.objects.create(task=secret, user=user, role=who)
    if user:
        client.force_login(user)
    sees = who in ("viewer", "annotator", "boss")
    for page in ("", "board/?w_qa=8", "people/", "submit/", "join/", "manage/"):
        text = client.get(PAGE + page).text
        told = "Task qa" in text or "Leaky" in text or "t/qa/" in text
        assert told == (sees and page in ("", "board/?w_qa=8")) or (sees and who == "boss"), page
    assert "Task nli" in client.get(PAGE).text


def test_an_unlisted_community_is_for_its_owners_and_the_members_of_its_tasks(words, client, owner):
    Community.objects.update(is_listed=False)
    member, asking = UserFactory(), UserFactory()
    TaskMember.objects.create(task=Task.objects.get(code="qa"), user=member, role="judge")
    other = TaskFactory(code="sentiment")
    TaskMember.objects.create(task=other, user=asking, role="owner")
    CommunityTask.objects.create(community=words, task=other)  # asks, and is not in
    assert client.get(PAGE).status_code == 404
    for user, status in ((member, 200), (asking, 404), (owner, 200), (UserFactory(), 404)):
        client.force_login(user)
        for page in ("", "board/", "people/", "submit/", "join/", "logo/"):
            found = client.get(PAGE + page).status_code
            assert found == (404 if page == "logo/" else status), page
        assert ("Words" in client.get(ROOT).text) == (status == 200)


OWNERS = ("manage/", "manage/logo/", "manage/owners/", "manage/news/", "manage/weights/")


def test_only_its_owners_change_a_community(words, as_alice, alice, owner):
    entry = words.entries.get(task__code="nli")
    post = words.posts.create(title="Hello", text="All.")
    places = (
        *OWNERS,
        f"manage/owners/{owner.pk}/remove/",
        f"manage/news/{post.pk}/delete/",
    )
    for place in places:
        assert as_alice.post(PAGE + place, {"title": "x", "text": "x"}).status_code == 403, place
    for action in ("admit", "remove"):
        assert as_alice.post(f"{PAGE}tasks/{entry.pk}/{action}/").status_code == 404
    assert as_alice.get(f"{PAGE}manage/").status_code == 403
    assert (words.posts.count(), words.entries.count(), words.owners.count()) == (1, 2, 1)
    other = Community.objects.create(slug="other", name="Other", is_listed=True)
    other.owners.add(alice)  # an owner of one is none of another, by whatever address
    assert as_alice.post(f"{ROOT}other/tasks/{entry.pk}/remove/").status_code == 404
    assert as_alice.post(f"{ROOT}other/manage/news/{post.pk}/delete/").status_code == 404
    assert as_alice.post(f"{ROOT}other/manage/owners/{owner.pk}/remove/").status_code == 404


def test_owners_tell_news_name_owners_and_one_stays(words, as_owner, owner, alice, client):
    news = {"title": "Hello", "text": "A *new* task."}
    assert as_owner.post(f"{PAGE}manage/news/", news).status_code == 302
    assert "A <em>new</em> task." in client.get(PAGE).text
    refused = as_owner.post(f"{PAGE}manage/owners/", {"email": alice.email})
    assert refused.context["owner_form"].errors.keys() == {"email"}  # nobody confirmed it
    as_owner.post(f"{PAGE}manage/owners/{owner.pk}/remove/")
    assert [*words.owners.all()] == [owner]
    confirm_address(alice)
    assert as_owner.post(f"{PAGE}manage/owners/", {"email": alice.email}).status_code == 302
    assert as_owner.post(f"{PAGE}manage/owners/{owner.pk}/remove/").url == ROOT
    assert [*words.owners.all()] == [alice]


def test_weights_stand_in_the_rows_of_their_tasks(words, as_owner):
    entry = words.entries.first()
    rows = as_owner.get(f"{PAGE}manage/").context["entries"]
    (weight,) = [field for row, _seen, field in rows if row == entry]
    assert weight.name == f"weight_{entry.pk}"
    weights = {f"weight_{one.pk}": "1" for one in words.entries.all()} | {weight.name: "2.5"}
    assert as_owner.post(f"{PAGE}manage/weights/", weights).status_code == 302
    entry.refresh_from_db()
    assert entry.weight == 2.5
    refused = as_owner.post(f"{PAGE}manage/weights/", weights | {weight.name: "-1"})
    assert refused.context["weights_form"].errors.keys() == {weight.name}


def test_a_logo_is_what_was_drawn_of_the_picture_and_nothing_else(words, as_owner, client):
    file = BytesIO()
    Image.new("RGB", (40, 30), "red").save(file, "PNG")
    file.write(b"<script>alert(1)</script>")
    file.seek(0)
    file.name = "x.html"
    assert as_owner.post(f"{PAGE}manage/logo/", {"logo": file}).status_code == 302
    answer = client.get(f"{PAGE}logo/")
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert b"script" not in answer.content
    assert "sandbox" in answer["Content-Security-Policy"]
    bad = BytesIO(b"<svg onload=alert(1)>")
    bad.name = "x.svg"
    refused = as_owner.post(f"{PAGE}manage/logo/", {"logo": bad})
    assert refused.context["logo_form"].errors.keys() == {"logo"}
    assert as_owner.post(f"{PAGE}manage/logo/", {"remove": "1"}).status_code == 302
    assert client.get(f"{PAGE}logo/").status_code == 404


def test_a_task_joins_by_its_owner_and_the_communitys_yes(words, as_owner, as_ada, ada, client):
    mine = TaskFactory(code="sentiment", name="Task sentiment", is_visible=False)
    TaskMember.objects.create(task=mine, user=ada, role="editor")
    assert as_ada.post(f"{PAGE}join/", {"task": "sentiment"}).status_code == 422
    mine.members.update(role="owner")
    assert as_ada.post(f"{PAGE}join/", {"task": "nli"}).status_code == 422
    assert as_ada.post(f"{PAGE}join/", {"task": "sentiment"}).status_code == 302
    assert as_ada.post(f"{PAGE}join/", {"task": "sentiment"}).status_code == 422
    entry = words.entries.get(task=mine)
    assert entry.state == "asked"
    assert "Task sentiment" not in as_ada.get(PAGE).text
    assert as_ada.post(f"{PAGE}tasks/{entry.pk}/admit/").status_code == 404
    manage = as_owner.get(f"{PAGE}manage/").text
    assert f"tasks/{entry.pk}/admit/" in manage
    assert "sentiment" not in manage  # a hidden task has no name for them
    assert as_owner.post(f"{PAGE}tasks/{entry.pk}/admit/").status_code == 302
    assert "Task sentiment" in as_ada.get(PAGE).text
    assert "Task sentiment" not in client.get(PAGE).text
    assert as_ada.post(f"{PAGE}tasks/{entry.pk}/remove/").status_code == 302
    assert not words.entries.filter(task=mine).exists()


def test_the_communitys_owners_decide_tasks_that_are_proposed_for_it(
    settings, words, as_owner, as_ada, as_alice, mailoutbox, django_capture_on_commit_callbacks
):
    settings.NEW_TASKS = "approval"
    form = {"goal": "To find.", "people": "We."}
    asking = "/own/{}/access/approval/".format
    for code in ("names", "more", "last"):
        assert as_ada.post(NEW, {"name": code, "code": code}).status_code == 302
    with django_capture_on_commit_callbacks(execute=True):
        assert as_ada.post(asking("names"), {**form, "community": "words"}).status_code == 302
    made = TaskProposal.objects.get()
    assert [mail.to for mail in mailoutbox] == [["owner@example.com"]]
    address, yes = f"/new/proposals/{made.pk}/", {"approve": "yes", "reason": ""}
    assert as_alice.get(address).status_code == as_ada.get(address).status_code == 404
    assert as_alice.post(address, yes).status_code == 404
    page = as_owner.get(address).text
    assert "ada@example.com" not in page  # only administrators read addresses
    assert address in as_owner.get(f"{PAGE}manage/").text
    assert as_owner.get("/new/proposals/").status_code == 404
    assert as_owner.post(address, yes).url == f"{PAGE}manage/"
    assert words.entries.get(task__code="names").state == "in"
    as_ada.post(asking("more"), form)  # for none: administrators decide
    plain = TaskProposal.objects.get(wanted_code="more")
    assert as_owner.post(f"/new/proposals/{plain.pk}/", yes).status_code == 404
    Community.objects.update(is_listed=False)
    words.entries.all().delete()
    as_ada.post(asking("last"), {**form, "community": "words"})  # nothing that they see
    assert not ProposedTask.objects.filter(proposal__wanted_code="last").exists()


@pytest.fixture
def boards(words, ada):
    """Two models of one name on two tasks, one on one of them; and a joint one, unnamed."""
    other = TaskFactory(code="sentiment", name="Task sentiment")
    CommunityTask.objects.create(community=words, task=other, state="in", weight=3)
    versions = [
        set_version(task, "round-1", size=40) for task in (Task.objects.get(code="nli"), other)
    ]

    def model(version, accuracy, name, owner=ada, **fields):
        task = version.evaluation_set.task
        made = accepted_model(task, owner, name, is_published=True, **fields)
        return measured(made, version, accuracy)

    both = [model(version, 0.9, "Both") for version in versions]
    model(versions[0], 0.8, "Half")
    return both, versions, model


def names(client, query=""):
    found = client.get(f"{PAGE}board/{query}").context["board"]
    return [(one.entrant.name, one.rank, one.missing) for one in found.lines]


def test_the_board_ranks_those_that_have_all_tasks_and_says_what_others_lack(client, boards):
    assert names(client) == [("Both", "1", ()), ("Half", "", ("sentiment",))]
    assert names(client, "?w_sentiment=0") == [("Both", "1", ()), ("Half", "2", ())]
    page = client.get(f"{PAGE}board/?w_sentiment=x&w_nli=9")
    assert page.context["board"].invalid_parameters == ["w_nli", "w_sentiment"]
    assert page.context["board"].columns[1].weight == 3
    nothing = client.get(f"{PAGE}board/?w_sentiment=0&w_nli=0")
    assert [one.rank for one in nothing.context["board"].lines] == ["", ""]


def test_a_namesake_of_another_person_is_another_model(client, boards, bob):
    """Who takes a team's or a person's name for a model does not get into their row."""
    _, (first, version), model = boards
    model(version, 0.1, "Half", owner=bob)
    model(first, 0.5, "Half")  # of two models of one person the better one counts
    assert [one[0] for one in names(client)] == ["Both", "Half", "Half"]
    lines = client.get(f"{PAGE}board/").context["board"].lines
    assert [one.entrant.scores["nli"].value for one in lines if "nli" in one.points] == [90, 80]


def test_a_floor_is_where_the_score_of_the_tasks_own_board_begins():
    text = Path("tasks/making/gallery/toxicity.yaml").read_text()  # two labels, macro-averaged F1
    assert compute_floor(Task(code="toxicity", config_text=text)) == 50


def test_a_hidden_name_stands_in_no_row_with_one_that_is_shown(client, words, boards, ada):
    first, second = boards[0]
    joint = JointSubmission.objects.create(community=words, owner=ada, name="Both")
    joint.submissions.set([first, second])
    assert [one[0] for one in names(client)] == ["Both", "Half"]
    second.anonymous_until = date.today() + timedelta(days=9)
    second.save()
    cache.clear()
    lines = client.get(f"{PAGE}board/").context["board"].lines
    for line in lines:
        assert str(second.pk) not in line.entrant.models.values() or len(line.entrant.models) == 1
        if str(second.pk) in line.entrant.models.values():
            assert (line.entrant.name, line.entrant.owner) == ("", "")


def test_tracks_filter_what_was_submitted_jointly(client, words, boards, ada):
    both, _, _ = boards
    Community.objects.update(tracks=["small", "large"])
    joint = JointSubmission.objects.create(community=words, owner=ada, name="Both", track="small")
    joint.submissions.set(both)
    assert [one[0] for one in names(client, "?track=small")] == ["Both"]
    assert names(client, "?track=large") == []
    assert len(names(client, "?track=nonsense")) == 2


def test_the_pages_need_no_more_queries_with_more_of_everything(as_owner, words, boards, owner):
    pages = {"community": "", "community board": "board/", "community people": "people/"}
    for page in pages.values():
        as_owner.get(PAGE + page)  # boards of tasks are kept
    few = {name: count(as_owner, PAGE + page) for name, page in pages.items()}
    text = Task.objects.get(code="nli").config_text
    for number in range(4):
        task = TaskFactory(code=f"more-{number}", config_text=text)
        ask_to_join(community=words, task=task, actor=UserFactory(is_superuser=True))
        words.posts.create(title=f"News {number}", text="All.")
    for name, page in pages.items():
        as_owner.get(PAGE + page)
        assert count(as_owner, PAGE + page) == few[name], name
        check(name, few[name])


def test_the_top_of_each_tasks_board_is_on_the_page(client, words):
    task = words.entries.get(task__code="nli").task
    ranks = [("1=", "Ada"), ("1=", "Ben"), ("3", "Cy")]
    list_models(task, *[(rank, name, {"value": 71.5}) for rank, name in ranks])
    page = client.get(PAGE).text
    assert all(name in page for name in ("1= Ada", "3 Cy"))
    assert client.get("/g/words/").url == PAGE
