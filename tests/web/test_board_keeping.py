"""Forks, snapshots, and the first models on the task's page and in frames of other sites."""

import re

import pytest
from django.core.management import CommandError, call_command

from leaderboard.models import Snapshot, Weights
from leaderboard.snapshots.services import take_snapshot
from tasks.models import TaskMember
from tests.support.board_pages import ROLES, URL, names, person, secrets, task  # noqa: F401
from tests.support.boards import fill_board

SPEED = "w_accuracy=0&w_throughput=8&w_memory=0&w_fairness=0&w_robustness=0"
FORKS, SNAPSHOTS, EMBED = (f"{URL}{name}/" for name in ("forks", "snapshots", "embed"))


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def models(task):  # noqa: F811
    return fill_board(task)


@pytest.fixture
def as_owner(client, alice, task):  # noqa: F811
    TaskMember.objects.create(task=task, user=alice, role="owner")
    client.force_login(alice)
    return client


def hidden_fields(page):
    return dict(re.findall(r'type="hidden" name="([wd]_[^"]+)" value="([^"]+)"', page))


def test_weights_are_saved_and_opened_by_their_name(as_alice, client, models):
    page = as_alice.get(f"{FORKS}?{SPEED}").text
    fields = hidden_fields(page)
    assert (fields["w_throughput"], fields["d_round-1"]) == ("8.0", "5.0")
    reply = as_alice.post(FORKS, {**fields, "name": "speed-first", "description": "For phones"})
    assert reply.url == f"{URL}?fork=speed-first"
    client.logout()
    page = client.get(f"{reply.url}&mode=robust").text
    assert names(page) == ["Model 0", "Model 1", "Model 2"]
    assert ">8 of 8, 100%<" in page
    assert "For phones" in client.get(FORKS).text
    assert client.get(f"{URL}?fork=unknown").status_code == 404


def test_weights_are_saved_by_people_with_an_account_under_a_proper_name(client, as_alice, models):
    bad = as_alice.post(FORKS, {"name": "Speed First"})
    assert bad.status_code == 422
    assert [*bad.context["form"].errors] == ["name"]
    assert "<title>Error: " in bad.text
    assert 'value="Speed First"' in bad.text
    zeros = dict.fromkeys(("w_accuracy", "w_macro_f1", "w_throughput"), "0")
    forged = {**zeros, "w_memory": "0", "w_fairness": "0", "w_robustness": "0", "name": "none"}
    assert as_alice.post(FORKS, forged).status_code == 400
    misspelt = {"name": "mine", "w_acuracy": "4"}
    assert as_alice.post(FORKS, misspelt).status_code == 400
    client.logout()
    assert client.post(FORKS, {"name": "mine"}).status_code == 404
    assert f'href="/accounts/login/?next={FORKS}"' in client.get(FORKS).text
    assert not Weights.objects.exists()


@pytest.mark.parametrize(("role", "status"), [
    ("stranger", 302), ("somebody", 404), ("reviewer", 403),
    ("alice", 302), ("owner", 302), ("superuser", 302),
])  # fmt: skip
def test_who_removes_weights(client, alice, task, models, role, status):  # noqa: F811
    Weights.objects.create(task=task, name="mine", owner=alice)
    if user := person(role, alice, task):
        client.force_login(user)
    assert client.post(f"{FORKS}mine/delete/").status_code == status
    assert Weights.objects.exists() == (role in ("stranger", "somebody", "reviewer"))


def test_an_owner_takes_a_snapshot_that_stays(as_owner, models):
    reply = as_owner.post(SNAPSHOTS, {"title": "First", "description": "For the paper"})
    snapshot = Snapshot.objects.get()
    assert reply.url == f"{SNAPSHOTS}1/"
    page = as_owner.get(reply.url).text
    assert "<title>Snapshot 1 · Natural language inference · Dynabench</title>" in page
    assert snapshot.sha256 in page
    assert "@misc{dynabench-nli-1," in page
    assert f"http://testserver{SNAPSHOTS}1/" in page
    assert 'id="first-snapshot"' in page
    before = names(page)
    models[2].delete()
    again = as_owner.get(reply.url).text
    assert "Model 2" in again
    assert before == ["Model 2", *names(again)]  # without a page there is no link
    second = as_owner.post(SNAPSHOTS, {})
    page = as_owner.get(second.url)
    assert any(change.startswith("Model 2 ") for change in page.context["changes"])
    assert "For the paper" in as_owner.get(SNAPSHOTS).text


