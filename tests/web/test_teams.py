"""Teams: who is in them, what members see of each other's models, and what stays when they go."""

from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from dynabench.accounts.models import LogEntry, confirm_address
from dynabench.accounts.services import annotator_of
from dynabench.lib.errors import Invalid, Refused
from dynabench.me.services import delete_person, purge_deleted
from evaluation.contract import Outcome
from evaluation.models import Submission, Team, TeamMember
from evaluation.sets.shown_scores import may_show
from evaluation.submissions.services import files_of, remaining_quota, submit_model
from evaluation.teams import services
from evaluation.teams.selectors import invitations_of, place_of
from leaderboard.board.matrix import score_matrix
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.submissions import (
    answered,
    make_set,
    release_of,
    scored,
    submission_of,
    url_of,
)

pytestmark = pytest.mark.django_db
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TODAY = timezone.now().date()


@pytest.fixture
def task():
    return RoundFactory(task=TaskFactory(code="nli")).task


@pytest.fixture
def owner():
    return person("owner@example.com")


@pytest.fixture
def mate():
    return person("mate@example.com")


@pytest.fixture
def team(owner, mate):
    return team_of(owner, mate)


def person(email):
    user = UserFactory(email=email)
    annotator_of(user)
    confirm_address(user)
    return user


def team_of(owner, *others, name="Lab"):
    team = services.make_team(actor=owner, name=name)
    for other in others:
        invitation = services.invite(team=team, actor=owner, email=other.email)
        services.accept(invitation=invitation, user=other)
    return team


def hand_in(task, owner, name, **told):
    return submit_model(
        task=task, owner=owner, kind="hub", source="org/name", revision=COMMIT, name=name, **told
    )


@pytest.fixture
def model(task, owner, team):
    """Of the team, unpublished, with a score and answers on a set whose inputs may leave."""
    model = submission_of(task, owner, team=team, state="done", source="org/name")
    version = make_set(task, "dev", may_leave=True)
    answered(scored(model, version), *["entailment"] * 6)
    return model


# Members


def test_an_invitation_counts_once_who_owns_the_address_accepts_it(owner, client):
    team = services.make_team(actor=owner, name="  Lab   one ")
    services.invite(team=team, actor=owner, email=" Later@Example.com ")
    stranger = UserFactory(email="later@example.com")  # has not confirmed the address
    assert not invitations_of(stranger)
    confirm_address(stranger)
    [invitation] = invitations_of(stranger)
    client.force_login(stranger)
    assert client.get(f"/me/teams/{team.pk}/").status_code == 404
    assert client.post(f"/me/teams/invitations/{invitation.pk}/accept/").status_code == 302
    assert client.get(f"/me/teams/{team.pk}/").status_code == 200
    assert (team.name, place_of(stranger, team).is_owner) == ("Lab one", False)


def test_another_persons_invitation_is_not_there(owner, mate, client):
    team = services.make_team(actor=owner, name="Lab")
    invitation = services.invite(team=team, actor=owner, email="somebody@example.com")
    client.force_login(mate)
    for action in ("accept", "decline"):
        gone = client.post(f"/me/teams/invitations/{invitation.pk}/{action}/")
        assert gone.status_code == 404
    assert team.members.count() == 2


def test_an_invitation_tells_nobody_whether_there_is_an_account(owner, mate):
    team = services.make_team(actor=owner, name="Lab")
    for address in (mate.email, "nobody@example.com"):
        services.invite(team=team, actor=owner, email=address)
    assert [one.user_id for one in team.members.all()] == [owner.pk, None, None]


@pytest.mark.parametrize(
    ("email", "field"), [("", "email"), ("no address", "email"), ("MATE@example.com", "email")]
)
def test_what_cannot_be_invited(owner, team, email, field):
    with pytest.raises(Invalid) as refused:
        services.invite(team=team, actor=owner, email=email)
    assert refused.value.field == field
    assert team.members.count() == 2


def test_a_team_has_at_most_as_many_members(owner, team, monkeypatch):
    monkeypatch.setattr(services, "MOST_MEMBERS", 2)
    with pytest.raises(Refused):
        services.invite(team=team, actor=owner, email="third@example.com")


