"""What stays current by itself: runs on a released round, mails to followers, badge, JSON."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
import re
from datetime import timedelta
from pathlib import Path
from smtplib import SMTPServerDisconnected
from urllib.parse import urlsplit
from xml.etree import ElementTree

import jsonschema
import pytest
from django.utils import timezone

from evaluation.jobs import sweep_all
from evaluation.models import Dataset, EvaluationRun, EvaluationSetVersion
from evaluation.runs.services import request_missing_runs
from evaluation.test_sets.source_services import make_release_version
from leaderboard.board.tables import compute_table_digest
from leaderboard.jobs import renew_boards
from leaderboard.models import Follow
from leaderboard.rounds.following import services
from leaderboard.rounds.following.services import email_followers, set_follow
from leaderboard.snapshots.services import take_snapshot
from tests.support.evaluations import accepted_model
from tests.support.releases import closed, people, released  # noqa: F401
from tests.support.submissions import make_set, scored, submission_of

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/leaderboard.schema.json").read_text())


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


def settle():
    """The release was longer ago than its runs need to be asked for."""
    ago = timezone.now() - services.SETTLING_TIME - timedelta(minutes=1)
    Dataset.objects.update(finished_at=ago)
    Follow.objects.update(told_to=ago - timedelta(days=1))


def test_a_released_round_is_run_by_every_model_without_anybody(closed, alice):
    model = accepted_model(closed.task, alice, is_published=True)
    released(closed)
    sweep_all()
    runs = EvaluationRun.objects.filter(submission=model, version__evaluation_set__round=closed)
    assert {run.state for run in runs} == {"queued"}
    assert runs.filter(suite="plain").exists()


def test_followers_get_one_mail_once_the_models_were_run(closed, alice, bob, mailoutbox):
    accepted_model(closed.task, alice, is_published=True)
    for user in (alice, bob):
        set_follow(task=closed.task, user=user, follows=True)
    set_follow(task=closed.task, user=bob, follows=False)
    dataset = released(closed)
    assert email_followers() == 0  # its runs may not have been asked for yet
    settle()
    make_release_version(dataset)
    request_missing_runs()
    assert email_followers() == 0
    EvaluationRun.objects.update(state="done")
    renew_boards()
    assert email_followers() == 0
    (mail,) = mailoutbox
    assert mail.to == [alice.email]
    assert f"/t/nli/rounds/{closed.number}/data/" in mail.body
    Dataset.objects.create(round=closed, version=2, state="done", finished_at=timezone.now())
    assert email_followers() == 0  # a further version of the same round


def test_who_may_not_see_the_task_any_more_is_not_told(closed, alice, mailoutbox):
    set_follow(task=closed.task, user=alice, follows=True)
    released(closed)
    settle()
    closed.task.is_visible = False
    closed.task.save(update_fields=["is_visible"])
    assert email_followers() == 0
    assert not mailoutbox


def test_while_the_mail_server_is_away_the_mail_waits(closed, alice, mailoutbox, monkeypatch):
    def away(*_):
        raise SMTPServerDisconnected("gone")

    set_follow(task=closed.task, user=alice, follows=True)
    released(closed)
    settle()
    with monkeypatch.context() as patch:
        patch.setattr("evaluation.submissions.emails.send_mail", away)
        assert email_followers() == 0
    assert email_followers() == 1


def test_the_button_follows_and_ends_it(nli, as_alice, alice, client):
    url = "/t/nli/follow/"
    for _ in range(2):
        as_alice.post(url, {"follow": "1"})
    assert Follow.objects.get().user == alice
    assert as_alice.get("/t/nli/").context["follows"]
    as_alice.post(url)
    assert not Follow.objects.exists()
    client.logout()
    assert client.post(url, {"follow": "1"}).status_code == 302
    assert not Follow.objects.exists()


@pytest.fixture
def ranked(nli, alice):
    """A published model with a score, of a task whose name has to be escaped."""
    nli.task.name = "A & <b>"
    nli.task.save(update_fields=["name"])
    model = submission_of(nli.task, alice, state="done", is_published=True)
    scored(model, make_set(nli.task, "dev"))
    return model


def test_a_badge_has_the_rank_and_only_of_published_models(ranked, client):
    reply = client.get(f"/m/{ranked.pk}/badge.svg")
    picture = ElementTree.fromstring(reply.content)
    texts = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["Dynabench A & <b>", "rank 1 of 1"]
    assert reply["Content-Type"] == "image/svg+xml"
    assert "max-age" in reply["Cache-Control"]
    client.force_login(ranked.owner)
    assert f"/m/{ranked.pk}/badge.svg)" in client.get(f"/m/{ranked.pk}/").text
    type(ranked).objects.update(is_published=False)
    assert client.get(f"/m/{ranked.pk}/badge.svg").status_code == 404


def test_the_board_at_its_lasting_address_keeps_its_schema(ranked, client):
    found = client.get("/t/nli/leaderboard.json").json()
    jsonschema.validate(found, SCHEMA)
    assert found["snapshot"] is None
    (row,) = found["rows"]
    assert (row["id"], row["rank"]) == (str(ranked.pk), "1")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "rows": [{**row, "rank": 1}]}, SCHEMA)


def test_the_board_is_cited_by_a_snapshot_that_resolves(ranked, client, alice):
    take_snapshot(task=ranked.task, actor=None, title="For A & B")
    found = client.get("/t/nli/leaderboard.json").json()
    jsonschema.validate(found, SCHEMA)
    cited = found["snapshot"]
    assert cited["is_current"]
    address = re.search(r"\\url\{(.+?)\}", cited["bibtex"]).group(1)
    assert address == cited["url"]
    path = urlsplit(address).path
    assert cited["bibtex"] == client.get(f"{path}?format=bibtex").text
    assert cited["sha256"] in client.get(path).text
    assert compute_table_digest(client.get(f"{path}?format=json").json()) == cited["sha256"]
    later = accepted_model(ranked.task, alice, name="later", is_published=True)
    scored(later, EvaluationSetVersion.objects.get())
    cited_later = client.get("/t/nli/leaderboard.json").json()["snapshot"]
    assert cited_later == {**cited, "is_current": False}