def test_without_scores_there_is_nothing_to_keep(as_owner):
    reply = as_owner.post(SNAPSHOTS, {"title": "Empty"})
    assert reply.status_code == 422
    assert reply.context["form"].non_field_errors()
    assert 'value="Empty"' in reply.text
    assert not Snapshot.objects.exists()


@pytest.mark.parametrize("role", ROLES)
def test_only_who_edits_the_task_takes_snapshots(client, alice, task, models, role):  # noqa: F811
    if user := person(role, alice, task):
        client.force_login(user)
    may = role in ("owner", "superuser")
    assert ('id="take"' in client.get(SNAPSHOTS).text) == may
    status = 302 if may else 403 if role == "reviewer" else 404
    assert client.post(SNAPSHOTS, {}).status_code == status
    assert Snapshot.objects.exists() == may


@pytest.mark.parametrize("role", ROLES)
def test_kept_boards_have_no_secrets(client, alice, task, models, secrets, role):  # noqa: F811
    take_snapshot(task=task, actor=None)
    if user := person(role, alice, task):
        client.force_login(user)
    page = f"{SNAPSHOTS}1/"
    for address in (page, *(f"{page}?format={f}" for f in ("csv", "json", "latex")), EMBED):
        text = client.get(address).text.rpartition('id="main"')[2]
        assert "Anonymous 1" in text
        for secret in ("Private", "Nameless", "secret-set", "Gone", alice.annotator.pseudonym):
            assert secret not in text
    assert "Private" not in client.get("/t/nli/").text
    task.is_visible = False
    task.save(update_fields=["is_visible"])
    expected = 200 if role in ("reviewer", "owner", "superuser") else 404
    for address in (page, f"{page}?format=csv", SNAPSHOTS, FORKS, EMBED):
        assert client.get(address).status_code == expected


def test_other_sites_may_frame_the_first_five_and_nothing_else(client, task):  # noqa: F811
    fill_board(task, models=7)
    take_snapshot(task=task, actor=None)
    reply = client.get(EMBED)
    assert len(names(reply.text.replace(' target="_blank" rel="noopener"', ""))) == 5
    assert "X-Frame-Options" not in reply
    assert "frame-ancestors *" in reply["Content-Security-Policy"]
    assert "script" not in reply.text
    for address in (URL, f"{URL}?format=json", SNAPSHOTS, f"{SNAPSHOTS}1/", FORKS, "/t/nli/"):
        other = client.get(address)
        assert other["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in other["Content-Security-Policy"]


def test_the_tasks_page_shows_the_first_three(client, task):  # noqa: F811
    assert names(client.get("/t/nli/").text) == []
    fill_board(task, models=7)
    page = client.get("/t/nli/").text
    assert names(page) == [f"Model {n}" for n in (6, 5, 4)]
    assert f'href="{URL}"' in page
    assert f'href="{URL}"' in client.get("/t/nli/models/").text


@pytest.mark.parametrize(("role", "status"), [
    ("stranger", 302), ("somebody", 404), ("reviewer", 403), ("owner", 302), ("superuser", 302),
])  # fmt: skip
def test_who_freezes_rates_anew(client, alice, task, models, role, status):  # noqa: F811
    if user := person(role, alice, task):
        client.force_login(user)
    assert client.post(f"{URL}refreeze/").status_code == status
    assert Snapshot.objects.exists() == (role in ("owner", "superuser"))


def test_rates_are_frozen_anew_with_a_button(as_owner, task, models):  # noqa: F811
    assert as_owner.get(SNAPSHOTS).context["board"] is None
    reply = as_owner.post(f"{URL}refreeze/", follow=True)
    assert reply.redirect_chain[-1][0] == f"{SNAPSHOTS}1/"
    assert 'tabindex="-1" autofocus>Snapshot 1' in reply.text
    page = as_owner.get(SNAPSHOTS).text
    assert "Model 0, Model 1, Model 2." in page
    assert as_owner.get(f"{URL}refreeze/").status_code == 405


def test_too_few_models_freeze_no_rates(as_owner, task):  # noqa: F811
    reply = as_owner.post(f"{URL}refreeze/", follow=True)
    assert reply.redirect_chain[-1][0] == SNAPSHOTS
    with pytest.raises(CommandError):
        call_command("refreeze_rates", "nli")
    assert not Snapshot.objects.exists()
    with pytest.raises(CommandError, match="'other'"):
        call_command("refreeze_rates", "other")


def test_rates_are_frozen_anew_by_a_command(task, models, capsys):  # noqa: F811
    call_command("refreeze_rates", "nli")
    assert "Model 0, Model 1, Model 2: accuracy 1" in capsys.readouterr().out
    assert Snapshot.objects.get().description
