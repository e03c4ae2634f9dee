"""A name that looks like another's, or that turns the writing around, deceives whoever reads it.

`name<U+200B>x` is read as “namex”, `<U+202E>evil` as “live”, and Cyrillic letters as Latin ones.
"""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from core.accounts.models import confirm_address
from core.accounts.tokens import create_token
from core.errors import Invalid
from dynabench.communities.models import Community, Post
from evaluation.models import Submission, Team
from evaluation.submissions import services
from evaluation.submissions.teams.services import make_team
from leaderboard.arena.files import read_comparisons
from tasks.config_changes import hash_text
from tasks.line_files import LineError
from tasks.models import Task, TaskMember
from tasks.services import change_task, create_task, save_config
from tests.support.boards import measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import TaskFactory, UserFactory

JSON = "application/json"
UNFIT = ["name\u200bx", "\u202eevil", "a\nb", "\u2066x\u2069", "a\u00adb", "\ue000", "\u3164"]


@pytest.fixture
def task(db):
    return TaskFactory(code="nli", name="Natural language inference")


@pytest.fixture
def published(task, alice):
    """Alice's model, which everybody sees."""
    model = accepted_model(task, alice, name="paypal model 1", is_published=True)
    return measured(model, set_version(task), 0.7)


def _publish(task, owner, name, **fields):
    model = accepted_model(task, owner, name=name, **fields)
    measured(model, set_version(task, f"of-{model.pk.hex[:8]}"), 0.6)
    services.publish_model(submission=model, actor=owner)
    return model


@pytest.mark.parametrize("name", UNFIT)
def test_no_door_takes_characters_that_are_not_shown(client, alice, task, name):
    confirm_address(alice)
    alice.is_superuser = alice.is_staff = True
    alice.save()
    TaskMember.objects.create(task=task, user=alice, role="owner")
    community = Community.objects.create(slug="c", name="Community")
    community.owners.add(alice)
    client.force_login(alice)
    model = {"kind": "hub", "name": name, "source": "org/name", "revision": "a" * 40}
    answers = [
        client.post("/api/v1/teams/", {"name": name}, JSON),
        client.post("/api/v1/tasks/nli/models/", model, JSON),
        client.post("/t/nli/submit/", {**model, "language": ""}),
        client.patch("/api/v1/communities/c/", {"name": name}, JSON),
        client.post("/api/v1/communities/c/posts/", {"title": name, "text": "x"}, JSON),
    ]
    assert all(400 <= answer.status_code < 500 for answer in answers), answers
    assert not Team.objects.exists()
    assert not Submission.objects.exists()
    assert not Post.objects.exists()
    community.refresh_from_db()
    assert community.name == "Community"
    for make in (
        lambda: create_token(user=alice, name=name, scopes=["read"], days=1),
        lambda: create_task(code="new", config_text=_named(task, name), actor=alice),
        lambda: save_config(task=task, text=_named(task, name), base=_base(task), actor=alice),
    ):
        with pytest.raises(Invalid):
            make()
    assert Task.objects.count() == 1


def _named(task, name):
    data = yaml.safe_load(task.config_text)
    return yaml.safe_dump({**data, "name": name}, allow_unicode=True)


def _base(task):
    return hash_text(task.config_text)


@pytest.mark.parametrize(
    "name", ["paypal model 1", "раypal model 1", "ｐａｙｐａｌ model l", "paypal  rnodel 1"]
)
def test_a_published_model_has_its_name_alone(task, published, bob, name):
    with pytest.raises(Invalid) as error:
        _publish(task, bob, name)
    assert error.value.field == "name"
    assert not Submission.objects.filter(owner=bob, is_published=True).exists()
    assert _publish(task, bob, "paypal model 2").is_published


def test_imported_comparisons_name_models_plainly():
    lines = ["id,worker,left,right,winner", "1,w,\u202eevil,b,left", "2,w,a,name\u200bx,tie",
             "3,w,A\u030a  b,c,right"]  # fmt: skip
    wrong, other, line = read_comparisons(f"{one}\n".encode() for one in lines)
    assert isinstance(wrong, LineError)
    assert isinstance(other, LineError)
    assert line.left == "\u00c5 b"


def test_one_person_may_have_names_that_look_alike(task, published, alice):
    assert _publish(task, alice, "paypal model l").is_published


def test_the_name_of_a_model_that_is_not_published_is_told_to_nobody(task, alice, bob):
    accepted_model(task, alice, name="secret plan")
    assert _publish(task, bob, "secret plan").is_published


def test_a_day_that_was_promised_is_kept(task, published, bob):
    model = accepted_model(task, bob, name="paypal model l")
    with pytest.raises(Invalid):
        services.set_publish_on(submission=model, actor=bob, day=_tomorrow())


def _tomorrow():
    return timezone.now().date() + timedelta(days=1)


def test_teams_tasks_and_communities_have_names_apart(client, alice, task):
    make_team(actor=alice, name="Lab one")
    with pytest.raises(Invalid):
        make_team(actor=UserFactory(), name="Lаb one")
    shown = TaskFactory(code="other", config_text=task.config_text, is_visible=True)
    Task.objects.filter(pk=shown.pk).update(name="Nаtural language inference", is_visible=False)
    shown.refresh_from_db()
    Task.objects.filter(pk=task.pk).update(is_visible=True)
    with pytest.raises(Invalid):
        change_task(task=shown, actor=alice, fields={"is_visible": True})
    text = _named(task, "Natural Ianguage inference")
    Task.objects.filter(pk=shown.pk).update(name="Other", is_visible=True)
    with pytest.raises(Invalid):
        save_config(task=shown, text=text, base=_base(shown), actor=alice)
    alice.is_superuser = True
    alice.save()
    client.force_login(alice)
    Community.objects.create(slug="one", name="Society", is_listed=True)
    Community.objects.create(slug="two", name="Sосiety")
    listed = {"is_listed": True}
    assert client.patch("/api/v1/communities/two/", listed, JSON).status_code == 422
    listed["name"] = "Another"
    assert client.patch("/api/v1/communities/two/", listed, JSON).status_code == 200
