"""Models of a team: who sees them, who submits them, and how they are counted."""

# ruff: noqa: F811  (fixtures are named where they are used)

from datetime import timedelta

import pytest
from django.utils import timezone

from core.errors import Invalid, Refused
from dynabench.webhooks.events import may_know_event
from dynabench.webhooks.models import Webhook
from evaluation.contract import Outcome
from evaluation.models import Submission
from evaluation.submissions.services import find_files, find_remaining_quota
from evaluation.submissions.teams import services
from evaluation.submissions.teams.selectors import find_membership
from evaluation.test_sets.shown_scores import decide_if_shown
from leaderboard.board.matrix import read_matrix
from tests.support.submissions import (
    answered,
    make_set,
    release_of,
    scored,
    submission_of,
    url_of,
)
from tests.support.teams import (  # noqa: F401
    COMMIT,
    hand_in,
    mate,
    owner,
    person,
    task,
    team,
    team_of,
)

pytestmark = pytest.mark.django_db
TODAY = timezone.now().date()


@pytest.fixture
def model(task, owner, team):
    """Of the team, unpublished, with a score and answers on a set whose inputs may leave."""
    model = submission_of(task, owner, team=team, state="done", source="org/name")
    version = make_set(task, "dev", may_leave=True)
    answered(scored(model, version), *["entailment"] * 6)
    return model


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
    services.invite_member(team=team, actor=owner, email=invited.email)
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
    return {(one.name, one.team) for one in read_matrix(task, user).models}


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
    assert (told["owner"], told["team"]) == ("", "")
    assert told["name"] != "MiniLM seed 1"
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
    assert (find_remaining_quota(mate, task).left, find_remaining_quota(mate, task, team).left) == (
        2,
        0,
    )
    assert find_remaining_quota(owner, task, team).free_at
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
    assert [[*find_files(one)] for one in (alone, of_team)] == [[alone], [of_team]]
    assert len(read_matrix(task, owner).models) == 2


def test_results_on_sealed_sets_are_counted_by_team(task, owner, mate, team):
    sealed = make_set(task, "test", answers_public=False)
    scored(submission_of(task, owner, team=team, state="done"), sealed)

    def ended(user, of):
        """Whether a further result would be shown."""
        run = scored(submission_of(task, user, team=of, state="done"), sealed)
        type(run).objects.filter(pk=run.pk).update(is_shown=False)
        return decide_if_shown(run)

    assert not ended(mate, team)  # a set of six shows one result
    assert ended(mate, None)
    assert not ended(owner, None)
    task.members.create(user=mate, role="editor")
    assert not ended(mate, team)
    assert ended(mate, None)


def test_a_stranger_opens_no_door_of_a_team(owner, mate, team, task, client):
    stranger = person("stranger@example.com")
    own = team_of(stranger, name="Mine")
    place = find_membership(mate, team).pk
    client.force_login(stranger)
    for address in (
        f"/me/teams/{team.pk}/",
        f"/me/teams/{team.pk}/leave/",
        f"/me/teams/{team.pk}/members/{place}/remove/",
        f"/me/teams/{team.pk}/members/{place}/owner/",
        f"/me/teams/{own.pk}/members/{place}/owner/",
    ):
        assert client.post(address, {"email": stranger.email}).status_code == 404
    told = {"kind": "hub", "source": "org/name", "revision": COMMIT, "name": "First"}
    sent = client.post("/t/nli/submit/", {**told, "team": team.pk})
    assert (sent.status_code, [*sent.context["form"].errors]) == (422, ["team"])
    assert (team.members.count(), Submission.objects.count()) == (2, 0)


def test_webhooks_tell_of_a_model_to_its_team_until_one_leaves(model, task, mate, team):
    assert may_know_event(mate, Webhook.Event.SUBMISSION_FINISHED, task, model)
    assert not may_know_event(
        person("stranger@example.com"), Webhook.Event.SUBMISSION_FINISHED, task, model
    )
    services.leave_team(team=team, user=mate)
    assert not may_know_event(mate, Webhook.Event.SUBMISSION_FINISHED, task, model)