@pytest.mark.parametrize("name", ["", " ", "lab", "x" * 61])
def test_names_of_teams(mate, team, name):
    with pytest.raises(Invalid) as refused:
        services.make_team(actor=mate, name=name)
    assert refused.value.field == "name"


def test_only_owners_invite_remove_and_name_owners(owner, mate, team):
    place = place_of(owner, team)
    for change in (
        lambda: services.invite(team=team, actor=mate, email="third@example.com"),
        lambda: services.remove(team=team, actor=mate, member=place),
        lambda: services.set_owner(team=team, actor=mate, member=place, is_owner=False),
    ):
        with pytest.raises(Refused):
            change()
    assert place_of(owner, team).is_owner
    assert team.members.count() == 2


def test_a_team_keeps_an_owner(owner, mate, team):
    place = place_of(owner, team)
    for change in (
        lambda: services.leave_team(team=team, user=owner),
        lambda: services.remove(team=team, actor=owner, member=place),
        lambda: services.set_owner(team=team, actor=owner, member=place, is_owner=False),
    ):
        with pytest.raises(Refused):
            change()
    services.set_owner(team=team, actor=owner, member=place_of(mate, team), is_owner=True)
    services.leave_team(team=team, user=owner)
    assert place_of(mate, team).is_owner


def test_who_is_invited_cannot_be_made_an_owner(owner, team):
    invited = services.invite(team=team, actor=owner, email="third@example.com")
    with pytest.raises(Refused):
        services.set_owner(team=team, actor=owner, member=invited, is_owner=True)


def test_who_is_invited_twice_joins_once(owner, mate):
    team = services.make_team(actor=owner, name="Lab")
    EmailAddress.objects.create(user=mate, email="second@example.com", verified=True)
    for address in (mate.email, "second@example.com"):
        services.invite(team=team, actor=owner, email=address)
    for invitation in invitations_of(mate):
        services.accept(invitation=invitation, user=mate)
    assert team.members.filter(user=mate).count() == 1
    assert not invitations_of(mate)


def test_an_invitation_that_was_taken_back_is_refused(owner, mate):
    team = services.make_team(actor=owner, name="Lab")
    invitation = services.invite(team=team, actor=owner, email=mate.email)
    services.remove(team=team, actor=owner, member=invitation)
    with pytest.raises(Refused):
        services.accept(invitation=invitation, user=mate)
    services.decline(invitation=invitation, user=mate)
    assert place_of(mate, team) is None


def test_the_last_one_takes_a_team_without_models_along(owner, mate, team, task):
    services.leave_team(team=team, user=mate)
    services.invite(team=team, actor=owner, email="third@example.com")
    kept = team_of(mate, name="With a model")
    submission_of(task, mate, team=kept, state="done")
    services.leave_team(team=team, user=owner)
    services.leave_team(team=kept, user=mate)
    assert [*Team.objects.all()] == [kept]
    assert not TeamMember.objects.exists()


# What members see


DOORS = [
    "/m/{model}/",
    "/m/{model}/runs/{run}/",
    "/api/v1/models/{model}/",
    "/api/v1/models/{model}/runs/",
    "/api/v1/models/{model}/runs/{run}/",
    "/api/v1/models/{model}/scores/",
    "/api/v1/models/{model}/results/",
    "/api/v1/models/{model}/llm-scores/",
    "/api/v1/models/{model}/predictions/dev/",
    "/me/teams/{team}/",
    "/api/v1/teams/{team}/",
    "/api/v1/teams/{team}/models/",
]


@pytest.mark.parametrize("door", DOORS)
def test_members_see_an_unpublished_model_and_nobody_else(door, model, team, mate, client):
    address = door.format(model=model.pk, run=model.runs.get().pk, team=team.pk)
    stranger, invited = person("stranger@example.com"), person("invited@example.com")
    owner = team.members.get(is_owner=True).user
    services.invite(team=team, actor=owner, email=invited.email)
    team_of(stranger, invited, name="Another")
    for user in (stranger, invited):
        client.force_login(user)
        assert client.get(address).status_code == 404
    client.force_login(mate)
    assert client.get(address).status_code == 200
    services.leave_team(team=team, user=mate)
    assert client.get(address).status_code == 404


