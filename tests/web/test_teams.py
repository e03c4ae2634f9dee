"""Teams: who is in them, and what stays when they go."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from allauth.account.models import EmailAddress
from django.core.exceptions import ObjectDoesNotExist

from core.accounts.models import LogEntry, confirm_address
from core.errors import Invalid, Refused
from dynabench.people.deletion.services import delete_person, purge_deleted
from evaluation.models import Submission, Team, TeamMember
from evaluation.submissions.teams import services
from evaluation.submissions.teams.selectors import find_invitations, find_membership
from tests.support.factories import UserFactory
from tests.support.submissions import submission_of
from tests.support.teams import (  # noqa: F401
    mate,
    owner,
    person,
    task,
    team,
    team_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(task, owner, team):
    return submission_of(task, owner, team=team, state="done")


# Members


def test_an_invitation_counts_once_who_owns_the_address_accepts_it(owner, client):
    team = services.make_team(actor=owner, name="  Lab   one ")
    services.invite_member(team=team, actor=owner, email=" Later@Example.com ")
    stranger = UserFactory(email="later@example.com")  # has not confirmed the address
    assert not find_invitations(stranger)
    confirm_address(stranger)
    [invitation] = find_invitations(stranger)
    client.force_login(stranger)
    assert client.get(f"/me/teams/{team.pk}/").status_code == 404
    assert client.post(f"/me/teams/invitations/{invitation.pk}/accept/").status_code == 302
    assert client.get(f"/me/teams/{team.pk}/").status_code == 200
    assert (team.name, find_membership(stranger, team).is_owner) == ("Lab one", False)


def test_another_persons_invitation_is_not_there(owner, mate, client):
    team = services.make_team(actor=owner, name="Lab")
    invitation = services.invite_member(team=team, actor=owner, email="somebody@example.com")
    client.force_login(mate)
    for action in ("accept", "decline"):
        gone = client.post(f"/me/teams/invitations/{invitation.pk}/{action}/")
        assert gone.status_code == 404
    assert team.members.count() == 2


def test_an_invitation_tells_nobody_whether_there_is_an_account(owner, mate):
    team = services.make_team(actor=owner, name="Lab")
    for address in (mate.email, "nobody@example.com"):
        services.invite_member(team=team, actor=owner, email=address)
    assert [one.user_id for one in team.members.all()] == [owner.pk, None, None]


@pytest.mark.parametrize(
    ("email", "field"), [("", "email"), ("no address", "email"), ("MATE@example.com", "email")]
)
def test_what_cannot_be_invited(owner, team, email, field):
    with pytest.raises(Invalid) as refused:
        services.invite_member(team=team, actor=owner, email=email)
    assert refused.value.field == field
    assert team.members.count() == 2


def test_a_team_has_at_most_as_many_members(owner, team, monkeypatch):
    monkeypatch.setattr(services, "MAX_MEMBERS", 2)
    with pytest.raises(Refused):
        services.invite_member(team=team, actor=owner, email="third@example.com")


@pytest.mark.parametrize("name", ["", " ", "lab", "x" * 61])
def test_names_of_teams(mate, team, name):
    with pytest.raises(Invalid) as refused:
        services.make_team(actor=mate, name=name)
    assert refused.value.field == "name"


def test_only_owners_invite_remove_and_name_owners(owner, mate, team):
    place = find_membership(owner, team)
    for change in (
        lambda: services.invite_member(team=team, actor=mate, email="third@example.com"),
        lambda: services.remove_member(team=team, actor=mate, member=place),
        lambda: services.set_owner(team=team, actor=mate, member=place, is_owner=False),
    ):
        with pytest.raises(Refused):
            change()
    assert find_membership(owner, team).is_owner
    assert team.members.count() == 2


def test_a_team_keeps_an_owner(owner, mate, team):
    place = find_membership(owner, team)
    for change in (
        lambda: services.leave_team(team=team, user=owner),
        lambda: services.remove_member(team=team, actor=owner, member=place),
        lambda: services.set_owner(team=team, actor=owner, member=place, is_owner=False),
    ):
        with pytest.raises(Refused):
            change()
    services.set_owner(team=team, actor=owner, member=find_membership(mate, team), is_owner=True)
    services.leave_team(team=team, user=owner)
    assert find_membership(mate, team).is_owner


def test_who_is_invited_cannot_be_made_an_owner(owner, team):
    invited = services.invite_member(team=team, actor=owner, email="third@example.com")
    with pytest.raises(Refused):
        services.set_owner(team=team, actor=owner, member=invited, is_owner=True)


def test_who_is_invited_twice_joins_once(owner, mate):
    team = services.make_team(actor=owner, name="Lab")
    EmailAddress.objects.create(user=mate, email="second@example.com", verified=True)
    for address in (mate.email, "second@example.com"):
        services.invite_member(team=team, actor=owner, email=address)
    for invitation in find_invitations(mate):
        services.accept_invitation(invitation=invitation, user=mate)
    assert team.members.filter(user=mate).count() == 1
    assert not find_invitations(mate)


def test_an_invitation_that_was_taken_back_is_refused(owner, mate):
    team = services.make_team(actor=owner, name="Lab")
    invitation = services.invite_member(team=team, actor=owner, email=mate.email)
    services.remove_member(team=team, actor=owner, member=invitation)
    with pytest.raises(Refused):
        services.accept_invitation(invitation=invitation, user=mate)
    services.decline_invitation(invitation=invitation, user=mate)
    assert find_membership(mate, team) is None


def test_the_last_one_takes_a_team_without_models_along(owner, mate, team, task):
    services.leave_team(team=team, user=mate)
    services.invite_member(team=team, actor=owner, email="third@example.com")
    kept = team_of(mate, name="With a model")
    submission_of(task, mate, team=kept, state="done")
    services.leave_team(team=team, user=owner)
    services.leave_team(team=kept, user=mate)
    assert [*Team.objects.all()] == [kept]
    assert not TeamMember.objects.exists()


# Leaving the site


def test_a_models_team_keeps_it_when_its_person_leaves(model, owner, mate, team, task):
    Submission.objects.update(secret="encrypted")
    waiting = submission_of(task, owner, team=team)
    mine = submission_of(task, owner, state="done")
    delete_person(user=owner)
    model.refresh_from_db()
    assert (model.owner, model.secret, model.withdrawn_at) == (mate, "", None)
    assert find_membership(mate, team).is_owner
    for gone in (waiting, mine):
        gone.refresh_from_db()
        assert gone.withdrawn_at
    assert LogEntry.objects.filter(action="submission.passed_on").count() == 1
    assert "owner@example.com" not in str([*LogEntry.objects.values_list("data", flat=True)])


def test_a_team_of_one_ends_with_its_person(owner, task):
    team = team_of(owner, name="Alone")
    model = submission_of(task, owner, team=team, state="done")
    other = team_of(person("other@example.com"), name="Other")
    services.invite_member(team=other, actor=other.members.get().user, email=owner.email)
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
    assert find_membership(mate, team).is_owner


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
    assert find_membership(mate, team).is_owner
    client.post(f"{page}members/{invited.pk}/member/")
    assert not find_membership(mate, team).is_owner
    client.post(f"{page}leave/")
    assert find_membership(owner, team)
    client.post(f"{page}members/{invited.pk}/remove/")
    assert find_membership(mate, team) is None
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