def test_nobody_sees_a_model_of_a_task_that_is_hidden_from_them(model, team, mate, task, client):
    client.force_login(mate)
    type(task).objects.update(is_visible=False)
    for door in DOORS[:2]:
        address = door.format(model=model.pk, run=model.runs.get().pk)
        assert client.get(address).status_code == 404
    assert client.get(f"/api/v1/teams/{team.pk}/models/").json()["results"] == []
    assert model.name not in client.get(f"/me/teams/{team.pk}/").text


def test_a_models_team_is_not_shown_its_other_models(model, owner, mate, task, client):
    mine = submission_of(task, owner, state="done")
    client.force_login(mate)
    assert client.get(url_of(mine)).status_code == 404


@pytest.mark.parametrize(
    "action", ["publish/", "unpublish/", "cancel/", "anonymous/", "embargo/", "cap/", "withdraw/"]
)
def test_only_who_submitted_it_changes_it(action, model, mate, client):
    client.force_login(mate)
    for address in (url_of(model, action), f"/api/v1/models/{model.pk}/{action}"):
        assert client.post(address, {}).status_code == 404


def test_members_do_not_repeat_evaluations(model, mate, client):
    client.force_login(mate)
    run = model.runs.get()
    type(run).objects.update(outcome=Outcome.INFRASTRUCTURE)
    again = url_of(model, f"runs/{run.pk}/again/")
    assert again not in client.get(url_of(model)).text
    for address in (
        again,
        f"/api/v1/models/{model.pk}/runs/{run.pk}/again/",
    ):
        assert client.post(address).status_code == 404


def test_members_read_no_right_answers_of_a_sealed_set(model, mate, task, client):
    sealed = make_set(task, "test", answers_public=False)
    run = scored(model, sealed)
    answered(run, *["entailment"] * 6)
    client.force_login(mate)
    for address in (
        f"/m/{model.pk}/runs/{run.pk}/wrong/",
        f"/api/v1/models/{model.pk}/runs/{run.pk}/wrong/",
        f"/api/v1/models/{model.pk}/predictions/test/",
    ):
        assert client.get(address).status_code == 404


def board_names(task, user):
    return {(one.name, one.team) for one in score_matrix(task, user).models}


def test_the_board_names_the_team(model, task, owner, mate, client):
    assert board_names(task, mate) == board_names(task, owner) == {("MiniLM seed 1", "Lab")}
    assert board_names(task, person("stranger@example.com")) == set()
    Submission.objects.update(is_published=True)
    assert board_names(task, None) == {("MiniLM seed 1", "Lab")}
    assert client.get("/t/nli/leaderboard.json").json()["rows"][0]["team"] == "Lab"
    for page in ("leaderboard/", "leaderboard/?format=csv", "models/"):
        assert "Lab" in client.get(f"/t/nli/{page}").text


def test_an_anonymous_model_hides_its_team_from_others(model, task, mate, client):
    Submission.objects.update(is_published=True, anonymous_until=TODAY + timedelta(9))
    assert board_names(task, None) == {("Anonymous 1", "")}
    assert board_names(task, mate) == {("MiniLM seed 1", "Lab")}
    told = client.get(f"/api/v1/models/{model.pk}/").json()
    assert (told["name"], told["owner"], told["team"]) == ("An anonymous model", "", "")
    assert "Lab" not in client.get(url_of(model)).text
    client.force_login(mate)
    assert client.get(f"/api/v1/models/{model.pk}/").json()["team"] == "Lab"


def test_a_tombstone_names_no_team(model, client):
    Submission.objects.update(is_published=True, withdrawn_at=timezone.now())
    assert client.get(f"/api/v1/models/{model.pk}/").json()["team"] == ""


def test_an_embargo_holds_for_all_but_the_team(model, mate, client):
    Submission.objects.update(publish_on=TODAY + timedelta(9))
    assert client.get(url_of(model)).status_code == 404
    client.force_login(mate)
    assert client.get(f"/api/v1/models/{model.pk}/").json()["publish_on"]


def test_released_errors_are_there_for_members(model, mate, client):
    run = model.runs.get()
    release_of(run.version)
    client.force_login(mate)
    assert client.get(f"/m/{model.pk}/runs/{run.pk}/wrong/").status_code == 200


# Submitting


def test_a_model_is_submitted_for_a_team_by_form_and_api(task, owner, mate, team, client):
    client.force_login(mate)
    assert client.get("/t/nli/submit/?kind=hub").context["form"].fields["team"]
    told = {"kind": "hub", "source": "org/name", "revision": COMMIT}
    sent = client.post("/t/nli/submit/", {**told, "name": "First", "team": team.pk})
    assert sent.status_code == 302
    body = {**told, "name": "Second", "team": "LAB"}
    made = client.post("/api/v1/tasks/nli/models/", body, "application/json")
    assert (made.status_code, made.json()["team"]) == (201, "Lab")
    assert Submission.objects.filter(team=team, owner=mate).count() == 2
    stranger = person("stranger@example.com")
    client.force_login(stranger)
    assert "team" not in client.get("/t/nli/submit/?kind=hub").context["form"].fields
    refused = client.post("/api/v1/tasks/nli/models/", body, "application/json")
    assert (refused.status_code, [*refused.json()["error"]["fields"]]) == (422, ["team"])
    with pytest.raises(Invalid) as error:
        hand_in(task, stranger, "Third", team=team)
    assert error.value.field == "team"


def test_quotas_count_by_team_as_well_as_by_person(task, owner, mate, team, client):
    hand_in(task, owner, "One", team=team)
    hand_in(task, owner, "Two", team=team)
    hand_in(task, mate, "Three", team=team)
    assert (remaining_quota(mate, task).left, remaining_quota(mate, task, team).left) == (2, 0)
    assert remaining_quota(owner, task, team).free_at
    with pytest.raises(Refused) as refused:
        hand_in(task, mate, "Four", team=team)
    assert refused.value.code == "quota"
    hand_in(task, mate, "Four")
    hand_in(task, mate, "Five")
    with pytest.raises(Refused):
        hand_in(task, mate, "Six")
    client.force_login(mate)
    told = [client.get(f"/api/v1/tasks/nli/quota/{query}").json() for query in ("", "?team=lab")]
    assert [one["left"] for one in told] == [0, 0]
    assert client.get("/api/v1/tasks/nli/quota/?team=other").status_code == 422


def test_a_name_is_taken_once_in_a_team(task, owner, mate, team):
    hand_in(task, owner, "Model", team=team)
    with pytest.raises(Invalid) as refused:
        hand_in(task, mate, "Model", team=team)
    assert refused.value.field == "name"
    hand_in(task, mate, "Model")


def test_predictions_of_a_team_are_another_model_than_ones_own(task, owner, team):
    version = make_set(task, "dev", may_leave=True)
    columns = {"task": task, "owner": owner, "kind": "predictions", "name": "Mine"}
    columns |= {"evaluation_set": version, "state": "done"}
    alone = Submission.objects.create(**columns)
    of_team = Submission.objects.create(**columns, team=team)
    assert [[*files_of(one)] for one in (alone, of_team)] == [[alone], [of_team]]
    assert len(score_matrix(task, owner).models) == 2


def test_results_on_sealed_sets_are_counted_by_team(task, owner, mate, team):
    sealed = make_set(task, "test", answers_public=False)
    scored(submission_of(task, owner, team=team, state="done"), sealed)

    def ended(user, of):
        """Whether a further result would be shown."""
        run = scored(submission_of(task, user, team=of, state="done"), sealed)
        type(run).objects.filter(pk=run.pk).update(is_shown=False)
        return may_show(run)

    assert not ended(mate, team)  # a set of six shows one result
    assert ended(mate, None)
    assert not ended(owner, None)
    task.members.create(user=mate, role="editor")
    assert not ended(mate, team)
    assert ended(mate, None)


# Leaving the site


def test_a_models_team_keeps_it_when_its_person_leaves(model, owner, mate, team, task):
    Submission.objects.update(secret="encrypted")
    waiting = submission_of(task, owner, team=team)
    mine = submission_of(task, owner, state="done")
    delete_person(user=owner)
    model.refresh_from_db()
    assert (model.owner, model.secret, model.withdrawn_at) == (mate, "", None)
    assert place_of(mate, team).is_owner
    for gone in (waiting, mine):
        gone.refresh_from_db()
        assert gone.withdrawn_at
    assert LogEntry.objects.filter(action="submission.passed_on").count() == 1
    assert "owner@example.com" not in str([*LogEntry.objects.values_list("data", flat=True)])


def test_a_team_of_one_ends_with_its_person(owner, task):
    team = team_of(owner, name="Alone")
    model = submission_of(task, owner, team=team, state="done")
    other = team_of(person("other@example.com"), name="Other")
    services.invite(team=other, actor=other.members.get().user, email=owner.email)
    delete_person(user=owner)
    model.refresh_from_db()
    assert model.withdrawn_at
    assert [*Team.objects.all()] == [other]
    assert not TeamMember.objects.filter(address="owner@example.com").exists()


def test_what_an_administrator_deleted_is_mended(model, owner, mate, team):
    owner.delete()
    purge_deleted()
    model.refresh_from_db()
    assert (model.owner, model.withdrawn_at) == (mate, None)
    assert place_of(mate, team).is_owner


# Pages


def test_the_pages_of_a_team(owner, mate, client):
    client.force_login(owner)
    refused = client.post("/me/teams/", {"name": ""})
    assert refused.status_code == 422
    assert client.post("/me/teams/", {"name": "Lab"}).status_code == 302
    team = Team.objects.get()
    page = f"/me/teams/{team.pk}/"
    assert client.post(page, {"email": "no"}).status_code == 422
    assert client.post(page, {"email": mate.email}).status_code == 302
    invited = team.members.get(user=None)
    client.force_login(mate)
    assert client.get("/me/teams/").context["invitations"].get() == invited
    client.post(f"/me/teams/invitations/{invited.pk}/accept/")
    assert client.post(page, {"email": "third@example.com"}).context["form"].errors
    client.force_login(owner)
    client.post(f"{page}members/{invited.pk}/owner/")
    assert place_of(mate, team).is_owner
    client.post(f"{page}members/{invited.pk}/member/")
    assert not place_of(mate, team).is_owner
    client.post(f"{page}leave/")
    assert place_of(owner, team)
    client.post(f"{page}members/{invited.pk}/remove/")
    assert place_of(mate, team) is None
    client.post(f"{page}leave/")
    with pytest.raises(ObjectDoesNotExist):
        team.refresh_from_db()


def test_the_api_of_teams(owner, mate, client):
    def send(verb, path, body=None):
        return getattr(client, verb)(f"/api/v1/{path}", body, "application/json")

    client.force_login(owner)
    made = send("post", "teams/", {"name": "Lab"}).json()
    at = f"teams/{made['id']}/"
    invited = send("post", f"{at}members/", {"email": mate.email}).json()
    assert (invited["name"], invited["joined_at"]) == ("", None)
    client.force_login(mate)
    assert send("post", f"me/invitations/{invited['id']}/decline/").status_code == 204
    client.force_login(owner)
    send("post", f"{at}members/", {"email": mate.email})
    client.force_login(mate)
    [asked] = client.get("/api/v1/me/invitations/").json()["results"]
    assert asked["team"] == "Lab"
    assert send("post", f"me/invitations/{asked['id']}/accept/").status_code == 204
    [team] = client.get("/api/v1/teams/").json()["results"]
    assert [one["is_owner"] for one in team["members"]] == [True, False]
    assert send("post", f"{at}members/", {"email": "c@example.com"}).status_code == 409
    client.force_login(owner)
    member = f"{at}members/{asked['id']}/"
    assert send("patch", member, {"is_owner": True}).json()["members"][1]["is_owner"]
    assert send("post", f"{at}leave/").status_code == 204
    client.force_login(mate)
    assert send("delete", member).status_code == 204
    assert client.get("/api/v1/teams/").json()["results"] == []
